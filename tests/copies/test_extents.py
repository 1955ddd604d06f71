"""Every kind of copy proves, before it writes, that it stays in its buffers: one byte less is refused.

The proofs are in these functions:

- a box in one pass, with any kernel: `pipeline.steps.launch_of`
- entries of tables: `TableCalls.chunks`, chunk by chunk
- all boxes in one launch: `gather._check_segments` and `_check_chunks`
- many places at once (blocks of any kind, single tiles, expressions to tiled arrays): `_check_chunks` of
  `call_tables`
- loops, masked copies and reductions: `codegen.analysis.bounds.check_bounds`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.frontend.box_copy import box_copy
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap
from codegen.maps.windows import tight_map
from codegen.pipeline import gather, stage_boxes, stage_permuted, staged_loops
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.staged_copy import staged_copy
from codegen.pipeline.stages import compile_stage
from codegen.pipeline.steps import launch_of
from codegen.runtime.launch import Launch
from codegen.runtime.offset_builder import build_offset_calls
from codegen.runtime.offset_calls import OffsetCalls
from codegen.schedule import choose_conversion, choose_grid, choose_permuted
from codegen.schedule.choose_swizzle import ChunkTable, chunk_table_of
from codegen.schedule.thresholds import Thresholds
from codegen.support.errors import KernelError, TilejitError
from tilejit.arrays.memory import bytes_map
from tilejit.kernels import program as loop_program
from tilejit.layout.dtypes import lookup
from tilejit.layout.indexing import access_map
from tilejit.programs import compiled as programs
from tilejit.programs.compiled import buffer_element
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.pack_programs import pack_program
from tilejit.programs.relayout_programs import single_pass_relayout
from tilejit.programs.tuning import DEFAULT

CACHED, STREAMED = Thresholds(stream_bytes=1 << 62), Thresholds(stream_bytes=0)
LINE_UNITS = 64


@dataclass(frozen=True)
class Copy:
    """One copy, given by its two maps. `is_so` tells whether launches are of the intended kind."""

    src: AccessMap
    dst: AccessMap
    source: Element
    target: Element
    is_so: Callable[[list[Launch]], bool]
    thresholds: Thresholds = CACHED
    pads: bool = False
    swap: bool = False

    def program(self) -> CopyProgram:
        fill = bytes(max(self.dst.element_bits // 8, 1)) if self.pads else None
        return compile_copy(
            CopyRequest(
                self.src,
                self.dst,
                self.source,
                self.target,
                padding=fill,
                swap=self.swap,
                options=CopyOptions(thresholds=self.thresholds),
            )
        )


def mode(name: str, **wanted: Any) -> Callable[[list[Launch]], bool]:
    """Whether one of the launches has that mode, and its transpose the given fields."""

    def is_so(launches: list[Launch]) -> bool:
        return any(
            x.step.schedule.mode == name
            and all(getattr(x.step.schedule.transpose, k, None) == v for k, v in wanted.items())
            for x in launches
        )

    return is_so


def in_tables(launches: list[Launch]) -> bool:
    return any(x.tables for x in launches)


def packed(text: str, is_so: Callable[[list[Launch]], bool], **more: Any) -> Copy:
    """An array in C order into a layout, with its padding."""
    spec = tj.as_layout(text)
    width = spec.dtype.itemsize
    loose = Element(spec.primitive_type, 8 * width)
    array = bytes_map(spec.dimensions, dense(spec.dimensions, width), width)
    return Copy(array, access_map(spec), loose, buffer_element(spec), is_so, pads=True, **more)


def unpacked(text: str, is_so: Callable[[list[Launch]], bool], **more: Any) -> Copy:
    """A layout into an array in C order. Bytes after the last element are not read and do not count."""
    there = packed(text, is_so)
    return Copy(tight_map(there.dst), there.src, there.target, there.source, is_so, **more)


def transposed(
    source: str, target: str, dims: tuple[int, int], is_so: Callable[[list[Launch]], bool], **more: Any
) -> Copy:
    """A matrix in C order into its transpose, converted on the way."""
    a, b = lookup(source), lookup(target)
    wide, narrow = a.storage_bits // 8, b.storage_bits // 8
    rows, columns = dims
    src = bytes_map((columns, rows), (wide, columns * wide), wide)
    dst = bytes_map((columns, rows), (rows * narrow, narrow), narrow)
    return Copy(src, dst, Element(source, 8 * wide), Element(target, 8 * narrow), is_so, **more)


def dense(dims: tuple[int, ...], width: int) -> tuple[int, ...]:
    return tuple(width * int(np.prod(dims[k + 1 :], dtype=int)) for k in range(len(dims)))


WAYS: dict[str, Callable[[], Copy]] = {
    "runs": lambda: packed("f32[20,300]{1,0:T(8,128)}", mode("run")),
    "runs past the cache": lambda: packed(
        "f32[64,1024]{1,0:T(8,128)}", mode("run", stream=None), thresholds=STREAMED
    ),
    "elements": lambda: unpacked("f32[5,7]{1,0:T(2,3)}", lambda launches: bool(launches)),
    "transposed": lambda: transposed("u32", "u32", (300, 200), mode("transpose")),
    "transposed past the cache": lambda: transposed(
        "u16", "u16", (512, 512), mode("transpose", stream=True), thresholds=STREAMED
    ),
    "transposed and staged": lambda: transposed(
        "u8", "u8", (1027, 515), mode("transpose", stream=True), thresholds=STREAMED
    ),
    "converted": lambda: transposed("f32", "bf16", (300, 200), lambda launches: bool(launches)),
    "swapped": lambda: transposed("u64", "u64", (30, 20), lambda launches: bool(launches), swap=True),
    "interleaved": lambda: packed("bf16[64,1050]{1,0:T(32,16)(2,1)}", mode("interleave")),
    "nibbles": lambda: packed("s4[64,256]{1,0:T(64,128)(8,1)E(4)}", lambda launches: bool(launches)),
    "bits": lambda: unpacked("pred[32,128]{1,0:T(32,128)(32,1)E(1)}", lambda launches: bool(launches)),
    "tables": lambda: packed("f32[10,24,6]{2,0,1:T(*,7,2)}", in_tables),
    "tables, read": lambda: unpacked("f32[10,24,6]{2,0,1:T(*,7,2)}", in_tables),
    "gathered": lambda: packed("u8[2,13,11,58]{3,2,1,0:T(8,8,32)}", mode("gather"), thresholds=STREAMED),
    "places": lambda: packed(PLACED, mode("chunks")),
}
PLACED = "f16[64,64] Sw<3,3,3> o 0 o (64,64):(64,1)"


def refused_at(program: CopyProgram) -> None:
    """Ask for every table, as a run does before its first call."""
    for launch in program.launches:
        for _ in launch.calls.chunks(0, launch.trips):
            pass


@pytest.mark.parametrize("name", WAYS)
def test_a_copy_that_fits_compiles_to_the_intended_kind(name: str) -> None:
    copy = WAYS[name]()
    program = copy.program()
    assert copy.is_so(list(program.launches)), [str(x.step.schedule) for x in program.launches]
    refused_at(program)
    assert program.bounds == (copy.src.byte_bounds, copy.dst.byte_bounds)
    for launch in program.launches:
        assert launch.bounds == program.bounds


@pytest.mark.parametrize("by", [1, LINE_UNITS])
@pytest.mark.parametrize("end", ["front", "back"])
@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize("name", WAYS)
def test_a_buffer_that_is_too_small_is_refused(name: str, side: str, end: str, by: int) -> None:
    """By a byte or a line, at either end; for packed elements by one or sixty-four of them."""
    copy = WAYS[name]()
    which = "src" if side == "source" else "dst"
    access = getattr(copy, which)
    unit = access.unit_bits if access.element_bits < 8 else 8
    access = access.in_units(unit)
    low, stop = access.bounds
    short = (low + by, stop) if end == "front" else (low, stop - by)
    smaller = replace(copy, **{which: replace(access, bounds=short)})
    with pytest.raises(KernelError, match=f"the {side} is touched at"):
        refused_at(smaller.program())


def test_tables_are_checked_before_a_byte_is_written() -> None:
    copy = WAYS["tables, read"]()
    low, stop = copy.src.bounds
    program = replace(copy, src=replace(copy.src, bounds=(low, stop - 1))).program()
    src, dst = np.zeros(stop, np.uint32), np.full(10 * 24 * 6, 7, np.uint32)
    with pytest.raises(KernelError, match="the source is touched at"):
        program.run(src.ctypes.data, dst.ctypes.data)
    assert (dst == 7).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"src": -1}, "the source is touched at -1"),
        ({"src": 1 << 20}, "the source is touched"),
        ({"offset": 1 << 20}, "the buffer of a segment is touched"),
        ({"offset": -1}, "the buffer of a segment is touched at -1"),
        ({"dst": 1 << 20}, "the destination is touched"),
    ],
    ids=str,
)
def test_segment_tables_are_proven(change: dict[str, int], match: str) -> None:
    """The proof covers the table, not only the boxes that it is made from."""
    copy = WAYS["gathered"]()
    lowered = box_copy(copy.src.in_units(8), copy.dst.in_units(8))
    segments = copy.program().launches[0].calls.segments  # type: ignore[attr-defined]
    gather._check_segments(lowered, segments)
    part = next(p for p in segments.parts if not p.fills)
    wrong = tuple(replace(p, **change) if p is part else p for p in segments.parts)
    with pytest.raises(KernelError, match=match):
        gather._check_segments(lowered, replace(segments, parts=wrong))


@pytest.mark.parametrize("change", [{"src": -2}, {"src": 2}, {"dst": -2}, {"dst": 2}], ids=str)
def test_chunk_tables_are_proven(change: dict[str, int]) -> None:
    copy = WAYS["places"]()
    lowered = box_copy(copy.src.in_units(8), copy.dst.in_units(8))
    places = chunk_table_of(lowered)
    assert isinstance(places, ChunkTable)
    gather._check_chunks(lowered, places)
    (name, by), *_ = change.items()
    with pytest.raises(KernelError, match="is touched at"):
        gather._check_chunks(lowered, replace(places, **{name: getattr(places, name) + by}))


def relaid(monkeypatch: pytest.MonkeyPatch) -> StagedProgram:
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 2048)
    a, b = tj.Shape.parse("f32[64,96]{1,0:T(8,16)(2,1)}"), tj.Shape.parse("f32[64,96]{0,1:T(16,1)}")
    fill = bytes(4)
    elements = buffer_element(a), buffer_element(b)
    found = staged_copy(single_pass_relayout(a, b, fill, 1), *elements, padding=fill)
    assert found
    return found


def in_swizzled_blocks(monkeypatch: pytest.MonkeyPatch) -> StagedProgram:
    monkeypatch.setattr(choose_permuted, "BLOCK_BYTES", 10 << 10)
    monkeypatch.setattr(stage_permuted, "goes_in_periods", lambda boxes, footprint, packs: True)
    layout = "Sw<3,3,3> o 0 o ((8,32),(64,2)):((64,1024),(1,512))"
    spec = tj.as_layout(layout, dims=(256, 128), dtype="f16")
    way = pack_program.__wrapped__(spec, (256, 2), buffer_element(spec), bytes(2), False, 1, DEFAULT)
    assert isinstance(way, StagedProgram)
    return way


def in_converted(monkeypatch: pytest.MonkeyPatch) -> StagedProgram:
    for name, value in (
        ("LEAST_CONVERTED_BYTES", 0),
        ("LEAST", (32, 32)),
        ("SHORT_ROWS", 0),
        ("BLOCK", (64, 70)),
        ("LEAST_SOURCE_BYTES", 0),
    ):
        monkeypatch.setattr(choose_conversion, name, value)
    monkeypatch.setattr(programs, "machine_thresholds", lambda size: STREAMED)
    copy_program.cache_clear()
    src = np.zeros((131, 250), np.float32)
    dst = np.zeros((250, 131), ml_dtypes.bfloat16)
    found = tj.plan_copy(dst, src.T, threads=2)._program
    copy_program.cache_clear()
    assert isinstance(found, StagedProgram)
    return found


BLOCKWISE = {"relayout": relaid, "swizzled": in_swizzled_blocks, "converted": in_converted}


@pytest.mark.parametrize("by", [1, LINE_UNITS])
@pytest.mark.parametrize("what", ["source", "destination", "block"])
@pytest.mark.parametrize("name", BLOCKWISE)
def test_blocks_stay_in_their_buffers(name: str, what: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block at its place: source, destination and array in cache, one byte or one line smaller."""
    program = BLOCKWISE[name](monkeypatch)
    replace(program, tables={}).table(0)
    (src_low, src_stop), (dst_low, dst_stop) = program.bounds
    if what == "block":
        used = max(inwards.bounds[1][1] for inwards, _ in program.programs.values())
        smaller = replace(program, tables={}, block_bytes=used - by)
    else:
        src = (src_low, src_stop - by) if what == "source" else (src_low, src_stop)
        dst = (dst_low, dst_stop - by) if what == "destination" else (dst_low, dst_stop)
        smaller = replace(program, tables={}, bounds=(src, dst))
    with pytest.raises(KernelError, match="is touched at"):
        smaller.prepare(0)


@pytest.mark.parametrize("far", [0, 1 << 20])
def test_blocks_that_overlap_or_are_too_small_write_nothing(
    far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = relaid(monkeypatch)
    memory = np.full(1 << 21, 7, np.uint8)
    if far:
        (low, stop), dst = program.bounds
        program = replace(program, tables={}, bounds=((low, stop - 1), dst))
    with pytest.raises(KernelError, match="is touched at" if far else "overlap"):
        program.run(memory.ctypes.data, memory.ctypes.data + far)
    assert (memory == 7).all()


Bounds = tuple[tuple[int, int], tuple[int, int]]


def at_each(
    launches: tuple[Launch, ...], cells: int, offsets: Any, bounds: Bounds, into: bool
) -> OffsetCalls:
    """The calls of launches between cells of 64 bytes and entries at offsets."""
    calls = build_offset_calls(
        launches, offsets, (cells,), 64, into=into, unique=into, divisible=True, hold_gil=False, bounds=bounds
    )
    assert calls
    return calls


@pytest.mark.parametrize("into", [False, True], ids=["gather", "scatter"])
def test_single_tiles_stay_in_their_buffers(into: bool) -> None:
    """The same launches at many places."""
    shape = bytes_map((4, 16), (16, 1), 1)
    byte = Element("u8", 8)
    launches = compile_copy(CopyRequest(shape, shape, byte, byte)).launches
    places = np.arange(3) * 64
    fits = (0, 192), (0, 192)
    at_each(launches, 3, places, fits, into)
    for bounds in (((0, 191), (0, 192)), ((0, 192), (0, 191)), ((1, 192), (0, 192)), ((0, 192), (1, 192))):
        with pytest.raises(KernelError, match="is touched at"):
            at_each(launches, 3, places, bounds, into)
    side = "destination" if into else "source"
    with pytest.raises(KernelError, match=f"the {side} is touched at 0 to 255"):
        at_each(launches, 4, places, fits, into)
    with pytest.raises(KernelError, match="is touched at 64 to 255"):
        at_each(launches, 3, places + 64, fits, into)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("first", [0, 5])
def test_single_tiles_may_begin_anywhere_in_lines(streams: bool, first: int) -> None:
    """Kernels that store full lines run only if every tile begins a line."""
    shape = bytes_map((64, 64), (1, 64), 1), bytes_map((64, 64), (64, 1), 1)
    byte = Element("u8", 8)
    launches = compile_stage(*shape, byte, byte, streams=streams).launches
    memory = np.arange(1 << 16).astype(np.uint8)
    src, dst = memory.ctypes.data, memory.ctypes.data + (1 << 15)
    dst += -dst % LINE_UNITS
    calls = build_offset_calls(
        launches,
        first + np.arange(3) * 4096,
        (4,),
        4096,
        into=False,
        unique=False,
        divisible=True,
        hold_gil=False,
        bounds=((0, 1 << 14), (0, 1 << 14)),
    )
    assert calls
    tiles = memory[: 1 << 14].reshape(4, 64, 64).copy()
    ids = np.array([2, 0, 3])
    for off in (0, 1, 59, 64):
        for threads in (1, 2):
            memory[1 << 15 :] = 0
            assert calls(src, dst + off, ids.ctypes.data, threads)
            start = dst - src + off + first
            assert (memory[start:][: 3 * 4096].reshape(3, 64, 64) == tiles[ids].transpose(0, 2, 1)).all()
            assert not memory[1 << 15 : start].any()
            assert not memory[start + 3 * 4096 :].any()


def test_a_table_is_refused_for_another_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    program = relaid(monkeypatch)
    memory = np.full(1 << 21, 7, np.uint8)
    src, dst = memory.ctypes.data, memory.ctypes.data + (1 << 20)
    table = program.table(dst)
    with pytest.raises(KernelError, match="bytes into a line"):
        table.run((src, dst + 1), 0, 1)
    assert (memory == 7).all()
    table.rows((src + 1, dst), 0, 1)


def test_launches_are_proven_when_they_are_made() -> None:
    """They have bounds, which no call table extends, and their box is inside."""
    shape = bytes_map((4, 16), (16, 1), 1)
    byte = Element("u8", 8)
    (launch,) = compile_copy(CopyRequest(shape, shape, byte, byte)).launches
    with pytest.raises(TypeError, match="bounds"):
        launch_of(launch.step)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="bounds"):
        Launch(launch.step, launch.calls, 0, 0, launch.trips)  # type: ignore[call-arg]
    made, place = launch_of(launch.step, ((0, 64), (0, 64))), np.zeros(1, np.int64)
    assert made.bounds == ((0, 64), (0, 64))
    with pytest.raises(KernelError, match="the destination is touched at 0 to 63"):
        at_each((made,), 1, place, ((0, 64), (0, 63)), into=False)
    for side, bounds in (("source", ((0, 63), (0, 64))), ("destination", ((0, 64), (1, 64)))):
        with pytest.raises(KernelError, match=f"the {side} is touched at 0 to 63"):
            launch_of(launch.step, bounds)


def test_expressions_to_tiled_arrays_stay_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    own = staged_loops.StagedLoops._bounds
    x = np.ones((512, 384), np.float32)
    t = tj.pack(x, "{1,0:T(8,128)}")
    before = t.buffer.tobytes()

    def shorter(plan_: Any) -> Any:
        found = own(plan_)
        last = max(plan_._staged)
        return [(low, stop - (k == last)) for k, (low, stop) in enumerate(found)]

    monkeypatch.setattr(staged_loops.StagedLoops, "_bounds", shorter)
    with pytest.raises(KernelError, match="the destination is touched at"):
        tj.elementwise(lambda a: a * 3 + 1)(x, out=t)
    assert t.buffer.tobytes() == before


def _masked() -> None:
    dst, mask = np.zeros((300, 41), np.float32), np.zeros((300, 41), bool)
    tj.copyto(dst, np.ones((300, 41), np.float32), where=mask)
    if not _seen:  # NumPy copies small ones
        tj.elementwise(lambda a: a)(np.ones_like(dst), out=dst, where=mask)


def _reduced() -> None:
    tj.elementwise(lambda a, b: np.sum(a * b, axis=1))(np.ones((70, 90)), np.ones((70, 90)))


def _looped() -> None:
    @tj.kernel
    def add(a, b, c):  # type: ignore[no-untyped-def]
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] = a[i, j] + b[j]

    add(np.ones((9, 20)), np.ones(20), np.ones((9, 20)))


_seen: list[tuple[Any, dict[str, tuple[int, ...]], dict[str, int]]] = []


@pytest.mark.parametrize("run", [_masked, _reduced, _looped], ids=lambda run: run.__name__)
def test_loops_prove_their_subscripts(run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays of a call are proven to fit.

    Shorter arrays are refused, except the one whose size bounds the loops.
    """
    check, _seen[:] = loop_program.check_bounds, []

    def watched(function: Any, shapes: Any, scalars: Any) -> None:
        _seen.append((function, dict(shapes), dict(scalars)))
        check(function, shapes, scalars)

    monkeypatch.setattr(loop_program, "check_bounds", watched)
    run()
    assert _seen
    for function, shapes, scalars in _seen:
        refused = 0
        for name, shape in shapes.items():
            for d in range(len(shape)):
                shorter = (*shape[:d], shape[d] - 1, *shape[d + 1 :])
                try:
                    check(function, {**shapes, name: shorter}, scalars)
                except KernelError:
                    refused += 1
        assert refused, f"no access to {shapes} is checked"


SMALL = np.zeros((16, 256), np.float32)
TILED = tj.Shape.parse("f32[16,256]{1,0:T(8,128)}")
CALLS: dict[str, Callable[[np.ndarray[Any, Any]], object]] = {
    "pack": lambda memory: tj.pack(SMALL, TILED, out=memory),
    "unpack": lambda memory: tj.unpack(memory, TILED),
    "relayout": lambda memory: tj.relayout(tj.pack(SMALL, TILED), "{0,1}", out=memory),
    "from_buffer": lambda memory: tj.TiledArray.from_buffer(memory, TILED),
}


@pytest.mark.parametrize("by", [1, 4, 64, -1, -64])
@pytest.mark.parametrize("name", CALLS)
def test_calls_refuse_memory_of_another_size(name: str, by: int) -> None:
    memory = np.full(SMALL.nbytes - by, 7, np.uint8)
    with pytest.raises(TilejitError, match=r"\d+ bytes"):
        CALLS[name](memory)
    assert (memory == 7).all()
