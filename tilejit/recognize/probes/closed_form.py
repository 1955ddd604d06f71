"""Fit a layout to a table of slots: digits with strides of either sign, a first offset, an XOR swizzle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.cute.construct import LayoutRight
from tilejit.cute.digits import Chain, Digit, Mode, digits_of
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.tables import axis_table, layout_of, table_chain
from tilejit.cute.witness import Witness
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import PrimitiveType

SAMPLES = 4096
"""Elements of a table in which a swizzle is tried before all elements are compared."""
LINE = 1024
"""Elements along an axis in which a swizzle is tried."""

Table = NDArray[np.int32]


class ClosedForm(NamedTuple):
    """A table as a sum of digits, one chain for each dimension, with a first offset and a swizzle.

    slot = swizzle(first + sum of digits)

    Attributes:
        chains: the digits of each dimension.
        first: the slot of the first element, before the swizzle.
        swizzle: Sw<0,0,0> if there is none.
        flat: whether the only chain counts the number of the element in C order.
    """

    chains: tuple[Chain, ...]
    first: int
    swizzle: Swizzle
    flat: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether digits with positive strides suffice."""
        strides = [mode.stride for chain in self.chains for mode in chain]
        return not (self.first or self.swizzle.bits or self.flat) and min(strides, default=1) > 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer that holds an array.

    Attributes:
        element: the element type.
        dims: the dimensions of the array.
        width: the bits of a slot.
        size_bytes: the size of the buffer.
    """

    element: PrimitiveType
    dims: tuple[int, ...]
    width: int
    size_bytes: int

    @property
    def slots(self) -> int:
        """The number of complete slots."""
        return self.size_bytes * 8 // self.width

    @property
    def packed_bits(self) -> int:
        """The element_size_in_bits of its layouts."""
        return self.width if self.width < 8 else 0

    def fits(self, spec: Spec) -> bool:
        """Whether a layout is one of buffers of this size."""
        return -(-spec.physical_size * self.width // 8) == self.size_bytes


def closed_forms(table: Table) -> Iterator[ClosedForm]:
    """Sums of digits that are a table of slots: without a swizzle, or with ones of increasing size.

    [[1, 0, 3, 2], [5, 4, 7, 6]] -> chains ((2, 4),), ((2, -1), (2, 2)), first slot 1

    Args:
        table: the slot of each element, with an axis for each dimension; no slot occurs twice.
    """
    for view in (table, table.reshape(-1))[: 1 + (table.ndim > 1)]:
        chains = _chains(view)
        if not isinstance(chains, Witness):
            yield ClosedForm(chains, _first(view), Swizzle(0, 0, 0), view is not table)
            return
        for swizzle in _swizzles(view):
            swizzled = swizzle(view)  # every swizzle is its own inverse
            chains = _chains(swizzled)
            if not isinstance(chains, Witness):
                yield ClosedForm(chains, _first(swizzled), swizzle, view is not table)


def contradiction(table: Table) -> Witness | None:
    """The first index in C order that contradicts digits, without a swizzle; None if there is none."""
    found = _chains(table)
    return found if isinstance(found, Witness) else None


def cute_shape(form: ClosedForm, buffer: Buffer) -> CuteShape | None:
    """The form as a CuTe layout of a buffer; None if its offsets cannot be those of a buffer.

    Modes are larger than their dimensions where that accounts for all padding. Otherwise, the slots past the
    last element belong to an excess digit of the last dimension, which no index reaches. If a swizzle
    prevents that, the layout ends before the buffer does.
    """
    shorter: CuteShape | None = None
    for chains in _boxes(form, buffer):
        layout: Any = layout_of(chains)
        if form.flat:
            layout = ComposedLayout(layout[0], 0, LayoutRight(buffer.dims))
        if form.first or form.swizzle.bits or form.flat:
            layout = ComposedLayout(form.swizzle, form.first, layout)
        try:
            shape = CuteShape(buffer.element.name, buffer.dims, layout, buffer.packed_bits)
        except LayoutError:  # a digit with a negative stride passes the start of the buffer
            continue
        if buffer.fits(shape):
            return shape
        if shorter is None and shape.physical_size < buffer.slots:
            shorter = shape
    return shorter


def rooms_of(digits: list[Digit], slots: int) -> dict[Digit, int] | None:
    """The extent of each digit in memory; None if they leave holes that are not padding of a dimension.

    Digits of strides 1, 12, with 120 slots -> 12, 10

    Args:
        digits: the digits of all dimensions, in ascending order of their strides.
        slots: the size of the buffer.
    """
    rooms: dict[Digit, int] = {}
    reach = 1
    for k, digit in enumerate(digits):
        above = digits[k + 1].stride if k + 1 < len(digits) else slots
        last = all(other.weight <= digit.weight for other in digits if other.dim == digit.dim)
        if digit.stride != reach or above % reach or above // reach < digit.size:
            return None
        rooms[digit] = above // reach
        if rooms[digit] > digit.size and not last:
            return None
        reach = above
    return rooms if reach == slots else None


def _boxes(form: ClosedForm, buffer: Buffer) -> Iterator[tuple[Chain, ...]]:
    """The chains of larger modes that have the same offsets within the array, in the order of preference."""
    digits = (
        sorted(digits_of(form.chains, buffer.dims), key=lambda digit: digit.stride) if not form.flat else []
    )
    rooms = rooms_of(digits, buffer.slots) if form.is_plain else None
    if rooms is not None:
        chains = []
        for dim, chain in enumerate(form.chains):
            own = sorted((digit for digit in digits if digit.dim == dim), key=lambda digit: digit.weight)
            chains.append(tuple(Mode(rooms[digit], digit.stride) for digit in own) or chain)
        yield tuple(chains)
    yield form.chains
    top = form.first + sum(
        (size - 1) * stride for chain in form.chains for size, stride in chain if stride > 0
    )
    if form.chains and buffer.slots - 1 > top:
        yield (*form.chains[:-1], (*form.chains[-1], Mode(buffer.slots - top, 1)))


def _chains(table: Table) -> tuple[Chain, ...] | Witness:
    """The chains of a table, or the first index that breaks them; its first slot may be any."""
    breaks: list[Witness] = []
    chains: list[Chain] = []
    first = _first(table)
    for axis in range(table.ndim):
        found = table_chain(axis_table(table, axis) - table.dtype.type(first), whole=False)
        if isinstance(found, Witness):
            expected = None if found.expected is None else found.expected + first
            breaks.append(Witness(found.index, found.value + first, expected).along(axis, table.ndim))
        else:
            chains.append(found)
    mixed = _mixed(table, first) if table.ndim > 1 else None
    if mixed is not None:
        breaks.append(mixed)
    return min(breaks, key=lambda b: b.multi_index) if breaks else tuple(chains)


def _mixed(table: Table, first: int) -> Witness | None:
    """The first index whose slot is not the sum of those along the axes."""
    rest = np.zeros((1,) * (table.ndim - 1), table.dtype)
    for axis in range(1, table.ndim):
        shape = [1] * (table.ndim - 1)
        shape[axis - 1] = -1
        rest = rest + (axis_table(table, axis) - table.dtype.type(first)).reshape(shape)
    rows = max(1, (1 << 20) // max(1, rest.size))
    heads = axis_table(table, 0).reshape(-1, *([1] * (table.ndim - 1)))
    for start in range(0, len(table), rows):
        part, expected = table[start : start + rows], heads[start : start + rows] + rest
        wrong = part != expected
        if wrong.any():
            index = tuple(int(k) for k in np.unravel_index(int(wrong.argmax()), part.shape))
            return Witness((index[0] + start, *index[1:]), int(part[index]), int(expected[index]))
    return None


def _first(table: Table) -> int:
    return int(table[(0,) * table.ndim])


def _swizzles(table: Table) -> Iterator[Swizzle]:
    """Swizzles after which a sample of the table is a sum of chains, those of the fewest bits first."""
    bits = int(table.max()).bit_length()
    lines = [np.ascontiguousarray(axis_table(table, axis)[:LINE]) for axis in range(table.ndim)]
    rng = np.random.default_rng(0)
    index = tuple(rng.integers(0, n, SAMPLES) for n in table.shape)
    zero = tuple(np.zeros_like(i) for i in index)
    sample = table[index].astype(np.int64)
    along = [table[(*zero[:d], index[d], *zero[d + 1 :])].astype(np.int64) for d in range(table.ndim)]
    first = np.array([_first(table)])
    for count in range(1, bits):
        for shift in range(count, bits):
            for base in range(bits - shift - count + 1):
                for sign in (1, -1):
                    swizzle = Swizzle(count, base, sign * shift)
                    offset = swizzle(first)
                    total = offset + sum(swizzle(part) - offset for part in along)
                    if np.array_equal(swizzle(sample), total) and all(
                        isinstance(table_chain(swizzle(line) - offset, whole=False), tuple) for line in lines
                    ):
                        yield swizzle
