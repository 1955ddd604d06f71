"""Replace the innermost loops by the transfer that the schedule selects."""

from __future__ import annotations

from math import prod

from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_moves import (
    chunk_moves,
    code_moves,
    element_moves,
    fill_moves,
    joined_row_moves,
    packed_row_moves,
    request_moves,
    reversed_moves,
    run_moves,
    small_transpose_moves,
)
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import Schedule
from codegen.schedule.shuffles import shuffled_moves
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import Transfer, TransferNest
from codegen.schedule.transposed_moves import transposed_moves


def select_transfer(box: StridedBox, schedule: Schedule) -> TransferNest:
    """Select the transfer that replaces the loops named in `schedule.inner`.

    before:  for i in 9: for j in 128:  dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: dst += 512, src += 1200:
               for x in 512: dst[x] = src[x]        Vectorize(x=64), Tail("x", "shift", sizes=("rest",))
    """
    outer = tuple(box.axis(name) for name in schedule.outer)
    inner = tuple(box.axis(name) for name in schedule.inner)
    unit_bits = box.unit_bits
    match schedule.mode:
        case "run":
            transfer: Transfer = run_moves(box, inner[0], schedule)
        case "chunks":
            table = OffsetTable(tuple((x.extent, x.src) for x in inner))
            transfer = chunk_moves(box.width, prod(x.extent for x in inner), table, schedule)
        case "reverse":
            transfer = reversed_moves(box, inner, stream=schedule.stream)
        case "request":
            transfer = request_moves(box, inner[0])
        case "fill":
            transfer, unit_bits = fill_moves(inner[0].extent * box.target.bits // 8), 8
        case "interleave" if not schedule.interleave:
            transfer = small_transpose_moves(box, inner)
        case "interleave" if len(inner) > 2:
            transfer = joined_row_moves(box, inner, schedule)
        case "interleave":
            transfer = packed_row_moves(box, inner, schedule)
        case "shuffle" if schedule.shuffle:
            transfer = shuffled_moves(box, schedule.shuffle)
        case "transpose":
            assert schedule.transpose is not None, "a transpose has a TransposeSchedule"
            outer, transfer = (), transposed_moves(box, schedule.transpose)
        case "elements":
            transfer = element_moves(
                box, inner[0] if inner else Axis("", 1, 0, 0), prefetch=schedule.prefetch
            )
        case "pack bits" | "unpack bits":
            transfer, unit_bits = code_moves(box, inner, schedule), 8
        case mode:
            raise AssertionError(f"select_transfer: no rule for {mode}")
    scale = unit_bits // box.unit_bits  # packed boxes count in bits, their transfers in bytes
    loops = tuple(Loop(x.name, x.extent, x.src // scale, x.dst // scale) for x in outer)
    return TransferNest(loops, transfer, box.entries, unit_bits)
