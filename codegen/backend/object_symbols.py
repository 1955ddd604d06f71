"""The symbols that an ELF object leaves undefined, and which of them a kernel may."""

from __future__ import annotations

import struct
import sys

from codegen.backend import elf
from codegen.simd.vector.math_library import SYMBOLS, are_there

ALLOWED_SYMBOLS = SYMBOLS | {"memcpy", "memmove", "memset"}
"""What an object may leave to the process that loads it; anything else would need numba there, or do harm."""


def can_be_loaded(object_code: bytes) -> bool:
    """Whether all that the object calls is allowed, and is there in this process.

    What is no ELF object cannot be asked, and is none of ours on Linux.
    """
    try:
        called = undefined_symbols(object_code)
    except (struct.error, IndexError, ValueError):
        return False
    if not elf.is_elf(object_code) and sys.platform == "linux":
        return False
    return called <= ALLOWED_SYMBOLS and are_there(called)


def undefined_symbols(object_code: bytes) -> frozenset[str]:
    """Names that the object uses and does not define; nothing for formats other than 64-bit ELF.

    Raises:
        struct.error, IndexError, ValueError: its tables lead out of it.
    """
    if not elf.is_elf(object_code):
        return frozenset()
    table = elf.sections(object_code)
    found = [elf.symbols(object_code, part, table[part.link]) for part in table if part.kind == elf.SYMTAB]
    return frozenset(x.name for symbols in found for x in symbols if not x.section and x.name)
