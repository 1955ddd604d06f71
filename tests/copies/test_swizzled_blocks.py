"""Swizzled layouts in blocks: every element at its offset, for any blocks; and when they are chosen."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen.pipeline import stage_permuted
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.schedule import choose_permuted
from tests.tools.extent import examples
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.oracle import random_elements
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import lookup
from tilejit.layout.indexing import linear_index
from tilejit.programs.compiled import array_element, buffer_element
from tilejit.programs.pack_programs import pack_program, unpack_program
from tilejit.programs.tuning import DEFAULT, read_tuning

PADDING = 0x3C

ATOMS = (
    ("f16", "Sw<3,3,3> o 0 o ((8,32),(64,2)):((64,1024),(1,512))", (256, 128)),
    ("f16", "Sw<2,3,3> o 0 o ((8,32),(32,4)):((32,1024),(1,256))", (256, 128)),
    ("f16", "Sw<1,3,3> o 0 o ((8,32),(16,8)):((16,1024),(1,128))", (256, 128)),
    ("f16", "Sw<3,3,3> o 0 o ((64,4),(8,16)):((1,8192),(64,512))", (256, 128)),
    ("f16", "Sw<3,3,3> o 0 o ((64,4),(8,16)):((1,512),(64,2048))", (256, 128)),
    ("f16", "Sw<3,4,3> o 0 o ((64,4),(64,2)):((1,8192),(64,4096))", (256, 128)),
    ("f16", "Sw<2,4,3> o 0 o ((64,4),(64,2)):((64,8192),(1,4096))", (256, 128)),
    ("u8", "Sw<3,4,3> o 0 o ((64,4),(64,2)):((1,8192),(64,4096))", (256, 128)),
    ("f32", "Sw<3,2,3> o 0 o ((8,16),(32,3)):((32,768),(1,256))", (128, 96)),
    ("f64", "Sw<2,1,3> o 0 o ((8,8),(8,9)):((8,576),(1,64))", (64, 72)),
    ("f16", "Sw<3,3,-3> o 0 o ((8,32),(64,2)):((64,1024),(1,512))", (256, 128)),
    ("f16", "Sw<3,3,4> o 0 o (256,128):(128,1)", (256, 128)),
    ("f16", "Sw<3,3,3> o 0 o (3,(8,8),(64,2)):(8192,(64,1024),(1,512))", (3, 64, 128)),
    ("u8", "Sw<2,0,3> o 0 o ((8,64),(4,3,2)):((1,192),(24,8,96))", (512, 24)),
    ("f16", "Sw<2,2,3> o 0 o ((4,3,32),(32,2)):((1,4,768),(12,384))", (384, 64)),
)
"""A dtype, a layout, and the array's dimensions."""

PADDED = (
    ("f16", "Sw<3,3,3> o 0 o ((8,9),(64,2)):((64,1024),(1,512))", (40, 128)),
    ("f16", "Sw<3,3,3> o 0 o ((8,9),(64,3)):((64,2048),(1,512))", (72, 192)),
)
"""Modes that reach past the end of the array, and holes between tiles."""

REFUSED = (
    ("f16", "Sw<3,3,3> o 0 o ((8,9),(64,2)):((64,1024),(1,512))", (41, 128), "half a tile"),
    ("f16", "Sw<3,3,3> o 512 o ((8,9),(64,2)):((64,1024),(1,512))", (72, 128), "an offset below the swizzle"),
    ("f16", "Sw<3,3,3> o 0 o ((8,8),(32,2)):((64,1024),(1,512))", (64, 64), "periods with holes"),
    ("f16", "((8,8),(64,2)):((64,1024),(1,512))", (64, 128), "no swizzle"),
)

Text = tuple[str, str, tuple[int, ...]]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_permuted, "BLOCK_BYTES", 10 << 10)
    monkeypatch.setattr(stage_permuted, "goes_in_periods", lambda boxes, footprint, packs: True)


def spec_of(case: Text) -> CuteShape:
    dtype, text, dims = case
    spec = tj.as_layout(text, dims=dims, dtype=lookup(dtype))
    assert isinstance(spec, CuteShape)
    return spec


def programs(spec: CuteShape, strides: tuple[int, ...]) -> list[CopyProgram | StagedProgram]:
    """Fresh pack and unpack programs, in blocks or not."""
    fill = bytes([PADDING]) * spec.dtype.itemsize
    pack = pack_program.__wrapped__(spec, strides, buffer_element(spec), fill, False, 1, DEFAULT)
    return [pack, unpack_program.__wrapped__(spec, strides, array_element(spec), False, 1, DEFAULT)]


def check(spec: CuteShape, strides: tuple[int, ...], *, in_blocks: bool = True) -> None:
    """Pack and unpack between guard pages, aligned to lines and not, on one thread and on three."""
    dims, dtype = spec.dimensions, spec.dtype
    plain = np.full(span_bytes(dtype.itemsize, dims, strides), 0xA5, np.uint8)
    values = random_elements(np.random.default_rng(5), dtype, prod(dims)).reshape(dims)
    strided_view(plain, dtype, dims, strides)[...] = values
    tiled = np.full(spec.size_in_bytes, PADDING, np.uint8)
    tiled.view(dtype)[linear_index(spec, tuple(np.indices(dims)))] = values
    low = sum(min(0, (n - 1) * s) for n, s in zip(dims, strides, strict=True))
    arenas = Guarded(max(len(plain), len(tiled)) + 64), Guarded(max(len(plain), len(tiled)) + 64)
    ways = zip(programs(spec, strides), ((plain, tiled), (tiled, plain)), ((low, 0), (0, low)), strict=True)
    for program, (content, want), lows in ways:
        assert isinstance(program, StagedProgram) == in_blocks
        for at_end, gap, threads in ((False, 0, 1), (True, 0, 3), (False, dtype.itemsize, 2)):
            src = arenas[0].place(len(content), at_end=at_end)
            dst = arenas[1].place(len(want), at_end=at_end, gap=gap)
            src[:], dst[:] = content, 0xA5
            program.run(src.ctypes.data - lows[0], dst.ctypes.data - lows[1], threads)
            assert dst.tobytes() == want.tobytes(), f"{spec}: gap {gap}, {threads} threads"
            assert arenas[1].untouched()
            assert src.tobytes() == content.tobytes()


def strides_of(spec: CuteShape, order: str) -> tuple[int, ...]:
    return np.empty(spec.dimensions, spec.dtype, order=order).strides  # type: ignore[call-overload, no-any-return]


@pytest.mark.full
@pytest.mark.parametrize("case", [*ATOMS, *PADDED], ids=lambda case: f"{case[0]} {case[1]}")
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_element_is_at_its_offset(case: Text, order: str) -> None:
    spec = spec_of(case)
    check(spec, strides_of(spec, order))


@pytest.mark.full
@pytest.mark.parametrize("case", ATOMS[::3], ids=lambda case: case[1])
def test_blocks_past_the_cache(case: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_permuted, "outgrows_caches", lambda footprint: True)
    spec = spec_of(case)
    check(spec, strides_of(spec, "C"))
    check(spec, strides_of(spec, "F"))


def test_rows_that_run_backwards_and_have_gaps() -> None:
    spec = spec_of(ATOMS[0])
    row = 2 * spec.dimensions[1] + 6
    check(spec, (-row, 2))
    check(spec, (row, -2))


@pytest.mark.parametrize(("dtype", "text", "dims", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_copies_without_blocks_go_in_one_pass(dtype: str, text: str, dims: tuple[int, ...], why: str) -> None:
    spec = spec_of((dtype, text, dims))
    check(spec, strides_of(spec, "C"), in_blocks=False)


@pytest.mark.full
@settings(max_examples=examples(5, full=25))
@given(st.data())
def test_random_tiles(data: st.DataObject) -> None:
    """Tiles with any order of dimensions, under any swizzle of runs of 8 bytes and more."""
    bits = data.draw(st.integers(1, 3), label="B")
    base, shift = data.draw(st.integers(2, 4), label="M"), data.draw(st.integers(bits, 4), label="S")
    shift *= data.draw(st.sampled_from([1, -1]))
    extents = [1 << data.draw(st.integers(2, 6)) for _ in range(2)]
    counts = [data.draw(st.integers(1, 5)) for _ in range(2)]
    digits = data.draw(st.permutations(range(4)), label="order")
    strides, reach = [0] * 4, 1
    for k in sorted(digits, key=lambda k: (k > 1, digits.index(k))):
        strides[k], reach = reach, reach * [*extents, *counts][k]
    modes = ",".join(f"({extents[k]},{counts[k]})" for k in range(2))
    steps = ",".join(f"({strides[k]},{strides[k + 2]})" for k in range(2))
    text = f"Sw<{bits},{base},{shift}> o 0 o ({modes}):({steps})"
    spec = spec_of(("f16", text, (extents[0] * counts[0], extents[1] * counts[1])))
    found = programs(spec, strides_of(spec, "C"))[0]
    check(spec, strides_of(spec, "C"), in_blocks=isinstance(found, StagedProgram))


@pytest.mark.full
def test_packed_elements_go_in_one_pass() -> None:
    text, dims = "Sw<2,4,3> o 0 o ((8,8),(64,2)):((64,1024),(1,512))", (64, 128)
    spec = tj.as_layout(text, dims=dims, dtype="s4", element_size_in_bits=4)
    x = random_elements(np.random.default_rng(4), spec.dtype, prod(dims)).reshape(dims)
    program = unpack_program.__wrapped__(spec, x.strides, array_element(spec), False, 1, DEFAULT)
    assert isinstance(program, CopyProgram)
    assert (tj.unpack(tj.pack(x, spec)) == x).all()


def test_padding_is_kept_on_request() -> None:
    _, text, dims = PADDED[1]
    pack_program.cache_clear()
    x = np.random.default_rng(2).integers(0, 99, dims).astype(np.float16)
    out = np.full(spec_of(PADDED[1]).physical_size, 7, np.float16)
    t = tj.pack(x, text, out=out, padding="keep")
    assert (t.unpack() == x).all()
    assert np.count_nonzero(out == 7) >= out.size - x.size
    pack_program.cache_clear()


def test_tuning_keywords_select_one_pass() -> None:
    """With one of them, the copy is the one that `explain` shows."""
    spec = spec_of(ATOMS[0])
    tuning = read_tuning(256, "structure", False)
    way = unpack_program.__wrapped__(spec, strides_of(spec, "C"), array_element(spec), False, 1, tuning)
    assert isinstance(way, CopyProgram)
