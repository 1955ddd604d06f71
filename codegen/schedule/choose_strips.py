"""Choose the strips of loops over super-vectors: loops over super-vectors of several blocks of registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.analysis.bodies import flat, vector_nest
from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.check_loops import MOST_LOOPS
from codegen.schedule.choose_blocks import block_of
from codegen.schedule.choose_registers import lanes_and_registers
from codegen.schedule.directives import Tile
from codegen.schedule.vector_size import MOST_ELEMENTS
from codegen.support.dataclasses import dataclass


def choose_strips(function: Function, register_bytes: int) -> tuple[Tile, ...]:
    """The strips of a super-vectorized function, for registers of `register_bytes` bytes: its super-vectors.

    for i step 256: C[i] = A[i]                        f32, 64 bytes: strips of 256, blocks of 64
    for i step 32: for j step 256: C[i, j] = A[i, j]   f32, 64 bytes: strips of 32x256, blocks of 1x64
    for i step 32: for j step 256: C[j, i] = A[i, j]   f32, 64 bytes: strips of 32x256, blocks of 16x16

    Loops have no strips if a super-vector is one block, if their body holds anything but one loop over
    super-vectors, or if Python has no room for more nested loops.
    """
    return tuple(tile for each in _strips(function, function.body, register_bytes) for tile in each.tiles)


def strips_text(function: Function, register_bytes: int) -> str:
    """The strips of a super-vectorized function, and why loops over super-vectors have none.

    "strips in blocks of 16x16"    "no strips, since a super-vector is one block of 64"
    "strips in blocks of 4, each ends in a partial register (8 would not)"
    """
    found = _strips(function, function.body, register_bytes)
    return " and ".join(dict.fromkeys(each.text for each in found if each.text))


@dataclass(frozen=True, slots=True)
class _Strips:
    """The strips of a nest, () if it has none, and a text for reports."""

    tiles: tuple[Tile, ...] = ()
    text: str = ""


def _strips(
    function: Function, body: tuple[Statement, ...], register_bytes: int, depth: int = 0
) -> Iterator[_Strips]:
    """The strips of each nest of a body under `depth` loops, in source order."""
    for loop in body:
        if not isinstance(loop, For):
            continue
        nest = vector_nest(loop)
        if not nest:
            is_vector = loop.size > 1
            yield _Strips(text="no strips around other statements than one loop" if is_vector else "")
            yield from _strips(function, loop.body, register_bytes, depth + 1)
            continue
        blocks, sizes = _blocks_of(function, nest, register_bytes), tuple(each.size for each in nest)
        shape = "x".join(map(str, blocks))
        if depth + len(nest) + _depth((loop,)) > MOST_LOOPS:
            yield _Strips(text=f"no strips, since Python has room for {MOST_LOOPS} loops")
        elif blocks == sizes:
            yield _Strips(text=f"no strips, since a super-vector is one block of {shape}")
        else:
            tiles = tuple(Tile(each.index, each.size, "strip") for each in nest)
            notes = _partial(function, nest, blocks, register_bytes)
            notes += _short(function, nest, blocks, register_bytes)
            yield _Strips(tiles, f"strips in blocks of {shape}{notes}")


def _partial(function: Function, nest: list[For], blocks: tuple[int, ...], register_bytes: int) -> str:
    """What the report adds if every strip ends in a partial register, which costs more than a full one."""
    lanes, _ = lanes_and_registers(function, nest[-1], register_bytes)
    is_square = len(nest) > 1 and blocks[-2] == blocks[-1]
    sides = blocks if is_square else (*blocks[:-1], lanes)
    full = tuple(-(-loop.size // side) * side for loop, side in zip(nest, sides, strict=True))
    if full == tuple(loop.size for loop in nest):
        return ""
    return f", each ends in a partial register ({'x'.join(map(str, full))} would not)"


def _short(function: Function, nest: list[For], blocks: tuple[int, ...], register_bytes: int) -> str:
    """What the report adds if rows of strips are shorter than a full block of registers.

    In cache, rows of one register take up to twice as long as scalar code, and rows of two 1.7 times (Zen 3,
    2026-11, c[i, j, k] = a[i, j, k] + 1 of 64x64x64 f32).
    """
    lanes, registers = lanes_and_registers(function, replace(nest[-1], size=MOST_ELEMENTS), register_bytes)
    is_square = len(nest) > 1 and blocks[-2] == blocks[-1]
    if len(nest) == 1 or is_square or nest[-1].size >= lanes * registers:
        return ""
    return f", rows of {lanes * registers} or more are faster"


def _depth(body: Sequence[Statement]) -> int:
    """How many loops are one inside the other."""
    return max((1 + _depth(flat(s.body)) for s in body if isinstance(s, For)), default=0)


def _blocks_of(function: Function, nest: list[For], register_bytes: int) -> tuple[int, ...]:
    """The iterations of each loop of a nest that are processed together."""
    inner, rows = nest[-1], (1,) * (len(nest) - 2)
    if len(nest) > 1:
        block = block_of(function, nest[-2], register_bytes)
        if block is not None and block.axis == inner.index:
            return (*rows, block.lanes, block.lanes)
    lanes, registers = lanes_and_registers(function, inner, register_bytes)
    return (*rows, *((1,) if len(nest) > 1 else ()), lanes * registers)
