"""Entries of the catalog: formats written as a pattern, or as planes and fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any

from codegen import dataclass
from tilejit.catalog.format import Dims, Element, Format
from tilejit.catalog.packing import Field, Packing, Plane

Sizes = Mapping[str, int]
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


def layout_format(
    name: str,
    description: str,
    pattern: str | Callable[..., str],
    example: Example,
    source: str,
    *,
    bits: int = 0,
    signed: bool = False,
    sizes: Callable[..., Sizes] | None = None,
    rule: str = "",
    multiples: Sizes | None = None,
    padding: int = 0,
    tensor: str = "",
    verified: str = "",
    same_as: tuple[str, ...] = (),
    variants: tuple[Mapping[str, Any], ...] = (),
) -> Format:
    """Create a format of one plane, whose buffer is an ordinary layout.

    Args:
        name: the format's name.
        description: one line about it.
        pattern: the pattern; or a function of the parameters that returns it.
        example: dimensions and dtype of a small array.
        source: where the format is defined, with the version or the commit.
        bits: the width of the codes; 0 takes elements of any width.
        signed: whether int8 arrays hold the codes by nature; both kinds are accepted.
        sizes: sizes(element, **parameters) -> the sizes that the pattern omits.
        rule: those sizes in words.
        multiples: numbers by which dimensions must be divisible; without them, dimensions are padded.
        padding: the value of padding elements.
        tensor: dtype and extents of the array in checkpoints, such as "s32: K N/8".
        verified: how the bytes were compared with the source's.
        same_as: other names of the same order of bytes.
        variants: parameters that `identify` tries beside the defaults.
    """
    parameters = _names(sizes)[1:] if sizes else _names(pattern)

    def build(element: Element, dims: Dims, **given: Any) -> Packing:
        own = {} if sizes is None else sizes(element, **given)
        text = pattern(**given) if callable(pattern) else pattern
        plane = Plane("values", axes_of(text), bits, "", signed)
        field = Field(("values",), text, sizes=own, padding=padding)
        return Packing(
            (plane,), (field,), tensors={"buffer": tensor} if tensor else None, multiples=multiples
        )

    shown = pattern() if callable(pattern) else pattern
    formula = "; ".join(filter(None, (shown, rule)))
    return Format(
        name,
        description,
        build,
        parameters,
        example,
        formula,
        source,
        verified=verified,
        same_as=same_as,
        variants=variants,
    )


def planes_format(
    name: str,
    description: str,
    packing: Packing | Callable[..., Packing],
    example: Example,
    source: str,
    *,
    verified: str = "",
    same_as: tuple[str, ...] = (),
    formula: str = "",
    variants: tuple[Mapping[str, Any], ...] = (),
) -> Format:
    """Create a format of several planes, or of codes that no ordinary layout describes.

    Args:
        name: the format's name.
        description: one line about it.
        packing: the planes and fields; or a function of the parameters that returns them.
        example: dimensions and dtype of a small main plane.
        source: where the format is defined, with the version or the commit.
        verified: how the bytes were compared with the source's.
        same_as: other names of the same order of bytes.
        formula: what the fields hold, if their own texts do not say it.
        variants: parameters that `identify` tries beside the defaults.
    """

    def planes(**given: Any) -> Packing:
        return packing if isinstance(packing, Packing) else packing(**given)

    def build(element: Element, dims: Dims, **given: Any) -> Packing:
        return planes(**given)

    return Format(
        name,
        description,
        build,
        _names(packing),
        example,
        formula,
        source,
        planes,
        verified,
        same_as,
        variants,
    )


def renamed(found: Format, name: str, description: str, source: str, verified: str = "") -> Format:
    """Create another name of a format."""
    return replace(
        found, name=name, description=description, source=source, verified=verified, same_as=(found.name,)
    )


def each(name: str, *values: object) -> tuple[Mapping[str, Any], ...]:
    """Variants with one parameter.

    each("bits", 2, 3) -> ({"bits": 2}, {"bits": 3})
    """
    return tuple({name: value} for value in values)


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
    order = field.codec.text if field.codec else field.pattern
    words = f", then 32-bit words {field.words[1]}" if field.words else ""
    return " as ".join(filter(None, (names + change, order))) + words


def _minus(low: int) -> str:
    """What is subtracted before a code is stored: 1 -> " - 1", -8 -> " + 8"."""
    return f" {'-' if low > 0 else '+'} {abs(low)}" if low else ""


def _names(function: object) -> tuple[str, ...]:
    """The parameters of a function; none for anything else."""
    return tuple(signature(function).parameters) if callable(function) else ()
