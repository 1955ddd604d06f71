"""The tables of a 64-bit little-endian ELF object: sections, symbols and relocations."""

from __future__ import annotations

import struct
from typing import NamedTuple

BITS, SYMTAB, RELA, NO_BITS = 1, 2, 4, 8
"""Section types: code and constants, symbols, relocations, and zeros that the object does not contain."""

WRITTEN, IN_MEMORY = 1, 2
"""Section flags: writable, and present in memory."""

ADDRESS_64, ADDRESS_BYTES = 1, 8
"""The x86-64 relocation type of a 64-bit address, and its size."""


class Section(NamedTuple):
    """An entry of the section table; sizes and offsets in bytes."""

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
    """A name, the number of its section (0 if undefined), and its offset in that section."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """An offset in a section that receives the address of a symbol, given by number, plus an addend."""

    offset: int
    kind: int
    symbol: int
    addend: int


def is_elf(object_code: bytes) -> bool:
    """Whether the object begins like 64-bit little-endian ELF."""
    return object_code[:6] == b"\x7fELF\x02\x01"


def sections(object_code: bytes) -> list[Section]:
    """The table of sections.

    Raises:
        struct.error: the table extends beyond the object.
    """
    (table,) = struct.unpack_from("<Q", object_code, 0x28)
    size, count = struct.unpack_from("<HH", object_code, 0x3A)
    entries = (struct.unpack_from("<IIQQQQIIQQ", object_code, table + k * size) for k in range(count))
    return [Section(*entry) for entry in entries]


def symbols(object_code: bytes, table: Section, names: Section) -> list[Symbol]:
    """The symbols of a symbol table section, including the empty first one.

    Raises:
        struct.error, ValueError: the table extends beyond the object.
    """
    found = []
    for at in range(table.offset, table.offset + table.size, table.entry_size):
        name, _, _, section, value = struct.unpack_from("<IBBHQ", object_code, at)
        begin = names.offset + name
        found.append(Symbol(object_code[begin : object_code.index(b"\0", begin)].decode(), section, value))
    return found


def relocations(object_code: bytes, table: Section) -> list[Relocation]:
    """The relocations of a relocation section.

    Raises:
        struct.error, ValueError: the table extends beyond the object.
    """
    found = []
    for at in range(table.offset, table.offset + table.size, table.entry_size):
        offset, kind, symbol, addend = struct.unpack_from("<QIIq", object_code, at)
        found.append(Relocation(offset, kind, symbol, addend))
    return found
