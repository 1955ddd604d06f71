"""The C library's vector functions: their accuracy, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from codegen.backend.build import build
from codegen.backend.object_symbols import undefined_symbols
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.families import MAX_ULP
from codegen.simd.vector.math_library import (
    SUFFIX,
    SYMBOLS,
    is_there,
)
from codegen.support.cpu import level_named
from tests.codegen.simd.levels import AtLevels
from tests.codegen.simd.vector_cases import (
    HEAD,
    Array,
    Operation,
    computed_each,
    numpy_type,
    specials,
)
from tests.tools.oracle import run_python

NUMPY = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")}
NUMPY |= {"pow": "power"}
NAMES = tuple(name for name in C_FUNCTIONS if hasattr(np, NUMPY.get(name, name)))
DOMAINS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), (-160, 160)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-1, 1)),
    **dict.fromkeys(("log", "log2", "log10"), (1e-30, 1e30)),
    "log1p": (-1, 1e6),
    "acosh": (1, 1e6),
    "pow": (0, 30),
}
EVERYWHERE = (-1000, 1000)
COUNT = 4096
SEED = 7


def test_all_functions_are_compared() -> None:
    assert set(C_FUNCTIONS) == set(NAMES)


def inputs(name: str, dtype: str) -> tuple[Array, Array]:
    """Values spaced evenly and logarithmically over the domain."""
    rng = np.random.default_rng(SEED)
    low, high = DOMAINS.get(name, EVERYWHERE)
    kind, half = numpy_type(dtype), COUNT // 2
    x = rng.uniform(low, high, COUNT)
    x[:half] = np.where(x[:half] < 0, low, high) * 10.0 ** rng.uniform(-30 if name != "acosh" else 0, 0, half)
    y = rng.uniform(-8, 8, COUNT)
    return x.astype(kind), y.astype(kind)


def assert_all_close(dtype: str, lanes: int, pairs: Sequence[tuple[Array, Array]]) -> None:
    """Every function on its pair of arrays. They are loops of one kernel."""
    operations = [Operation(_text(name), partial(_exactly, name), ()) for name in NAMES]
    found = computed_each(operations, dtype, lanes, pairs)
    for name, got, (x, y) in zip(NAMES, found, pairs, strict=True):
        assert_close(name, dtype, lanes, x, y, got)


def _text(name: str) -> str:
    return f"{name}(x, y)" if C_FUNCTIONS[name] == 2 else f"{name}(x)"


def _exactly(name: str, x: Array, y: Array) -> Array:
    """NumPy's result, in the precision of the arrays."""
    function = getattr(np, NUMPY.get(name, name))
    result: Array = function(x, y) if C_FUNCTIONS[name] == 2 else function(x)
    return result


def assert_close(name: str, dtype: str, lanes: int, x: Array, y: Array, got: Array) -> None:
    """Within the stated ulp of the 80-bit result; infinite, NaN or -0.0 as in NumPy."""
    with np.errstate(all="ignore"):
        exact = _exactly(name, x.astype(np.longdouble), y.astype(np.longdouble))
        numpys = _exactly(name, x, y)
        rounded = exact.astype(got.dtype)
        off = np.abs(got - exact) / np.spacing(np.abs(rounded)).astype(np.longdouble)
    same = (got == numpys) | (np.isnan(got) & np.isnan(numpys))
    # 80-bit pow has no result for -inf to the power of large even numbers.
    fine = np.where(np.isfinite(rounded) & np.isfinite(got), off <= MAX_ULP, same)
    fine &= (got != 0) | (numpys != 0) | (np.signbit(got) == np.signbit(numpys))
    wrong = np.flatnonzero(~fine)[:4]
    assert not len(wrong), (
        f"{_text(name)} of {dtype}x{lanes} at {x[wrong]}, {y[wrong]}: {got[wrong]}, {off[wrong]} ulp"
    )


@pytest.mark.full
@pytest.mark.parametrize("lanes", [1, 2, 16, 32])
@pytest.mark.parametrize("dtype", SUFFIX)
def test_accuracy(dtype: str, lanes: int) -> None:
    assert_all_close(dtype, lanes, [inputs(name, dtype) for name in NAMES])


@pytest.mark.full
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", SUFFIX)
def test_special_values(dtype: str, lanes: int) -> None:
    """Every pair of them. The remaining lanes are zeros."""
    some = specials(dtype)
    x, y = (np.pad(v.ravel(), (0, -v.size % lanes)) for v in np.meshgrid(some, some))
    assert_all_close(dtype, lanes, [(x, y)] * len(NAMES))


LIBMVEC = is_there("_ZGVbN4v_expf")
EXP = f"{HEAD.format('kernel')}    store_f32x32(dst, exp(load_f32x32(src)))\n"


@pytest.mark.skipif(not LIBMVEC, reason="no libmvec here")
@pytest.mark.parametrize(
    ("level", "symbol"),
    [("avx512", "_ZGVeN16v_expf"), ("avx2", "_ZGVdN8v_expf"), ("sse2", "_ZGVbN4v_expf")],
)
def test_the_widest_version_is_used(level: str, symbol: str) -> None:
    """The object leaves only that symbol to the process, and the symbol is on the list of allowed ones."""
    built = build("kernel", EXP, level_named(level))
    assert undefined_symbols(built.object_code) == {symbol}
    assert symbol in SYMBOLS


def test_without_vector_functions() -> None:
    """Lane by lane through the C library's scalar function."""
    built = build("kernel", EXP, level_named("neon"))
    assert undefined_symbols(built.object_code) == {"expf"}


WITHOUT_NUMBA = """
import sys
import numpy as np
from codegen.runtime.kernel import native
from codegen.backend.store import default_store
source = sys.stdin.read()
x = np.linspace(-3, 3, 32, dtype=np.float32)
out = np.zeros(32, np.float32)
operands = np.array([x.ctypes.data, out.ctypes.data])
native("kernel", source)(operands.ctypes.data, 0, 0, 0, 0)
assert np.allclose(out, np.exp(x), rtol=1e-6)
print(default_store().misses, "numba" in sys.modules)
"""


@pytest.mark.full
def test_stored_kernels_need_no_numba(tmp_path: Path) -> None:
    """The loader of the kernel also loads the library."""
    for printed in ("1 True", "0 False"):
        child = run_python(WITHOUT_NUMBA, input=EXP, TILEJIT_CACHE_DIR=str(tmp_path))
        assert child.stdout.strip() == printed, child.stderr


def at_lower_levels(level: str) -> AtLevels:
    """`test_families.py` tests 1 and 16 lanes at each level."""
    tests = [f"test_accuracy[{dtype}-{lanes}]" for dtype in ("f32", "f64") for lanes in (2, 32)]
    return AtLevels(__file__, [*tests, "test_special_values"], len(tests) + 4)
