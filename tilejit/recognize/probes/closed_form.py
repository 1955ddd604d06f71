"""Fit a layout to a table of slots, and spell it as XLA's text, as a pattern and as CuTe's text.

A layout is a sum of digits with strides of either sign, after a first offset, perhaps with an XOR swizzle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.cute.construct import LayoutRight
from tilejit.cute.digits import Chain, Digit, Mode, digits_of
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.tables import axis_table, layout_of, linear_run, table_chains
from tilejit.cute.witness import Witness
from tilejit.layout.as_layout import as_layout
from tilejit.layout.bridge.from_xla import BoundedLayout, from_xla
from tilejit.layout.bridge.to_xla import to_xla
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType
from tilejit.layout.shape import Shape
from tilejit.recognize.probes.slots import Table

SAMPLES = 128
"""Elements of a table in which a swizzle is tried before all elements are compared."""
LINE = 64
"""The elements of a digit that are read at once for all swizzles; longer digits are read for each."""

Slots: TypeAlias = NDArray[Any]
"""Slots of a table as int64, and numbers for them."""

READABLE = (2, 8)
"""The most tiles, and sizes in them, for which XLA's text is preferred to a pattern."""
MOST_FORMS = 32
"""The most closed forms that are compared with the size of the buffer."""
MOST_LETTERS = 26
_LETTERS = {1: "N", 2: "MN", 3: "BMN", 4: "NCHW"}


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
    first = _first(table)
    found = table_chains(table - table.dtype.type(first), whole=False)
    if not isinstance(found, Witness):
        return found
    expected = None if found.expected is None else found.expected + first
    return Witness(found.index, found.value + first, expected)


def _first(table: Table) -> int:
    return int(table[(0,) * table.ndim])


def _swizzles(table: Table) -> Iterator[Swizzle]:
    """Swizzles after which a sample of the table is a sum of chains, those of the fewest bits first."""
    bits = int(table.max()).bit_length()
    rows = np.array(
        [
            (count, base, sign * shift)
            for count in range(1, bits)
            for shift in range(count, bits)
            for base in range(bits - shift - count + 1)
            for sign in (1, -1)
        ],
        np.int64,
    ).reshape(-1, 3)
    rng = np.random.default_rng(0)
    index = tuple(rng.integers(0, n, SAMPLES) for n in table.shape)
    lines = [axis_table(table, axis).astype(np.int64) for axis in range(table.ndim)]
    first = np.array(_first(table))
    along = [_swizzled(line[at], rows) for line, at in zip(lines, index, strict=True)]
    wanted = _swizzled(table[index].astype(np.int64), rows) + (table.ndim - 1) * _swizzled(first, rows)
    rows = rows[np.all(sum(along) == wanted, axis=1)]
    for line, at in zip(lines, index, strict=True):
        rows = rows[_are_chains(line, at, rows)]
    for count, base, shift in rows.tolist():
        yield Swizzle(count, base, shift)


def _swizzled(values: Slots, rows: Slots) -> Slots:
    """Values after each of several swizzles: one row for each, which is its three numbers."""
    count, base, shift = rows.T[..., None]
    up, down = np.maximum(-shift, 0), np.maximum(shift, 0)
    moved = values & (1 << count) - 1 << base + down
    return np.asarray(values ^ (moved >> down << up))


def _are_chains(line: Slots, at: Slots, rows: Slots) -> Slots:
    """Whether a line is a chain after each of several swizzles, by the samples at some indices.

    offset(i) = offset(i mod s0) + offset(i - i mod s0), and so on for the next digits
    """
    good = np.ones(len(rows), np.bool_)
    weight = np.ones(len(rows), np.int64)
    left = np.arange(len(rows))
    while left.size:
        own = rows[left]
        run = _linear_runs(line, own, weight[left])
        weight[left] *= run
        low = at % weight[left, None]
        first, whole = _swizzled(line[:1], own), _swizzled(line[at], own)
        parts = _swizzled(line[low], own) + _swizzled(line[at - low], own)
        good[left] = np.all(whole + first == parts, axis=1)
        left = left[good[left] & (weight[left] < line.size)]
    return good


def _linear_runs(line: Slots, rows: Slots, weights: Slots) -> Slots:
    """How many slots at 0, weight, 2 * weight, ... are in equal steps, after each of several swizzles."""
    steps = np.arange(LINE)
    values = _swizzled(line[np.minimum(weights[:, None] * steps, line.size - 1)], rows)
    values -= values[:, :1]
    linear = values == values[:, 1:2] * steps
    runs = np.where(linear.all(axis=1), LINE, linear.argmin(axis=1))
    for k in np.flatnonzero(runs == LINE):
        rest, size = line[:: weights[k]], LINE
        while runs[k] == size < rest.size:
            size = min(16 * size, rest.size)
            head = _swizzled(rest[:size], rows[k : k + 1])[0]
            head -= head[0]
            runs[k] = linear_run(head, int(head[1]))
    return runs


class Spellings(NamedTuple):
    """The texts of a layout.

    Attributes:
        layout: the layout: a Shape if tiles express it, or else a CuteShape.
        text: the preferred text: XLA's if it has few tiles, or else the pattern, XLA's or CuTe's, whichever
            there is. It describes `layout`.
        xla: XLA's text, or "".
        pattern: the pattern, or "".
        cute: CuTe's text of the layout alone, or "".
    """

    layout: Spec
    text: str
    xla: str
    pattern: str
    cute: str


def best_spellings(table: Table, buffer: Buffer) -> Spellings | None:
    """The texts of the first closed form of a table that fills the buffer, or of one that ends before it."""
    first: Spellings | None = None
    for form in islice(closed_forms(table), MOST_FORMS):
        found = spellings(form, buffer)
        if found and buffer.fits(found.layout):
            return found
        first = first or found
    return first


def spellings(form: ClosedForm, buffer: Buffer) -> Spellings | None:
    """The texts of a closed form, each read back and compared; None if none describes the buffer."""
    cute = cute_shape(form, buffer)
    text = str(cute.layout) if cute else ""
    tiled = _xla(form, buffer) if form.is_plain else None
    pattern, blocked = _pattern(form.chains, buffer) if form.is_plain else ("", None)
    shape = min(filter(None, (tiled, blocked)), key=_cost, default=None)
    if blocked and shape and _cost(shape) > READABLE:
        return Spellings(blocked, pattern, str(blocked), pattern, text)
    if shape and (_cost(shape) <= READABLE or not text):
        return Spellings(shape, str(shape), str(shape), pattern, text)
    if shape:
        return Spellings(shape, min(str(shape), text, key=len), str(shape), pattern, text)
    return Spellings(cute, text, "", "", text) if cute else None


def _cost(shape: Shape) -> tuple[int, int]:
    """What makes XLA's text hard to read: a padded tail, many tiles, and long ones."""
    layout = shape.layout
    if layout is None:
        return 0, 0
    tail = layout.tail_padding_alignment_in_elements > 1
    return len(layout.tiles) + 8 * tail, sum(map(len, layout.tiles))


def _xla(form: ClosedForm, buffer: Buffer) -> Shape | None:
    """The XLA shape of the same buffer."""
    plain = layout_of(form.chains)
    try:
        shape = to_xla(
            BoundedLayout(plain, buffer.dims, buffer.slots),
            dtype=buffer.element,
            element_size_in_bits=buffer.packed_bits,
        )
        return shape if str(from_xla(shape)) == str(plain) and buffer.fits(shape) else None
    except LayoutError:
        return None


def _pattern(chains: tuple[Chain, ...], buffer: Buffer) -> tuple[str, Shape | None]:
    """The pattern of the same buffer and its shape; "" if there are holes or padding that no pattern has."""
    digits = sorted(digits_of(chains, buffer.dims), key=lambda digit: digit.stride)
    rooms = rooms_of(digits, buffer.slots)
    if rooms is None or len(buffer.dims) > MOST_LETTERS:
        return "", None
    left: list[str] = []
    sizes: list[str] = []
    names: dict[Digit, str] = {}
    for dim, letter in enumerate(_letters(len(buffer.dims))):
        own = sorted((d for d in digits if d.dim == dim), key=lambda digit: -digit.weight)
        named = dict(zip(own, _names(letter, len(own)), strict=True))
        names |= named
        left.append(f"({' '.join(named.values())})" if len(own) > 1 else named[own[0]] if own else "1")
        below = prod(rooms[d] for d in own[1:])
        kept = own if own and rooms[own[0]] != -(-buffer.dims[dim] // below) else own[1:]
        sizes += [f"{named[d]}={rooms[d]}" for d in kept]
    order = " ".join(names[d] for d in reversed(digits))
    text = ", ".join([f"{' '.join(left)} -> {order}".strip(), *sizes])
    shape = _read(text, chains, buffer)
    return (text, shape) if shape else ("", None)


def _read(text: str, chains: tuple[Chain, ...], buffer: Buffer) -> Shape | None:
    """The shape of a pattern, if it means these chains."""
    try:
        shape = as_layout(text, dtype=PRIMITIVE_TYPES["u8"], dims=buffer.dims)
        if (
            not isinstance(shape, Shape)
            or shape.layout is None
            or str(from_xla(shape)) != str(layout_of(chains))
        ):
            return None
        layout = replace(shape.layout, element_size_in_bits=buffer.packed_bits)
        shape = replace(shape, primitive_type=buffer.element.name, layout=layout)
    except LayoutError:
        return None
    return shape if buffer.fits(shape) else None


def _letters(rank: int) -> str:
    """A letter for each dimension."""
    return _LETTERS.get(rank) or "".join(map(chr, range(ord("A"), ord("A") + rank)))


def _names(letter: str, count: int) -> list[str]:
    """The names of a dimension's digits, the most major first.

    ("M", 2) -> M, m    ("M", 3) -> M, m1, m2
    """
    lower = letter.lower()
    return [letter, *([lower] if count == 2 else [f"{lower}{k}" for k in range(1, count)])][:count]
