"""The order of the loops around a transfer: windows of the source, if they are worth splitting loops."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.strided_box import long_axis
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.schedule import choose_order
from codegen.schedule.choose import choose
from codegen.schedule.thresholds import Thresholds
from tests.tools.boxes import box_of
from tests.tools.guard import Guarded
from tests.tools.oracle import packed_by_definition, random_elements
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element

PAST = Thresholds(stream_bytes=0)


def program_of(source: str, target: str, threads: int = 1, thresholds: Thresholds = PAST) -> CopyProgram:
    a, b = tj.Shape.parse(source), tj.Shape.parse(target)
    return compile_copy(
        CopyRequest(
            access_map(a),
            access_map(b),
            buffer_element(a),
            buffer_element(b),
            padding=b"\1",
            options=CopyOptions(threads=threads, thresholds=thresholds),
        )
    )


def orders(program: CopyProgram) -> list[tuple[str, ...]]:
    return [x.step.schedule.outer for x in program.launches if x.fill is None]


def is_cut(program: CopyProgram) -> bool:
    return any(long_axis(axis) in order for order in orders(program) for axis in order)


LARGE = "s8[8192,8192]{0,1:T(32,1)}", "s8[8192,8192]{1,0:T(8,128)(4,1)}"


def test_when_windows_are_chosen() -> None:
    """Pieces of 128 bytes that are far apart in either order; not in cache, and not if runs are long."""
    program = program_of(*LARGE)
    (order,) = orders(program)
    assert order[0] == long_axis(order[3]), "windows first, then what is near in the destination"
    assert not is_cut(program_of(*LARGE, thresholds=Thresholds(stream_bytes=1 << 62)))
    assert not is_cut(program_of(*reversed(LARGE)))
    uneven = tuple(text.replace("8192,", "8191,") for text in LARGE)
    assert not is_cut(program_of(*uneven)), "places that share no sets of a cache"
    assert not is_cut(program_of("s8[1024,1024]{0,1:T(32,1)}", "s8[1024,1024]{1,0:T(8,128)(4,1)}")), "small"
    assert not is_cut(program_of("f32[4096,4096]{1,0:T(8,128)}", "f32[4096,4096]{0,1:T(16,1)}"))


PAIRS = (
    ("s8[2048,1024]{0,1:T(32,1)}", "s8[2048,1024]{1,0:T(8,128)(4,1)}"),
    ("s8[2048,1030]{0,1:T(32,1)}", "s8[2048,1030]{1,0:T(8,128)(4,1)}"),
    ("s8[2048,1030]{0,1:T(32,1)}", "s8[2048,1030]{1,0:T(4,1)}"),
)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_windows_cover_the_array(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between guard pages, on one thread and on three, at any alignment of the destination."""
    monkeypatch.setattr(choose_order, "LEAST_CUT_BYTES", 0)
    monkeypatch.setattr(choose_order, "WORTH_WINDOWS", 1.0)
    monkeypatch.setattr(choose_order, "READ_BYTES", 3000)
    a, b = tj.Shape.parse(source), tj.Shape.parse(target)
    x = random_elements(np.random.default_rng(1), a.dtype, int(np.prod(a.dimensions))).reshape(a.dimensions)
    one = np.ones(1, np.int8)
    data = packed_by_definition(x, a, one, np.zeros(a.size_in_bytes, np.uint8))
    want = packed_by_definition(x, b, one, np.zeros(b.size_in_bytes, np.uint8)).tobytes()
    arenas = Guarded(len(data)), Guarded(len(want) + 64)
    for gap, at_end, threads in ((0, False, 1), (0, True, 3), (3, False, 1)):
        program = program_of(source, target, threads)
        assert is_cut(program)
        src = arenas[0].place(len(data), at_end=at_end)
        dst = arenas[1].place(len(want), at_end=at_end, gap=gap)
        src[:] = data
        program.run(src.ctypes.data, dst.ctypes.data, threads)
        assert dst.tobytes() == want
        assert arenas[1].untouched()


def test_memory_is_read_in_order_into_a_block_in_cache() -> None:
    """Runs and deinterleaved rows. Elements that move one by one keep the order of the block."""
    tiles = box_of([(4, 512, 4224), (8, 2048, 256), (4, 1, 1056), (128, 4, 1)])
    scattered = box_of([(4, 512, 4224), (8, 2048, 256), (5, 1, 1056), (7, 5, 1)])
    never = Thresholds(stream_bytes=1 << 40)
    plain, ordered = (choose(tiles, thresholds=never, into_cache=x) for x in (False, True))
    assert (plain.interleave, ordered.interleave) == ("src", "src")
    assert plain.outer == ("d0", "d1")
    assert ordered.outer == ("d1", "d0")
    plain, ordered = (choose(scattered, thresholds=never, into_cache=x) for x in (False, True))
    assert plain == ordered
