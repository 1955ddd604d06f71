"""Turn a box into a nest whose directives say how the loops run, as its schedule decided."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_directives import (
    chunk_nest,
    code_nest,
    element_nest,
    fill_nest,
    joined_row_nest,
    packed_row_nest,
    request_nest,
    reversed_nest,
    run_nest,
    small_transpose_nest,
)
from codegen.schedule.copy_nest import CopyNest, shared_among_threads
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import Schedule
from codegen.schedule.shuffles import shuffled_nest
from codegen.schedule.transposed_nest import transposed_nest


def make_nest(box: StridedBox, schedule: Schedule) -> CopyNest:
    """Choose the directives of the loops named in `schedule.inner`; the others are around them.

    before:  for i in 9: for j in 128:  dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: dst += 512, src += 1200:
               for x in 512: dst[x] = src[x]        Vectorize(x=64), Tail("x", "shift", sizes=("rest",))
    """
    outer = tuple(box.axis(name) for name in schedule.outer)
    inner = tuple(box.axis(name) for name in schedule.inner)
    unit_bits = box.unit_bits
    match schedule.mode:
        case "run":
            nest = run_nest(box, inner[0], schedule)
        case "chunks":
            table = OffsetTable(tuple((x.extent, x.src) for x in inner))
            nest = chunk_nest(box.width, prod(x.extent for x in inner), table, schedule)
        case "reverse":
            nest = reversed_nest(box, inner, stream=schedule.stream)
        case "request":
            nest = request_nest(box, inner[0])
        case "fill":
            nest, unit_bits = fill_nest(inner[0].extent * box.target.bits // 8), 8
        case "interleave" if not schedule.interleave:
            nest = small_transpose_nest(box, inner)
        case "interleave" if len(inner) > 2:
            nest = joined_row_nest(box, inner, schedule)
        case "interleave":
            nest = packed_row_nest(box, inner, schedule)
        case "shuffle" if schedule.shuffle:
            nest = shuffled_nest(box, schedule.shuffle)
        case "transpose":
            assert schedule.transpose is not None, "a transpose has directives"
            nest = transposed_nest(box, schedule.transpose, _loops(outer))
        case "elements":
            nest = element_nest(box, inner[0] if inner else Axis("", 1, 0, 0), prefetch=schedule.prefetch)
        case "pack bits" | "unpack bits":
            nest, unit_bits = code_nest(box, inner, schedule), 8
        case mode:
            raise AssertionError(f"make_nest: no rule for {mode}")
    scale = unit_bits // box.unit_bits  # packed boxes count in bits, their nests in bytes
    made = replace(nest, around=_loops(outer, scale), entries=box.entries, unit_bits=unit_bits)
    return shared_among_threads(made)


def _loops(axes: tuple[Axis, ...], scale: int = 1) -> tuple[Loop, ...]:
    """Loops over axes, whose strides are multiples of a scale."""
    return tuple(Loop(x.name, x.extent, x.src // scale, x.dst // scale) for x in axes)
