"""The programs of copies between two arrays: in one pass, or block by block if that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen import AccessMap, cached, footprint_bytes, may_stage_digits
from tilejit.arrays.memory import bytes_map
from tilejit.programs.compiled import chosen, compiled
from tilejit.programs.moves import Move
from tilejit.programs.tuning import Tuning

if TYPE_CHECKING:
    from tilejit.programs.compiled import Program


@cached(1024)
def copy_program(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    move: Move,
    threads: int,
    tuning: Tuning,
) -> Program:
    """The program that copies an array of that shape, with the pieces of an element as one more dimension.

    It runs block by block if that is faster, unless a keyword sets the sizes. With `tune`, both are tried.
    """
    dims = shape if move.units == 1 else (*shape, move.units)
    maps = []
    for strides, element in ((src_strides, move.source), (dst_strides, move.target)):
        width = element.bits // 8
        maps.append(bytes_map(dims, strides if move.units == 1 else (*strides, width), width))
    direct = compiled(
        maps[0], maps[1], move.source, move.target, threads=threads, tuning=tuning, swap=move.swap
    )
    return chosen(
        direct,
        move.source,
        move.target,
        threads=threads,
        tuning=tuning,
        swap=move.swap,
        stages=may_be_staged(direct.src, direct.dst, move),
    )


def may_be_staged(src: AccessMap, dst: AccessMap, move: Move) -> bool:
    """Whether a copy permutes many dimensions of a large array."""
    if move.swap or move.source != move.target:
        return False
    return may_stage_digits(sum(n > 1 for n in src.dims), footprint_bytes(src, dst))
