"""The undefined symbols of an ELF object, and those that a kernel may use."""

from __future__ import annotations

import struct
import sys

from codegen.backend import elf
from codegen.simd.vector.math_library import SYMBOLS, are_there

ALLOWED_SYMBOLS = SYMBOLS | {"memcpy", "memmove", "memset"}
"""Symbols that an object may leave undefined; others would need Numba at run time, or be unsafe."""


def can_be_loaded(object_code: bytes) -> bool:
    """Whether every function that the object calls is allowed and available in this process.

    Objects in other formats cannot be checked. On Linux they are rejected, because all of TileJIT's objects
    are ELF.
    """
    try:
        called = undefined_symbols(object_code)
    except (struct.error, IndexError, ValueError):
        return False
    if not elf.is_elf(object_code) and sys.platform == "linux":
        return False
    return called <= ALLOWED_SYMBOLS and are_there(called)


def undefined_symbols(object_code: bytes) -> frozenset[str]:
    """Names that the object uses but does not define; empty for formats other than 64-bit ELF.

    Raises:
        struct.error, IndexError, ValueError: its tables extend beyond it.
    """
    if not elf.is_elf(object_code):
        return frozenset()
    table = elf.sections(object_code)
    found = [elf.symbols(object_code, x, table[x.link]) for x in table if x.kind == elf.SYMTAB]
    return frozenset(x.name for symbols in found for x in symbols if not x.section and x.name)
