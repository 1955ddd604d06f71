"""The names of the routines that kernels call, and their meanings.

The emitter asks `name_of` for a name, and `simd/` asks `routine_named` what to bind to it: both read
the table of declared routines. Instructions have the names of their declarations.

    D is an element type, N a power of two, H bf16 or f16, W u8 to u512.

    load_DxN(address)                    store_DxN(address, v)
    load_DxN_first(address, count)       store_DxN_first(address, v, count)
    strided_load_DxN(address, step_bytes)        strided_store_DxN(address, step_bytes, v)
    strided_load_DxN_first(…, count)             strided_store_DxN_first(…, count)
    gather_DxN(address, offsets_bytes)           gather_DxN_first(…, count): an offset for each lane
    scatter_DxN(address, offsets_bytes, v)       scatter_DxN_first(…, count), scatter_DxN_where(…, mask)
    store_DxN_where(address, v, mask)            strided_store_DxN_where(address, step_bytes, v, mask)
    load_H_as_f32xN, strided_load_…, gather_…    store_f32xN_as_H, strided_store_…, with _first and _where
    stream_DxN(address, v)               stream_f32xN_as_H: non-temporal, at multiples of a line
    load_DxNxN(address, pitch_bytes)     store_DxNxN(address, pitch_bytes, block): N registers; no `_first`
                                         forms; strided_… take the step of lanes after the pitch
    transposed_DxNxN(block)              repeated_DxNxN(v): a register in each row
    splat_DxN(number), cast_DxN(v)       the same for blocks: splat_DxNxN, cast_DxNxN
    iota_DxN(), first_N(count)
    read_D_at(address, offset)           write_D_at(address, offset, number): single numbers
    as_D(number), shl_D(a, b), shr_D(a, b)
    load_W_at(base, offset)              store_W_at(base, offset, bits): elements of copies
    move_W_at(to, to_offset, from, from_offset)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from codegen.ir.access_families import ACCESSES, COMPUTED, REGISTER_ACCESSES
from codegen.ir.accesses import Access, SizedRoutine, access_named
from codegen.ir.element_types import HALF_TYPES
from codegen.ir.families import BLOCK_SIDES, EVERY, FAMILIES, INTEGERS, LANES, OWN_OF_F16, ROUNDINGS
from codegen.ir.instructions import is_instruction
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

_LOADS = tuple(each.name for each in REGISTER_ACCESSES if each.reads)

MADE = {family.routine: family for family in FAMILIES.values() if family.named_by == "dtype"}
"""Routines that make a register of a type, without access to memory."""


@dataclass(frozen=True, slots=True)
class Routine:
    """What kernels call: a family, and the element type and the lanes that the routine is for.

    family  the first word of the name, or all of it if one routine takes every type
    dtype   the element type in memory or of the result; "" if the routine takes every type
    lanes   lanes of the register; 0 for single numbers, and if the routine takes every register
    which   "first" or "where" for accesses to some of the lanes, "at" for elements at a base and an offset
    rows    the registers of a block; 0 for a single one
    """

    family: str
    dtype: str = ""
    lanes: int = 0
    which: str = ""
    rows: int = 0

    @property
    def name(self) -> str:
        """The name in source."""
        suffix = f"_{self.which}" if self.which else ""
        if not self.dtype:
            return f"{self.family}_{self.lanes}" if self.lanes else f"{self.family}{suffix}"
        if not self.lanes:
            return f"{self.family}_{self.dtype}{suffix}"
        shape = f"{self.lanes}x{self.rows}" if self.rows else str(self.lanes)
        if self.dtype not in HALF_TYPES:
            return f"{self.family}_{self.dtype}x{shape}{suffix}"
        if self.family in _LOADS:
            return f"{self.family}_{self.dtype}_as_f32x{shape}{suffix}"
        return f"{self.family}_f32x{shape}_as_{self.dtype}{suffix}"


def name_of(family: str, dtype: str = "", lanes: int = 0, which: str = "", rows: int = 0) -> str:
    """The name of a declared routine.

    "load", "f32", 16, "first" -> load_f32x16_first

    Raises:
        KernelError: the routine does not exist.
    """
    routine = Routine(family, dtype, lanes, which, rows)
    if routine not in _declared(dtype, lanes):
        raise KernelError(f"the routine {routine.name} does not exist")
    return routine.name


@cache
def routines() -> Mapping[str, Routine]:
    """All declared routines, by name."""
    types = dict.fromkeys(("", *COMPUTED, *(dtype for family in ACCESSES for dtype in family.dtypes)))
    found = (_declared(dtype, lanes) for dtype in types for lanes in (0, *LANES))
    return MappingProxyType({routine.name: routine for each in found for routine in each})


@cache
def _declared(dtype: str, lanes: int) -> frozenset[Routine]:
    """The routines of an element type and a number of lanes."""
    if dtype:
        made = _registers(dtype, lanes) if lanes in LANES else () if lanes else _numbers(dtype)
        return frozenset((*_accesses(dtype, lanes), *made))
    if lanes:
        return frozenset((Routine("first", "", lanes),) if lanes in LANES else ())
    return frozenset(map(Routine, (*_COMPUTING, *OTHERS)))


_COMPUTING = (
    *(family.routine for family in FAMILIES.values() if not (family.is_operator or family.named_by)),
    *OWN_OF_F16.values(),
    *ROUNDINGS.values(),
)

OTHERS = ("int64_at", "opaque", "call_kernel", "answered", "inf", "nan")
"""Routines and numbers without a type."""


NUMBERS = ("as", "shl", "shr")
"""Operations on single numbers of kernels that compute."""


def _numbers(dtype: str) -> Iterator[Routine]:
    if dtype not in COMPUTED:
        return
    yield Routine("as", dtype)
    if dtype in INTEGERS:
        yield Routine("shl", dtype)
        yield Routine("shr", dtype)


def _registers(dtype: str, lanes: int) -> Iterator[Routine]:
    for name, family in MADE.items() if dtype in EVERY else ():
        if dtype not in (family.results or family.dtypes):
            continue
        if family.rows != "must":
            yield Routine(name, dtype, lanes)
        if family.rows and lanes in BLOCK_SIDES:
            yield Routine(name, dtype, lanes, rows=lanes)


def _accesses(dtype: str, lanes: int) -> Iterator[Routine]:
    for family in ACCESSES:
        if family.takes(dtype, lanes):
            yield from (Routine(family.name, dtype, lanes, form) for form in family.forms)
            if lanes in BLOCK_SIDES:
                yield from (Routine(family.name, dtype, lanes, form, lanes) for form in family.block_forms)


_FIRST_WORDS = frozenset(
    name.partition("_")[0]
    for name in (*_COMPUTING, *OTHERS, *MADE, *NUMBERS, "first", *(each.name for each in ACCESSES))
)


def routine_named(name: str) -> Routine | Access | SizedRoutine | None:
    """The meaning of a name in source; None if it is neither a routine's nor an instruction's."""
    listed = routines().get(name) if name.partition("_")[0] in _FIRST_WORDS else None
    return listed or access_named(name)


def is_routine(name: str) -> bool:
    """Whether kernels call, or could call, something by this name."""
    return is_instruction(name) or routine_named(name) is not None
