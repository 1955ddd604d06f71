"""Floats of 8 and 16 bits against NumPy and ml_dtypes, at every CPU level: all codes, millions of float32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from codegen.ir.element_types import BYTE_FLOAT_TYPES, HALF_TYPES
from codegen.simd.vector.minifloats import MINIFLOATS
from tests.codegen.simd.levels import AtLevels
from tests.codegen.simd.vector_cases import SEED, Array, kernel

SHORT = (*HALF_TYPES, *BYTE_FLOAT_TYPES)
NOISE = 1 << 21


def dtype(name: str) -> np.dtype[Any]:
    """bf16 is bfloat16, f8e5m2 is float8_e5m2."""
    names = {"f16": "float16", "bf16": "bfloat16"}
    return np.dtype(getattr(ml_dtypes, names.get(name, f"float8_{name[2:]}"), names.get(name)))


def codes(name: str) -> Array:
    """Every number of a type."""
    kind = dtype(name)
    return np.arange(1 << (8 * kind.itemsize), dtype=f"u{kind.itemsize}").view(kind)


def singles(name: str) -> Array:
    """Every number of a type, the midpoints between neighbors, the values next to those, and random bits."""
    exact = codes(name).astype(np.float32).view(np.uint32)
    drop = 16 if name == "bf16" else 23 - MINIFLOATS[name].mantissa
    near = [exact + np.uint32((1 << (drop - 1)) + d) for d in (-1, 0, 1)]
    beside = [exact + np.uint32(1), exact - np.uint32(1)]
    noise = np.random.default_rng(SEED).integers(0, 1 << 32, NOISE, np.uint32)
    return np.concatenate([exact, *near, *beside, noise]).view(np.float32)


def bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return array.view(f"u{array.itemsize}")


def converting(source: str, target: str) -> str:
    """The body of a kernel that converts super-vectors."""
    before, after = (32 if name == "f32" else 8 * dtype(name).itemsize for name in (source, target))
    read = f"load_u{before}x32(src + k * {before // 8})"
    loop = "    for k in range(0, end, 32):\n"
    return f"{loop}        store_u{after}x32(dst + k * {after // 8}, convert_{source}_to_{target}({read}))\n"


def test_every_short_float_is_known() -> None:
    assert tuple(MINIFLOATS) == ("f16", *BYTE_FLOAT_TYPES)
    assert all(kind.bits == 8 * dtype(name).itemsize for name, kind in MINIFLOATS.items())


@pytest.mark.full
@pytest.mark.parametrize("name", SHORT)
def test_narrowed(name: str) -> None:
    """In copies: every bit, including those of NaNs."""
    x = singles(name)
    out = np.zeros(len(x), dtype(name))
    kernel(converting("f32", name))(x.ctypes.data, out.ctypes.data, 0, 0, len(x))
    with np.errstate(all="ignore"):
        wanted = x.astype(dtype(name))
    differ = np.flatnonzero(bits(out) != bits(wanted))
    assert not differ.size, (bits(x)[differ[:3]], bits(wanted)[differ[:3]], bits(out)[differ[:3]])


@pytest.mark.full
@pytest.mark.parametrize("name", SHORT)
def test_widened(name: str) -> None:
    """In copies, and for halves in loops: every bit, including those of NaNs."""
    x = codes(name)
    with np.errstate(all="ignore"):
        wanted = bits(x.astype(np.float32))
    run = converting(name, "f32")
    body = f"store_f32x16(dst + k * 4, load_{name}_as_f32x16(src + k * 2))"
    loop = f"    for k in range(0, end, 16):\n        {body}\n"
    for body in (run, loop) if name in HALF_TYPES else (run,):
        out = np.zeros(len(x), np.float32)
        kernel(body)(x.ctypes.data, out.ctypes.data, 0, 0, len(x))
        differ = np.flatnonzero(bits(out) != wanted)
        assert not differ.size, (bits(x)[differ[:3]], wanted[differ[:3]], bits(out)[differ[:3]])


@pytest.mark.full
@pytest.mark.parametrize("name", HALF_TYPES)
def test_quiet_halves(name: str) -> None:
    """In loops: the same numbers as in copies, and quiet NaNs.

    Those of f16 keep the rest of their payload.
    """
    x = singles(name)
    x = x[: len(x) // 16 * 16]
    out = np.zeros(len(x), np.uint16)
    body = f"store_f32x16_as_{name}(dst + k * 2, load_f32x16(src + k * 4))"
    kernel(f"    for k in range(0, end, 16):\n        {body}\n")(x.ctypes.data, out.ctypes.data, 0, 0, len(x))
    with np.errstate(all="ignore"):
        wanted = bits(x.astype(dtype(name)))
    if name == "f16":
        wanted[np.isnan(x)] |= 0x200
        lost = np.isnan(x) & (bits(x) >> 13 & 0x3FF == 0)
        wanted[lost] &= 0xFE00
    differ = np.flatnonzero(out != wanted)
    assert not differ.size, (bits(x)[differ[:3]], wanted[differ[:3]], out[differ[:3]])


def at_lower_levels(level: str) -> AtLevels:
    """The same conversions in narrower registers."""
    tests = ["test_narrowed", "test_widened", "test_quiet_halves"]
    return AtLevels(__file__, tests, 2 * len(SHORT) + len(HALF_TYPES))
