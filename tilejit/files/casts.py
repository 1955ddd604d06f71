"""Conversions of a file's elements: NumPy's warnings, once for a tensor, and counts of what was lost."""

from __future__ import annotations

from dataclasses import field, fields
from functools import cache
from math import frexp, prod
from typing import Any

import numpy as np

from codegen import compiler_lock, dataclass
from tilejit.arrays import float_status
from tilejit.arrays.memory import Array
from tilejit.arrays.values import check_range, is_byte
from tilejit.copies.convert import pack
from tilejit.files.tensor_file import row_major
from tilejit.layout.dtypes import PrimitiveType, lookup
from tilejit.programs.tuning import Casting, casting_error, may_cast

COUNTED = 1 << 16
"""Elements whose losses are counted at a time, so that temporary arrays stay in cache."""


@dataclass(slots=True)
class Losses:
    """How many values of a tensor a cast has changed by more than rounding; each counts once.

    Attributes:
        values: the values that were converted.
        nan: those that became NaN.
        inf: finite ones that became infinite.
        overflowed: those outside the new dtype's range that became another number.
        zero: those other than 0 that became 0.
        imaginary: others that lost an imaginary part.
    """

    values: int = 0
    nan: int = 0
    inf: int = 0
    overflowed: int = 0
    zero: int = 0
    imaginary: int = 0

    @property
    def total(self) -> int:
        """The number of values that changed by more than rounding."""
        return self.nan + self.inf + self.overflowed + self.zero + self.imaginary

    def __add__(self, other: Losses) -> Losses:
        return Losses(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))


@dataclass(slots=True, eq=False)
class Cast:
    """The conversion of one tensor's elements to another dtype, piece by piece.

    Attributes:
        have: the name of the element type before.
        want: the name after.
        casting: NumPy's rule for conversions.
        losses: what the pieces since `start` have lost.
    """

    have: str
    want: str
    casting: Casting
    losses: Losses = field(default_factory=Losses)
    _reports: float_status.Casts = field(default_factory=float_status.Casts, repr=False)

    def check(self) -> None:
        """Raise if the rule forbids the conversion.

        Raises:
            LayoutError: it does; the message names both dtypes.
        """
        have, want = (lookup(name).numpy for name in (self.have, self.want))
        assert have is not None
        assert want is not None
        if not may_cast(have, want, self.casting):
            raise casting_error(have, want, self.casting, f"it is {self.have}, but becomes {self.want}")

    def start(self) -> None:
        """Forget what earlier pieces have lost."""
        self.losses = Losses()

    def __call__(self, values: Array, threads: int | None) -> Array:
        """Convert some elements, and count what is lost."""
        native = values.astype(values.dtype.newbyteorder("="), copy=False).reshape(-1)
        flat, element = row_major(self.want, (prod(values.shape),)), lookup(self.want)
        if element.byte_dtype is not None and is_byte(native.dtype):
            check_range(native, element, located=False)  # pack would count from the start of this piece
        with self._reports:
            made = pack(native, flat, casting=self.casting, threads=threads).buffer
        for part in (slice(k, k + COUNTED) for k in range(0, native.size, COUNTED)):
            self.losses += lost(native[part], made[part], element)
        return made.reshape(values.shape)

    def finish(self) -> None:
        """Warn or raise once for all pieces, as NumPy does after a cast."""
        self._reports.react()


def lost(before: Array, after: Array, element: PrimitiveType) -> Losses:
    """Count what a cast to an element type has lost.

    [1e9, nan, 0.25, 7] to s8, which became [0, 0, 0, 7] -> zero 3    [1e9, 7] to f16, [inf, 7] -> inf 1

    A complex number whose parts differ in their losses counts for one of them: nan, inf, overflowed, zero,
    then imaginary.
    """
    found = Losses(values=int(before.size))
    parts, imaginary = 1, None
    if before.dtype.kind == "c" and after.dtype.kind == "c":
        parts = 2
        before, after = (x.view(x.real.dtype) for x in (before, after))
    elif before.dtype.kind == "c" and element.kind != "pred":
        imaginary = before.imag != 0
        before = before.real
    values, (low, high, least) = _widened(before), _limits(element)
    with np.errstate(all="ignore"):
        held = (values > low) & (values < high) & ((np.abs(values) >= least) | (values == 0))
        if held.all():
            found.imaginary = 0 if imaginary is None else int(np.count_nonzero(imaginary))
            return found
        odd, became = (_widened(x)[~held].astype(np.float64) for x in (before, after))
        nan = np.isnan(became) & ~np.isnan(odd)
        inf = np.isinf(became) & np.isfinite(odd)
        zero = (became == 0) & (odd != 0)
        outside = ~((odd > low) & (odd < high)) & (became != odd) & ~np.isnan(became) & ~inf & ~zero
    where, counted = np.flatnonzero(~held) // parts, np.zeros(found.values, np.bool_)
    found.nan, found.inf, found.overflowed, found.zero = (
        _count_new(where[mask], counted) for mask in (nan, inf, outside, zero)
    )
    found.imaginary = 0 if imaginary is None else _count_new(np.flatnonzero(imaginary), counted)
    return found


def _count_new(indices: Array, counted: Array) -> int:
    """The number of values that are not counted yet; they are from now on."""
    before = int(np.count_nonzero(counted))
    counted[indices] = True
    return int(np.count_nonzero(counted)) - before


def _widened(values: Array) -> Array:
    """The values in a dtype that NumPy compares fast: its own integers, float32 or float64."""
    dtype = values.dtype
    is_wide = dtype.isbuiltin == 1 and (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize >= 4))
    return values if is_wide else values.astype(np.float32)


@cache
def _limits(element: PrimitiveType) -> tuple[float, float, float]:
    """The limits between which values become a number near them, and the least that does not become 0.

    s8 -> (-129, 128, 1)    f16 -> (-65520, 65520, 2^-24)
    """
    if element.integer_range is not None:
        first, last = element.integer_range
        return first - 1, last + 1, 1
    with compiler_lock:
        import ml_dtypes
    facts: Any = ml_dtypes.finfo(np.zeros((), element.numpy).real.dtype)  # type: ignore[no-untyped-call]
    most = float(facts.max)
    high = most + float(facts.eps) * 2.0 ** (frexp(most)[1] - 2)  # half of the distance to the next number
    return (-high if float(facts.min) < 0 else 0.0), high, float(facts.smallest_subnormal)
