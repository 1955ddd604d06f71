"""Passes keep meaning: the same bytes move, says the interpreter; and each does what its docstring shows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codegen.ir.copies.interpreter import interpret
from codegen.ir.copies.nodes import (
    Buffer,
    Convert,
    Element,
    Fill,
    For,
    Load,
    LoopNest,
    Ref,
    Store,
    Transpose,
    group_table,
    line_table,
    refs,
    wrap,
)
from codegen.ir.copies.printer import format_nest
from codegen.ir.copies.rewriting import int_size
from codegen.ir.copies.tiles import GRID_TABLES, GROUP_TABLE, LINE_TABLE, grid_tables
from codegen.ir.lines import LINE_BYTES
from codegen.passes.normalize import NORMALIZE, coalesce, drop_units, face_forward, order_by_destination
from codegen.passes.pad_rank import pad_rank
from codegen.passes.parametrize import parametrize_sizes
from codegen.passes.select_transfer import super_vectorize
from codegen.passes.specialize import specialize_sizes
from codegen.passes.split_run import split_long, split_run
from codegen.passes.strip_mine import strip_mine
from codegen.passes.widen_elements import widen
from codegen.schedule.choose import choose, padded_rank
from codegen.schedule.schedule import OUTER_RANKS
from codegen.support.errors import KernelError
from tests.tools.strategies import Pick, one_of, permutation

SIZE = 1 << 17


def nest_of(
    digits: list[tuple[int, int, int]], width: int = 1, src: int = 0, dst: int = 0, value: Any = None
) -> LoopNest:
    """loops over (extent, source stride, destination stride) in bytes, around one store."""
    axes = [f"d{k}" for k in range(len(digits))]
    element = Element(f"u{8 * width}", 8 * width)
    load = Load(Ref("src", src, tuple((a, d[1]) for a, d in zip(axes, digits, strict=True))))
    to = Ref("dst", dst, tuple((a, d[2]) for a, d in zip(axes, digits, strict=True)))
    store = Store(to, load if value is None else value)
    loops = tuple(For(a, d[0], store) for a, d in zip(axes, digits, strict=True))
    buffers = (Buffer("src", element, 8), Buffer("dst", element, 8))
    return LoopNest(buffers, wrap(loops, None, store), tuple(digits))


@st.composite
def nests(draw: Any, *, fills: bool = False) -> LoopNest:
    """Injective nests whose every byte lies within SIZE on both sides."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    width = one_of(pick, (1, 1, 2, 4, 8, 16))
    extents = [one_of(pick, (1, 2, 2, 3, 4, 5, 8)) for _ in range(pick(0, 4))]
    sides = []
    for side in range(2):
        strides, step = [0] * len(extents), width
        for k in permutation(pick, len(extents)):
            strides[k] = step if pick(0, 5) else -step
            step = step * extents[k] + (one_of(pick, (0, 0, 0, width, 5)))
            if side == 0 and pick(0, 9) == 0:
                strides[k] = 0
        sides.append(strides)
    bases = [
        -sum(min(0, (n - 1) * s) for n, s in zip(extents, side, strict=True)) + pick(0, 3) for side in sides
    ]
    value = Fill() if fills and pick(0, 2) == 0 else None
    return nest_of(list(zip(extents, *sides, strict=True)), width, *bases, value)


def visited(nest: LoopNest) -> list[tuple[int, int]]:
    """Every (source, destination) offset of a scalar nest."""
    src, dst = refs(nest.innermost)
    out = []
    for values in product(*(range(int_size(loop.extent)) for loop in nest.loops)):
        env = {loop.axis: v for loop, v in zip(nest.loops, values, strict=True)}

        def at(ref: Ref | None, env: dict[str, int] = env) -> int:
            return 0 if ref is None else int_size(ref.const) + sum(int_size(s) * env[a] for a, s in ref.terms)

        out.append((at(src), at(dst)))
    return sorted(out)


def moved(nest: LoopNest, **given_: Any) -> bytes:
    """The destination after the nest ran on numbered bytes."""
    src = np.random.default_rng(7).integers(0, 256, SIZE, np.uint8)
    dst = np.zeros(SIZE, np.uint8)
    interpret(
        nest,
        {"src": src, "dst": dst},
        fill=bytes(range(1, 17))[: max(1, nest.buffer("dst").element.bits // 8)],
        **given_,
    )
    return dst.tobytes()


@pytest.mark.parametrize("run", NORMALIZE, ids=lambda p: p.__name__)
@given(nest=nests(fills=True))
def test_normalizing_keeps_meaning(run: Any, nest: LoopNest) -> None:
    assert visited(run(nest)) == visited(nest)


@given(nests())
def test_widening_keeps_meaning(nest: LoopNest) -> None:
    assert moved(widen(normal(nest))) == moved(nest)


def normal(nest: LoopNest) -> LoopNest:
    for run in NORMALIZE:
        nest = run(nest)
    return nest


JOINED = (
    nest_of([(3, 576, 64), (9, 16, 192), (16, 1, 4), (4, 144, 1)]),
    nest_of([(9, 192, 16), (3, 64, 576), (4, 1, 144), (16, 4, 1)]),
)
"""Rows of 16 bytes that are joined to one of 144, packed together and taken apart."""


@given(nests(fills=True), st.integers(1, 3), st.sampled_from((0, 1 << 30)))
@example(JOINED[0], 1, 0)
@example(JOINED[1], 3, 1 << 30)
def test_scheduled_and_lifted_nests_keep_meaning(nest: LoopNest, threads: int, footprint: int) -> None:
    want = moved(nest)
    scalar = normal(nest) if isinstance(nest.innermost.value, Fill) else widen(normal(nest))  # type: ignore[union-attr]
    schedule = choose(scalar, threads=threads, footprint=footprint)
    vectorized = super_vectorize(scalar, schedule)
    fill = bytes(range(1, 17))[: nest.buffer("dst").element.bits // 8]
    assert len(fill) in (1, 2, 4, 8, 16)
    assert moved(vectorized) == want
    padded = pad_rank(vectorized, schedule)
    inner, tables = padded.innermost, None
    if isinstance(inner, Transpose) and inner.grid:
        assert not padded.loops
        tables = dict(zip(GRID_TABLES, grid_tables(inner.grid), strict=True))
    else:
        found = {LINE_TABLE: line_table(inner), GROUP_TABLE: group_table(inner)}
        tables = {name: table.offsets for name, table in found.items() if table}
        assert len(padded.loops) == schedule.rank
    assert moved(padded) == want
    parametrized, sizes = parametrize_sizes(padded)
    consts = {ref.buffer: int_size(ref.const) for ref in refs(padded.innermost) if ref}
    assert moved(_rebased(parametrized, padded, consts), sizes=dict(sizes), tables=tables) == want
    fixed = specialize_sizes(parametrized, dict(sizes))
    assert "Param" not in repr(fixed)
    assert moved(_rebased(fixed, padded, consts), tables=tables) == want
    half = dict(sizes[::2])
    rest = {name: value for name, value in sizes if name not in half}
    assert (
        moved(_rebased(specialize_sizes(parametrized, half), padded, consts), sizes=rest, tables=tables)
        == want
    )


@given(
    nests(),
    st.one_of(st.integers(1, 9), st.tuples(st.integers(1, 3), st.integers(1, 3))),
    st.integers(1, 3),
)
@example(nest_of([(2, 5440, 64), (85, 16, 128), (16, 1, 4), (4, 1360, 1)]), 5, 1)
def test_strips_keep_meaning(nest: LoopNest, size: Any, threads: int) -> None:
    want, scalar = moved(nest), widen(normal(nest))
    schedule = choose(scalar, threads=threads, virtual_vector_size=size)
    strips = size[0] * size[1] if isinstance(size, tuple) else size
    assert schedule.mode == "interleave" or schedule.strip in (None, strips)
    cut = schedule.transpose
    if cut and not cut.stage:
        side = LINE_BYTES // (scalar.buffer("dst").element.bits // 8)
        extents = {loop.axis: int_size(loop.extent) for loop in scalar.loops}
        counts = [prod(extents[a] for a in axes) for axes in (cut.rows, cut.columns)]
        asked = size if isinstance(size, tuple) else (size, size)
        whole = [min(-(-n // side) * side, all_) for n, all_ in zip(asked, counts, strict=True)]
        assert cut.tile == tuple(whole)
    parts = strip_mine(scalar, schedule)
    got = np.zeros(SIZE, np.uint8)
    for part in parts:
        if schedule.strip:
            stripped = next(loop for loop in part.loops if loop.axis == schedule.stripped)
            assert int_size(stripped.extent) <= schedule.strip
        made = pad_rank(super_vectorize(part, schedule), schedule)
        assert schedule.transpose or len(made.loops) == schedule.rank
        got |= np.frombuffer(moved(made), np.uint8)
    assert got.tobytes() == want
    assert sorted(pair for part in parts for pair in visited(part)) == visited(scalar)


def _rebased(parametrized: LoopNest, padded: LoopNest, consts: dict[str, int]) -> LoopNest:
    """Lifting leaves bases to the addresses a kernel is called with: put them back for the interpreter."""
    inner: Any = parametrized.innermost

    def moved_ref(ref: Ref) -> Ref:
        return replace(ref, const=consts.get(ref.buffer, 0))

    if hasattr(inner, "src"):
        inner = replace(inner, src=moved_ref(inner.src))
    elif isinstance(getattr(inner, "value", None), Load):
        inner = replace(inner, value=Load(moved_ref(inner.value.ref)))
    inner = replace(inner, dst=moved_ref(inner.dst))
    buffers = tuple(replace(b, element=padded.buffer(b.name).element) for b in parametrized.buffers)
    return replace(
        parametrized, buffers=buffers, body=wrap(parametrized.loops, parametrized.table_loop, inner)
    )


def body(nest: LoopNest) -> str:
    """The loops as text, without the lines about buffers."""
    return "".join(f"{line}\n" for line in format_nest(nest).splitlines() if " bits, " not in line)


def test_drop_units() -> None:
    assert body(drop_units(nest_of([(1, 7, 9), (5, 1, 1)]))) == "for d1 in 5:\n    dst[1*d1] = src[1*d1]\n"


def test_face_forward() -> None:
    assert (
        body(face_forward(nest_of([(5, 1, -2)], dst=8))) == "for d0 in 5:\n    dst[2*d0] = src[4 + -1*d0]\n"
    )


def test_order_by_destination() -> None:
    nest = order_by_destination(nest_of([(3, 5, 1), (5, 1, 3)]))
    assert [loop.axis for loop in nest.loops] == ["d1", "d0"]


def test_coalesce() -> None:
    assert body(coalesce(nest_of([(4, 5, 5), (5, 1, 1)]))) == "for d1 in 20:\n    dst[1*d1] = src[1*d1]\n"
    holes = nest_of([(4, 6, 5), (5, 1, 1)])
    assert len(coalesce(holes).loops) == 2


def test_widen_takes_a_shared_run_into_the_element() -> None:
    nest = widen(nest_of([(9, 4, 40), (2, 2, 2)], width=2))
    assert [loop.extent for loop in nest.loops] == [9]
    assert nest.buffer("dst").element == Element("u32", 32)


@given(st.integers(0, 60), st.integers(1, 5))
def test_split_run_keeps_meaning(extra: int, width: int) -> None:
    width = 1 << (width - 1)
    nest = nest_of([(8 * 16 // width * 4 + extra, width, width)], width)
    for block_bytes in (16 * 8, 1):  # elements may be larger than a block
        parts = split_run(nest, block_bytes=block_bytes)
        assert sorted(pair for part in parts for pair in visited(part)) == visited(nest)


def test_strip_mine() -> None:
    nest = nest_of([(9, 1200, 512), (100, 4, 4)], 4)
    whole, rest = strip_mine(nest, choose(nest, virtual_vector_size=32))
    assert body(whole) == (
        "for d0 in 9:\n    for strip in 3:\n        for d1 in 32:\n"
        "            dst[128*strip + 512*d0 + 4*d1] = src[128*strip + 1200*d0 + 4*d1]\n"
    )
    assert [loop.extent for loop in rest.loops] == [9, 1, 4]
    assert refs(rest.innermost)[1].const == 384
    assert len(strip_mine(nest, choose(nest, virtual_vector_size=25))) == 1
    assert strip_mine(nest, choose(nest, virtual_vector_size=100)) == (nest,)


def test_joined_rows() -> None:
    """Rows of less than a line: what is known of the packed lines becomes a table."""
    nest = JOINED[0]
    vectorized = super_vectorize(nest, choose(nest))
    assert body(vectorized) == (
        "for d0 in 3:\n    dst[64*d0] <- interleave src[576*d0], 4 rows of 144 u8, rows 144 apart, "
        "columns 4 apart, packed lines 1 at 64 x 9 at 192\n"
    )
    parametrized, sizes = parametrize_sizes(vectorized)
    assert ("columns", 144) in sizes
    assert body(parametrized).endswith(", packed lines by a table\n")


@given(st.integers(2, 40), st.integers(2, 40), st.integers(1, 9))
def test_split_long_keeps_meaning(rows: int, columns: int, block: int) -> None:
    nest = nest_of([(rows, columns, 1), (3, rows * columns, rows * columns), (columns, 1, rows)])
    parts = split_long(nest, block)
    assert sorted(pair for part in parts for pair in visited(part)) == visited(nest)
    longest = max(int_size(x.extent) for part in parts for x in part.loops if not x.axis.startswith("long"))
    assert longest <= max(2 * block, 3)


def test_ranks() -> None:
    most = OUTER_RANKS[-1]
    for loops in range(most + 1):
        assert padded_rank(loops) == min(rank for rank in OUTER_RANKS if rank >= loops)
    with pytest.raises(KernelError, match="outer loops"):
        padded_rank(most + 1)


def test_short_runs_of_whole_lines_are_read_in_order() -> None:
    """Past the cache, wherever they are written: destination order would read each from a page of its own."""

    def order(run: int, gap: int = 0, footprint: int = 1 << 30) -> tuple[int, ...]:
        """Source strides of the outer loops of permutation 1,3,2,0,4, its runs `gap` bytes apart."""
        sizes = (37, 28, 28, 8, run)
        src = [4 * prod(sizes[k + 1 :]) for k in range(5)]
        dst, step = {4: 4}, 4 * run + gap
        for k in (0, 2, 3, 1):
            dst[k], step = step, step * sizes[k]
        nest = normal(nest_of([(sizes[k], src[k], dst[k]) for k in (1, 3, 2, 0, 4)], 4))
        read, _ = refs(nest.innermost)
        assert read
        return tuple(int_size(read.stride(axis)) for axis in choose(nest, footprint=footprint).outer)

    for run in (16, 32, 48):
        assert order(run) == tuple(sorted(order(run), reverse=True))
    for other in (order(33), order(32, gap=4), order(64), order(32, footprint=0)):
        assert other != tuple(sorted(other, reverse=True))


def test_tiles_of_one_line_rows_are_long() -> None:
    """Rows of one line, and of two: the former are as many lines across as make up for their few rows."""

    def tile(rows: int) -> tuple[int, int]:
        nest = normal(nest_of([(1000, 4, 64 * rows), (rows, 4160, 4)], 4))
        cut = choose(nest, footprint=1 << 30).transpose
        assert cut
        assert cut.stream
        assert not cut.stage
        return cut.tile

    assert tile(16)[1] > tile(32)[1]
    assert tile(16)[0] == tile(32)[0]


def test_choose_says_what_it_sees() -> None:
    def mode(*digits: tuple[int, int, int], value: Any = None, width: int = 4) -> str:
        return choose(normal(nest_of(list(digits), width, value=value))).mode

    assert mode((9, 4, 4)) == "run"
    assert mode((9, 80, 64), (16, 4, 4)) == "run"
    assert mode((16, 4, 64), (16, 64, 4)) == "transpose"
    assert mode((9, 8, 4)) == "elements"
    assert mode((9, 0, 4), value=Fill()) == "fill"
    swapped = Convert(Load(Ref("src", 0, (("d0", 4),))), "swap u32", "u32")
    assert mode((9, 4, 4), value=swapped) == "elements"
