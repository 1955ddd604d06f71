"""Entries of the catalog, their packings, and what these hold in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from itertools import product
from typing import Any

from codegen import dataclass
from tilejit.catalog.checks import checked_int
from tilejit.catalog.format import OF_THE_ARRAY, Dims, Element, Format
from tilejit.catalog.packing import SAME_ORDER, Field, Packing, Plane

Example = tuple[Dims, str]


@dataclass(frozen=True, slots=True)
class Family:
    """Formats that belong together, in one file.

    Attributes:
        name: a word that `tilejit formats` takes; not the name of a format.
        title: what they are for.
        formats: the formats.
    """

    name: str
    title: str
    formats: tuple[Format, ...]


def entry(
    name: str,
    description: str,
    packing: Packing | Callable[..., object],
    example: Example,
    source: str,
    *,
    rule: str = "",
    verified: str = "",
    variants: tuple[Mapping[str, Any], ...] = (),
) -> Format:
    """Create a format.

    Args:
        name: the format's name.
        description: one line about it.
        packing: the planes and fields; or a function of the parameters that returns them, or a layout. Its
            parameters `element` and `dims` get those of the array.
        example: dimensions and dtype of a small main plane.
        source: where the format is defined, with the version or the commit.
        rule: what the pattern does not say, in words.
        verified: how the bytes were compared with the source's.
        variants: parameters that `identify` tries beside the defaults.
    """
    names = tuple(signature(packing).parameters) if callable(packing) else ()

    def build(element: Element | None, dims: Dims | None, **given: Any) -> object:
        if isinstance(packing, Packing):
            return packing
        array = {"element": element, "dims": dims}
        return packing(**{key: value for key, value in array.items() if key in names}, **given)

    return Format(
        name,
        description,
        build,
        tuple(key for key in names if key not in OF_THE_ARRAY),
        example,
        rule,
        source,
        depends_on=tuple(key for key in OF_THE_ARRAY if key in names),
        verified=verified,
        variants=variants,
    )


def ordered(
    pattern: str,
    *,
    axes: str = "",
    bits: int = 0,
    signed: bool = False,
    sizes: Mapping[str, int] | None = None,
    multiples: Mapping[str, int] | None = None,
    padding: int = 0,
    tensor: str = "",
) -> Packing:
    """The packing of one array in the order of a pattern.

    Args:
        pattern: the pattern.
        axes: the dimensions of the array; empty takes them from the pattern.
        bits: the width of the codes; 0 takes elements of any width.
        signed: whether int8 arrays hold the codes by nature; both kinds are accepted.
        sizes: sizes that the pattern omits.
        multiples: numbers by which dimensions must be divisible; without them, dimensions are padded.
        padding: the value of padding elements.
        tensor: dtype and extents of the array in checkpoints, such as "s32: K N/8".
    """
    return Packing(
        (Plane("values", axes or axes_of(pattern), bits, signed=signed),),
        (Field(("values",), pattern, sizes=sizes or {}, padding=padding),),
        tensors={"buffer": tensor} if tensor else {},
        multiples=multiples or {},
    )


def groups(group: int) -> str:
    """The extent of the axis of groups of K: 128 -> "K/128"; -1 is one group."""
    return "1" if group == -1 else f"K/{checked_int('group', group)}"


def renamed(found: Format, name: str, description: str, source: str, verified: str = "") -> Format:
    """Create another name of a format."""
    return replace(found, name=name, description=description, source=source, verified=verified)


def grid(**values: Iterable[object]) -> tuple[Mapping[str, Any], ...]:
    """Variants: all combinations of values but the first, which has the defaults.

    grid(bits=(4, 8), group=(128, 64)) -> {"bits": 4, "group": 64}, {"bits": 8, "group": 128}, ...
    """
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))[1:]


def axes_of(pattern: str) -> str:
    """The axes of a pattern's left side: of each group the first name with a capital, or else the first.

    "... (M m) (g N n) (q p) -> M N q m g n p" -> "... M N q"
    """

    def axis(group: re.Match[str]) -> str:
        names: list[str] = group[1].split()
        return next((name for name in names if name[0].isupper()), names[0])

    return re.sub(r"\(([^)]*)\)", axis, pattern.partition("->")[0]).strip()


def fields_text(packing: Packing) -> str:
    """What the fields hold, in memory order, buffer by buffer."""
    parts = []
    for buffer in packing.buffers:
        own = [field_text(packing, field) for field in packing.fields if field.buffer == buffer]
        head = "" if packing.buffers == ("buffer",) or own == [buffer] else f"{buffer}: "
        parts.append(head + ", then ".join(own))
    records = f"a record for each of {packing.records}: " if packing.records else ""
    steps = f"{packing.steps.text}; " if packing.steps else ""
    return steps + records + "; ".join(parts)


def field_text(packing: Packing, field: Field) -> str:
    """What a field holds: "codes ^ 8 as (K k) N -> K N k, k=8"."""
    names = " and ".join(name + _minus(packing.plane(name).low) for name in field.planes)
    if len(field.planes) > 1 and not field.codec:
        names = f"stacked {names}"
    if field.take and field.take != (0, packing.plane(field.planes[0]).bits):
        low, number = field.take
        names = f"bits {low} to {low + number - 1} of {names}" if number > 1 else f"bit {low} of {names}"
    change = f" {field.values.text}" if field.values else ""
    order = field.codec.text if field.codec else field.pattern.removeprefix(SAME_ORDER)
    words = f", then 32-bit words {field.words[1]}" if field.words else ""
    return " as ".join(filter(None, (names + change, order))) + words


def _minus(low: int) -> str:
    """What is subtracted before a code is stored: 1 -> " - 1", -8 -> " + 8"."""
    return f" {'-' if low > 0 else '+'} {abs(low)}" if low else ""
