"""Functions of the C library that kernels may call, by their symbols, and loading them. No numba here.

glibc has vector versions in libmvec: `_ZGVeN16v_expf` computes sixteen f32 with AVX-512. Their letter is the
instruction set (b SSE, d AVX2, e AVX-512), then the lanes, then a v an argument.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from functools import cache

LIBMVEC = "libmvec.so.1"
LIBM = "libm.so.6"
PROCESS = "ucrtbase" if os.name == "nt" else None
"""Where to find what the process has loaded anyway."""

UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc"),
)
BINARY = ("pow", "atan2", "hypot")

ARGUMENTS = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2)
"""How many arguments each function takes that kernels call by name."""

ROUNDING = ("floor", "ceil", "trunc", "rint", "fma", "fmod")
"""What LLVM itself calls where the level has no instruction for it."""

SUFFIX = {"f32": "f", "f64": ""}

_SETS = {"e": 64, "d": 32, "b": 16}
"""Bytes of a register of each instruction set."""

_OF_LEVEL = {"avx512": "edb", "avx2": "db", "sse2": "b"}


def scalar_symbol(name: str, dtype: str) -> str:
    """`expf` for exp of f32."""
    return f"{name}{SUFFIX[dtype]}"


def vector_symbol(letter: str, name: str, dtype: str) -> tuple[str, int]:
    """The symbol of an instruction set's version, and its lanes: ("_ZGVeN16v_expf", 16)."""
    lanes = _SETS[letter] * 8 // int(dtype[1:])
    return f"_ZGV{letter}N{lanes}{'v' * ARGUMENTS[name]}_{scalar_symbol(name, dtype)}", lanes


SCALAR_SYMBOLS = frozenset(scalar_symbol(name, dtype) for name in (*ARGUMENTS, *ROUNDING) for dtype in SUFFIX)
VECTOR_SYMBOLS = frozenset(
    vector_symbol(s, name, dtype)[0] for s in _SETS for name in ARGUMENTS for dtype in SUFFIX
)
SYMBOLS = SCALAR_SYMBOLS | VECTOR_SYMBOLS
"""All that kernels may leave to the C library."""


def best_vector_symbol(level: str, name: str, dtype: str, lanes: int) -> tuple[str, int] | None:
    """The widest version for a level with no more lanes than that, else its narrowest; None if there is none.

    Two lanes of f32 are padded to the narrowest version's four.
    """
    versions = [vector_symbol(letter, name, dtype) for letter in _OF_LEVEL.get(level, "")]
    there = [(symbol, width) for symbol, width in versions if is_there(symbol)]
    fitting = [version for version in there if version[1] <= lanes]
    return next(iter(fitting or there[-1:]), None)


def are_there(symbols: Iterable[str]) -> bool:
    """Whether this process has every one of the C library's functions among these symbols."""
    return all(is_there(symbol) for symbol in SYMBOLS.intersection(symbols))


def is_there(symbol: str) -> bool:
    """Whether this process has a function, after the libraries are loaded."""
    return bool(address_of(symbol))


@cache
def address_of(symbol: str) -> int:
    """Where a function of the C library or its libraries of mathematics begins; 0 where there is none.

    The libraries are loaded for all of the process, as LLVM's own loader needs them.
    """
    libraries = (LIBMVEC,) if symbol in VECTOR_SYMBOLS else (LIBM, PROCESS)
    for library in map(_library, libraries):
        found = getattr(library, symbol, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0


@cache
def _library(name: str | None) -> ctypes.CDLL | None:
    """A library by name, or all that the process has loaded; None where there is no such thing."""
    try:
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except (OSError, TypeError):
        return None
