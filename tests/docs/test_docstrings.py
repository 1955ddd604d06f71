"""Docstrings of public names: complete sections, and examples that give what they show."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codegen
import tilejit as tj
from tilejit import cute

pytest.importorskip("xdsl")  # tilejit.mlir reads text with it
from tests.tools.extent import few_by_default
from tilejit import mlir

LIBRARIES = {
    "dask": "dask",
    "jax": "jax",
    "onednn": "torch",
    "tenstorrent": "torch",
    "torch": "torch",
    "zarr": "zarr",
}
"""The library that the examples of each module of `tilejit.interop` need."""
MODULES = [
    tj,
    cute,
    mlir,
    *(import_module(f"tilejit.interop.{name}") for name, needs in LIBRARIES.items() if find_spec(needs)),
    import_module("tilejit.files.conversion"),
]

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$", re.MULTILINE)
ENTRY = re.compile(r"^    ((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*): \S", re.MULTILINE)
NO_RESULT = (None, "None", "NoReturn")
MADE_ELSEWHERE = {
    tj.CopyPlan,
    tj.Elementwise,
    tj.Explanation,
    tj.InferredLayout,
    tj.Kernel,
    tj.LayoutPicture,
    cute.LayoutTVPicture,
    mlir.Checked,
    mlir.Module,
    mlir.Program,
}
"""Classes whose objects functions return. Users do not call them."""

FEWEST_EXAMPLES = {
    "tilejit.pack": 5,
    "tilejit.unpack": 5,
    "tilejit.relayout": 5,
    "tilejit.scatter_tiles": 5,
    "tilejit.bump_indices": 3,
    "tilejit.dimension_stride": 3,
    "tilejit.in_bounds": 2,
    "tilejit.linear_index": 3,
    "tilejit.make_shape": 4,
    "tilejit.multi_index": 3,
    "tilejit.normalize_dimension": 2,
    "tilejit.is_monotonic_with_dim0_minor": 2,
    "tilejit.is_monotonic_with_dim0_major": 2,
}
"""Names for which one example would not show everything important."""


def routines() -> dict[str, Any]:
    """Every public function, class and method of a public class, by name."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isroutine(public) or inspect.isclass(public):
                found.setdefault(f"{module.__name__}.{name}", public)
            if inspect.isclass(public):
                found |= {f"{module.__name__}.{name}.{x}": method for x, method in methods(public)}
    return found


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The functions that a class itself defines."""
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function) and is_ours(function):
            yield name, function


def is_ours(value: Any) -> bool:
    return value.__module__.partition(".")[0] in ("tilejit", "codegen")


PUBLIC = {name: value for name, value in routines().items() if is_ours(value)}
ROUTINES = {name: value for name, value in PUBLIC.items() if not inspect.isclass(value)}
CLASSES = {
    name: value
    for name, value in PUBLIC.items()
    if inspect.isclass(value) and not issubclass(value, Exception)
}
ERRORS = {name: value for name, value in PUBLIC.items() if name not in ROUTINES and name not in CLASSES}


def properties() -> dict[str, property]:
    """The properties of public classes, by name."""
    return {
        f"{name}.{member}": value
        for name, kind in CLASSES.items()
        for member, value in inspect.getmembers(kind, lambda x: isinstance(x, property))
        if not member.startswith("_") and value.fget and is_ours(value.fget)
    }


def sections(text: str) -> dict[str, str]:
    """The text below each heading, up to the next one."""
    parts = SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section: str) -> set[str]:
    """The names that a section explains."""
    return {name.strip("*") for found in ENTRY.findall(section) for name in found.split(", ")}


def check_summary(text: str | None) -> str:
    assert text, "no docstring"
    summary, *rest = text.splitlines()
    assert summary.endswith("."), summary
    assert not rest or not rest[0], f"a blank line follows the summary: {summary}"
    return text


def test_all_public_names_are_covered() -> None:
    assert len(ROUTINES) > 130
    assert {"tilejit.pack", "tilejit.TiledArray.unpack", "tilejit.cute.coalesce", "tilejit.mlir.run"} <= {
        *ROUTINES
    }
    assert {"tilejit.Shape", "tilejit.cute.Layout", "tilejit.accelerate"} <= {*CLASSES}


@pytest.mark.parametrize("name", ROUTINES)
def test_functions_document_arguments_results_and_errors(name: str) -> None:
    function = ROUTINES[name]
    text = check_summary(inspect.getdoc(function))
    found = sections(text)
    signature = inspect.signature(function)
    wanted = {x for x in signature.parameters if x not in ("self", "cls")}
    assert entries(found.get("Args", "")) == wanted
    if signature.return_annotation not in NO_RESULT:
        assert "Returns" in found
    raised = raised_by(function)
    described = found.get("Raises", "")
    missing = {kind for kind in raised if not any(base.__name__ in described for base in kind.__mro__)}
    assert not missing, f"Raises: lacks {missing}"


@pytest.mark.parametrize("name", CLASSES)
def test_classes_document_their_fields(name: str) -> None:
    kind = CLASSES[name]
    text = check_summary(inspect.getdoc(kind))
    found = sections(text)
    if kind not in MADE_ELSEWHERE:
        wanted = {x for x in inspect.signature(kind).parameters if x not in ("self", "cls")}
        assert wanted <= entries(found.get("Args", "")) | entries(found.get("Attributes", ""))


def test_errors_have_a_summary() -> None:
    for kind in ERRORS.values():
        check_summary(kind.__doc__)


def test_properties_have_a_summary() -> None:
    for value in properties().values():
        check_summary(inspect.getdoc(value))


@pytest.mark.parametrize("name", few_by_default([*ROUTINES, *CLASSES, *properties()], 15))
def test_examples_give_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    value = PUBLIC.get(name) or properties()[name]
    names: dict[str, Any] = {"np": np, "tilejit": tj, "mlir": mlir}
    if "cute" in name:
        names |= {x: getattr(cute, x) for x in cute.__all__}
    if name.startswith(("tilejit.interop.", "tilejit.files.")):
        names |= {library: import_module(library) for library in LIBRARIES.values() if find_spec(library)}
        names |= vars(next(m for m in reversed(MODULES) if name.startswith(f"{m.__name__}.")))
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", names, name, None, None)
    if name not in properties():
        assert len(test.examples) >= FEWEST_EXAMPLES.get(name, 1)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def raised_by(function: Any) -> set[type[Exception]]:
    """TileJIT's errors, TypeError and similar ones that the function itself raises."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    called = (
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    )
    kinds = (function.__globals__.get(name) or getattr(codegen, name, None) for name in called)
    builtins = {"TypeError": TypeError, "ValueError": ValueError}
    found = {kind for kind in kinds if inspect.isclass(kind)}
    return {x for x in found if issubclass(x, Exception)} | {
        kind for name, kind in builtins.items() if re.search(rf"raise {name}\(", inspect.getsource(function))
    }
