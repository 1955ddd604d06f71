"""Large copies, in blocks and past the caches: the bytes are NumPy's, and no other byte is touched."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded
from tests.tools.oracle import packed_by_definition, random_elements

Array = np.ndarray[Any, Any]

LINE = 64
BF16 = np.dtype(ml_dtypes.bfloat16)

PERMUTED = (
    ("u4", (1500, 1501), (1, 0)),
    ("u1", (3000, 3072), (1, 0)),
    ("u1", (1024, 5, 742, 2), (2, 0, 3, 1)),
    ("u2", (2048, 2100), (1, 0)),
    ("u8", (1100, 1000), (1, 0)),
    ("u2", (15, 320, 16, 7, 9), (1, 4, 3, 2, 0)),
    ("u1", (200000, 48), (1, 0)),
)
"""A dtype, a shape, and the order of its dimensions in the result."""

CONVERTED = (("f4", BF16, (2100, 2101)), ("f8", "f4", (1600, 1500)), ("i8", "i4", (1501, 1499)))

TILED = (
    ("f32[800,810]", "{1,0:T(8,16)(2,1)}", "{0,1:T(16,1)}"),
    ("s8[1024,1200]", "{1,0:T(8,128)(4,1)}", "{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}"),
    ("pred[2048,3072]", "{1,0:T(8,16)E(1)}", "{1,0:T(32,8)(32,1)E(1)}"),
    ("f32[1500,1600]", "{1,0:T(6,1)}", "{1,0:T(8,8)(4,4)(2,2)}"),
    ("f32[2048,1030]", "{1,0}", "{0,1:T(16,1)}"),
    ("s4[1500,1400]", "{1,0:T(64,128)(8,1)E(4)}", "{0,1:T(4,1)E(4)}"),
    ("bf16[2048,2100]", "{1,0}", "{1,0:T(8,128)(2,1)}"),
    ("f32[2050,1100]", "{1,0:T(8,128)}", "{1,0}"),
)
"""An array, and two of its layouts."""

SWIZZLED = (
    ("f16", "Sw<3,3,3> o 0 o ((8,128),(64,16)):((64,8192),(1,512))", (1024, 1024)),
    ("f16", "Sw<3,3,3> o 0 o ((8,130),(64,17)):((64,16384),(1,512))", (1040, 1088)),
    ("uint8", "Sw<3,4,3> o 0 o ((64,16),(64,16)):((1,65536),(64,4096))", (1024, 1024)),
    ("f32", "Sw<3,2,3> o 0 o ((8,80),(32,30)):((32,7680),(1,256))", (640, 960)),
)
"""A dtype, a layout, and the dimensions; the second has holes between its tiles."""


def content(dtype: Any, shape: tuple[int, ...]) -> Array:
    size = prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(5).bytes(size), dtype).reshape(shape)


def places(itemsize: int) -> tuple[tuple[bool, int, int], ...]:
    """At which page, how many bytes from it, and with how many threads to copy."""
    return (True, 0, 1), (False, 0, 3), (False, itemsize, 1), (True, LINE - itemsize, 2)


@pytest.mark.parametrize(("dtype", "shape", "order"), few_by_default(PERMUTED, 1), ids=str)
def test_permuted_arrays(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    values = content(dtype, shape)
    want = values.transpose(order).tobytes()
    arenas = Guarded(values.nbytes), Guarded(len(want) + LINE)
    for at_end, gap, threads in places(values.itemsize):
        x = arenas[0].place(values.nbytes, at_end=at_end).view(dtype).reshape(shape)
        x[...] = values
        out = arenas[1].place(len(want), at_end=at_end, gap=gap)
        view = out.view(dtype).reshape([shape[k] for k in order])
        tj.copyto(view, x.transpose(order), threads=threads)
        assert out.tobytes() == want
        assert x.tobytes() == values.tobytes()
        assert arenas[1].untouched()


@pytest.mark.parametrize("skipped", [0, 1, 15])
def test_rows_that_run_backwards(skipped: int) -> None:
    """The lowest byte is before the address of the array, and may begin a line or not."""
    src = np.arange(128 * 20480, dtype=np.float32).reshape(128, 20480).T
    arena = Guarded(src.nbytes + LINE)
    room = arena.place(src.nbytes, at_end=False, gap=4 * skipped).view(np.float32).reshape(src.shape)
    tj.copyto(room[:, ::-1], src, threads=1)
    assert np.array_equal(room[:, ::-1], src)
    assert arena.untouched()


def numbers(dtype: Any, shape: tuple[int, ...]) -> Array:
    """Every kind of number, including NaNs with any payload, infinities and denormals."""
    out = content(dtype, (prod(shape),)).copy()
    if out.dtype.kind == "f":
        some = [np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1e-40, 3.4e38, 3.5e38, 1e300, 1.00390625]
        with np.errstate(over="ignore"):
            out[1::7] = np.resize(np.array(some, "f8"), len(out[1::7])).astype(dtype)
    return out.reshape(shape)


def converted(src: Array, dtype: Any) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return src.astype(dtype, order="C")


@pytest.mark.full
@pytest.mark.parametrize(("source", "target", "shape"), CONVERTED, ids=str)
def test_converted_transposes(source: str, target: Any, shape: tuple[int, ...]) -> None:
    values, target = numbers(source, shape), np.dtype(target)
    want = converted(values.T, target).tobytes()
    arenas = Guarded(values.nbytes), Guarded(len(want) + LINE)
    for at_end, gap, threads in places(target.itemsize):
        x = arenas[0].place(values.nbytes, at_end=at_end).view(source).reshape(shape)
        x[...] = values
        out = arenas[1].place(len(want), at_end=at_end, gap=gap)
        with np.errstate(all="ignore"):
            tj.copyto(out.view(target).reshape(shape[::-1]), x.T, casting="unsafe", threads=threads)
        assert out.tobytes() == want
        assert x.tobytes() == values.tobytes()
        assert arenas[1].untouched()


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2])
def test_a_conversion_warns_once(threads: int) -> None:
    """However many blocks and threads it takes. Without overflow, there is no warning."""
    src, dst = np.ones((1600, 1500)), np.zeros((1500, 1600), "f4")
    with np.errstate(all="raise"):
        tj.copyto(dst, src.T, threads=threads)
        src[1501, 1402] = 1e300
        with pytest.raises(FloatingPointError, match="overflow"):
            tj.copyto(dst, src.T, threads=threads)
    with pytest.warns(RuntimeWarning, match="overflow") as told:
        tj.copyto(dst, src.T, threads=threads)
    assert len(told) == 1
    assert np.isinf(dst[1402, 1501])
    assert np.isinf(dst).sum() == 1


@pytest.mark.full
def test_a_conversion_into_its_own_memory() -> None:
    memory = numbers("f4", (2100 * 2101,))
    src = memory.reshape(2100, 2101)
    dst = memory.view(np.uint8)[: src.nbytes // 2].view(BF16).reshape(2101, 2100)
    want = converted(src.T, BF16)
    with np.errstate(all="ignore"):
        tj.copyto(dst, src.T, casting="unsafe")
    assert dst.tobytes() == want.tobytes()


@pytest.mark.full
@pytest.mark.parametrize(("array", "first", "second"), TILED, ids=str)
def test_tiled_layouts(array: str, first: str, second: str) -> None:
    """From each of two layouts to the other, and from an array to both and back."""
    a, b = tj.Shape.parse(array + first), tj.Shape.parse(array + second)
    x = random_elements(np.random.default_rng(1), a.dtype, prod(a.dimensions)).reshape(a.dimensions)
    one = np.frombuffer(b"\1" * a.dtype.itemsize, a.dtype)
    data = [packed_by_definition(x, spec, one, np.zeros(spec.size_in_bytes, np.uint8)) for spec in (a, b)]
    arenas = Guarded(max(map(len, data)) + LINE), Guarded(max(x.nbytes, *map(len, data)) + LINE)
    width = a.dtype.itemsize
    for spec, target, have, want in ((a, b, *data), (b, a, *data[::-1])):
        for at_end, gap, threads in places(width):
            src = arenas[0].place(len(have), at_end=at_end)
            src[:] = have
            held = tj.TiledArray.from_buffer(src, spec)
            dst = arenas[1].place(len(want), at_end=at_end, gap=gap)
            tj.relayout(held, target, out=dst, padding=one[0], threads=threads)
            assert dst.tobytes() == want.tobytes()
            assert arenas[1].untouched()
            tj.pack(x, target, out=dst, padding=one[0], threads=threads)
            assert dst.tobytes() == want.tobytes()
            assert arenas[1].untouched()
            out = arenas[1].place(x.nbytes, at_end=at_end, gap=gap)
            tj.unpack(held, out=out.view(x.dtype).reshape(x.shape), threads=threads)
            assert out.tobytes() == x.tobytes()
            assert arenas[1].untouched()
            assert src.tobytes() == have.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("dtype", "text", "dims"), SWIZZLED, ids=str)
def test_swizzled_layouts(dtype: str, text: str, dims: tuple[int, ...], order: Any) -> None:
    spec = tj.as_layout(text, dims=dims, dtype=dtype)
    x = random_elements(np.random.default_rng(5), spec.dtype, prod(dims)).reshape(dims)
    fill = np.frombuffer(b"\x3c" * spec.dtype.itemsize, spec.dtype)
    want = np.tile(fill, spec.physical_size)
    want[tj.linear_index(spec, tuple(np.indices(dims)))] = x
    arenas = Guarded(want.nbytes + LINE), Guarded(x.nbytes + LINE)
    for at_end, gap, threads in places(spec.dtype.itemsize):
        dst = arenas[0].place(want.nbytes, at_end=at_end, gap=gap)
        tj.pack(np.asarray(x, order=order), spec, out=dst, padding=fill[0], threads=threads)
        assert dst.tobytes() == want.tobytes()
        assert arenas[0].untouched()
        src = arenas[0].place(want.nbytes, at_end=at_end)
        src[:] = want.view(np.uint8)
        out = arenas[1].place(x.nbytes, at_end=at_end, gap=gap).view(x.dtype)
        out = out.reshape(dims, order=order)
        tj.unpack(tj.TiledArray.from_buffer(src, spec), out=out, threads=threads)
        assert (out.view(f"u{x.itemsize}") == x.view(f"u{x.itemsize}")).all()
        assert arenas[1].untouched()
