"""The names of routines that no table can list: of super-vectors of any shape, and of any number of bytes.

read_u32_16x8(address, pitch)              16 rows of 8 elements, `pitch` bytes apart
read_u32_16x8_each(address, pitch)         the same, with each address computed from the first one
read_u32_16x8_at(address, table)           the same, row k being `table[k]` bytes from the address
read_u8_4x64_at_low(address, table)        the same, by the low (or high) 32 bits of `table[k]`, unsigned
read_u8_64(address)                        one row
write_u32_8x16(address, pitch, value)      the same for stores; stream_… stores lines past the cache
write_first_u8_16x64(address, pitch, value, rows)    only the first rows, fewer than all
prefetch_u32_16x8(address, pitch)          requests for lines
arguments_3(sizes), addresses_3(operands)  the first numbers of a table
stack_3072()                               the address of as many bytes on the stack, on a line
"""

from __future__ import annotations

from codegen.support.dataclasses import dataclass

VERBS = ("read", "write", "stream", "prefetch")
ROWS = ("", "each", "at", "at_low", "at_high")
"""The positions of rows: at a pitch, at a pitch from the first row, or by a table or half of its entries."""

SIZED = ("arguments", "addresses", "stack")


@dataclass(frozen=True, slots=True)
class Access:
    """The load, store or prefetch of a super-vector of elements of `bits` bits.

    rows     0 for a single row, which has neither pitch nor table
    how      one of ROWS
    first    whether it stores only the first rows
    """

    verb: str
    bits: int
    rows: int
    columns: int
    how: str = ""
    first: bool = False

    @property
    def name(self) -> str:
        """The name in source."""
        verb = f"{self.verb}_first" if self.first else self.verb
        shape = f"{self.rows}x{self.columns}" if self.rows else str(self.columns)
        return "_".join((verb, f"u{self.bits}", shape, *((self.how,) if self.how else ())))


@dataclass(frozen=True, slots=True)
class SizedRoutine:
    """A routine for that many table entries, or bytes on the stack: one of SIZED."""

    family: str
    count: int

    @property
    def name(self) -> str:
        """The name in source."""
        return f"{self.family}_{self.count}"


def access_named(name: str) -> Access | SizedRoutine | None:
    """The access with this name; None for any other name."""
    family, *parts = name.split("_")
    if family in SIZED and len(parts) == 1:
        return _same(SizedRoutine(family, _number(parts[0])), name)
    first = parts[:1] == ["first"]
    element, shape, *how = [*parts[first:], "", ""][: max(len(parts) - first, 2)]
    if family not in VERBS or "_".join(how) not in ROWS:
        return None
    rows, _, columns = shape.rpartition("x")
    if first and not rows:  # a single row is stored as a whole
        return None
    bits = _number(element.removeprefix("u"))
    return _same(Access(family, bits, _number(rows), _number(columns), "_".join(how), first), name)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _same(found: Access | SizedRoutine, name: str) -> Access | SizedRoutine | None:
    return found if found.name == name else None
