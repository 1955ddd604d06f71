"""The tables of an ELF object, 64-bit and little-endian: its sections, symbols and relocations."""

from __future__ import annotations

import struct
from typing import NamedTuple

BITS, SYMTAB, RELA, NO_BITS = 1, 2, 4, 8
"""Kinds of sections: code and constants, symbols, relocations, and zeros that the object does not hold."""

WRITTEN, IN_MEMORY = 1, 2
"""Flags of sections: those that a process writes to, and those that it has in memory."""

ADDRESS_64, ADDRESS_BYTES = 1, 8
"""The kind of relocation of x86-64 that is an address, and its size."""


class Section(NamedTuple):
    """A line of the table of sections; sizes and places in bytes."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Symbol(NamedTuple):
    """A name, the number of the section that has it, 0 for none, and where in that."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """A place in a section that wants the address of a symbol, the number of one, plus an addend."""

    offset: int
    kind: int
    symbol: int
    addend: int


def is_elf(object_code: bytes) -> bool:
    """Whether it begins like such an object."""
    return object_code[:6] == b"\x7fELF\x02\x01"


def sections(object_code: bytes) -> list[Section]:
    """The table of sections.

    Raises:
        struct.error: it leads out of the object.
    """
    (table,) = struct.unpack_from("<Q", object_code, 0x28)
    size, count = struct.unpack_from("<HH", object_code, 0x3A)
    lines = (struct.unpack_from("<IIQQQQIIQQ", object_code, table + k * size) for k in range(count))
    return [Section(*line) for line in lines]


def symbols(object_code: bytes, table: Section, names: Section) -> list[Symbol]:
    """The symbols of a section that is a table of them, the empty one at the beginning included.

    Raises:
        struct.error, ValueError: it leads out of the object.
    """
    found = []
    for at in range(table.offset, table.offset + table.size, table.entry_size):
        name, _, _, section, value = struct.unpack_from("<IBBHQ", object_code, at)
        begin = names.offset + name
        found.append(Symbol(object_code[begin : object_code.index(b"\0", begin)].decode(), section, value))
    return found


def relocations(object_code: bytes, table: Section) -> list[Relocation]:
    """The relocations of a section that is a table of them.

    Raises:
        struct.error, ValueError: it leads out of the object.
    """
    found = []
    for at in range(table.offset, table.offset + table.size, table.entry_size):
        offset, kind, symbol, addend = struct.unpack_from("<QIIq", object_code, at)
        found.append(Relocation(offset, kind, symbol, addend))
    return found
