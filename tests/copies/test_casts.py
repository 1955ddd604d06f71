"""Conversions in kernels against NumPy and ml_dtypes: every bit, every warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit
from tests.conftest import SEED
from tests.tools.extent import few_by_default

pytestmark = pytest.mark.usefixtures("kernels_for_all_sizes")

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = ("float16", "bfloat16", "float32", "float64")
BYTE_FLOATS = (
    "float8_e5m2",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
)
OTHERS = ("bool", "int8", "int32", "int64", "uint8", "uint64")
PAIRS = [
    *((a, b) for a in FLOATS for b in FLOATS if a != b),
    *((a, b) for a in ("float32", "float64") for b in OTHERS),
    *((a, b) for a in OTHERS for b in ("float16", "bfloat16", "float64")),
    *((a, "float32") for a in BYTE_FLOATS),
    *(("float32", b) for b in BYTE_FLOATS),
    *(("float8_e5m2", b) for b in ("float64", "float16", "bfloat16")),
    *((a, "float8_e4m3fn") for a in ("float64", "float16", "bfloat16")),
    ("float16", "int16"),
    ("float16", "bool"),
    ("bfloat16", "int32"),
    ("uint32", "float16"),
]
WARNED = [pair for pair in PAIRS if pair[0] in FLOATS or pair[1] == "float16"]


def dtype(name: str) -> np.dtype[Any]:
    """A dtype of NumPy or ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def edges(kind: np.dtype[Any]) -> Array:
    """All elements of up to 16 bits.

    Otherwise all exponents with mantissas at the edges, powers of 2, noise.
    """
    rng, bits = np.random.default_rng(SEED), 8 * kind.itemsize
    words = np.dtype(f"u{kind.itemsize}")
    if kind == np.bool_:
        return np.arange(256, dtype=np.uint8).view(kind)
    if bits <= 16:
        return np.arange(1 << bits, dtype=words).view(kind)
    noise = rng.integers(0, 1 << bits, 4096, words) if bits < 64 else rng.integers(0, 1 << 63, 4096, words)
    if kind.kind != "f":
        powers = [(1 << k) + d & ((1 << bits) - 1) for k in range(bits) for d in (-1, 0, 1)]
        return np.concatenate(
            [np.array([*powers, *((1 << bits) - p for p in powers if p)], words), noise]
        ).view(kind)
    mantissa = np.finfo(kind).nmant
    parts = {0, 1, (1 << mantissa) - 1}
    for k in range(mantissa):
        parts |= {(half + d) % (1 << mantissa) for half in (1 << k, 3 << k, -1 << k) for d in (-1, 0, 1)}
    exponents = np.arange(1 << (bits - 1 - mantissa), dtype=words) << words.type(mantissa)
    every = (exponents[:, None] | np.array(sorted(parts), words)).ravel()
    usual = rng.standard_normal(4096) * 10.0 ** rng.integers(-12, 22, 4096)
    return np.concatenate(
        [every, every | words.type(1 << (bits - 1)), noise, usual.astype(kind).view(words)]
    ).view(kind)


def copy(dst: Array, src: Array) -> None:
    """Convert by any casting rule."""
    tilejit.copyto(dst, src, "unsafe", threads=1)


def said(call: Callable[[], object]) -> list[str]:
    """The warnings of a call, or the exception that they become."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except FloatingPointError as error:
            return [str(error)]
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("source", "target"), few_by_default(PAIRS, 3))
def test_bits_are_numpys(source: str, target: str) -> None:
    """Contiguous, and with gaps between the results; lengths with all kinds of remainders."""
    values = edges(dtype(source))
    with np.errstate(all="ignore"):
        want = values.astype(dtype(target)).view(f"u{dtype(target).itemsize}")
        for count in (len(values), 29, 13, 5):
            got = np.zeros(count, dtype(target))
            copy(got, values[:count])
            differ = np.flatnonzero(got.view(want.dtype) != want[:count])
            assert not differ.size, (values[differ[:3]], want[differ[:3]], got[differ[:3]])
        apart = np.zeros((len(values), 2), dtype(target))[:, 0]
        copy(apart, values)
        assert np.array_equal(np.ascontiguousarray(apart).view(want.dtype), want)


@pytest.mark.parametrize(("source", "target"), few_by_default(WARNED, 6))
@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
def test_warnings_are_numpys(source: str, target: str, mode: Any) -> None:
    """Numbers of one kind at a time: too large, too small, inexact, infinite, NaNs of both kinds."""
    if dtype(source).kind in "iub":
        info = np.iinfo(dtype(source)) if source != "bool" else None
        numbers = [np.array([x], dtype(source)) for x in (0, 1, *((info.max, info.min) if info else ()))]
    else:
        sizes = (
            0.5,
            300.0,
            65519.9,
            65520.0,
            3e9,
            -1.0,
            1e19,
            1e30,
            1e300,
            1e-7,
            2.0**-14,
            6.1e-5,
            1e-40,
            1e-300,
        )
        with np.errstate(all="ignore"):
            numbers = [np.array([x]).astype(dtype(source)) for x in (*sizes, np.inf, -np.inf, np.nan)]
        signals = {"float16": 0x7C01, "bfloat16": 0x7F81, "float32": 0x7F800001, "float64": 0x7FF0 << 48 | 1}
        if source in signals:
            words = np.dtype(f"u{dtype(source).itemsize}")
            numbers.append(np.array([signals[source]], words).view(dtype(source)))
    got = np.zeros(40, dtype(target))
    for number in numbers:
        values = np.repeat(number, 40)
        with np.errstate(all=mode):
            assert said(partial(copy, got, values)) == said(partial(values.astype, got.dtype)), number


@pytest.mark.full
@pytest.mark.parametrize(
    ("source", "target"), [("float32", "float16"), ("float64", "bfloat16"), ("float32", "int8")]
)
def test_transposed(source: str, target: str) -> None:
    """Converted in the registers of a transpose, with the same bits and the same warnings."""
    values = edges(dtype(source))
    values = values[: len(values) // 300 * 300].reshape(300, -1)
    got = np.zeros(values.shape[::-1], dtype(target))
    with np.errstate(over="warn", invalid="warn", under="ignore"):
        assert said(lambda: copy(got, values.T)) == said(lambda: values.astype(dtype(target)))
    with np.errstate(all="ignore"):
        want = values.T.astype(dtype(target), order="C")
    assert got.tobytes() == want.tobytes()


@pytest.mark.full
def test_routines_convert() -> None:
    """astype and copyto use them, with NumPy's warning."""
    values = np.full((200, 300), 1e6, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        assert np.isinf(tilejit.astype(values, np.float16)).all()
    got = np.zeros((300, 200), np.int8)
    with pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
        tilejit.copyto(got, np.full((200, 300), np.nan, np.float32).T, casting="unsafe")


@pytest.mark.parametrize("threads", [None, 2])
def test_warnings_name_the_caller(threads: int | None) -> None:
    """Once for each of two lines of this file, as in NumPy; through `accelerate` too."""
    values = np.full((200, 300), 1e6, np.float32).T
    got = np.zeros((300, 200), np.float16)
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("default")
        tilejit.copyto(got, values, threads=threads)
        tilejit.astype(values, np.float16, order="C", threads=threads)
        with tilejit.accelerate():
            np.copyto(got, values)
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("default")
        np.copyto(got, values)
        values.astype(np.float16, order="C")
        np.copyto(got, values)
    assert [(x.category, str(x.message)) for x in ours] == [(x.category, str(x.message)) for x in theirs]
    assert {x.filename for x in (*ours, *theirs)} == {__file__}
    assert len({x.lineno for x in ours}) == 3


@pytest.mark.full
@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8", "V16", "V3", "V12"])
def test_reversed_runs(kind: str) -> None:
    """Long enough to be streamed too, at places inside lines, on two threads."""
    rng, item = np.random.default_rng(SEED), np.dtype(kind).itemsize
    for shape in ((5, 1001), (3, 7, 5), (41, 37, 3), (40, 50, 4), (3, 3_000_001 // item), (300_000, 3)):
        size = int(np.prod(shape)) * item
        values = np.frombuffer(rng.bytes(size), kind).reshape(shape)
        got = np.zeros(size + 80, np.uint8)[item : item + size].view(kind).reshape(shape)
        for turned in (values[..., ::-1], values[::-1], values[::-1, ..., ::-1]):
            tilejit.copyto(got, turned, threads=2)
            assert got.tobytes() == turned.tobytes()
