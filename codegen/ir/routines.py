"""The names of the routines that kernels call, and their meanings.

The emitter asks `name_of` for a name, and `simd/` asks `routine_named` what to bind to it. Instructions have
the names of their declarations.

    D is an element type, H bf16 or f16. DxN has N lanes; DxRxN, a block, has R rows of N lanes.

    load_DxN(address)                    store_DxN(address, v)
    load_DxN_first(address, count)       store_DxN_first(address, v, count)
    strided_load_DxN(address, step_bytes)        strided_store_DxN(address, step_bytes, v)
    strided_load_DxN_first(…, count)             strided_store_DxN_first(…, count)
    gather_DxN(address, offsets_bytes)           gather_DxN_first(…, count): an offset for each lane
    scatter_DxN(address, offsets_bytes, v)       scatter_DxN_first(…, count), scatter_DxN_where(…, mask)
    store_DxN_where(address, v, mask)            strided_store_DxN_where(address, step_bytes, v, mask)
    load_H_as_f32xN, strided_load_…, gather_…    store_f32xN_as_H, strided_store_…, with _first and _where
    stream_DxN(address, v)               stream_f32xN_as_H: non-temporal, at multiples of a line
    prefetch_DxN(address)                requests for the lines
    load_DxRxN(address, pitch_bytes)     R rows a pitch apart; strided_… take the step of lanes after it
    load_DxRxN_each(address, pitch)      the same, with each address computed from the first one
    load_DxRxN_at(address, table)        the same, row k being `table[k]` bytes from the address
    load_DxRxN_at_low(address, table)    the same, by the low (or high) 32 bits of `table[k]`, unsigned
    store_DxRxN(address, pitch, v)       the same for stores, streams and prefetches
    store_DxRxN_first(…, v, rows)        only the first rows, fewer than all: store_DxRxN_first_at(…)
    store_DxRxN_where(…, v, mask)        only the lanes where a block of masks is set
    stream_DxRxN_carried(…, v, before)   rows of a line that begin anywhere in one: see `Store.carry`
    splat_DxN(number), cast_DxN(v)       the same for blocks: splat_DxRxN, cast_DxRxN
    repeated_DxRxN(v)                    a vector in each row
    iota_DxN(), first_N(count)
    read_D_at(address, offset)           write_D_at(address, offset, number): single numbers
    as_D(number), shl_D(a, b), shr_D(a, b)
    load_D_at(base, offset)              store_D_at(base, offset, bits): elements of copies, u1 to u64
    move_D_at(to, to_offset, from, from_offset)
    arguments_3(sizes), addresses_3(operands)    the first numbers of a table
    stack_3072()                         the address of as many bytes on the stack, on a line
"""

from __future__ import annotations

import re

from codegen.ir.access_families import ACCESSES, COMPUTED, PLACES, VECTOR_ACCESSES, AccessFamily
from codegen.ir.blocks import BLOCK_SIDES
from codegen.ir.element_types import HALF_TYPES
from codegen.ir.families import EVERY, FAMILIES, INTEGERS, LANES, OWN_OF_F16, ROUNDINGS
from codegen.ir.instructions import is_instruction
from codegen.ir.values import VectorShape
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

MADE = {family.routine: family for family in FAMILIES.values() if family.named_by == "dtype"}
"""Routines that make a vector of a type, without access to memory."""

NUMBERS = ("as", "shl", "shr")
"""Operations on single numbers of kernels that compute."""

SIZED = ("arguments", "addresses", "stack")
"""Routines for that many table entries, or bytes on the stack."""

OTHERS = ("int64_at", "opaque", "call_kernel", "answered", "inf", "nan")
"""Routines and numbers without a type."""

UNTYPED = frozenset(
    (
        *(family.routine for family in FAMILIES.values() if not (family.is_operator or family.named_by)),
        *OWN_OF_F16.values(),
        *ROUNDINGS.values(),
        *OTHERS,
    )
)
"""Routines that take every type, whose names are those of their families."""

_LOADS = tuple(each.name for each in VECTOR_ACCESSES if each.reads)


@dataclass(frozen=True, slots=True)
class Routine:
    """What kernels call: a family, and the element type and the shape that the routine is for.

    family  the first word of the name, or all of it if one routine takes every type
    dtype   the element type in memory or of the result; "" if the routine takes every type
    shape   the lanes of a vector, or the rows and lanes of a block; () for single numbers, and if the routine
            takes every vector; a number of lanes, entries or bytes for a routine without a type
    form    "first" or "where" for accesses to some of the lanes, "carried" for lines that rows complete
    place   the positions of a block's rows, one of PLACES; "at" for elements at a base and an offset
    """

    family: str
    dtype: str = ""
    shape: VectorShape = ()
    form: str = ""
    place: str = ""

    @property
    def name(self) -> str:
        """The name in source."""
        shape = "x".join(map(str, self.shape))
        kind = "x".join(filter(None, (self.dtype, shape)))
        if self.shape and self.dtype in HALF_TYPES:
            loads = self.family in _LOADS
            kind = f"{self.dtype}_as_f32x{shape}" if loads else f"f32x{shape}_as_{self.dtype}"
        return "_".join(filter(None, (self.family, kind, self.form, self.place)))

    @property
    def access(self) -> AccessFamily | None:
        """The family of an access; None for another routine, or if there is no such access."""
        places = PLACES if len(self.shape) > 1 else ("",) if self.shape else ("at",)
        for each in ACCESSES:
            if each.name == self.family and each.takes(self.dtype, self.shape, self.form):
                return each if self.place in places else None
        return None

    @property
    def exists(self) -> bool:
        """Whether it is declared."""
        if self.access is not None:
            return True
        if self.form or self.place:
            return False
        match self:
            case Routine(family, "", ()):
                return family in UNTYPED
            case Routine(family, "", (count,)):
                return count in LANES if family == "first" else family in SIZED and count > 0
            case Routine(family, dtype, ()):
                return family in NUMBERS and dtype in (COMPUTED if family == "as" else INTEGERS)
        made = MADE.get(self.family)
        if made is None or self.dtype not in EVERY or self.dtype not in (made.results or made.dtypes):
            return False
        if len(self.shape) == 1:
            return self.shape[0] in LANES and made.rows != "must"
        rows, lanes = self.shape
        return bool(made.rows) and rows == lanes and lanes in BLOCK_SIDES


def name_of(family: str, dtype: str = "", shape: VectorShape = (), form: str = "", place: str = "") -> str:
    """The name of a declared routine.

    "load", "f32", (16,), "first" -> load_f32x16_first

    Raises:
        KernelError: the routine does not exist.
    """
    routine = Routine(family, dtype, shape, form, place)
    if not routine.exists:
        raise KernelError(f"the routine {routine.name} does not exist")
    return routine.name


_NAME = re.compile(
    r"(?P<family>[a-z_]+?)_(?:(?P<loaded>b?f16)_as_)?(?P<dtype>[a-z]+\d+)??x?(?P<shape>\d*(?:x\d+)*)"
    r"(?:_as_(?P<stored>b?f16))?(?:_(?P<form>first|where|carried))?(?:_(?P<place>each|at_low|at_high|at))?"
)


def routine_named(name: str) -> Routine | None:
    """The meaning of a name in source; None if it is not a routine's."""
    if name in UNTYPED:
        return Routine(name)
    parts = _NAME.fullmatch(name)
    if parts is None:
        return None
    shape = tuple(int(extent) for extent in parts["shape"].split("x") if extent)
    dtype = parts["loaded"] or parts["stored"] or parts["dtype"] or ""
    found = Routine(parts["family"], dtype, shape, parts["form"] or "", parts["place"] or "")
    return found if found.exists and found.name == name else None


def is_routine(name: str) -> bool:
    """Whether kernels call, or could call, something by this name."""
    return is_instruction(name) or routine_named(name) is not None
