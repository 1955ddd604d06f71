"""Kernels against the interpreter, scalar and vectorized nests; the interpreter against its own promises."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.ir.copies.interpreter import interpret
from codegen.ir.copies.nodes import (
    Buffer,
    Convert,
    CopyRun,
    Element,
    Fill,
    FillRun,
    For,
    ForEach,
    Interleave,
    Load,
    LoopNest,
    PackBits,
    Param,
    Ref,
    Store,
    Transpose,
    UnpackBits,
)
from codegen.ir.copies.tiles import PackedLines, TileGrid
from codegen.support.errors import KernelError
from tests.codegen.simd.cases import CONVERTED, GROUPS, cases
from tests.tools.guard import span_bytes, strided_view
from tests.tools.oracle import random_elements, same_elements
from tests.tools.replay import Watched, interpreted, interpreted_when_lowered, watching
from tests.tools.strategies import picker, shape, strides
from tilejit.convert import pack, unpack

U8 = Element("u8", 8)
INTERPRETED_BYTES = 5000
BYTES = (Buffer("src", U8, 8), Buffer("dst", U8, 8))


def run(
    body: object, src: list[int], dst: int, buffers: tuple[Buffer, ...] = BYTES, **given: object
) -> list[int]:
    out = np.zeros(dst, np.uint8)
    interpret(LoopNest(buffers, body), {"src": np.array(src, np.uint8), "dst": out}, **given)  # type: ignore[arg-type]
    return out.tolist()


def at(buffer: str, const: int = 0, **terms: int) -> Ref:
    return Ref(buffer, const, tuple(terms.items()))


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(60))
def test_kernels_and_nests_give_the_same_bytes(number: int, seed: int) -> None:
    """Packed and unpacked again; every program that ran is interpreted before and after vectorizing."""
    rng = np.random.default_rng((seed, number))
    pick = picker(rng)
    spec = shape(pick, most=150)
    while spec.size_in_bytes > 3000:
        spec = shape(pick, most=150)
    steps = strides(pick, spec.dimensions, spec.dtype.itemsize, broadcast=False, reach=4000)
    array = np.zeros(spec.dimensions, spec.dtype) if 0 in spec.dimensions else _array(rng, spec, steps)
    with watching() as seen:
        tiled = pack(array, spec, threads=pick(1, 3))
        back = unpack(tiled)
    assert same_elements(back, array, spec)
    assert len(seen) == 2
    for watched in seen:
        for vectorized in (False, True):
            assert np.array_equal(interpreted(watched, vectorized=vectorized), watched.after)  # type: ignore[arg-type]
        assert np.array_equal(interpreted_when_lowered(watched), watched.after)


@pytest.mark.parametrize("group", GROUPS)
def test_transposes_that_convert(group: str) -> None:
    """In registers and through scratch; NumPy says what each conversion gives."""
    of = {f" {source} to {target}:" for source, target in CONVERTED}
    chosen = [case for case in cases(group) if any(name in case.name for name in of)]
    for case in (case for case in chosen if len(case.after) <= INTERPRETED_BYTES):
        low, dst_low = case.lows
        watched = Watched(case.program, case.src, case.before, case.after, (-low, -dst_low))
        if all(step.kernel.lowered for step in case.program.steps):
            assert np.array_equal(interpreted_when_lowered(watched), case.after), case
            of = {name for name in of if name not in case.name}
    assert not of or group == "stream", f"no case of {of}"


def _array(rng: np.random.Generator, spec: object, steps: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
    dims, dtype = spec.dimensions, spec.dtype  # type: ignore[attr-defined]
    room = np.zeros(span_bytes(dtype.itemsize, dims, steps), np.uint8)
    array = strided_view(room, dtype, dims, steps)
    array[...] = random_elements(rng, dtype, array.size).reshape(dims)
    return array


def test_store_and_loops() -> None:
    body = For("i", 2, For("j", 3, Store(at("dst", 0, i=1, j=2), Load(at("src", 0, i=3, j=1)))))
    assert run(body, [1, 2, 3, 4, 5, 6], 6) == [1, 4, 2, 5, 3, 6]


def test_table_loop() -> None:
    src, dst = Ref("src", 0, (), (("src_offsets", "e"),)), Ref("dst", 0, (), (("dst_offsets", "e"),))
    tables = {"src_offsets": np.array([2, 0]), "dst_offsets": np.array([0, 1])}
    assert run(ForEach("e", 2, Store(dst, Load(src))), [7, 8, 9], 2, tables=tables) == [9, 7]


def test_sizes_are_parameters() -> None:
    body = For("i", Param("n"), CopyRun(Ref("dst", 0, (("i", Param("step")),)), at("src"), Param("count")))
    assert run(body, [5, 6], 6, sizes={"n": 2, "step": 3, "count": 2}) == [5, 6, 0, 5, 6, 0]


def test_transfers() -> None:
    assert run(FillRun(at("dst"), 5), [0], 5, fill=b"\x01\x02") == [1, 2, 1, 2, 1]
    swapped = [1, 4, 2, 5, 3, 6]
    assert run(Interleave(at("dst"), at("src"), 1, 2, 3, 3, 2, "dst"), [1, 2, 3, 4, 5, 6], 6) == swapped
    lines = PackedLines(((1, 64), (2, 128)))
    pair = Interleave(at("dst"), at("src"), 8, 2, 8, 64, 16, "dst", lines=lines)
    packed = run(pair, list(range(128)), 192)
    assert packed[:24] == [*range(8), *range(64, 72), *range(8, 16)]
    assert packed[128:144] == [*range(32, 40), *range(96, 104)]
    assert packed[64:128] == [0] * 64
    grid = TileGrid(((2, 3, 1),), ((3, 1, 2),), (), 1, 1, (1, 2), (1, 1))
    assert run(Transpose(at("dst"), at("src"), 1, grid), [1, 2, 3, 4, 5, 6], 6) == swapped
    assert run(PackBits(at("dst"), at("src"), 4, 2, 1), [1, 2, 3, 255], 2) == [0x21, 0xF3]
    assert run(PackBits(at("dst"), at("src"), 1, 1, 1), [2, 0, 1, 0, 0, 0, 0, 9], 1) == [0b10000101]
    assert run(UnpackBits(at("dst"), at("src"), 2, 1, 2), [0b11100100], 8) == [0, 0, 1, 0, 2, 0, 3, 0]
    assert run(PackBits(at("dst"), at("src"), 4, 1, 3, 2), [1, 2, 9, 3, 4], 2) == [0x31, 0x42]
    assert run(UnpackBits(at("dst"), at("src"), 4, 1, 3, 2), [0x31, 0x42], 6) == [1, 2, 0, 3, 4, 0]


def test_packed_sides_count_bits() -> None:
    nibbles = (Buffer("src", U8, 1), Buffer("dst", Element("u4", 4), 1))
    body = For("i", 3, Store(at("dst", 4, i=4), Load(at("src", 0, i=8))))
    assert run(body, [1, 2, 3], 2, nibbles) == [0x10, 0x32]
    assert run(Store(at("dst", 4), Fill()), [0], 1, nibbles, fill=b"\xff") == [0xF0]


def test_swaps() -> None:
    pairs = tuple(Buffer(name, Element("u16", 16), 8) for name in ("src", "dst"))
    assert run(Store(at("dst"), Convert(Load(at("src")), "swap u16", "u16")), [1, 2], 2, pairs) == [2, 1]
    with pytest.raises(KernelError, match="judged against NumPy"):
        run(Store(at("dst"), Convert(Load(at("src")), "s16", "u16")), [1, 2], 2, pairs)


@pytest.mark.parametrize("offset", [-1, 4])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_a_byte_outside_is_refused(side: str, offset: int) -> None:
    src, dst = (at("src", offset), at("dst")) if side == "src" else (at("src"), at("dst", offset))
    with pytest.raises(KernelError, match=f"{side} has no bytes"):
        run(Store(dst, Load(src)), [1, 2, 3, 4], 4)
