"""Every instruction's builder against its meaning, at every CPU level of this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.backend.build import build
from codegen.backend.object_loader import load_object
from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.buffers import Buffer
from codegen.ir.dtypes import stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.instructions import REVERSED_GROUPS, instruction, instructions
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.operations import compute
from codegen.ir.packed_bits import COLUMN_BYTES, PACKED_BITS, column_rows
from codegen.schedule.segments import MOVES
from codegen.simd.instructions import BUILDERS, builder_of
from codegen.support.cpu import host_levels, level_named
from tests.conftest import SEED
from tests.tools.guard import Guarded, strided_view

KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)


def test_each_instruction_has_a_builder() -> None:
    """Streaming is a property of a store. Instructions are named by what they compute.

    Conversions are built when they are first used.
    """
    names = {each.name for each in instructions()}
    assert {name for name in names if not name.startswith("convert_")} == set(BUILDERS)
    assert all(map(builder_of, names))


LEVELS = host_levels()


@cache
def kernel(body: str, level: str) -> Callable[[int, int, int, int, int], None]:
    """A kernel with one statement on its five arguments, a to e, compiled for a level."""
    name = f"kernel_{sha256(f'{body}{level}'.encode()).hexdigest()[:12]}"
    built = build(name, f"def {name}(a, b, c, d, e):\n    {body}\n", level_named(level))
    return KERNEL(load_object(name, bytes(built.object_code)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["copy_part", "copy_block", "drain_part"])
def test_copies_of_bytes(name: str, level: str) -> None:
    """Between guard pages, flush against either one."""
    rng = np.random.default_rng(SEED)
    source, target = Guarded(1 << 12), Guarded(1 << 12)
    for count in (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63):
        for at_end in (False, True):
            src, dst = source.place(count, at_end=at_end), target.place(count, at_end=at_end)
            src[:] = rng.integers(0, 256, count)
            expected = np.zeros(count, np.uint8)
            instruction(name).meaning(Buffer(expected), Buffer(src), count)
            kernel(f"{name}(b, a, c)", level)(src.ctypes.data, dst.ctypes.data, count, 0, 0)
            assert np.array_equal(dst, expected)
            assert target.untouched()


@pytest.mark.parametrize("level", LEVELS)
def test_padding_patterns(level: str) -> None:
    low, high = 0x0123456789ABCDEF, -0x123456789
    line = instruction("repeated_line").meaning(low, high)
    out = np.zeros(64, np.uint8)
    kernel("write_u8_64(a, repeated_line(b, c))", level)(out.ctypes.data, low, high, 0, 0)
    assert np.array_equal(out, line)
    target = Guarded(1 << 12)
    for count in range(64):
        dst = target.place(count, at_end=True)
        kernel("fill_part(a, b, c, d)", level)(dst.ctypes.data, count, low, high, 0)
        assert np.array_equal(dst, line[:count])
        assert target.untouched()


UNDECLARED = ((64, 4, 4), (32, 8, 8), (32, 4, 8), (32, 8, 2), (16, 4, 16), (8, 8, 32), (8, 2, 2), (128, 2, 2))
"""Shapes that are not on the menu of blocks, as (bits, rows, columns). The builder also supports them."""


def blocks() -> list[tuple[int, int, int]]:
    """(bits, rows, columns) of the super-vectors that transposes use, and of some that they could use."""
    shapes = instruction("transposed").shapes
    declared = [(bits, *shape) for bits, blocks in shapes.items() for shape in blocks]
    return [*declared, *UNDECLARED]  # type: ignore[list-item]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("bits", "rows", "columns"), blocks())
def test_transposed(bits: int, rows: int, columns: int, level: str) -> None:
    """Rows at a pitch are read and stored. Sources and results end at a guard page."""
    width, rng = bits // 8, np.random.default_rng(SEED)
    pitch, out_pitch = columns * width + 3, rows * width + 5
    source, target = Guarded(1 << 14), Guarded(1 << 14)
    src = source.place((rows - 1) * pitch + columns * width, at_end=True)
    dst = target.place((columns - 1) * out_pitch + rows * width, at_end=True)
    src[:], dst[:] = rng.integers(0, 256, len(src)), 0
    body = f"write_u{bits}_{columns}x{rows}(b, d, transposed(read_u{bits}_{rows}x{columns}(a, c)))"
    kernel(body, level)(src.ctypes.data, dst.ctypes.data, pitch, out_pitch, 0)

    def matrix(data: np.ndarray, pitch: int, n: int, m: int) -> np.ndarray:
        strides = pitch, width
        return np.ndarray((n, m), f"V{width}", data.data, 0, strides)

    found = matrix(dst, out_pitch, columns, rows)
    wanted = instruction("transposed").meaning(matrix(src, pitch, rows, columns))
    assert found.tobytes() == wanted.tobytes()
    assert target.untouched()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("verb", ["write", "stream"])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_first_rows(width: int, verb: str, level: str) -> None:
    """At a pitch and by a table, each as long as what is stored. The last row ends at a guard page."""
    rows, bits = 16 // width, 8 * width
    source, target, listed = Guarded(1 << 12), Guarded(1 << 13), Guarded(1 << 12)
    src = source.place(1024, at_end=True)
    src[:] = np.random.default_rng(SEED).integers(0, 256, src.size)
    value = f"read_u{bits}_{rows}x{64 // width}(a, 64)"
    by_pitch, by_table = (
        kernel(f"{verb}_first_u{bits}_{rows}x{64 // width}{how}(b, d, {value}, c)", level)
        for how in ("", "_at")
    )
    for count in range(rows):
        for pitch in (64, 192):
            dst = target.place(max(count - 1, 0) * pitch + 64 * (count > 0), at_end=True)
            table = listed.place(8 * count, at_end=True).view(np.int64)
            table[:] = pitch * np.arange(count)
            for run, places in ((by_pitch, pitch), (by_table, table.ctypes.data)):
                dst[:] = 0
                run(src.ctypes.data, dst.ctypes.data, count, places, 0)
                expected = np.zeros_like(dst)
                for row in range(count):
                    expected[row * pitch :][:64] = src[64 * row :][:64]
                assert np.array_equal(dst, expected)
                assert target.untouched()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("width", MOVES)
def test_rows_at_halves_of_table_entries(width: int, rows: int, level: str) -> None:
    """Row k is read at the low half of entry k and written at the high half, between guard pages."""
    rng = np.random.default_rng((SEED, width, rows))
    source, target, listed = Guarded(1 << 12), Guarded(1 << 12), Guarded(1 << 12)
    read, write = (f"{verb}_u8_{rows}x{width}_at" for verb in ("read", "write"))
    run = kernel(f"{write}_high(b, c, {read}_low(a, c))", level)
    for at_end in (False, True):
        src, dst = (room.place(rows * width, at_end=at_end) for room in (source, target))
        table = listed.place(8 * rows, at_end=at_end).view(np.int64)
        src[:] = rng.integers(0, 256, src.size)
        offsets, places = (width * rng.permutation(rows) for _ in range(2))
        table[:] = places << 32 | offsets
        run(src.ctypes.data, dst.ctypes.data, table.ctypes.data, 0, 0)
        for offset, place in zip(offsets, places, strict=True):
            assert np.array_equal(dst[place:][:width], src[offset:][:width])
        assert target.untouched()


@pytest.mark.parametrize("level", LEVELS)
def test_halves_of_table_entries_are_unsigned(level: str) -> None:
    """A low half of 2**31 or more is an offset forward; one of 2**32 - 1 does not affect the high half."""
    source = np.arange(64, dtype=np.uint8)
    for low in (1 << 31, (1 << 32) - 1):
        out, table = np.zeros(64, np.uint8), np.array([16 << 32 | low])
        start = source.ctypes.data - low
        kernel("write_u8_1x8_at_high(b, c, read_u8_1x8_at_low(a, c))", level)(
            start, out.ctypes.data, table.ctypes.data, 0, 0
        )
        assert np.array_equal(out[16:24], source[:8])


def elements(data: NDArray[np.uint8], bits: int) -> NDArray[Any]:
    """The elements in bytes, as numbers."""
    width = bits // 8
    found = [int.from_bytes(data[k : k + width].tobytes(), "little") for k in range(0, len(data), width)]
    return np.array(found, object)


def check_in_place(statement: str, name: str, bits: int, size: int, level: str) -> None:
    """An operation on `size` bytes, read and written flush against guard pages."""
    rng = np.random.default_rng(SEED)
    source, target = Guarded(1 << 12), Guarded(1 << 12)
    for at_end in (False, True):
        src, dst = source.place(size, at_end=at_end), target.place(size, at_end=at_end)
        src[:] = rng.integers(0, 256, size)
        kernel(statement, level)(dst.ctypes.data, src.ctypes.data, 0, 0, 0)
        expected = instruction(name).meaning(elements(src, bits))
        assert np.array_equal(elements(dst, bits), expected), statement
        assert target.untouched()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bits", list(instruction("reversed_elements").shapes))
def test_reversed_elements(bits: int, level: str) -> None:
    for size in (LANE_BYTES, LINE_BYTES):
        shape = f"u{bits}_{8 * size // bits}"
        statement = f"write_{shape}(a, reversed_elements(read_{shape}(b)))"
        check_in_place(statement, "reversed_elements", bits, size, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("group", REVERSED_GROUPS)
def test_reversed_groups(group: int, level: str) -> None:
    """Complete groups are reversed; the elements after the last one stay."""
    name = f"reversed_groups_{group}"
    for bits in instruction(name).shapes:
        shape = f"u{bits}_{8 * LANE_BYTES // bits}"
        check_in_place(f"write_{shape}(a, {name}(read_{shape}(b)))", name, bits, LANE_BYTES, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("width", [bits // 8 for bits in instruction("joined").shapes])
@pytest.mark.parametrize("verb", ["write", "stream"])
def test_rows_at_the_offsets_of_a_table_are_joined(verb: str, width: int, level: str) -> None:
    """Rows are in any order, also at negative offsets. The first and the last row touch the guard pages."""
    count, rng = LINE_BYTES // width, np.random.default_rng(SEED)
    shape = f"u{8 * width}_{count}"
    statement = f"{verb}_{shape}(a, joined(read_u{8 * width}_{count}x1_at(b, c)))"
    source, target = Guarded(1 << 12), Guarded(1 << 12)
    gap = 3 * width
    src = source.place((count - 1) * gap + width, at_end=True)
    src[:] = rng.integers(0, 256, len(src))
    for base in (0, gap):
        table = rng.permutation(count) * gap - base
        dst = target.place(LINE_BYTES, at_end=True)
        kernel(statement, level)(dst.ctypes.data, src.ctypes.data + base, table.ctypes.data, 0, 0)
        rows = np.stack([elements(src[at + base : at + base + width], 8 * width) for at in table])
        assert np.array_equal(elements(dst, 8 * width), instruction("joined").meaning(rows))
        assert target.untouched()


def test_meanings_on_small_super_vectors() -> None:
    """The examples in the docstrings of the meanings."""
    assert instruction("joined").meaning(np.array([[1, 2], [3, 4]])).tolist() == [1, 2, 3, 4]
    assert instruction("reversed_elements").meaning(np.array([1, 2, 3])).tolist() == [3, 2, 1]
    groups = {2: [2, 1, 4, 3, 6, 5, 8, 7], 3: [3, 2, 1, 6, 5, 4, 7, 8], 4: [4, 3, 2, 1, 8, 7, 6, 5]}
    for group, expected in groups.items():
        assert instruction(f"reversed_groups_{group}").meaning(np.arange(1, 9)).tolist() == expected


def row_shapes() -> Iterator[tuple[int, int, int]]:
    """(element bits, rows, columns) of the blocks that interleaves move: 64, 32 and 16 bytes of each row."""
    for bits in (8, 16, 32, 64):
        for rows in INTERLEAVED_ROWS:
            for size in (64,) if rows == 3 else (64, 32, 16):
                yield bits, rows, 8 * size // bits


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("bits", "rows", "columns"), list(row_shapes()))
def test_interleaves(bits: int, rows: int, columns: int, level: str) -> None:
    """Separate rows on one side, flush against guard pages; packed elements on the other."""
    rng = np.random.default_rng(SEED)
    dtype, row = np.dtype(f"u{bits // 8}"), columns * bits // 8
    kind, flat = f"u{bits}_{rows}x{columns}", f"u{bits}_{rows * columns}"
    pack = kernel(f"write_{flat}(b, interleaved(read_{kind}(a, c)))", level)
    unpack = kernel(f"write_{kind}(a, c, deinterleaved_{rows}(read_{flat}(b)))", level)
    apart, together = Guarded(1 << 12), Guarded(1 << 12)
    for gap, at_end in ((0, False), (3, True), (row, False)):
        pitch = row + gap
        place = apart.place((rows - 1) * pitch + row, at_end=at_end)
        packed = together.place(rows * row, at_end=at_end).view(dtype)
        place[:] = rng.integers(0, 256, len(place))
        block = strided_view(place, dtype, (rows, columns), (pitch, bits // 8))
        pack(place.ctypes.data, packed.ctypes.data, pitch, 0, 0)
        assert np.array_equal(packed, instruction("interleaved").meaning(block))
        before = place.copy()
        packed[:] = packed[::-1].copy()
        expected = strided_view(before, dtype, (rows, columns), (pitch, bits // 8))
        expected[...] = instruction(f"deinterleaved_{rows}").meaning(packed)
        unpack(place.ctypes.data, packed.ctypes.data, pitch, 0, 0)
        assert np.array_equal(place, before)
        assert apart.untouched()
        assert together.untouched()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_swaps(bits: int, level: str) -> None:
    values = np.random.default_rng(SEED).integers(0, 1 << 64, 9, np.uint64).astype(f"u{bits // 8}")
    out = np.zeros_like(values)
    swap = f"store_u{bits}_at(b, c, swap_{bits}(load_u{bits}_at(a, c)))"
    for k in range(len(values)):
        kernel(swap, level)(values.ctypes.data, out.ctypes.data, k * bits // 8, 0, 0)
    assert np.array_equal(out, instruction(f"swap_{bits}").meaning(values))
    assert np.array_equal(out, values.byteswap())


def element_rows(width: int) -> list[tuple[int, int]]:
    """Rows and columns of the blocks of a transpose whose results have this width."""
    side = 64 // width
    return [(side, side), (side, 16 // width)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_swaps_of_rows(bits: int, level: str) -> None:
    for rows, columns in element_rows(bits // 8):
        values = np.random.default_rng(SEED).integers(0, 1 << 64, (rows, columns), np.uint64)
        values = values.astype(f"u{bits // 8}")
        out = np.zeros_like(values)
        kind = f"u{bits}_{rows}x{columns}"
        body = f"write_{kind}(b, c, swap_{bits}(read_{kind}(a, c)))"
        kernel(body, level)(values.ctypes.data, out.ctypes.data, columns * bits // 8, 0, 0)
        assert np.array_equal(out, values.byteswap())


ROW_CASTS = [("bf16", "f32"), ("i32", "f32"), ("f64", "f32"), ("f32", "f64"), ("i8", "i32"), ("i64", "i8")]
ROW_CASTS += [("u16", "i1"), ("i1", "u16"), ("f64", "i8"), ("u8", "f64")]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("source", "target"), ROW_CASTS, ids=lambda name: name)
def test_conversions_of_rows(source: str, target: str, level: str) -> None:
    """Rows of up to eight registers before, and of one or part of one after, between guard pages."""
    before, after = stored_dtype(source), stored_dtype(target)
    rooms = Guarded(1 << 16), Guarded(1 << 14)
    for rows, columns in element_rows(after.itemsize):
        values = np.random.default_rng(SEED).integers(0, 100, rows * columns).astype(before)
        read = f"read_u{bits_of(source)}_{rows}x{columns}(a, c)"
        write = f"write_u{bits_of(target)}_{rows}x{columns}"
        pitches = columns * before.itemsize, columns * after.itemsize
        src, dst = (room.place(rows * n, at_end=True) for room, n in zip(rooms, pitches, strict=True))
        src[:] = values.view(np.uint8)
        body = f"{write}(b, d, convert_{source}_to_{target}({read}))"
        kernel(body, level)(src.ctypes.data, dst.ctypes.data, *pitches, 0)
        assert np.array_equal(dst, compute("cast", [values], target).view(np.uint8))
        assert rooms[1].untouched()


CASTS = [("f32", "bf16"), ("f16", "f64"), ("i8", "f32"), ("f64", "i8"), ("u16", "i1"), ("i64", "f16")]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
@pytest.mark.parametrize(("source", "target"), CASTS, ids=lambda name: name)
def test_conversions(source: str, target: str, lanes: int, level: str) -> None:
    """Super-vectors of one register, of several, and of part of one, between guard pages."""
    before, after = stored_dtype(source), stored_dtype(target)
    rooms = Guarded(1 << 12), Guarded(1 << 12)
    values = np.random.default_rng(SEED).integers(0, 100, lanes).astype(before)
    read = f"read_u{bits_of(source)}_{lanes}(a)"
    body = f"write_u{bits_of(target)}_{lanes}(b, convert_{source}_to_{target}({read}))"
    for at_end in (False, True):
        src, dst = (
            room.place(lanes * dtype.itemsize, at_end=at_end)
            for room, dtype in zip(rooms, (before, after), strict=True)
        )
        src[:] = values.view(np.uint8)
        kernel(body, level)(src.ctypes.data, dst.ctypes.data, 0, 0, 0)
        assert np.array_equal(dst, compute("cast", [values], target).view(np.uint8))
        assert rooms[1].untouched()


def packed_shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Instructions that pack and unpack, with the operand shapes that kernels use."""
    for bits in PACKED_BITS:
        line = 64 * bits // 8
        yield from ((f"packed_{bits}", (8 * size // bits,)) for size in (1, 4, 8, 64))
        yield from ((f"unpacked_{bits}", (size,)) for size in (1, 4, 8, line))
        for size, rows in zip(COLUMN_BYTES, column_rows(bits), strict=True):
            for columns in (1, 16, 64):
                yield f"packed_{bits}_from_rows", (rows, columns)
                yield f"unpacked_{bits}_into_{rows}_rows", (columns * size,)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "shape"), [*packed_shapes()], ids=str)
def test_packed_bits(name: str, shape: tuple[int, ...], level: str) -> None:
    rng = np.random.default_rng(SEED)
    values = rng.integers(0, 256, shape, np.uint8) * (rng.integers(0, 3, shape) > 0).astype(np.uint8)
    expected = instruction(name).meaning(values.astype(object)).astype(np.uint8)
    rooms = Guarded(1 << 12), Guarded(1 << 12)
    body = f"{access('write', expected.shape, 'b')}, {name}({access('read', shape, 'a')})))"
    for at_end in (False, True):
        src, dst = (
            room.place(array.size, at_end=at_end)
            for room, array in zip(rooms, (values, expected), strict=True)
        )
        src[:] = values.ravel()
        kernel(body, level)(src.ctypes.data, dst.ctypes.data, 0, 0, 0)
        assert np.array_equal(dst, expected.ravel())
        assert rooms[1].untouched()


def access(verb: str, shape: tuple[int, ...], address: str) -> str:
    """The start of a call that loads or stores bytes, with rows without gaps."""
    pitch = f", {shape[1]}" if len(shape) == 2 else ""
    return f"{verb}_u8_{'x'.join(map(str, shape))}({address}{pitch}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["pack", "unpack"])
@pytest.mark.parametrize("bits", PACKED_BITS)
def test_packed_parts(bits: int, way: str, level: str) -> None:
    """Fewer bytes than a line of the destination, between guard pages."""
    rng, name, group = np.random.default_rng(SEED), f"{way}_part_{bits}", 8 // bits
    rooms = Guarded(1 << 12), Guarded(1 << 12)
    for count in range(64 if way == "pack" else 64 // group):
        sizes = (count * group, count) if way == "pack" else (count, count * group)
        for at_end in (False, True):
            src, dst = (room.place(size, at_end=at_end) for room, size in zip(rooms, sizes, strict=True))
            src[:] = rng.integers(0, 256, len(src)) * rng.integers(0, 2, len(src))
            expected = np.zeros(len(dst), np.uint8)
            instruction(name).meaning(Buffer(expected), Buffer(src), count)
            kernel(f"{name}(b, a, c)", level)(src.ctypes.data, dst.ctypes.data, count, 0, 0)
            assert np.array_equal(dst, expected)
            assert rooms[1].untouched()
