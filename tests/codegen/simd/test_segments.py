"""Segments gathered from pieces: guard pages, every alignment and CPU level, and when they are used."""

from __future__ import annotations

import weakref
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from codegen.frontend.box_copy import box_copy
from codegen.ir.strided_box import Element
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.runtime import copy_calls as calls
from codegen.runtime import launch, threads
from codegen.runtime.copy_calls import SegmentCalls
from codegen.runtime.kernel import Kernel, native
from codegen.schedule import choose_joined
from codegen.schedule import segments as segments
from codegen.schedule.choose_segments import SegmentLimits, segments_of
from codegen.schedule.segments import BYTES, DST, SegmentBox, Segments
from codegen.schedule.thresholds import Thresholds
from tests.codegen.simd.forced import _guarded, arenas, guarded_scratch
from tests.codegen.simd.levels import AtLevels
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered
from tests.tools.strategies import picker, shape
from tilejit.arrays.memory import bytes_map
from tilejit.layout.as_layout import as_layout
from tilejit.layout.from_parts import make_shape
from tilejit.layout.indexing import access_map, linear_index
from tilejit.layout.shape import Shape

STREAM = Thresholds(0)
PADDING = 0x3C

CASES = (
    ("u8[2,13,11,58]{3,2,1,0:T(8,8,32)}", "pixels of 58 in tiles of 32: runs of 32 and 26"),
    ("u16[33,131]{1,0:T(32,32)(16,16)}", "rows of one odd piece"),
    ("u16[35,203]{1,0:T(16,8)}", "pieces of 16 bytes"),
    ("u32[37,101]{1,0:T(8,8)(4,4)(2,2)}", "pieces of 8 bytes"),
    ("u8[40,700]{1,0:T(8,130)}", "pieces of two lines and 2 bytes"),
    ("u16[21,403]{1,0:T(8,50)}", "pieces of a line, 32 and 4 bytes"),
    ("u8[64,1000]{1,0:T(16,23)}", "pieces of 16, 4, 2 and 1 bytes"),
    ("u8[8,4096]{1,0:T(4,32)}", "no padding"),
)
SPECS = [text for text, _ in CASES]


def programs(text: str | Shape, *, threads: int = 1) -> tuple[Shape, CopyProgram, CopyProgram]:
    """The pack and the unpack of a layout, as if every copy were past the cache."""
    spec = as_layout(text)
    width = spec.dtype.itemsize
    strides = np.empty(spec.dimensions, spec.dtype).strides
    plain, tiled = bytes_map(spec.dimensions, strides, width), access_map(spec)
    element = Element(f"u{8 * width}", 8 * width)
    pack = compile_copy(
        CopyRequest(
            plain,
            tiled,
            element,
            element,
            padding=bytes([PADDING]) * width,
            options=CopyOptions(threads=threads, thresholds=STREAM),
        )
    )
    return (
        spec,
        pack,
        compile_copy(
            CopyRequest(
                tiled, plain, element, element, options=CopyOptions(threads=threads, thresholds=STREAM)
            )
        ),
    )


def expected(spec: Shape, content: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The buffer with an array's elements, put one by one, and the padding."""
    out = np.full(spec.physical_size * spec.dtype.itemsize, PADDING, np.uint8).view(spec.dtype)
    out[linear_index(spec, tuple(np.indices(spec.dimensions)))] = content
    return out.view(np.uint8)


def gather_of(program: CopyProgram) -> Segments:
    """The segments of a program that is one gather."""
    (only,) = program.launches
    assert isinstance(only.calls, SegmentCalls)
    return only.calls.segments


def guard(program: CopyProgram) -> None:
    """Put the tables right before a guard page."""
    made = gather_of(program)
    assert made.every_entry is not None
    table, starts = made._tables
    vars(made)["_tables"] = _guarded(table), starts
    vars(made)["every_entry"] = _guarded(made.every_entry)


def both_ways(text: str | Shape, gaps: range, *, threads: int = 1) -> None:
    """Pack and unpack at those distances from a guard page, with sources flush against one."""
    spec, pack, unpack = programs(text, threads=threads)
    rng = np.random.default_rng(7)
    plain = rng.integers(0, 256, prod(spec.dimensions) * spec.dtype.itemsize, np.uint8)
    tiled = expected(spec, plain.view(spec.dtype).reshape(spec.dimensions))
    source, target = arenas()
    for program, content, wanted in ((pack, plain, tiled), (unpack, tiled, plain)):
        guard(program)
        for gap in gaps:
            data = source.place(len(content), at_end=bool(gap % 2))
            data[:] = content
            room = target.place(len(wanted), at_end=gap % 4 < 2, gap=gap)
            room[:] = ~wanted
            program.run(data.ctypes.data, room.ctypes.data, threads)
            wrong = np.flatnonzero(room != wanted)
            assert not len(wrong), f"{text}, gap {gap}: {len(wrong)} wrong bytes from {wrong[0]} on"
            assert target.untouched(), f"{text}, gap {gap}: bytes beside the destination changed"
            assert (data == content).all()


ALWAYS = SegmentLimits(least_move=1, most_waste=1e9, least_of_page=0, short_run=1 << 20)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gather whatever can be gathered, with the scratch buffer between guard pages."""
    monkeypatch.setattr(choose_joined, "SEGMENT_LIMITS", ALWAYS)
    monkeypatch.setattr(launch, "scratch", guarded_scratch)


@pytest.mark.parametrize("text", SPECS, ids=[why for _, why in CASES])
def test_every_alignment(text: str) -> None:
    both_ways(text, range(64))


def test_threads_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts end where a segment does, in the middle of a line or not. Entries are made a few at a time."""
    both_ways(SPECS[0], range(8), threads=3)
    monkeypatch.setattr(calls, "TABLE_CHUNK", 2)
    both_ways(SPECS[0], range(8), threads=2)


def test_random_layouts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few bytes and more, for any layout that supports them."""
    gathered = 0
    for number in range(150):
        rng = np.random.default_rng((seed, number))
        spec = shape(picker(rng), most=400)
        least = int(rng.choice((8, 64, 300, 1000)))
        monkeypatch.setattr(choose_joined, "SEGMENT_LIMITS", replace(ALWAYS, least_bytes=least))
        if spec.element.bits < 8 or 0 in spec.dimensions:
            continue
        launches = [p.launches for p in programs(spec)[1:]]
        if all(len(x) == 1 and isinstance(x[0].calls, SegmentCalls) for x in launches):
            gathered += 1
            both_ways(spec, range(int(rng.integers(0, 32)), 64, 32))
    assert gathered > 5, f"seed {seed}: {gathered} layouts"


@pytest.mark.parametrize("text", SPECS[:4])
def test_entries_can_be_made_by_ranges(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same range by range, and their lengths add up to the destination."""
    for program in programs(text)[1:]:
        made = gather_of(program)
        every = made.entries(0, made.count)
        assert every[:, BYTES].sum() == made.stop
        assert (np.diff(every[:, DST]) >= 0).all()
        monkeypatch.setattr(segments, "MOST_ENTRIES", 0)
        again = replace(made)
        assert again.every_entry is None
        ranges = [again.entries(k, k + 1) for k in range(again.count)]
        monkeypatch.undo()
        assert (np.concatenate(ranges) == every).all()


@pytest.mark.parametrize("text", SPECS[:4])
def test_nests_before_and_after(text: str) -> None:
    """The boxes one by one, the segments, and the loops of the kernel leave the same bytes as the kernel."""
    spec, pack, unpack = programs(text)
    plain = np.random.default_rng(7).integers(0, 256, prod(spec.dimensions) * spec.dtype.itemsize, np.uint8)
    tiled = expected(spec, plain.view(spec.dtype).reshape(spec.dimensions))
    for program, content, wanted in ((pack, plain, tiled), (unpack, tiled, plain)):
        seen = Watched(program, content, np.zeros(len(wanted), np.uint8), wanted)
        out = interpreted(seen)
        assert out is not None
        assert (out == wanted).all(), text
        for address in (0, 1, 63):
            out = interpreted_when_lowered(replace(seen, addresses=(64 - address, address)))
            assert (out == wanted).all(), f"{text}, destination {address} bytes into a line"


def test_gaps_between_rows() -> None:
    """Rows written in part: nothing between them changes, at any alignment, on one thread and three."""
    dims, width = (6, 83, 3), 4
    src = bytes_map(dims, (12, 72, 4), width)
    dst = bytes_map(dims, (3000, 12, 4), width)
    element = Element("u32", 32)
    source, target = arenas()
    content = np.random.default_rng(7).integers(0, 256, prod(dims) * width, np.uint8)
    rows = content.reshape(83, 6, 12).swapaxes(0, 1).reshape(6, -1)
    for count in (1, 3):
        program = compile_copy(
            CopyRequest(src, dst, element, element, options=CopyOptions(threads=count, thresholds=STREAM))
        )
        made = gather_of(program)
        assert (made.row, made.filled, made.stop) == (3000, 996, 5 * 3000 + 996)
        assert made.entries(0, made.count)[:, BYTES].sum() == rows.size
        guard(program)
        for gap in range(64):
            data = source.place(len(content), at_end=bool(gap % 2))
            data[:] = content
            room = target.place(made.stop, at_end=gap % 4 < 2, gap=gap)
            room[:] = PADDING
            program.run(data.ctypes.data, room.ctypes.data, count)
            for k, row in enumerate(rows):
                assert (room[3000 * k :][:996] == row).all()
                assert (room[3000 * k + 996 : 3000 * (k + 1)] == PADDING).all()
            assert target.untouched()


def test_a_buffer_of_padding_is_not_gathered() -> None:
    """It has no elements."""
    spec, pack, unpack = programs(make_shape("f32", (0, 5), padded_dimensions=(8, 8), tiles=((4, 4),)))
    room = np.zeros(spec.size_in_bytes, np.uint8)
    nothing = np.zeros(0, np.uint8)
    pack.run(nothing.ctypes.data, room.ctypes.data)
    unpack.run(room.ctypes.data, nothing.ctypes.data)
    assert (room == PADDING).all()


def test_a_replaced_scratch_buffer_stays_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy in a signal handler or a finalizer may need a larger one before the kernel has begun."""
    _, pack, _ = programs(SPECS[0])
    seen: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    def interrupted(size: int) -> Any:
        buffer = threads.scratch(size)
        seen.append(weakref.ref(buffer.base))
        threads.scratch(len(buffer.base) + 1)
        return buffer

    def call(self: Kernel) -> Any:
        def begun(*arguments: Any) -> None:
            alive.append(seen[-1]() is not None)
            native(self.name, self.source)(*arguments)

        return begun

    monkeypatch.setattr(launch, "scratch", interrupted)
    monkeypatch.setattr(Kernel, "call", property(call))
    spec = as_layout(SPECS[0])
    source, room = np.zeros(prod(spec.dimensions), np.uint8), np.zeros(spec.size_in_bytes, np.uint8)
    pack.run(source.ctypes.data, room.ctypes.data)
    assert alive
    assert all(alive)


def test_a_segment_as_text() -> None:
    part = SegmentBox(128, 0, 4, 10, ((3, 64, 20),), ((5, 256, 64),), False)
    pads = SegmentBox(0, 0, 0, 4, ((4, 0, 14),), ((5, 0, 64),), True)
    assert str(Segments((part, pads), 64, 64, 64, 320)).splitlines() == [
        "320 bytes in segments of 64, rows of 64",
        "    5 times 3 chunks of 10 at 4, from 128",
        "    5 times 4 chunks of 4 at 0, padding",
    ]
    first, *_ = str(Segments((part, pads), 34, 64, 34, 290)).splitlines()
    assert first.endswith("290 bytes in segments of 34, rows of 34 every 64")


def chosen(src: str | None, dst: str | None, *, padded: bool = True) -> Segments | None:
    """The segments of a pack or an unpack. None stands for C order."""
    spec = as_layout(src or dst)
    strides = np.empty(spec.dimensions, spec.dtype).strides
    plain = bytes_map(spec.dimensions, strides, spec.dtype.itemsize)
    sides = [(plain if text is None else access_map(spec)).in_units(8) for text in (src, dst)]
    return segments_of(box_copy(sides[0], sides[1]), padded=padded)


def test_which_copies_are_gathered() -> None:
    """Short runs that share lines, if every byte is written and source lines are read completely."""
    crouton = "u8[2,125,125,250]{3,2,1,0:T(8,8,32)}"
    assert chosen(None, crouton)
    assert chosen(crouton, None)
    assert not chosen(None, crouton, padded=False), "padding that stays"
    assert not chosen(None, "u32[4096,4096]{1,0:T(8,128)}"), "long runs"
    assert not chosen("u8[8192,8192]{1,0:T(8,64)}", None), "whole lines that begin on one"
    assert not chosen(None, "u16[8191,4101]{1,0:T(8,128)(2,1)}"), "runs of one element"
    assert not chosen(None, "f64[8191,1021]{1,0:T(8,128)(2,1)}"), "the same"
    assert not chosen(None, "u16[8191,4101]{0,1:T(16,16)(16,1)}"), "a piece of every page"
    assert not chosen("u16[8191,4101]{1,0:T(16,8)}", None), "half of each line at one time"


def at_lower_levels() -> AtLevels:
    return AtLevels(__file__, ["test_every_alignment", "test_threads_and_chunks"], len(CASES) + 1)
