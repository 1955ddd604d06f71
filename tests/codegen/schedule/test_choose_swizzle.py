"""Boxes joined by a table of pieces: correct between guard pages at every CPU level; when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.frontend.box_copy import box_copy
from codegen.ir.strided_box import Element
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.schedule.choose_swizzle import ChunkTable, chunk_table_of
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfers import CopyChunks
from tests.codegen.simd.forced import arenas
from tests.codegen.simd.levels import AtLevels
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered
from tilejit.arrays.memory import bytes_map
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, linear_index

STREAM, CACHED = Thresholds(0), Thresholds(1 << 62)

NEAR = (
    ("u16[640] Sw<2,2,3> o 0 o 640:1", "pieces of 8 bytes"),
    ("u16[2048] Sw<3,3,3> o 0 o 2048:1", "of 16"),
    ("u16[2048] Sw<2,4,3> o 0 o 2048:1", "of 32"),
    ("u32[1024] Sw<1,4,3> o 0 o 1024:1", "of 64, two each"),
    ("u8[3,640] Sw<2,3,-2> o 0 o (3,640):(640,1)", "the more major bits changed"),
)
"""Swizzles of memory in order."""

FAR = (
    ("u16[16,128] Sw<3,3,3> o 0 o ((8,2),(64,2)):((64,1024),(1,512))", "rows of an array into tiles"),
    ("u32[24,16] Sw<2,1,3> o 0 o ((8,3),(8,2)):((8,128),(1,64))", "two tiles beside each other"),
)
IDS = [why for _, why in (*NEAR, *FAR)]
TEXTS = [text for text, _ in (*NEAR, *FAR)]


def programs(text: str, thresholds: Thresholds) -> tuple[Spec, CopyProgram, CopyProgram]:
    """Pack and unpack of an array in C order."""
    dtype, rest = text.split("[", 1)
    dims, layout = rest.split("] ", 1)
    spec = as_layout(layout, dims=tuple(map(int, dims.split(","))), dtype=dtype)
    width = spec.dtype.itemsize
    plain = bytes_map(spec.dimensions, np.empty(spec.dimensions, spec.dtype).strides, width)
    element = Element(f"u{8 * width}", 8 * width)
    there = compile_copy(
        CopyRequest(plain, access_map(spec), element, element, options=CopyOptions(thresholds=thresholds))
    )
    return (
        spec,
        there,
        compile_copy(
            CopyRequest(access_map(spec), plain, element, element, options=CopyOptions(thresholds=thresholds))
        ),
    )


def contents(spec: Spec) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """An array's bytes, and those of its buffer."""
    plain = np.random.default_rng(3).integers(0, 256, spec.size_in_bytes, np.uint8)
    tiled = np.empty_like(plain).view(spec.dtype)
    tiled[linear_index(spec, tuple(np.indices(spec.dimensions)))] = plain.view(spec.dtype).reshape(
        spec.dimensions
    )
    return plain, tiled.view(np.uint8)


def is_placed(program: CopyProgram) -> bool:
    return len(program.launches) == 1 and isinstance(program.launches[0].step.nest.transfer, CopyChunks)


def both_ways(text: str, thresholds: Thresholds) -> None:
    spec, pack, unpack = programs(text, thresholds)
    plain, tiled = contents(spec)
    source, target = arenas()
    for program, content, wanted in ((pack, plain, tiled), (unpack, tiled, plain)):
        assert is_placed(program)
        for gap, threads in ((0, 1), (1, 2), (16, 3), (32, 1), (63, 1)):
            data = source.place(len(content), at_end=bool(gap % 2))
            room = target.place(len(wanted), at_end=gap == 0, gap=gap)
            data[:], room[:] = content, ~wanted
            program.run(data.ctypes.data, room.ctypes.data, threads)
            assert (room == wanted).all(), f"{text}, gap {gap}"
            assert target.untouched()
            assert (data == content).all()


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_in_cache(text: str) -> None:
    both_ways(text, CACHED)


@pytest.mark.parametrize("text", TEXTS[: len(NEAR)], ids=IDS[: len(NEAR)])
def test_past_the_cache(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codegen.schedule.choose_joined.segments_of", lambda *given, **options: None)
    both_ways(text, STREAM)


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[-1]])
def test_nests_before_and_after(text: str) -> None:
    """The boxes one by one, the pieces, and the lowered function leave the same bytes as the kernel."""
    spec, pack, unpack = programs(text, CACHED)
    plain, tiled = contents(spec)
    for program, content, wanted in ((pack, plain, tiled), (unpack, tiled, plain)):
        seen = Watched(program, content, np.zeros_like(wanted), wanted)
        assert (interpreted(seen) == wanted).all()
        assert (interpreted_when_lowered(seen) == wanted).all()


def found(text: str) -> ChunkTable | None:
    _, pack, _ = programs(text, CACHED)
    return chunk_table_of(box_copy(pack.src, pack.dst))


def test_which_copies_are_joined() -> None:
    near, far = found(TEXTS[1]), found(TEXTS[-2])
    assert near
    assert far
    assert near.is_near
    assert not far.is_near
    assert near.bytes_each == 1024
    assert near.outer == ((4, 1024, 1024),)
    assert found("u16[2048] 2048:1") is None, "one box"
    assert found("u16[2048] Sw<2,1,3> o 0 o 2048:1") is None, "pieces of 4 bytes"
    assert found("u32[16,300] Sw<0,0,0> o 0 o ((8,2),(128,3)):((128,3072),(1,1024))") is None, "long runs"
    assert found("u8[4096] Sw<2,7,3> o 0 o 4096:1") is None, "pieces of two lines"


def test_padding_and_far_pieces_go_box_by_box() -> None:
    """Past the cache, pieces of many lines are read box by box. Padding has separate launches."""
    _, pack, _ = programs(TEXTS[-2], STREAM)
    assert not any(is_placed(p) for p in (pack,))
    dims = (8, 64)
    spec = as_layout("Sw<3,3,3> o 0 o ((8,2),64):((64,512),1)", dims=dims, dtype="u16")
    plain = bytes_map(dims, np.empty(dims, np.uint16).strides, 2)
    element = Element("u16", 16)
    for padding, placed in ((b"\0\0", False), (None, True)):
        program = compile_copy(
            CopyRequest(
                plain,
                access_map(spec),
                element,
                element,
                padding=padding,
                options=CopyOptions(thresholds=CACHED),
            )
        )
        assert is_placed(program) == placed


def at_lower_levels() -> AtLevels:
    return AtLevels(__file__, ["test_in_cache", "test_past_the_cache"], len(TEXTS) + len(NEAR))
