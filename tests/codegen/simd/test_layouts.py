"""Packs and unpacks whose boxes are joined, between guard pages, at every alignment and CPU level."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from codegen import CopyOptions, CopyProgram, CopyRequest, Element
from codegen.pipeline.copies import compile_copy
from tests.codegen.simd.cases import STREAM, through_tables
from tests.codegen.simd.levels import AtLevels, turn
from tests.codegen.simd.problems import arenas
from tests.conftest import SEED
from tests.tools.extent import examples
from tests.tools.guard import Guarded
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered
from tests.tools.strategies import picker, shape
from tilejit.arrays.memory import bytes_map
from tilejit.layout.as_layout import as_layout
from tilejit.layout.dtypes import lookup
from tilejit.layout.indexing import access_map, linear_index

CACHED, PAST_IT = 1 << 62, 0
PADDING = 0x3C

SHORT_RUNS = {
    "pixels of 58 in tiles of 32": "u8[8,31,27,58]{3,2,1,0:T(8,8,32)}",
    "rows of one odd piece": "u16[133,331]{1,0:T(32,32)(16,16)}",
    "pieces of 16 bytes": "u16[135,303]{1,0:T(16,8)}",
    "pieces of 8 bytes": "u32[137,201]{1,0:T(8,8)(4,4)(2,2)}",
    "pieces of two lines and 2 bytes": "u8[80,700]{1,0:T(8,130)}",
    "pieces of a line, 32 and 4 bytes": "u16[81,403]{1,0:T(8,50)}",
    "pieces of 16, 4, 2 and 1 bytes": "u8[64,1000]{1,0:T(16,23)}",
    "no padding": "u8[16,4096]{1,0:T(4,32)}",
}
SWIZZLES = {
    "swizzled pieces of 8 bytes": ("u16", (640,), "Sw<2,2,3> o 0 o 640:1"),
    "of 16": ("u16", (2048,), "Sw<3,3,3> o 0 o 2048:1"),
    "of 32": ("u16", (2048,), "Sw<2,4,3> o 0 o 2048:1"),
    "of 64, two each": ("u32", (1024,), "Sw<1,4,3> o 0 o 1024:1"),
    "the more major bits changed": ("u8", (3, 640), "Sw<2,3,-2> o 0 o (3,640):(640,1)"),
    "rows of an array into tiles": ("u16", (16, 128), "Sw<3,3,3> o 0 o ((8,2),(64,2)):((64,1024),(1,512))"),
    "two tiles beside each other": ("u32", (24, 16), "Sw<2,1,3> o 0 o ((8,3),(8,2)):((8,128),(1,64))"),
}
NAMES = (*SHORT_RUNS, *SWIZZLES)


def spec_of(name: str) -> Any:
    if name in SHORT_RUNS:
        return as_layout(SHORT_RUNS[name])
    dtype, dims, text = SWIZZLES[name]
    return as_layout(text, dims=dims, dtype=lookup(dtype))


def contents(spec: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """An array's bytes, and those of its buffer: each element at its place, and padding."""
    plain = np.random.default_rng(7).integers(0, 256, prod(spec.dimensions) * spec.dtype.itemsize, np.uint8)
    tiled = np.full(spec.size_in_bytes, PADDING, np.uint8).view(spec.dtype)
    values = plain.view(spec.dtype).reshape(spec.dimensions)
    tiled[linear_index(spec, tuple(np.indices(spec.dimensions)))] = values
    return plain, tiled.view(np.uint8)


def programs(spec: Any, stream_bytes: int, threads: int = 1) -> tuple[CopyProgram, CopyProgram]:
    """Pack and unpack of an array in C order."""
    width = spec.dtype.itemsize
    plain = bytes_map(spec.dimensions, np.empty(spec.dimensions, spec.dtype).strides, width)
    tiled, element = access_map(spec), Element(f"u{8 * width}", 8 * width)
    options = CopyOptions(threads, stream_bytes=stream_bytes)
    padding = None if spec.size_in_bytes == prod(spec.dimensions) * width else bytes([PADDING]) * width
    return (
        compile_copy(CopyRequest(plain, tiled, element, element, padding=padding, options=options)),
        compile_copy(CopyRequest(tiled, plain, element, element, options=options)),
    )


def both_ways(spec: Any, stream_bytes: int, gaps: range, *, threads: int = 1) -> None:
    """Pack and unpack at those distances from a guard page, with sources flush against one."""
    plain, tiled = contents(spec)
    source, target = arenas()
    pairs = (plain, tiled), (tiled, plain)
    for program, (content, wanted) in zip(programs(spec, stream_bytes, threads), pairs, strict=True):
        for gap in gaps:
            data = source.place(len(content), at_end=bool(gap % 2))
            room = target.place(len(wanted), at_end=gap % 4 < 2, gap=gap)
            data[:], room[:] = content, ~wanted
            program.run(data.ctypes.data, room.ctypes.data, threads)
            wrong = np.flatnonzero(room != wanted)
            assert not len(wrong), f"gap {gap}: {len(wrong)} wrong bytes from {wrong[0]} on"
            assert target.untouched(), f"gap {gap}: bytes beside the destination changed"
            assert (data == content).all()


@pytest.mark.full
@pytest.mark.parametrize("stream_bytes", [CACHED, PAST_IT], ids=["in cache", "past it"])
@pytest.mark.parametrize("name", NAMES)
def test_every_alignment(name: str, stream_bytes: int) -> None:
    both_ways(spec_of(name), stream_bytes, range(64))


@pytest.mark.full
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", ["pieces of 8 bytes", "rows of an array into tiles"])
def test_threads(name: str, threads: int) -> None:
    """Parts end where a row does, in the middle of a line or not."""
    both_ways(spec_of(name), PAST_IT, range(8), threads=threads)


@pytest.mark.full
def test_random_layouts(seed: int) -> None:
    """The boxes one by one, and the loops of the kernels, leave the bytes that the definition gives."""
    for number in range(examples(10, full=100)):
        rng = np.random.default_rng((seed, number))
        spec = shape(picker(rng), most=400)
        if spec.element.bits < 8 or 0 in spec.dimensions:
            continue
        plain, tiled = contents(spec)
        for stream_bytes in (CACHED, PAST_IT):
            pairs = (plain, tiled), (tiled, plain)
            for program, (content, wanted) in zip(programs(spec, stream_bytes), pairs, strict=True):
                nothing = np.zeros(len(wanted), np.uint8)
                for address in (0, 1, 63):
                    seen = Watched(program, content, nothing, wanted, (64 - address, address))
                    assert (interpreted_when_lowered(seen) == wanted).all(), f"{spec}, {address}"


@pytest.mark.parametrize("name", SWIZZLES)
def test_swizzles_interpreted(name: str) -> None:
    """The boxes one by one, and the lowered functions, leave the same bytes."""
    spec = spec_of(name)
    plain, tiled = contents(spec)
    pairs = (plain, tiled), (tiled, plain)
    for program, (content, wanted) in zip(programs(spec, CACHED), pairs, strict=True):
        seen = Watched(program, content, np.zeros_like(wanted), wanted)
        assert (interpreted(seen) == wanted).all()
        assert (interpreted_when_lowered(seen) == wanted).all()


@pytest.mark.full
def test_gaps_between_rows() -> None:
    """Rows written in part: nothing between them changes, at any alignment, on one thread and three."""
    dims, width = (6, 83, 3), 4
    maps = bytes_map(dims, (12, 72, 4), width), bytes_map(dims, (3000, 12, 4), width)
    element = Element("u32", 32)
    source, target = arenas()
    content = np.random.default_rng(7).integers(0, 256, prod(dims) * width, np.uint8)
    rows = content.reshape(83, 6, 12).swapaxes(0, 1).reshape(6, -1)
    for count in (1, 3):
        options = CopyOptions(count, stream_bytes=PAST_IT)
        program = compile_copy(CopyRequest(*maps, element, element, options=options))
        for gap in range(64):
            data = source.place(len(content), at_end=bool(gap % 2))
            data[:] = content
            room = target.place(5 * 3000 + 996, at_end=gap % 4 < 2, gap=gap)
            room[:] = PADDING
            program.run(data.ctypes.data, room.ctypes.data, count)
            for k, row in enumerate(rows):
                assert (room[3000 * k :][:996] == row).all()
                assert (room[3000 * k + 996 : 3000 * (k + 1)] == PADDING).all()
            assert target.untouched()


TABLES = {case.name: case for case in through_tables(np.random.default_rng(SEED), STREAM)}


@pytest.mark.full
@pytest.mark.parametrize("name", list(TABLES))
def test_tables(name: str) -> None:
    """Entries in an order that only a table has. Streaming stores go to full lines."""
    source, target = Guarded(1 << 17), Guarded(1 << 17)
    for gap in range(64):
        for at_end in (False, True):
            TABLES[name].run_at(source, target, at_end, src_gap=0, dst_gap=gap)


def at_lower_levels(level: str) -> AtLevels:
    cases = [f"test_every_alignment[{name}-{place}]" for place in ("in cache", "past it") for name in NAMES]
    cases += [f"test_tables[{name}]" for name in TABLES]
    return AtLevels(__file__, tests := turn(cases, level), len(tests))
