"""A Griffe extension that adapts docstrings and signatures, which are written for `help()`, to the reference.

Examples become code blocks, and names that only the implementation uses are replaced or omitted.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

sys.path.append(str(Path(__file__).parent))  # Griffe loads this file by its path, not as part of a package
from docstring_text import rewritten

PUBLIC_TYPES = {
    "Array": "NDArray[Any]",
    "LayoutLike": "Shape | Layout | CuteShape | CuteLayout | ComposedLayout | str",
    "AnyShape": "Shape | TupleShape | BufferShape",
    "ElementLike": "DTypeLike",
    "VectorSize": 'int | tuple[int, int] | Literal["auto"]',
    "Specialize": 'Literal["structure", "sizes"]',
    "Casting": 'Literal["no", "equiv", "safe", "same_kind", "unsafe"]',
    "Order": 'Literal["K", "A", "C", "F"]',
    "Padding": 'int | float | complex | Literal["keep"]',
    "PaddingNumber": "int | float | complex",
    "Duplicates": 'Literal["error", "last"]',
    "Buffer": "NDArray[Any] | bytes",
    "Spec": "Shape | CuteShape",
    "PaddingValue": "int | float | complex",
    "PrimitiveType": "str",
}
"""Aliases of the implementation, and the types to show in their place."""
HIDDEN_BASES = ("Direct",)
HIDDEN_MEMBERS = {"Elementwise": ("answered", "record", "plan", "new_program", "run")}
"""Methods that other modules call, but users don't."""


class ReferencePages(griffe.Extension):
    """Rewrites objects after Griffe has loaded them."""

    def on_module_members(self, *, mod: griffe.Module, **kwargs: Any) -> None:
        """Document `one = _checked(other)` and `one = other` in `tilejit.cute` as `other`."""
        if mod.path not in ("tilejit.cute", "tilejit.cute.checked"):
            return
        for name, member in list(mod.members.items()):
            if isinstance(member, griffe.Attribute):
                value = re.sub(r"_checked\((.*)\)", r"\1", str(member.value))
                first, _, rest = value.partition(".")
                imported = mod.imports.get(first)
                if imported:
                    target = f"{imported}.{rest}" if rest else imported
                    mod.set_member(name, griffe.Alias(name, target, parent=mod))

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Rewrite the docstring, signature, bases and members of an object."""
        if isinstance(obj, griffe.Function):
            for parameter in obj.parameters:
                parameter.annotation = _public(parameter.annotation)
                parameter.default = _literal(parameter.default)
            obj.returns = _public(obj.returns)
        elif isinstance(obj, griffe.Class):
            obj.bases = [base for base in obj.bases if str(base) not in HIDDEN_BASES]
            for name in HIDDEN_MEMBERS.get(obj.name, ()):
                obj.members.pop(name, None)
        if obj.docstring:
            obj.docstring.value = rewritten(obj.docstring.value)


def _public(annotation: Any) -> Any:
    """An annotation with public types in place of aliases."""
    if annotation is None:
        return None
    text = re.sub(r"\b\w+\b", lambda name: PUBLIC_TYPES.get(name[0], name[0]), str(annotation))
    return text if text != str(annotation) else annotation


def _literal(default: Any) -> Any:
    """The value of a default that is a constant of a module: `AUTO` -> `"auto"`."""
    if not isinstance(default, griffe.ExprName):
        return default
    module, _, name = default.canonical_path.rpartition(".")
    if module.partition(".")[0] not in ("tilejit", "codegen"):
        return default
    value = getattr(import_module(module), name, None)
    return json.dumps(value) if isinstance(value, str) else default
