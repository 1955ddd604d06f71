"""Relayouts in blocks: the same bytes as in one pass, for any blocks, and when they are chosen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tilejit as tj
from codegen.pipeline import stage_boxes, staged
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.staged_copy import staged_copy
from codegen.runtime.threads import run_parts
from codegen.schedule import choose_grid, choose_stages
from codegen.schedule.machine import described, machine
from tests.tools.guard import Guarded
from tests.tools.oracle import packed_by_definition, random_elements
from tilejit.programs.compiled import buffer_element
from tilejit.programs.relayout_programs import single_pass_relayout

ARRAYS = {
    "f32[61,83]": (
        "{1,0}",
        "{0,1}",
        "{1,0:T(8,16)(2,1)}",
        "{0,1:T(16,1)}",
        "{1,0:T(6,1)}",
        "{1,0:T(8,8)(4,4)(2,2)}",
    ),
    "s8[9,20,33]": ("{2,1,0:T(8,8)}", "{0,2,1:T(4,4)(2,1)}", "{2,0,1:T(16)}", "{2,1,0:T(2,3,5)}"),
    "pred[64,96]": ("{1,0:T(8,16)E(1)}", "{1,0:T(32,8)(32,1)E(1)}", "{1,0}", "{1,0:T(3,5)E(1)}"),
}
PAIRS = [(a + x, a + y) for a, layouts in ARRAYS.items() for x, y in product(layouts, repeat=2) if x != y]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(choose_stages, "LEAST_STAGED_BYTES", 0)
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 2048)
    with described(replace(machine(), first_cache_bytes=2048, second_cache_bytes=2 << 20)):
        yield


def program_of(source: str, target: str) -> StagedProgram | None:
    a, b = tj.Shape.parse(source), tj.Shape.parse(target)
    one = np.uint8(1).tobytes() * (1 if b.packed else b.dtype.itemsize)
    direct = single_pass_relayout(a, b, one, 1)
    return staged_copy(direct, buffer_element(a), buffer_element(b), padding=one)


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_blocks_cover_the_array(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between guard pages, on one thread and on three."""
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    program = program_of(source, target)
    a, b = tj.Shape.parse(source), tj.Shape.parse(target)
    if program is None:
        assert "T(3,5)E(1)" in source + target, "only blocks that begin inside bytes are refused"
        return
    x = random_elements(np.random.default_rng(1), a.dtype, int(np.prod(a.dimensions))).reshape(a.dimensions)
    one = np.frombuffer(b"\1" * b.dtype.itemsize, b.dtype)
    want = packed_by_definition(x, b, one, np.zeros(b.size_in_bytes, np.uint8)).tobytes()
    data = packed_by_definition(x, a, one, np.zeros(a.size_in_bytes, np.uint8))
    arenas = Guarded(len(data)), Guarded(len(want))
    for at_end, threads in ((False, 1), (True, 3)):
        src, dst = (
            arena.place(n, at_end=at_end) for arena, n in zip(arenas, (len(data), len(want)), strict=True)
        )
        src[:] = data
        program.run(src.ctypes.data, dst.ctypes.data, threads)
        assert dst.tobytes() == want
        assert src.tobytes() == data.tobytes()
        assert arenas[1].untouched()


STREAMED = (
    ("f32[61,83]{1,0:T(8,16)(2,1)}", "f32[61,83]{1,0:T(6,1)}"),
    ("f32[61,83]{1,0}", "f32[61,83]{0,1:T(16,1)}"),
    ("f32[61,83]{1,0:T(6,1)}", "f32[61,83]{1,0:T(8,8)(4,4)(2,2)}"),
    ("s8[9,20,33]{2,0,1:T(16)}", "s8[9,20,33]{2,1,0:T(8,8)}"),
)


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), STREAMED)
def test_blocks_past_the_cache(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program for any alignment of its destination, and of each block's part."""
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    monkeypatch.setattr(stage_boxes, "outgrows_caches", lambda footprint: True)
    program = program_of(source, target)
    assert program
    a, b = tj.Shape.parse(source), tj.Shape.parse(target)
    x = random_elements(np.random.default_rng(2), a.dtype, int(np.prod(a.dimensions))).reshape(a.dimensions)
    one = np.frombuffer(b"\1" * b.dtype.itemsize, b.dtype)
    want = packed_by_definition(x, b, one, np.zeros(b.size_in_bytes, np.uint8)).tobytes()
    data = packed_by_definition(x, a, one, np.zeros(a.size_in_bytes, np.uint8))
    arenas = Guarded(len(data)), Guarded(len(want) + 64)
    for gap, threads in ((0, 1), (b.dtype.itemsize, 1), (0, 3), (64 - b.dtype.itemsize, 2)):
        src = arenas[0].place(len(data), at_end=True)
        dst = arenas[1].place(len(want), at_end=False, gap=gap)
        src[:] = data
        program.run(src.ctypes.data, dst.ctypes.data, threads)
        assert dst.tobytes() == want
        assert arenas[1].untouched()
    assert set(program.tables) == {0, b.dtype.itemsize, 64 - b.dtype.itemsize}


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("s4[63,64]{0,1:T(3,1)E(4)}", 1),
        ("s4[64,64]{0,1:T(4,1)E(4)}", 3),
        ("pred[62,96]{0,1:T(2,2)E(1)}", 1),
        ("pred[64,96]{0,1:T(8,1)E(1)}", 3),
        ("s8[63,64]{0,1:T(3,1)}", 3),
    ],
)
def test_blocks_that_share_a_byte_have_one_thread(
    target: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each writes its part of the byte, and writes the rest back unchanged."""
    had: list[int] = []
    monkeypatch.setattr(staged, "run_parts", lambda work, count: had.append(count) or run_parts(work, count))
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    name, spec = target.partition("{")[0], tj.Shape.parse(target)
    program = program_of(name + "{1,0}", target)
    assert program
    assert program.blocks > 1
    x = random_elements(np.random.default_rng(4), spec.dtype, int(np.prod(spec.dimensions)))
    x = x.reshape(spec.dimensions)
    out, want = np.zeros(spec.size_in_bytes, np.uint8), tj.pack(x, spec, padding=1, threads=1)
    program.run(x.ctypes.data, out.ctypes.data, 3)
    assert out.tobytes() == want.buffer.tobytes()
    assert had == [parts]


def test_blocks_are_pickled_without_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    program = program_of("f32[61,83]{1,0}", "f32[61,83]{0,1:T(16,1)}")
    assert program
    x = np.random.default_rng(3).random((61, 83), np.float32)
    want = tj.pack(x, "{0,1:T(16,1)}").buffer
    for take in (lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy, copy.copy, lambda p: p):
        again, out = take(program), np.zeros_like(want)
        assert not again.tables
        again.run(x.ctypes.data, out.ctypes.data)
        assert (out[want != 0] == want[want != 0]).all()
        assert again.tables


def test_a_block_is_as_large_as_the_cache_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_boxes, "goes_in_boxes", lambda boxes, footprint: True)
    program = program_of("f32[61,83]{1,0:T(8,16)}", "f32[61,83]{1,0:T(6,1)}")
    assert program
    assert program.grid.counts == (3, 6), "24 rows of 16 elements and a multiple of them"
    assert program.grid.short == (True, True)
    assert set(program.programs) == {(a, b) for a in (False, True) for b in (False, True)}
    assert program.block_bytes == 24 * 64
    assert program_of("f32[61,83]{1,0:T(40,16)}", "f32[61,83]{1,0:T(6,1)}") is None, "all rows"


def test_which_relayouts_go_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that move a few bytes at a time through a table. Relayouts of complete rows go in one pass."""
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 1 << 16)
    slow = "s8[256,512]{1,0:T(8,128)(4,1)}", "s8[256,512]{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}"
    assert program_of(*slow)
    assert program_of(*reversed(slow))
    assert program_of("f32[256,512]{1,0:T(8,128)}", "f32[256,512]{1,0:T(6,1)}")
    assert program_of("f32[256,512]{1,0:T(8,128)}", "f32[256,512]{1,0:T(16,1)}") is None
    assert program_of("bf16[256,512]{1,0:T(8,128)(2,1)}", "bf16[256,512]{1,0:T(2,1)}") is None
    assert program_of("s8[256,512]{1,0:T(64,16)(4,1)}", "s8[256,512]{0,1:T(32,1)}") is None, "in cache"
    assert program_of("s8[256,512]{0,1:T(32,1)}", "s8[256,512]{1,0:T(4,1)}") is None, "packed lines are whole"
    morton = "f32[256,512]{1,0:T(8,8)(4,4)(2,2)}"
    assert program_of("f32[256,512]{1,0:T(16,1)}", morton)
    monkeypatch.setattr(choose_stages, "LEAST_STAGED_BYTES", 1 << 20)
    assert program_of(*slow) is None, "small"


def test_which_relayouts_go_in_blocks_past_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles unpacked into parts of lines. Packed lines are written completely."""
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 1 << 19)
    wide = "s8[4096,4096]"
    assert program_of(wide + "{1,0:T(64,16)(4,1)}", wide + "{0,1:T(32,1)}")
    assert program_of(wide + "{1,0:T(16,16)}", wide + "{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}"), "few each"
    assert program_of(wide + "{0,1:T(32,1)}", wide + "{1,0:T(4,1)}") is None, "packed lines are whole"
    assert program_of(wide + "{1,0:T(64,16)(4,1)}", wide + "{1,0:T(16,16)}") is None, "rows follow in lines"
    odd = "s8[4095,4099]"
    assert program_of(odd + "{0,1:T(32,1)}", odd + "{1,0:T(4,1)}"), "packed lines are cut"
    assert program_of(wide + "{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}", wide + "{0,1:T(32,1)}") is None


def test_small_tiles_go_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transposed ones past a cache of many ways, whether blocks end in runs or in transposes."""
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 1 << 19)
    many_ways = replace(machine(), first_cache_ways=12)
    rows, columns = "f32[2048,2048]{1,0:T(16,1)}", "f32[2048,2048]{0,1:T(16,1)}"
    with described(many_ways):
        assert program_of(rows, columns)
        assert program_of("f32[2048,2048]{1,0:T(6,1)}", columns)
        assert program_of(columns, rows)
        plain = "f32[2048,2048]{1,0}"
        assert program_of(columns, "f32[2048,2048]{1,0:T(6,1)}"), "tiles of 6 by 16, staged"
        assert program_of(plain, "f32[2048,2048]{1,0:T(6,1)}") is None, "6 by 2048, staged"
        assert program_of(rows, "f32[2048,2048]{1,0:T(8,128)}") is None, "tiles of 4 KiB"
    with described(replace(many_ways, first_cache_ways=8)):
        assert program_of(rows, columns) is None
        assert program_of(columns, "f32[2048,2048]{1,0:T(6,1)}") is None
