"""The gallery of named formats: a section for each, with its picture and its facts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

import tilejit
from tilejit.cute import from_xla
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.formats.registry import find_format

ALL = "all"
PREFIX = "format-"


def gallery(folder: str = "../pictures") -> str:
    """Markdown of all formats, in the order of the registry: a table of contents, then the sections.

    Args:
        folder: the folder of the pictures, relative to the page.
    """
    rows = [f"| [`{name}`](#{name.lower()}) | {_cell(find_format(name).description)} |" for name in names()]
    table = "\n".join(["| format | layout |", "|---|---|", *rows])
    return "\n\n".join([table, *(section(name, folder) for name in names())]) + "\n"


def names() -> tuple[str, ...]:
    """The formats in the registry when the page is generated."""
    return tilejit.formats()


def picture_name(name: str) -> str:
    """`tpu` -> `format-tpu`."""
    return f"{PREFIX}{name}"


def pictures() -> tuple[str, ...]:
    """The names of the pictures. A registered function has no example to draw."""
    return tuple(picture_name(name) for name in names() if find_format(name).example is not None)


def picture(name: str) -> Spec:
    """The layout that a picture shows.

    Args:
        name: the name of the picture, such as `format-tpu`.
    """
    spec = example(name.removeprefix(PREFIX))
    assert spec is not None, name
    return spec


def example(name: str) -> Spec | None:
    """A small array in a format, or None if the format names no such array."""
    known = find_format(name).example
    return None if known is None else as_layout(name, dtype=known[1], dims=known[0])


def padded_example(name: str) -> Spec | None:
    """The same array without its last index along each dimension, or None if that needs no padding.

    tenstorrent -> bf16[63,63], whose buffer has 64 x 64 slots
    """
    known = find_format(name).example
    if known is None:
        return None
    spec = as_layout(name, dtype=known[1], dims=tuple(n - 1 if n > 1 else n for n in known[0]))
    return spec if spec.padding_fraction else None


def padding_value(spec: Spec) -> float:
    """The value that `pack` writes to padding slots by default.

    f32 -> 0.0    f8e8m0fnu, which has no zero -> 2^-127, its byte 0
    """
    value = None if isinstance(spec, CuteShape) else spec.padding_value
    return float(np.zeros((), spec.dtype)) if value is None else float(value)


def section(name: str, folder: str) -> str:
    """A heading, the description, the picture and a table of facts."""
    about = tilejit.describe_format(name)
    parts = [f"## {name}", f"{_sentence(about.description)}."]
    spec = example(name)
    if spec is not None:
        parts.append(f"![{name}: {spec}]({folder}/{picture_name(name)}.svg)")
    rows = [f"| {fact} | {text} |" for fact, text in _facts(name)]
    return "\n\n".join([*parts, "\n".join(["| | |", "|---|---|", *rows])])


def _facts(name: str) -> Iterator[tuple[str, str]]:
    about = tilejit.describe_format(name)
    spec = example(name)
    if about.formula:
        yield "Formula", _formula(about.formula)
    if spec is not None:
        yield "Picture", f"`{_cell(str(spec))}`"
        yield "CuTe", _cute(spec)
        yield "Padding", _padding(name, spec)
    yield "Parameters", ", ".join(f"`{key}`" for key in about.parameters or ()) or "none"
    if about.dtypes is not None:
        yield "Dtypes", _dtypes(about.dtypes)
        yield "Dimensions", about.ranks
    yield "Source", re.sub(r"https?://\S+", r"<\g<0>>", _cell(about.source))


def _sentence(text: str) -> str:
    """Capitalize the first word, unless it is a name: "textures: in blocks" -> "Textures: in blocks"."""
    first = text.partition(" ")[0].rstrip(":")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _formula(formula: str) -> str:
    """A pattern as code, then its sizes: "`... M (N n) -> ... N M n`; n=32"."""
    pattern, _, sizes = formula.partition("; ")
    return f"`{_cell(pattern)}`" + (f"; {_cell(sizes)}" if sizes else "")


def _cute(spec: Spec) -> str:
    if isinstance(spec, CuteShape):
        return f"`{spec.layout}`"
    try:
        return f"`{from_xla(spec)}`"
    except tilejit.LayoutError as error:
        return f"none: {_cell(str(error).splitlines()[0])}"


def _padding(name: str, spec: Spec) -> str:
    padded = padded_example(name)
    if padded is None:
        return "none"
    elements = "[" + ",".join(map(str, padded.dimensions)) + "]"
    value = padding_value(spec)
    shown = f"{value:g}" if value in (0, 1, -1) else f"{value:g}, all bits 0"
    share = f"{padded.padding_fraction:.1%}"
    return f"{shown}; an array {elements} takes {padded.physical_size:,} slots, {share} padding"


def _dtypes(dtypes: tuple[str, ...]) -> str:
    every = tilejit.describe_format("col32").dtypes  # a format without a restriction
    return ALL if dtypes == every else ", ".join(dtypes)


def _cell(text: str) -> str:
    """Escape bars, which would end the cell of a table."""
    return text.replace("|", "\\|")
