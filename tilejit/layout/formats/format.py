"""`Format`: a name, what it stands for, and the function from an array to its layout; names it can't take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, signature
from typing import Any

from codegen import LayoutError, dataclass
from tilejit.layout.dtypes import PrimitiveType

Dims = tuple[int, ...]
ELEMENT_SIZE = "element_size_in_bits"
"""What all layouts of blocks take; a format may have it as a parameter of its own, a pattern no such axis."""
RESERVED = (
    *("layout", "dtype", "dims", "out", "padding", "casting", "threads", "tensors"),
    *("virtual_vector_size", "specialize", "tune"),
)
"""Keywords of the calls that hand all others to a layout."""

_MEND = f"choose another name; the calls keep {', '.join(RESERVED)}"


@dataclass(frozen=True, slots=True)
class Format:
    """A named format.

    Attributes:
        name: what `as_layout` knows it by.
        description: what it is, in one line.
        build: build(element, dims, **parameters) -> anything `as_layout` reads but a name, or a Blocking.
        parameters: the keywords beside dtype and dims, None where it takes any.
        example: dimensions and dtype of a small array, for pictures; None where there is none.
        formula: a pattern, and what its sizes are behind a semicolon; or the rule in words.
        source: where it is defined.
    """

    name: str
    description: str
    build: Callable[..., object]
    parameters: tuple[str, ...] | None = ()
    example: tuple[Dims, str] | None = None
    formula: str = ""
    source: str = ""

    def layout(self, element: PrimitiveType, dims: Dims, parameters: dict[str, Any]) -> object:
        """What `build` says of an array.

        Raises:
            TypeError: a parameter that the format does not take.
        """
        self.check_parameters(parameters)
        return self.build(element, dims, **parameters)

    def check_parameters(self, names: Iterable[str]) -> None:
        """Refuse a keyword that the format does not take.

        Raises:
            TypeError: names it, and those that the format takes.
        """
        unknown = [key for key in names if self.parameters is not None and key not in self.parameters]
        if unknown:
            takes = f"it takes {', '.join(self.parameters)}" if self.parameters else "it takes none"
            raise TypeError(f"the format {self.name!r} has no parameter {unknown[0][:40]!r}; {takes}")


def keywords_of(function: Callable[..., object]) -> tuple[str, ...] | None:
    """The parameters of a function after the first two that can be given by keyword; None where any can.

    def f(dtype, dims, *, block=8) -> ("block",)

    Raises:
        TypeError: it is not a function, or cannot be called with dtype and dims by place.
    """
    if not callable(function):
        raise TypeError(f"a format is a function of dtype and dims, not {type(function).__name__}")
    try:
        found: Signature = signature(function)
        found.bind_partial(None, ())
    except ValueError as error:
        raise TypeError(
            f"nothing is known of the function's parameters: {error}; wrap it in a def"
        ) from error
    except TypeError as error:
        raise TypeError(
            f"a format is called with dtype and dims, its parameters by keyword; this is not: {error}"
        ) from error
    rest = list(found.parameters.values())
    rest = rest[
        sum(p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for p in rest[:2]) :
    ]
    if any(p.kind is Parameter.VAR_KEYWORD for p in rest):
        return None
    return tuple(p.name for p in rest if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY))


def reserved_mistake(name: str, what: str) -> tuple[str, str] | None:
    """What is wrong with a name, and what to do; None where it is free.

    ("threads", "an axis") -> ("an axis is named threads, as a keyword of pack, …", "choose another name; …")
    """
    if name not in (*RESERVED, ELEMENT_SIZE):
        return None
    return f"{what} is named {name}, as a keyword of pack, relayout and the like", _MEND


def refuse_reserved(name: str, what: str) -> None:
    """Raise where a parameter could not be told from a call's own keyword.

    Raises:
        LayoutError: it has the name of one.
    """
    wrong = reserved_mistake(name, what) if name != ELEMENT_SIZE else None
    if wrong:
        raise LayoutError("\n  ".join(wrong))
