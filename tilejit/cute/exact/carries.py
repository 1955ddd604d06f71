"""Compositions whose modes carry from digit to digit of A, decided by theory or by comparing values.

Write A's argument in the mixed radix of A's coalesced sizes, the last digit unbounded. A is linear as long as
nothing carries. A single carry out of digit i changes the sum by d[i+1] - s[i]*d[i], which is not 0 because A
is coalesced. Several carries may cancel, so those compositions are decided by comparing values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass, shown
from tilejit.cute.int_tuple import IntTuple, flatten, unflatten
from tilejit.cute.layout import Layout, trusted
from tilejit.cute.witness import NoLayoutError, Witness
from tilejit.support.tokens import named

LIMIT = 1 << 23
"""The most values to compare."""

OBJECT_LIMIT = 1 << 16
"""The same, if values exceed 64 bits and Python integers are compared."""

FIRST_WINDOW = 1 << 12
SAFE = 1 << 61
"""Sums of numbers below it fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class MixedRadix:
    """A layout as a function of an integer: sizes and strides of its digits, the last one unbounded.

    (4,(1,8)):(1,(7,100)) -> sizes [4], steps [1, 100]; weights [1, 4]
    """

    sizes: Sequence[int]
    steps: Sequence[int]

    @staticmethod
    def of(layout: Layout) -> MixedRadix:
        """The digits of a layout; a last size of 1 counts, because that digit is unbounded."""
        sizes: list[int] = []
        steps: list[int] = []
        shape, stride = flatten(layout.shape), flatten(layout.stride)
        final = len(shape) - 1
        for place, size in enumerate(shape):
            step = stride[place]
            if size == 1 and place < final:
                continue
            if steps and step == sizes[-1] * steps[-1]:
                sizes[-1] *= size
            else:
                sizes.append(size)
                steps.append(step)
        if not sizes:
            return MixedRadix([], [0])
        sizes.pop()
        return MixedRadix(sizes, steps)

    @property
    def last(self) -> int:
        """The position of the unbounded digit."""
        return len(self.sizes)

    def split(self, number: int) -> list[int]:
        """The digits of an integer."""
        out = []
        for size in self.sizes:
            number, digit = divmod(number, size)
            out.append(digit)
        return [*out, number]

    def value(self, number: int) -> int:
        """A at a nonnegative integer."""
        return sum(digit * step for digit, step in zip(self.split(number), self.steps, strict=True))

    def values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """A at many integers."""
        out = np.zeros_like(numbers)
        for size, step in zip(self.sizes, self.steps, strict=False):
            out += numbers % size * step
            numbers = numbers // size
        out += numbers * self.steps[-1]
        return out

    def period(self, step: int) -> int:
        """The number of steps after which all digits of A except the last repeat."""
        whole = prod(self.sizes)
        return whole // gcd(whole, step)


@dataclass(frozen=True, slots=True)
class LinearPiece:
    """A part n:e of B on which A is linear: A(e*c) = c*step. `scale` counts the indices of B per step."""

    size: int
    stride: int
    step: int
    scale: int


def compose_with_carries(digits: MixedRadix, a: Layout, b: Layout) -> Layout:
    """Compose A after B, or raise an error with a witness; see `composition`."""
    fail = _Refusal(a, b)
    if 0 in flatten(b.shape):
        return trusted(b.shape, unflatten(iter([0] * len(flatten(b.shape))), b.shape))
    if 0 in flatten(a.shape):
        raise NoLayoutError(
            f"{fail.call} is undefined, because A has no elements\n  use a layout with elements"
        )
    pieces: list[list[LinearPiece]] = []
    scale = 1
    for n, e in zip(flatten(b.shape), flatten(b.stride), strict=True):
        if n > 1 and e < 0:
            raise fail.negative(scale, e)
        pieces.append(_linear_pieces(digits, n, e, scale, fail))
        scale *= n
    _check_sum(digits, [piece for mode in pieces for piece in mode], fail)
    shapes = [_nested([piece.size for piece in mode]) for mode in pieces]
    strides = [_nested([piece.step for piece in mode]) for mode in pieces]
    return trusted(unflatten(iter(shapes), b.shape), unflatten(iter(strides), b.shape))


def _nested(parts: Sequence[int]) -> IntTuple:
    """One integer as it is, several as a tuple."""
    return parts[0] if len(parts) == 1 else tuple(parts)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The errors of one composition."""

    a: Layout
    b: Layout

    @property
    def call(self) -> str:
        return f"{named(self.a)} o {named(self.b)}"

    def no_layout(self, index: int, value: int, expected: int) -> LayoutError:
        witness = Witness(index, value, expected)
        return NoLayoutError(
            f"{self.call} is not a layout: {witness}\n  keep it as ComposedLayout(A, 0, B), or change B",
            witness,
        )

    def negative(self, index: int, place: int) -> LayoutError:
        return NoLayoutError(
            f"{self.call} is not a layout: index {shown(index)} maps to {shown(place)}, before A's first "
            "element\n"
            "  use nonnegative strides in B",
            Witness(index, place, None),
        )

    def undecided(self) -> LayoutError:
        return LayoutError(
            f"{self.call}: deciding this takes more than {LIMIT} comparisons\n"
            "  compose smaller modes, or keep it as ComposedLayout(A, 0, B)"
        )


def _linear_pieces(digits: MixedRadix, n: int, e: int, scale: int, fail: _Refusal) -> list[LinearPiece]:
    """The mode n:e of B, cut where A stops being linear; the cuts are unique."""
    if n <= 1 or e == 0:
        return [LinearPiece(n, 0, 0, scale)]
    out: list[LinearPiece] = []
    while n > 1:
        step = digits.value(e)
        run = _linear_run(digits, n, e, step, fail)
        if n % run:
            raise fail.no_layout(run * scale, digits.value(run * e), run * step)
        out.append(LinearPiece(run, e, step, scale))
        n, e, scale = n // run, e * run, scale * run
    return out


def _linear_run(digits: MixedRadix, n: int, e: int, step: int, fail: _Refusal) -> int:
    """The first c at which A(e*c) is not c * step, or n if there is none below it."""
    parts = digits.split(e)
    carries = [-(-size // part) for size, part in zip(digits.sizes, parts, strict=False) if part]
    run = min(carries, default=n)
    if run >= n:
        return n
    if digits.value(run * e) != run * step:
        return run
    end = min(n - 1, digits.period(e))
    for begin, stop in _windows(run + 1, end + 1, fail):
        count = _integers(begin, stop, (stop - 1) * e, digits)
        if count.dtype == object and begin - run > OBJECT_LIMIT:
            raise fail.undecided()
        faults = np.flatnonzero(digits.values(count * e) != count * step)
        if faults.size:
            return begin + int(faults[0])
    return n


def _check_sum(digits: MixedRadix, pieces: list[LinearPiece], fail: _Refusal) -> None:
    """Raise unless A of a sum over the pieces equals the sum of A."""
    moving = [piece for piece in pieces if piece.size > 1 and piece.stride]
    used = [0] * digits.last
    for piece in moving:
        for place, digit in enumerate(digits.split(piece.stride)[:-1]):
            used[place] += (piece.size - 1) * digit
    full = [place for place, size in enumerate(digits.sizes) if used[place] >= size]
    if not full:
        return
    domain = [min(piece.size, digits.period(piece.stride)) for piece in moving]
    try:
        _compare(digits, moving, domain, fail)
    except _TooLargeError:
        _compare_one(digits, moving, full[0], fail)
        raise fail.undecided() from None


class _TooLargeError(Exception):
    """More values than the limit would have to be compared."""


def _compare(digits: MixedRadix, pieces: list[LinearPiece], domain: list[int], fail: _Refusal) -> None:
    """Compare A of the sum with the sum of A, in index order."""
    total = prod(domain)
    top = sum((size - 1) * piece.stride for size, piece in zip(domain, pieces, strict=True))
    for begin, stop in _windows(0, min(total, LIMIT), fail):
        number = _integers(begin, stop, top, digits)
        if number.dtype == object and begin > OBJECT_LIMIT:
            raise _TooLargeError
        place, expected, index = np.zeros_like(number), np.zeros_like(number), np.zeros_like(number)
        for size, piece in zip(domain, pieces, strict=True):
            count = number % size
            number = number // size
            place += count * piece.stride
            expected += count * piece.step
            index += count * piece.scale
        value = digits.values(place)
        faults = np.flatnonzero(value != expected)
        if faults.size:
            at = faults[0]
            raise fail.no_layout(int(index[at]), int(value[at]), int(expected[at]))
    if total > LIMIT:
        raise _TooLargeError


def _compare_one(digits: MixedRadix, pieces: list[LinearPiece], place: int, fail: _Refusal) -> None:
    """Compare the smallest sum that carries out of one digit; it is nearly always a witness."""
    touching = [(piece, digits.split(piece.stride)[place]) for piece in pieces]
    index = total = where = expected = 0
    for piece, digit in sorted((t for t in touching if t[1]), key=lambda t: -t[1]):
        count = min(piece.size - 1, -(-(digits.sizes[place] - total) // digit))
        total += count * digit
        index += count * piece.scale
        where += count * piece.stride
        expected += count * piece.step
        if total >= digits.sizes[place]:
            break
    value = digits.value(where)
    if value != expected:
        raise fail.no_layout(index, value, expected)


def _windows(begin: int, end: int, fail: _Refusal) -> Iterator[tuple[int, int]]:
    """Growing ranges, so that an early witness is cheap; raises beyond the limit."""
    length = FIRST_WINDOW
    first = begin
    while begin < end:
        if begin - first >= LIMIT:
            raise fail.undecided()
        yield begin, min(begin + length, end)
        begin, length = begin + length, min(4 * length, 1 << 20)


def _integers(begin: int, stop: int, top: int, digits: MixedRadix) -> NDArray[Any]:
    """The integers from begin to stop - 1, as Python integers if products exceed 64 bits."""
    widest = max(map(abs, (*digits.steps, *digits.sizes)), default=1)
    small = stop < SAFE and (abs(top) + 1) * max(1, widest) * (digits.last + 1) < SAFE
    return np.arange(begin, stop, dtype=np.int64) if small else np.array(range(begin, stop), dtype=object)
