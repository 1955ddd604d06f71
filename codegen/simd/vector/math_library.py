"""Symbols of the C library functions that kernels may call, and loading them. Does not import Numba.

glibc has vector versions in libmvec: `_ZGVeN16v_expf` computes sixteen f32 with AVX-512. The letter is the
instruction set (b SSE, d AVX2, e AVX-512). The number of lanes and one v per argument follow.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from functools import cache

from codegen.ir.c_functions import C_FUNCTIONS

LIBMVEC = "libmvec.so.1"
LIBM = "libm.so.6"
PROCESS = "ucrtbase" if os.name == "nt" else None
"""The library to open for functions that the process has already loaded."""

ROUNDING = ("floor", "ceil", "trunc", "rint", "fma", "fmod")
"""Functions that LLVM itself calls where the level has no instruction."""

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
    return f"_ZGV{letter}N{lanes}{'v' * C_FUNCTIONS[name]}_{scalar_symbol(name, dtype)}", lanes


SCALAR_SYMBOLS = frozenset(
    scalar_symbol(name, dtype) for name in (*C_FUNCTIONS, *ROUNDING) for dtype in SUFFIX
)
VECTOR_SYMBOLS = frozenset(
    vector_symbol(s, name, dtype)[0] for s in _SETS for name in C_FUNCTIONS for dtype in SUFFIX
)
SYMBOLS = SCALAR_SYMBOLS | VECTOR_SYMBOLS
"""All C library symbols that kernels may reference."""


def best_vector_symbol(level: str, name: str, dtype: str, lanes: int) -> tuple[str, int] | None:
    """The widest version for a level with at most `lanes` lanes, else its narrowest; None if there is none.

    Two lanes of f32 are padded to the narrowest version's four.
    """
    versions = [vector_symbol(letter, name, dtype) for letter in _OF_LEVEL.get(level, "")]
    available = [(symbol, width) for symbol, width in versions if is_there(symbol)]
    fitting = [version for version in available if version[1] <= lanes]
    return next(iter(fitting or available[-1:]), None)


def are_there(symbols: Iterable[str]) -> bool:
    """Whether this process has every one of the C library's functions among these symbols."""
    return all(is_there(symbol) for symbol in SYMBOLS.intersection(symbols))


def is_there(symbol: str) -> bool:
    """Whether this process has a function, after the libraries are loaded."""
    return bool(address_of(symbol))


@cache
def address_of(symbol: str) -> int:
    """The address of a function in the C library or its math libraries, or 0 if there is none.

    The libraries are loaded for the entire process, because LLVM's own loader needs their symbols.
    """
    libraries = (LIBMVEC,) if symbol in VECTOR_SYMBOLS else (LIBM, PROCESS)
    for library in map(_library, libraries):
        found = getattr(library, symbol, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0


@cache
def _library(name: str | None) -> ctypes.CDLL | None:
    """A library by name, or everything that the process has loaded; None if it cannot be opened."""
    try:
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except (OSError, TypeError):
        return None
