"""The gallery of named formats: a heading for each family, and a section for each format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import tilejit
from tilejit.catalog.families import families
from tilejit.catalog.packing import Packing
from tilejit.copies.planes import buffer_sizes
from tilejit.cute import from_xla
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import lookup, primitive_type
from tilejit.layout.formats.examples import SCALES, example_packing, free_element, numbers
from tilejit.layout.formats.examples import example_planes as planes_of_example
from tilejit.layout.formats.registry import find_format
from tilejit.view.bit_owners import owners
from tilejit.view.byte_map import ROUNDED, lines_of, shortened
from tilejit.view.byte_picture import byte_svg
from tilejit.view.svg import svg

Array = np.ndarray[Any, np.dtype[Any]]
ALL = "all"
PREFIX = "format-"
LIBRARIES = ("aiter", "bitsandbytes", "safetensors", "torchao")
"""Names that descriptions start with, in lower case."""
OTHERS = "Registered formats"
QUANTIZED = "[Write any quantized weight layout in one line](../howto/quantized.md)"
INTROS = {
    "AWQ and GPTQ weights": f"{QUANTIZED} shows how to use them.",
    "GGUF tensors: ggml's records": f"{QUANTIZED} shows how to use them.",
    "Textures and images in blocks": "[Read a game texture](../howto/textures.md) shows how to use them.",
}
"""Links to guides, by the title of the family."""
FIRST = 16
"""The bytes of an example that its section shows."""


def gallery(folder: str = "../pictures") -> str:
    """Markdown of all formats: a table of contents, then the families.

    Args:
        folder: the folder of the pictures, relative to the page.
    """
    rows = [f"| [{title}](#{_slug(title)}) | {_links(own)} |" for title, own in groups()]
    parts = ["\n".join(["| family | formats |", "|---|---|", *rows])]
    for title, own in groups():
        intro = [INTROS[title]] if title in INTROS else []
        parts += [f"## {title}", *intro, *(section(name, folder) for name in own)]
    return "\n\n".join(parts) + "\n"


def groups() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The title of each family with the names of its formats; at the end those that packages registered."""
    known = []
    for family in families():
        own = tuple(row.name for row in family.formats)
        known += own
        yield family.title, own
    others = tuple(name for name in tilejit.formats() if name not in known)
    if others:
        yield OTHERS, others


def names() -> tuple[str, ...]:
    """All formats, when the page is generated."""
    return tilejit.formats()


def pictures() -> dict[str, str]:
    """The SVG of each format with an example, by the name of its file; equal pictures are drawn once."""
    shown = {picture_name(name): name for name in names() if find_format(name).example is not None}
    return {file: _drawn(file.removeprefix(PREFIX)) for file in shown}


def picture_name(name: str) -> str:
    """`tpu` -> `format-tpu`; a format with the bytes of one before it has the picture of that one."""
    all_names = names()
    for other in tilejit.describe_format(name).same_as:
        is_before = all_names.index(other) < all_names.index(name)
        if is_before and find_format(other).example == find_format(name).example:
            return picture_name(other)
    return f"{PREFIX}{name}"


def _drawn(name: str) -> str:
    spec = example(name)
    return byte_svg(name, standalone=False) if spec is None else svg(spec, standalone=False, tips=False)


def packing_of(name: str) -> Packing | None:
    """The planes and fields of a format; None if it has none, as registered functions and rules in words."""
    return example_packing(find_format(name))


def of_planes(name: str) -> bool:
    """Whether a format is not a layout of one array."""
    packing = packing_of(name)
    return packing is not None and not packing.is_layout


def example(name: str) -> Spec | None:
    """A small array in a format that is a layout of one array; None for others."""
    known = find_format(name).example
    return None if known is None or of_planes(name) else as_layout(name, dtype=known[1], dims=known[0])


def padded_example(name: str) -> Spec | None:
    """The same array without its last index along each dimension, or None if that needs no padding.

    tenstorrent -> bf16[63,63], whose buffer has 64 x 64 slots
    """
    if example(name) is None:
        return None
    dtype = _example_of(name)[1]
    try:
        spec = as_layout(name, dtype=dtype, dims=_smaller(name))
    except tilejit.LayoutError:  # the dimensions must be multiples
        return None
    return spec if spec.padding_fraction else None


def padding_value(spec: Spec) -> float:
    """The value that `pack` writes to padding slots by default.

    f32 -> 0.0    f8e8m0fnu, which has no zero -> 2^-127, its byte 0
    """
    value = None if isinstance(spec, CuteShape) else spec.padding_value
    return float(np.zeros((), spec.dtype)) if value is None else float(value)


def example_planes(name: str) -> dict[str, Array]:
    """The planes of the example: codes modulo their number, and numbers modulo 256; plane k starts at k."""
    packing = packing_of(name)
    dims, _ = _example_of(name)
    if packing is None:
        spec = example(name)
        assert spec is not None
        return {"values": numbers(spec.element, mix(dims, 256))}
    free = free_element(find_format(name), packing)
    return planes_of_example(packing, packing.sizes(dims, name), free, mix)


def mix(shape: tuple[int, ...], number: int, seed: int = 0) -> Array:
    """Pseudo-random integers below a number; all rows differ."""
    i = np.arange(np.prod(shape, dtype=int), dtype=np.uint64) + np.uint64(seed)
    return ((i * 2654435761 % 2**32 >> 16) % number).astype(np.int64).reshape(shape)


def example_bytes(name: str) -> dict[str, bytes]:
    """The packed bytes of the example, by buffer."""
    planes = example_planes(name)
    packed: Any = tilejit.pack(planes if len(planes) > 1 else next(iter(planes.values())), name)
    buffers = packed.buffers if isinstance(packed, tilejit.PackedPlanes) else {"buffer": packed.buffer}
    return {key: np.ascontiguousarray(data).tobytes() for key, data in buffers.items()}


def section(name: str, folder: str) -> str:
    """A heading, the description, the picture, a table of facts, and one of bytes."""
    about = tilejit.describe_format(name)
    parts = [f"### {name}", f"{_sentence(about.description)}."]
    spec = example(name)
    if find_format(name).example is not None:
        alt = f"{name}: {spec}" if spec is not None else f"{name}: the bits of each byte"
        parts.append(f"![{alt}]({folder}/{picture_name(name)}.svg)")
    rows = [f"| {fact} | {text} |" for fact, text in _facts(name)]
    parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join([*parts, *_byte_tables(name)])


def _facts(name: str) -> Iterator[tuple[str, str]]:
    about = tilejit.describe_format(name)
    spec = example(name)
    if about.formula:
        yield "Formula", _formula(about.formula, in_words=of_planes(name))
    if about.planes:
        yield "Planes", "; ".join(re.sub(r"^(.*?\])", r"`\1`", plane) for plane in about.planes)
    if about.buffers:
        yield "Buffers", "; ".join(f"`{buffer}`" for buffer in about.buffers)
    if spec is not None:
        yield "Picture", f"`{_cell(str(spec))}`"
        yield "CuTe", _cute(spec)
    if about.constraints:
        yield "Multiples", about.constraints
    if find_format(name).example is not None:
        yield "Padding", _padding(name)
    yield "Parameters", ", ".join(f"`{key}`" for key in about.parameters or ()) or "none"
    if about.dtypes is not None:
        yield "Dtypes", _dtypes(about.dtypes)
    if about.ranks:
        yield "Dimensions", about.ranks
    if find_format(name).example is not None:
        yield "Example", _example_text(name)
    yield "Source", re.sub(r"https?://\S+", r"<\g<0>>", _cell(about.source))
    if about.verified:
        yield "Verified", _cell(about.verified)
    if about.same_as:
        yield "Same bytes as", _links(about.same_as)


def _byte_tables(name: str) -> Iterator[str]:
    """What the bytes of each buffer hold, for a format of planes."""
    if not of_planes(name):
        return
    found = owners(name)
    dims = ",".join(map(str, found.dims))
    for key in found.buffers:
        rows = [f"| {line.range} | {_cell(line.text)} |" for line in shortened(lines_of(found, key))]
        head = f"| bytes of {key} | elements, for an array [{dims}] |"
        yield "\n".join([head, "|---|---|", *rows])
    if found.rounds:
        yield ROUNDED


def _example_text(name: str) -> str:
    """The first bytes of each buffer, and the arrays that were packed."""
    planes = example_planes(name)
    shapes = [f"{key} {a.dtype}[{','.join(map(str, a.shape))}]" for key, a in planes.items()]
    found = [
        f"{'' if key == 'buffer' else f'{key} '}`{data[:FIRST].hex(' ')}`"
        for key, data in example_bytes(name).items()
    ]
    given = ", ".join(shapes) if len(shapes) > 1 else shapes[0].partition(" ")[2]
    return f"{given}: {', '.join(found)}"


def _sentence(text: str) -> str:
    """Capitalize the first word, unless it is a name: "textures: in blocks" -> "Textures: in blocks"."""
    first = text.partition(" ")[0].rstrip(":")
    is_word = first.isalpha() and first.islower() and first not in LIBRARIES
    return text[:1].upper() + text[1:] if is_word else text


def _formula(formula: str, *, in_words: bool) -> str:
    """A pattern as code, then its sizes: "`... M (N n) -> ... N M n`; n=32"."""
    if in_words:
        return _cell(formula).replace("*", "\\*")
    pattern, _, sizes = formula.partition("; ")
    return f"`{_cell(pattern)}`" + (f"; {_cell(sizes)}" if sizes else "")


def _cute(spec: Spec) -> str:
    if isinstance(spec, CuteShape):
        return f"`{spec.layout}`"
    try:
        return f"`{from_xla(spec)}`"
    except tilejit.LayoutError as error:
        return f"none: {_cell(str(error).splitlines()[0])}"


def _padding(name: str) -> str:
    if of_planes(name):
        return _padding_of_planes(name)
    spec, padded = example(name), padded_example(name)
    if padded is None or spec is None:
        return "none"
    elements = "[" + ",".join(map(str, padded.dimensions)) + "]"
    value = padding_value(spec)
    shown = f"{value:g}" if value == int(value) else f"{value:g}, all bits 0"
    share = f"{padded.padding_fraction:.1%}"
    return f"{shown}; an array {elements} takes {padded.physical_size:,} slots, {share} padding"


def _padding_of_planes(name: str) -> str:
    """The value of padding if buffers keep their sizes without the last index along some dimension."""
    dims, dtype = _example_of(name)
    free = primitive_type(dtype) if dtype not in ("uint8", "int8") else lookup(SCALES)
    whole = buffer_sizes(name, dims, free, {})
    for k, size in enumerate(_smaller(name)):
        if size < dims[k]:
            part = buffer_sizes(name, (*dims[:k], size, *dims[k + 1 :]), free, {})
            if any(part[key] == whole[key] for key in whole):
                return tilejit.describe_format(name).padding or "0"
    return "none"


def _example_of(name: str) -> tuple[tuple[int, ...], str]:
    known = find_format(name).example
    assert known is not None, name
    return known


def _smaller(name: str) -> tuple[int, ...]:
    """The dimensions of the example less 1, except those that must be multiples of a number."""
    dims, _ = _example_of(name)
    packing = packing_of(name)
    own = packing.axes if packing else ()
    axes = [*([""] * (len(dims) - len(own))), *own]
    multiples = packing.multiples if packing else {}
    return tuple(n if n == 1 or axis in multiples else n - 1 for axis, n in zip(axes, dims, strict=True))


def _dtypes(dtypes: tuple[str, ...]) -> str:
    return ALL if dtypes == _every_dtype() else ", ".join(dtypes)


@cache
def _every_dtype() -> tuple[str, ...] | None:
    return tilejit.describe_format("col32").dtypes  # a format without a restriction


def _links(own: tuple[str, ...]) -> str:
    return ", ".join(f"[`{name}`](#{name.lower()})" for name in own)


def _slug(title: str) -> str:
    """The anchor of a heading, on code hosts and in MkDocs."""
    return re.sub(r"[^\w\s-]", "", title).lower().replace(" ", "-")


def _cell(text: str) -> str:
    """Escape bars, which would end the cell of a table."""
    return text.replace("|", "\\|")
