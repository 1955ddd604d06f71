"""Vectors in generated kernels against NumPy at every CPU level; masked-out lanes are between guard pages."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from codegen.backend.build import assembly, build
from codegen.simd.routines import bound_routines
from codegen.support.cpu import cpu_level, level_named
from codegen.support.errors import KernelError
from tests.codegen.simd.levels import AtLevels
from tests.codegen.simd.vector_cases import (
    EVERY,
    FLOATS,
    HEAD,
    INTEGERS,
    NUMBERS,
    Array,
    Operation,
    assert_same,
    computed,
    kernel,
    numpy_type,
    operands,
)
from tests.tools.guard import Guarded

SIGNED = tuple(d for d in INTEGERS if d[0] == "i")
BITWISE = ("i1", *INTEGERS)


def _first(function: Any) -> Any:
    return lambda x, y: function(x)


def _cast(dtype: str) -> Any:
    """As documented: integers wrap; a float that does not fit becomes the least i32 or i64, truncated."""
    target = numpy_type(dtype)

    def oracle(x: Array, y: Array) -> Array:
        if x.dtype.kind != "f" or target.kind not in "iu":
            return x.astype(target)
        return np.array([_whole(v, dtype) for v in x.tolist()], object).astype(np.uint64).astype(target)

    return oracle


def _whole(value: float, dtype: str) -> int:
    bits = 64 if dtype in ("u32", "i64", "u64") else 32
    least, most = -(1 << bits - 1), 1 << (64 if dtype == "u64" else bits - 1)
    whole = least if np.isnan(value) else int(np.clip(value, -1e40, 1e40))
    if dtype == "u64" and whole >= most:
        return 0
    return (whole if least <= whole < most else least) % (1 << 64)


def _halved(function: Any) -> Any:
    """Combine lane k with the lane half of them further, the documented order of reductions; for 16 lanes."""

    def oracle(x: Array, y: Array) -> Array:
        rows = x.reshape(-1, min(len(x), 16))
        while rows.shape[1] > 1:
            half = rows.shape[1] // 2
            rows = function(rows[:, :half], rows[:, half:])
        return rows[:, 0]

    return oracle


OPERATIONS = (
    Operation("x + y", np.add, EVERY),
    Operation("x - y", np.subtract, NUMBERS),
    Operation("x * y", np.multiply, EVERY),
    Operation("x / y", np.divide, FLOATS),
    Operation("x & y", np.bitwise_and, BITWISE),
    Operation("x | y", np.bitwise_or, BITWISE),
    Operation("x ^ y", np.bitwise_xor, BITWISE),
    Operation("x << y", np.left_shift, INTEGERS),
    Operation("x >> y", np.right_shift, INTEGERS),
    Operation("~x", _first(np.invert), BITWISE),
    Operation("-x", _first(np.negative), NUMBERS),
    Operation("x == y", np.equal, EVERY),
    Operation("x != y", np.not_equal, EVERY),
    Operation("x < y", np.less, EVERY),
    Operation("x <= y", np.less_equal, EVERY),
    Operation("x > y", np.greater, EVERY),
    Operation("x >= y", np.greater_equal, EVERY),
    Operation("minimum(x, y)", np.minimum, EVERY),
    Operation("maximum(x, y)", np.maximum, EVERY),
    Operation("floordiv(x, y)", np.floor_divide, NUMBERS),
    Operation("modulo(x, y)", np.remainder, NUMBERS),
    Operation("abs(x)", _first(np.abs), EVERY),
    Operation("sqrt(x)", _first(np.sqrt), FLOATS),
    Operation("floor(x)", _first(np.floor), FLOATS),
    Operation("ceil(x)", _first(np.ceil), FLOATS),
    Operation("trunc(x)", _first(np.trunc), FLOATS),
    Operation("rint(x)", _first(np.rint), FLOATS),
    Operation("copysign(x, y)", np.copysign, FLOATS),
    Operation("fast_add(x, y)", np.add, INTEGERS),
    Operation("fast_sub(x, y)", np.subtract, INTEGERS),
    Operation("fast_mul(x, y)", np.multiply, INTEGERS),
    Operation("select(x != y, x, y)", lambda x, y: np.where(x != y, x, y), EVERY),
    Operation("select(x == y, x, splat_DxN(3))", lambda x, y: np.where(x == y, x, x.dtype.type(3)), NUMBERS),
    Operation("pow(x, y & splat_DxN(15))", lambda x, y: x ** (y & x.dtype.type(15)), INTEGERS),
    Operation("splat_DxN(reduce_min(x))", lambda x, y: _spread(np.minimum, x), NUMBERS),
    *(Operation(f"cast_{d}xN(x)", _cast(d), EVERY) for d in EVERY),
)

REDUCTIONS = (
    Operation("reduce_add(x)", _halved(np.add), NUMBERS, whole=True),
    Operation("reduce_mul(x)", _halved(np.multiply), NUMBERS, whole=True),
    Operation("reduce_min(x)", _halved(np.minimum), EVERY, whole=True),
    Operation("reduce_max(x)", _halved(np.maximum), EVERY, whole=True),
    Operation("reduce_and(x)", _halved(np.bitwise_and), BITWISE, whole=True),
    Operation("reduce_or(x)", _halved(np.bitwise_or), BITWISE, whole=True),
    Operation("reduce_xor(x)", _halved(np.bitwise_xor), BITWISE, whole=True),
)


def _spread(function: Any, x: Array) -> Array:
    rows = x.reshape(-1, _spread_lanes[0])
    return np.repeat(reduce(function, rows.T), rows.shape[1])


_spread_lanes = [16]


@pytest.mark.full
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", EVERY)
def test_operations(dtype: str, lanes: int) -> None:
    """Bit for bit, on all pairs of special values and on random ones."""
    x, y = operands(dtype)
    _spread_lanes[0] = lanes
    chosen = [op for op in OPERATIONS if dtype in op.dtypes]
    for op, got in zip(chosen, computed(chosen, dtype, lanes, x, y), strict=True):
        with np.errstate(all="ignore"):
            wanted = op.oracle(x, y)
        assert_same(
            got, wanted, f"{op} of {dtype}x{lanes}", zeros="imum" not in op.text and "min" not in op.text
        )


@pytest.mark.full
@pytest.mark.parametrize("dtype", EVERY)
def test_reductions(dtype: str) -> None:
    """In the documented order, so also bit for bit."""
    x, y = operands(dtype)
    chosen = [op for op in REDUCTIONS if dtype in op.dtypes]
    for op, got in zip(chosen, computed(chosen, dtype, 16, x, y), strict=True):
        with np.errstate(all="ignore"):
            wanted = op.oracle(x, y)
        assert_same(got, wanted, f"{op} of {dtype}", zeros="min" not in op.text and "max" not in op.text)


WIDTHS = ("i8x2", "i8x64", "u16x4", "i32x64", "f32x2", "f32x64", "f64x4", "u64x2", "i1x256", "i8x256")


@pytest.mark.full
@pytest.mark.parametrize("kind", WIDTHS)
def test_lane_counts(kind: str) -> None:
    """Narrower and wider than registers."""
    dtype, lanes = kind.split("x")
    x, y = operands(dtype)
    for op, got in zip(SOME, computed(SOME, dtype, int(lanes), x, y), strict=True):
        assert_same(got, op.oracle(x, y), f"{op} of {kind}")


SOME = (
    Operation("select(x < y, y, x)", lambda x, y: np.where(x < y, y, x), EVERY),
    Operation("select(x < y, y, x) != x", lambda x, y: np.where(x < y, y, x) != x, EVERY),
    Operation("cast_f64xN(x == y)", lambda x, y: (x == y).astype(float), EVERY),
)


@pytest.mark.full
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_first_lanes(dtype: str, lanes: int) -> None:
    """`_first` forms read zeros past the count, touch nothing there, and do not trap there."""
    size, step = numpy_type(dtype).itemsize, 3 * numpy_type(dtype).itemsize
    run = kernel(_first_body(dtype, lanes))
    values = operands(dtype)[0][-lanes:]
    pages = [Guarded(step * lanes) for _ in range(4)]
    for count in (-5, 0, 1, 2, lanes - 1, lanes, lanes + 1, 1 << 40):
        there = min(max(count, 0), lanes)
        dense, spread = there * size, (there - 1) * step + size if there else 0
        near, far, near_out, far_out = (
            page.place(n, at_end=True) for page, n in zip(pages, (dense, spread) * 2, strict=True)
        )
        near[:] = values[:there].view(np.uint8)
        far[:] = 0
        for k in range(there):
            far[k * step : k * step + size] = near[k * size : k * size + size]
        far_out[:] = 7
        loaded, gathered = np.full((2, lanes), 1, numpy_type(dtype))
        mask = np.zeros(lanes, bool)
        arrays = near, far, near_out, far_out, loaded, gathered, mask
        table = np.array([*(a.ctypes.data for a in arrays), count, step], np.int64)
        run(0, 0, table.ctypes.data, 0, 0)
        wanted = np.where(np.arange(lanes) < count, values, numpy_type(dtype).type(0))
        assert (mask == (np.arange(lanes) < count)).all(), count
        assert_same(loaded, wanted, f"load_{dtype}x{lanes}_first of {count}")
        assert_same(gathered, wanted, f"strided_load_{dtype}x{lanes}_first of {count}")
        assert near_out.tobytes() == near.tobytes()
        held = np.arange(spread) % step < size
        assert (far_out[held] == far[held]).all()
        assert (far_out[~held] == 7).all()
        assert all(page.untouched() for page in pages)


def _first_body(dtype: str, lanes: int) -> str:
    kind = f"{dtype}x{lanes}"
    names = "near", "far", "near_out", "far_out", "loaded", "gathered", "mask", "count", "step"
    return "\n".join(
        [
            *(f"    {name} = int64_at(sizes, {k})" for k, name in enumerate(names)),
            f"    x = load_{kind}_first(near, count)",
            f"    y = strided_load_{kind}_first(far, step, count)",
            f"    store_{kind}(loaded, x)",
            f"    store_{kind}(gathered, y)",
            f"    store_{kind}_first(near_out, x, count)",
            f"    strided_store_{kind}_first(far_out, step, y, count)",
            f"    store_i1x{lanes}(mask, first_{lanes}(count))",
            "",
        ]
    )


@pytest.mark.parametrize("dtype", EVERY)
def test_steps(dtype: str) -> None:
    """Gathers and scatters forwards, backwards and at one element, where the last lane stays."""
    x = operands(dtype)[0][-64:]
    size = x.itemsize
    run = kernel(
        f"    strided_store_{dtype}x16(dst, end * {size}, strided_load_{dtype}x16(src, begin * {size}))\n"
    )
    for start, step, out_start, out_step in (
        (0, 1, 0, 1),
        (3, 4, 0, 2),
        (63, -3, 15, -1),
        (5, 0, 7, 1),
        (0, 2, 9, 0),
    ):
        out = np.zeros_like(x)
        run(x[start:].ctypes.data, out[out_start:].ctypes.data, 0, step, out_step)
        wanted = np.zeros_like(x)
        for k in range(16):
            wanted[out_start + k * out_step] = x[start + k * step]
        assert_same(out, wanted, f"{dtype} by {step} and {out_step}")


@pytest.mark.full
@pytest.mark.parametrize("dtype", NUMBERS)
def test_iota_and_splats(dtype: str) -> None:
    run = kernel(
        f"    store_{dtype}x16(dst, iota_{dtype}x16() + splat_{dtype}x16(begin))\n"
        f"    store_{dtype}x16(dst + end, splat_{dtype}x16(2.5))\n"
        f"    store_{dtype}x16(dst + 2 * end, splat_{dtype}x16(True))\n"
        f"    store_{dtype}x1(dst + 3 * end, minimum(load_{dtype}x1(dst), splat_{dtype}x1(end)))\n"
    )
    kind = numpy_type(dtype)
    out = np.zeros(64, kind)
    run(0, out.ctypes.data, 0, 5, 16 * kind.itemsize)
    assert out[:16].tolist() == list(range(5, 21))
    assert (out[16:32] == kind.type(2.5)).all()
    assert (out[32:48] == 1).all()
    assert out[48] == 5


def test_iota_of_many_lanes_wraps_around() -> None:
    out = np.zeros(512, np.int8)
    kernel("    store_i8x512(dst, iota_i8x512())\n")(0, out.ctypes.data, 0, 0, 0)
    assert out.tolist() == (np.arange(512).astype(np.int8)).tolist()


HALVES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}


def test_rounding_to_odd_first() -> None:
    """f64 to f16 through f32 rounds once, also next to the midpoint between two values."""
    kind = np.dtype(np.float16)
    short = np.arange(1 << 16, dtype=np.uint16).view(kind).astype(float)
    short = short[np.isfinite(short)]
    middle = (short[:-1] + short[1:]) / 2
    near = [np.nextafter(middle, to) for to in (-np.inf, np.inf)]
    large = np.array([1e300, -1e300, np.inf, -np.inf, 1e-310, 3e38, 3.5e38, 1e-46, -1e-46, 0.0, -0.0, np.nan])
    x = np.concatenate([short, middle, *near, np.random.default_rng(0).normal(size=1000), large])
    x = np.pad(x, (0, -len(x) % 16))
    out = np.zeros(len(x), kind)
    body = "    for k in range(begin, end, 16):\n        v = round_to_odd_f32(load_f64x16(src + k * 8))\n"
    run = kernel(body + "        store_f32x16_as_f16(dst + k * 2, v)\n")
    run(x.ctypes.data, out.ctypes.data, 0, 0, len(x))
    with np.errstate(all="ignore"):
        assert_same(out, x.astype(kind), "f64 to f16")


@pytest.mark.parametrize("kind", ["f32x4", "f32x64", "u8x16", "f64x16", "i1x64"])
def test_streams(kind: str) -> None:
    dtype, lanes = kind.split("x")
    x, _ = operands(dtype)
    room = np.zeros(len(x) + 64, x.dtype)
    out = room[-room.ctypes.data % 64 // x.itemsize :][: len(x)]
    run = kernel(
        f"    for k in range(begin, end, {lanes}):\n"
        f"        stream_{kind}(dst + k * {x.itemsize}, load_{kind}(src + k * {x.itemsize}))\n"
        "    stream_fence()\n"
    )
    run(x.ctypes.data, out.ctypes.data, 0, 0, len(x))
    assert out.tobytes() == x.tobytes()


def test_streamed_halves() -> None:
    x = np.random.default_rng(0).normal(size=32).astype(np.float32)
    room = np.zeros(96, np.uint16)
    out = room[-room.ctypes.data % 64 // 2 :][:32]
    kernel("    stream_f32x32_as_bf16(dst, load_f32x32(src))\n    stream_fence()\n")(
        x.ctypes.data, out.ctypes.data, 0, 0, 0
    )
    assert (out.view(HALVES["bf16"]) == x.astype(HALVES["bf16"])).all()


@pytest.mark.parametrize("level", ["avx512", "avx2", "sse2"])
def test_registers_of_a_level(level: str) -> None:
    """None is wider than the level's, and stores are of the kind that they are called."""
    source = (
        f"{HEAD.format('wide')}    v = load_f32x32(src)\n"
        "    w = select(v < splat_f32x32(0.5), v * v, floordiv(v, v) + exp(v))\n"
        "    stream_f32x32(dst, w)\n    store_f32x32_first(sizes, w, end)\n"
    )
    text = assembly(build("wide", source, level_named(level)).llvm_ir, level_named(level))
    assert ("%zmm" in text) == (level == "avx512")
    assert "%ymm" in text or level != "avx2"
    assert "%ymm" not in text or level != "sse2"
    assert "movntps" in text
    assert not re.search(r"\tv?fn?m(add|sub)", text)


def test_only_fma_is_fused() -> None:
    """x * x - y rounds twice, fma once: the last bit of the square of 1 + 2**-12 is lost or kept."""
    x, y = np.full(16, 1 + 2.0**-12, np.float32), np.full(16, 1 + 2.0**-11, np.float32)
    ops = Operation("x * x - y", lambda x, y: x * x - y, FLOATS), Operation("fma(x, x, -y)", np.add, FLOATS)
    apart, fused = computed(ops, "f32", 16, x, y)
    assert (apart == 0).all()
    assert (fused == 2.0**-24).all()


def test_fast_forms_handle_nan() -> None:
    x, y = operands("f32")
    names = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    ops = [Operation(f"fast_{name}(x, y)", function, FLOATS) for name, function in names.items()]
    with np.errstate(all="ignore"):
        for op, got in zip(ops, computed(ops, "f32", 16, x, y), strict=True):
            wanted = op.oracle(x, y)
            finite = np.isfinite(wanted)
            assert (np.isnan(got) == np.isnan(wanted)).all(), op
            close = np.isclose(got[finite], wanted[finite], rtol=1e-6, atol=np.abs(y[finite]) * 1e-6)
            assert close.all(), (op, x[finite][~close], y[finite][~close])


def test_negative_powers() -> None:
    """NumPy refuses them; here the result is 0. Large ones wrap."""
    x, y = np.arange(-8, 8), np.array([-1, 0, 1, 2, 63, 64, 65, 1 << 62] * 2)
    (got,) = computed([Operation("pow(x, y)", np.add, ())], "i64", 16, x, y)
    wanted = [0 if e < 0 else pow(int(b), int(e), 1 << 64) for b, e in zip(x, y, strict=True)]
    assert got.view(np.uint64).tolist() == wanted


def test_numbers_behave_as_single_lanes() -> None:
    """Functions also take Numba's numbers, and return them."""
    out = np.zeros(5)
    kernel(
        "    x = end * 0.5\n    y = select(x > 2.0, maximum(x, 7.5), x)\n"
        "    store_f64x1(dst, sqrt(y * 8.0 + 4.0))\n    store_f64x1(dst + 8, exp(x - 2.5) + pow(x, 2.0))\n"
        "    store_f64x1(dst + 16, cast_f64x1(floordiv(begin, 3) + modulo(begin, 5)))\n"
        "    store_f64x1(dst + 24, abs(-y))\n    store_f64x1(dst + 32, reduce_add(splat_f64x8(x)))\n"
    )(0, out.ctypes.data, 0, -7, 5)
    assert out.tolist() == [8.0, 7.25, 0.0, 7.5, 20.0]


def test_in_place_operators() -> None:
    out = np.arange(16, dtype=np.float64)
    body = "    v = load_f64x16(dst)\n    for k in range(begin, end):\n"
    body += "        v += splat_f64x16(2.0)\n        v *= v\n"
    kernel(body + "    store_f64x16(dst, v)\n")(0, out.ctypes.data, 0, 0, 2)
    assert (out == ((np.arange(16) + 2.0) ** 2 + 2) ** 2).all()


@pytest.mark.parametrize(
    "expression",
    [
        "load_f32x16(src) + load_f64x16(src)",
        "load_f32x16(src) + load_f32x8(src)",
        "load_f32x16(src) & load_f32x16(src)",
        "minimum(load_f32x16(src), load_i32x16(src))",
        "exp(load_i32x16(src))",
        "cast_f32x8(load_i32x16(src))",
        "splat_f32x8(load_f32x8(src))",
        "store_f32x16(dst, load_f32x8(src))",
        "select(load_f32x8(src), load_f32x8(src), load_f32x8(src))",
        "load_f32x0(src)",
        "load_f32x2048(src)",
        "splat_f32x8_first(src)",
        "stream_f32x2(src, load_f32x2(src))",
        "round_to_odd_f32(load_f32x2(src))",
    ],
)
def test_refused(expression: str) -> None:
    """A wrong type is a compiler error, never a guess."""
    with pytest.raises(KernelError, match="Numba rejects"):
        build("wrong", f"{HEAD.format('wrong')}    v = {expression}\n", cpu_level())


def test_functions_that_are_not_called_are_not_built() -> None:
    names = ["load_f32x16", "exp", "load_f32x0", "store_q7x2", "first_9", "exponent", "range"]
    assert set(bound_routines(names)) == {"load_f32x16", "exp"}


def at_lower_levels(level: str) -> AtLevels:
    """`test_families.py` tests single operations and reductions at each level."""
    tests = [
        *("test_lane_counts", "test_first_lanes", "test_steps"),
        *("test_only_fma_is_fused", "test_rounding_to_odd_first", "test_streams"),
    ]
    cases = (3 + 1) * len(EVERY) + len(WIDTHS) + 1 + 1 + 5
    return AtLevels(__file__, tests, cases)
