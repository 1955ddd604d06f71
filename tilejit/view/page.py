"""An HTML page to explore a layout: its digits as data, and the script that draws the visible part."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from math import prod
from typing import Any, TypeAlias

from codegen import cached
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.layout import Layout
from tilejit.cute.modes import flat_modes
from tilejit.cute.parsing import parse
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.text import is_cute
from tilejit.layout.cute_shape import CuteShape, Spec, make_cute_shape
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.layout.tiling import MERGE
from tilejit.view.boards import drawn_dimensions, padded_shape
from tilejit.view.coloring import LARGE_TILE, Coloring, slot_runs

CuteLayout: TypeAlias = Layout | ComposedLayout

SCRIPTS = (
    "layout",
    "xla",
    "cute",
    "text",
    "colors",
    "board",
    "drawing",
    "cells",
    "svg",
    "state",
    "flight",
    "first_view",
    "controls",
    "explorer",
)
MAX_DOUBLE = 2**53 - 1
"""JavaScript numbers, and many JSON readers, represent integers exactly up to this one."""
MAX_XOR = 2**30
WIDEST_ROW = 256
ROWS = ((16, 512), (64, 65536))
"""The longest row for buffers of up to that many slots. Small buffers have room for text in every slot."""


def page(layout: Spec | CuteLayout) -> str:
    """Return a self-contained HTML page, in ASCII, that shows where each element lives.

    >>> Path("layout.html").write_text(page(as_layout("bf16[4096,4096]{1,0:T(8,128)(2,1)}")))

    A CuTe layout alone is drawn as an array with the sizes of its modes.

    Raises:
        LayoutError: the size of the buffer is unknown, or a CuTe layout has offsets below 0.
        TypeError: the layout is neither a Shape nor a CuTe layout.
    """
    data = page_data(layout)
    style, script = asset("page.css"), "".join(asset(f"{name}.js") for name in SCRIPTS)
    parts = {
        "TITLE": html.escape(data["title"]).encode("ascii", "xmlcharrefreplace").decode(),
        "POLICY": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        "STYLE": style,
        "DATA": _json(data),
        "SCRIPT": script,
    }
    out = []
    for k, piece in enumerate(asset("page.html").split("@@")):
        out.append(parts[piece] if k % 2 else piece)
    return "".join(out)


def page_data(layout: Spec | CuteLayout) -> dict[str, Any]:
    """The data for the script: the sizes and the digits of a layout, without data per element.

    Sizes and strides are in elements. Integers that JavaScript numbers cannot represent are strings.

    Raises:
        LayoutError, TypeError: as `page`.
    """
    spec, title = subject(layout)
    alone = not isinstance(layout, Shape | CuteShape)
    own = _cute_digits(spec) if isinstance(spec, CuteShape) else _xla_digits(spec)
    coloring = Coloring.of(spec)
    facts = {
        "title": title,
        "dims": spec.dimensions,
        "size": spec.physical_size,
        "bits": None if alone else spec.bits,
        "bytes": None if alone else spec.size_in_bytes,
        "elements": prod(spec.dimensions),
        "padding": spec.padding_fraction,
        "width": row_length(spec),
        "runs": slot_runs(spec),
        "drawn": drawn_dimensions(spec),
        "color": coloring.color,
        "colorings": coloring.choices,
        "period": coloring.period,
        "bank": coloring.bank,
        "row": coloring.row,
    }
    plain: dict[str, Any] = _plain({**facts, **own})
    return plain


def subject(layout: Spec | CuteLayout) -> tuple[Spec, str]:
    """The array to draw for a layout, and its text. A CuTe layout alone is an array with its modes' sizes.

    Raises:
        LayoutError: an offset is below 0, or the buffer would exceed 2^63 elements.
        TypeError: the layout is neither a Shape nor a CuTe layout.
    """
    if isinstance(layout, Shape | CuteShape):
        return layout, str(layout)
    if not isinstance(layout, Layout | ComposedLayout):
        raise TypeError(f"expected a Shape or a CuTe layout, got {type(layout).__name__}")
    from tilejit.cute.function import function_of

    return make_cute_shape("uint8", function_of(layout).sizes, layout), str(layout)


def cute_layout(layout: object) -> CuteLayout | None:
    """The CuTe layout that a text is, or the layout itself; None for anything else.

    "(4,8):(8,1)" -> (4,8):(8,1)    "tpu" -> None    "(4,8)" -> None

    Raises:
        LayoutError: the text of a CuTe layout has a mistake.
    """
    found = parse(layout) if isinstance(layout, str) and is_cute(layout) else layout
    return found if isinstance(found, Layout | ComposedLayout) else None


def row_length(spec: Spec) -> int:
    """Slots per row in the picture of memory: the width of a large tile, or one or more runs of the layout.

    bf16[4096,4096]{1,0:T(8,128)(2,1)} -> 128    f32[3,5]{1,0:T(2,2)} -> 12    f32[1000] -> 50
    """
    size = spec.physical_size
    if not isinstance(spec, CuteShape) and (wide := _large_tile(spec)):
        return wide
    runs = slot_runs(spec)
    most = next((row for row, slots in ROWS if size <= slots), WIDEST_ROW)
    run = max((run for run in runs if 0 < run <= most), default=1)
    if run >= most // 4:
        return max(1, min(run, size))
    whole = min((run for run in runs if run > most), default=size)
    fit = [row for row in range(run, min(most, size) + 1, run) if whole % row == 0 and row >= most // 4]
    return max(1, max(fit, default=min(most // run * run, size)))


def shorter_row(row: int, runs: Sequence[int], fit: int) -> int:
    """A row of memory of up to `fit` slots that ends where a run ends, and if possible where `row` ends.

    60 of runs 3, 6, 222: 7 fit -> 6; 5 fit -> 3    64 of runs 16, 64: 13 fit -> 8
    """
    if row <= fit:
        return row
    run = max((n for n in runs if n <= fit), default=1)
    rows = range(max(1, fit // run) * run, 0, -run)
    return next((n for n in rows if row % n == 0 and 4 * n >= fit), rows[0])


def _large_tile(shape: Shape) -> int:
    """Columns of the outermost tile if it has too many elements for text in each cell, else 0."""
    steps, _ = tile_steps_of(shape)
    tile = steps[0].tile if steps else ()
    return tile[-1] if prod(tile) >= LARGE_TILE and tile[-1] <= WIDEST_ROW else 0


def _xla_digits(shape: Shape) -> dict[str, Any]:
    """Tile steps as `tile_steps` gives them, with the extents of the axes around each."""
    steps, extents = tile_steps_of(shape)
    order = tuple(reversed(shape.minor_to_major)) if shape.layout else tuple(range(shape.rank))
    tiles = shape.tiles if shape.layout else ()
    texts = [["*" if n == MERGE else str(n) for n in tile] for tile in tiles]
    return {
        "kind": "xla",
        "wide": max(prod(extents[-1]), *map(prod, extents), shape.physical_size) > MAX_DOUBLE,
        "order": order,
        "padded": padded_shape(shape).dimensions,
        "extents": extents,
        "steps": [
            {
                "lead": step.lead,
                "groups": step.groups,
                "tile": step.tile,
                "untouched": step.untouched,
                "text": text,
            }
            for step, text in zip(steps, texts, strict=True)
        ],
    }


def _cute_digits(shape: CuteShape) -> dict[str, Any]:
    """The digits of each mode, the fastest first, and the steps from their sum to the slot."""
    function = shape.function
    modes = [[(n, s) for n, s in mode if n != 1] or [(1, 0)] for mode in function.modes]
    steps: list[dict[str, Any]] = []
    reach = sum((n - 1) * abs(s) for mode in modes for n, s in mode) + shape.physical_size
    swizzled = False
    for offset, apply in function.steps:
        reach += abs(offset)
        step: dict[str, Any] = {"offset": offset, "text": str(apply)}
        if isinstance(apply, Swizzle):
            step["swizzle"] = (apply.bits, apply.base, apply.shift)
            swizzled = True
            reach = max(reach, apply.block)
        elif isinstance(apply, DigitStep):
            fields = apply.size, apply.stride, apply.operation, apply.by_size, apply.by_stride
            step["digit"] = (*fields, list(apply.table))
            swizzled = True
            reach = max(reach, apply.block, apply.by_size * apply.by_stride)
        else:
            step["layout"] = flat_modes(apply)
            reach = max(reach, *(n * max(1, abs(s)) for n, s in step["layout"])) * len(step["layout"])
        steps.append(step)
    return {
        "kind": "cute",
        "wide": reach > (MAX_XOR if swizzled else MAX_DOUBLE),
        "padded": function.sizes,
        "modes": modes,
        "steps": steps,
    }


@cached(8)
def asset(name: str) -> str:
    """The text of one of the page's files."""
    return (files("tilejit.view") / "assets" / name).read_text("ascii")


def _plain(value: Any) -> Any:
    """JSON types only, with integers above 2^53 as strings."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, int) and abs(value) > MAX_DOUBLE:
        return str(value)
    return value


def _json(data: dict[str, Any]) -> str:
    """JSON for a <script>: nothing in it can end the element, or start a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    """The hash by which the page's policy identifies a script or a style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
