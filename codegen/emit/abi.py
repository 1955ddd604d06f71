"""The signature of all kernels, and the lines that read their tables.

A kernel is `kernel(operands, scratch, sizes, begin, end)`:

operands    the address of a table of addresses, in the order of `Function.operands`
scratch     the line-aligned address of this thread's scratch; 0 for a kernel without scratch
sizes       the address of a read-only table of 64-bit arguments that all threads share
begin, end  the range of its parallel loop
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from codegen.ir.names import LINE_LENGTH
from codegen.ir.routines import name_of

KERNEL_ARGUMENTS = ("operands", "scratch", "sizes", "begin", "end")


def kernel_head(name: str) -> str:
    """The first line of a kernel, which opens its body."""
    return f"def {name}({', '.join(KERNEL_ARGUMENTS)}):"


def operand_lines(names: Sequence[str], used: set[str]) -> list[str]:
    """The statement that reads the table of operands: src, dst = addresses_2(operands)."""
    return _unpacked(names, used, "addresses", "operands")


def argument_lines(names: Sequence[str], used: set[str]) -> list[str]:
    """The statement that reads the table of arguments: rows, columns = arguments_2(sizes)."""
    return _unpacked(names, used, "arguments", "sizes")


def _unpacked(names: Sequence[str], used: set[str], what: str, table: str) -> list[str]:
    """One statement that names all entries of a table; unused ones are called `_`."""
    names = [name if name in used else "_" for name in names]
    if not used.intersection(names):
        return []
    routine = name_of(what, shape=(len(names),))
    line = f"{', '.join(names)}{',' if len(names) == 1 else ''} = {routine}({table})"
    if len(line) <= LINE_LENGTH - 4:
        return [line]
    inside = wrap(f"{', '.join(names)},", LINE_LENGTH - 8)
    return ["(", *(f"    {x}" for x in inside), f") = {routine}({table})"]
