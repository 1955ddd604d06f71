"""The symbols that an ELF object leaves undefined, and which of them a kernel may."""

from __future__ import annotations

import struct
import sys

from codegen.math_library import SYMBOLS, are_there

SYMTAB = 2

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
    if not _is_elf(object_code) and sys.platform == "linux":
        return False
    return called <= ALLOWED_SYMBOLS and are_there(called)


def undefined_symbols(object_code: bytes) -> frozenset[str]:
    """Names that the object uses and does not define; nothing for formats other than 64-bit ELF.

    Raises:
        struct.error, IndexError, ValueError: its tables lead out of it.
    """
    if not _is_elf(object_code):
        return frozenset()
    (table,) = struct.unpack_from("<Q", object_code, 0x28)
    size, count = struct.unpack_from("<HH", object_code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", object_code, table + k * size) for k in range(count)]
    out = set()
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != SYMTAB:
            continue
        names = sections[link][4]
        for at in range(offset + entry, offset + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", object_code, at)
            if section == 0 and name:
                start = names + name
                out.add(object_code[start : object_code.index(b"\0", start)].decode())
    return frozenset(out)


def _is_elf(object_code: bytes) -> bool:
    return object_code[:5] == b"\x7fELF\x02"
