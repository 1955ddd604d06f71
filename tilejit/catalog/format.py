"""`Format`: a name, a description, and a function from an array to its layout; also the reserved names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, Protocol

from codegen import LayoutError, dataclass
from tilejit.catalog.packing import Packing

Dims = tuple[int, ...]
OF_THE_ARRAY = ("element", "dims")
"""What `build` gets of the array."""


class Element(Protocol):
    """What a format may ask of an element type."""

    @property
    def name(self) -> str:
        """XLA's name in lower case."""

    @property
    def bits(self) -> int:
        """The width of a value, in bits."""

    @property
    def kind(self) -> str:
        """The kind of its values: pred, signed, unsigned, float or complex."""

    @property
    def storage_bits(self) -> int:
        """The width of an element that is not packed, in bits."""


ELEMENT_SIZE = "element_size_in_bits"
"""A parameter of every blocked layout; a format may define it too, but a pattern cannot use it as a name."""
CALL_KEYWORDS = (
    "out",
    "padding",
    "casting",
    "threads",
    "virtual_vector_size",
    "schedule",
    "specialize",
    "tune",
)
"""The reserved names that a misspelled parameter may stand for."""
RESERVED = ("layout", "dtype", "dims", "tensors", "again", *CALL_KEYWORDS)
"""Keywords of the calls that pass all other keywords to a layout."""
_FIX = f"choose another name; the calls reserve {', '.join(RESERVED)}"


@dataclass(frozen=True, slots=True)
class Format:
    """A named format.

    Attributes:
        name: the name that `as_layout` reads.
        description: one line about it.
        build: build(element, dims, **parameters) -> a Packing, or anything that `as_layout` reads except a
            name.
        parameters: the keywords, except dtype and dims; None if it takes any.
        example: dimensions and dtype of a small array for pictures; None if there is none.
        rule: what decides the layout: a pattern, or in words what the pattern of a packing does not say.
        source: where it is defined.
        depends_on: what decides the layout beside the parameters: "element", "dims", both or neither.
        verified: how TileJIT's bytes were compared with those of the source.
        variants: parameters that `identify` tries beside the defaults.
    """

    name: str
    description: str
    build: Callable[..., object]
    parameters: tuple[str, ...] | None = ()
    example: tuple[Dims, str] | None = None
    rule: str = ""
    source: str = ""
    depends_on: tuple[str, ...] = OF_THE_ARRAY
    verified: str = ""
    variants: tuple[Mapping[str, Any], ...] = ()

    def layout(self, element: Element, dims: Dims, parameters: dict[str, Any]) -> object:
        """Return the result of `build` for an array.

        Raises:
            TypeError: the format does not take a parameter.
        """
        self.check_parameters(parameters)
        return self.build(element, dims, **parameters)

    def packing(self, parameters: Mapping[str, Any]) -> Packing | None:
        """The Packing that the format has for every array; None if it depends on the array.

        Raises:
            TypeError: the format does not take a parameter.
        """
        self.check_parameters(parameters)
        built = self.build(None, None, **parameters) if not self.depends_on else None
        return built if isinstance(built, Packing) else None

    def check_parameters(self, names: Iterable[str]) -> None:
        """Refuse a keyword that the format does not take.

        Raises:
            TypeError: the format does not take one of the keywords; the message names those that it takes.
        """
        unknown = [key for key in names if self.parameters is not None and key not in self.parameters]
        if unknown:
            takes = f"it takes {', '.join(self.parameters)}" if self.parameters else "it takes none"
            hint = nearest_keyword(unknown[0], self.parameters or ())
            raise TypeError(f"the format {self.name!r} has no parameter {unknown[0][:40]!r}; {takes}{hint}")


def keywords_of(function: Callable[..., object]) -> tuple[str, ...] | None:
    """The parameters of a function after the first two that can be given by keyword; None if any can.

    def f(dtype, dims, *, block=8) -> ("block",)

    Raises:
        TypeError: it is not a function, or cannot be called with dtype and dims by position.
    """
    if not callable(function):
        raise TypeError(f"expected a function of dtype and dims as a format, got {type(function).__name__}")
    try:
        found: Signature = signature(function)
        found.bind_partial(None, ())
    except ValueError as error:
        raise TypeError(f"cannot inspect the function's parameters: {error}; wrap it in a def") from error
    except TypeError as error:
        raise TypeError(
            f"a format must take dtype and dims by position and parameters by keyword: {error}"
        ) from error
    rest = list(found.parameters.values())
    rest = rest[
        sum(p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for p in rest[:2]) :
    ]
    if any(p.kind is Parameter.VAR_KEYWORD for p in rest):
        return None
    return tuple(p.name for p in rest if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY))


def nearest_keyword(name: str, own: Iterable[str]) -> str:
    """Suggest a similar parameter of the layout, or a keyword of the calls; empty if none is similar.

    ("tiles", ["tile"]) -> "\\n  did you mean tile?"
    ("thread", ["tile"]) -> "\\n  did you mean threads, a keyword of pack and similar calls?"
    """
    from difflib import get_close_matches

    for known, what in ((own, ""), (CALL_KEYWORDS, ", a keyword of pack and similar calls")):
        for near in get_close_matches(name[:40], known, n=1, cutoff=0.7):
            return f"\n  did you mean {near}{what}?"
    return ""


def reserved_mistake(name: str, what: str) -> tuple[str, str] | None:
    """The reason a name is not available, and the fix; None if it is available.

    ("threads", "an axis") -> ("an axis has the name threads, which is ...", "choose another name; ...")
    """
    if name not in (*RESERVED, ELEMENT_SIZE):
        return None
    return f"{what} has the name {name}, which is a keyword of pack, relayout and similar calls", _FIX


def refuse_reserved(name: str, what: str) -> None:
    """Raise if a parameter has the name of a call's own keyword.

    Raises:
        LayoutError: it has such a name.
    """
    wrong = reserved_mistake(name, what) if name != ELEMENT_SIZE else None
    if wrong:
        raise LayoutError("\n  ".join(wrong))
