"""`describe_format`: describes a named format and the arrays that it takes."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from codegen import LayoutError, dataclass
from tilejit.catalog.entries import fields_text
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Packing
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, lookup, primitive_type
from tilejit.layout.formats.aliases import same_bytes
from tilejit.layout.formats.examples import example_packing
from tilejit.layout.formats.packings import packing_shape
from tilejit.layout.formats.registry import find_format

MAX_RANK = 12
"""The most dimensions of any format with a limit, which is oneDNN's."""
WIDTH = 80


@dataclass(frozen=True, repr=False, slots=True)
class FormatDescription:
    """A description of a named format; it prints as the text that `tilejit formats NAME` begins with.

    >>> vnni = tilejit.describe_format("vnni")
    >>> vnni.name, vnni.ranks
    ('vnni', '2 or more')

    Attributes:
        name: the name that `as_layout` reads.
        description: one line about it.
        formula: a pattern, followed by its sizes after a semicolon; or the rule in words. Empty for a
            registered function.
        source: where it is defined; for a registered function its name.
        parameters: its keywords, except dtype and dims. None if it takes any.
        dtypes: XLA's names of the dtypes that it takes without parameters. None for a registered function.
        least_rank: the fewest dimensions of an array. None for a registered function.
        most_rank: the most dimensions. None if there is no limit, or for a registered function.
        planes: for a format of planes, each plane with its extents and its values.
        buffers: for a format of planes or of codes, each buffer with its dtype and extents in checkpoints.
        constraints: the dimensions that must be multiples, and of what; other dimensions are padded.
        padding: the value of padding elements that differs from 0, in words; else empty.
        verified: how TileJIT's bytes were compared with those of the source; empty if the definition decides.
        same_as: other formats with the same bytes, for arrays that both take, without parameters.
    """

    name: str
    description: str
    formula: str
    source: str
    parameters: tuple[str, ...] | None
    dtypes: tuple[str, ...] | None
    least_rank: int | None
    most_rank: int | None
    planes: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    constraints: str = ""
    padding: str = ""
    verified: str = ""
    same_as: tuple[str, ...] = ()

    @property
    def ranks(self) -> str:
        """The numbers of dimensions, in words.

        nChw16c -> "4"    vnni -> "2 or more"    a registered function -> ""
        """
        if self.least_rank is None:
            return ""
        if self.most_rank is None:
            return f"{self.least_rank} or more"
        return (
            str(self.least_rank)
            if self.least_rank == self.most_rank
            else f"{self.least_rank} to {self.most_rank}"
        )

    def __repr__(self) -> str:
        whole = self.dtypes is not None and len(self.dtypes) == len(_elements())
        facts = {
            "formula": self.formula,
            "planes": "; ".join(self.planes),
            "buffers": "; ".join(self.buffers),
            "parameters": "any" if self.parameters is None else ", ".join(self.parameters),
            "dtypes": "all" if whole else ", ".join(self.dtypes or ()),
            "ranks": self.ranks,
            "multiples": self.constraints,
            "padding": self.padding,
            "source": self.source,
            "verified": self.verified,
            "same as": ", ".join(self.same_as),
        }
        lines = wrap(
            f"{self.name}: {self.description}", WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
        for name, text in facts.items():
            rows = wrap(text, WIDTH - 12, break_long_words=False, break_on_hyphens=False)
            lines += [f"{name if k == 0 else '':12}{row}" for k, row in enumerate(rows)]
        return "\n".join(lines)


def describe_format(name: str, **parameters: Any) -> FormatDescription:
    """Describe a named format and the arrays that it takes.

    >>> tilejit.describe_format("col32")
    col32: cuBLASLt: columns in groups of 32, array M N
    formula     ... M (N n) -> ... N M n, n=32
    dtypes      all
    ranks       2 or more
    source      cuBLAS, cublasLtOrder_t: CUBLASLT_ORDER_COL32

    Args:
        name: the name of a format, or a oneDNN blocked tag.
        parameters: the format's parameters, for a format of planes.

    Returns:
        A `FormatDescription`, which prints as text.

    Raises:
        LayoutError: the format does not exist; the message names the nearest.
        TypeError: the name is not a str, or the format does not take a parameter.
    """
    found = find_format(name)
    found.check_parameters(parameters)
    if found.example is None:
        return FormatDescription(
            found.name, found.description, found.rule, found.source, found.parameters, None, None, None
        )
    dims, dtype = found.example
    packing = example_packing(found, parameters)
    dtypes: tuple[str, ...] | None = None
    if packing is None or packing.is_layout:
        dtypes = tuple(known for known in _elements() if _takes(found, lookup(known), dims))
    if packing is not None:
        least = len(packing.axes)
        most, more = None if packing.takes_leading else least, _facts_of(packing)
    else:
        ranks = [rank for rank in range(MAX_RANK + 2) if _takes(found, primitive_type(dtype), (1,) * rank)]
        least, most, more = ranks[0], ranks[-1] if ranks[-1] <= MAX_RANK else None, {}
    return FormatDescription(
        found.name,
        found.description,
        "; ".join(filter(None, ("" if packing is None else _order_text(packing), found.rule))),
        found.source,
        found.parameters,
        dtypes,
        least,
        most,
        verified=found.verified,
        same_as=same_bytes(found.name),
        **more,
    )


def _order_text(packing: Packing) -> str:
    """The pattern of a layout, or what each field of planes holds."""
    return packing.fields[0].pattern if packing.is_layout else fields_text(packing)


def _facts_of(packing: Packing) -> dict[str, Any]:
    """The facts of a packing that a description lists."""
    planes = tuple(f"{p.name} [{p.axes}] {p.values_text}" for p in packing.planes)
    constraints = ", ".join(f"{axis} % {n}" for axis, n in packing.multiples.items())
    paddings = {f.padding for f in packing.fields if f.padding}
    return {
        "planes": () if packing.is_layout and not packing.main.bits else planes,
        "buffers": tuple(f"{name} {text}" for name, text in packing.tensors.items()),
        "constraints": constraints,
        "padding": ", ".join(map(str, sorted(paddings))),
    }


def _elements() -> tuple[str, ...]:
    """The dtypes that arrays can have."""
    return tuple(name for name, row in PRIMITIVE_TYPES.items() if row.is_array_element)


def _takes(found: Format, element: PrimitiveType, dims: tuple[int, ...]) -> bool:
    """Whether a format has a layout for an array."""
    try:
        built = found.layout(element, dims, {})
        if isinstance(built, Packing):
            packing_shape(built, found.name, element, dims, 0)
    except LayoutError:
        return False
    return True
