"""XLA's tiles for a blocking: the shortest that a bounded search finds, otherwise sufficient ones.

A tile whose sizes are 1 or a whole axis is a stable partition: the parts it takes move to the end, the rest
stays, and both keep their order. A size in between also cuts the axis. So tiles sort digits like a radix sort
that starts with the lowest bit of the keys: tile k takes the digits whose bit k is set. Keys never
decrease along the target order, and they increase where it steps back in the previous order. Of two digits of
one dimension, a tile cannot take the more major one alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

from codegen import LayoutError, cached, compiler_lock
from tilejit.layout.checks import width_of
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.blocking import Blocking, DigitName
from tilejit.layout.from_parts import make_shape
from tilejit.layout.tiling import MAX_TILED_AXES

Keys = Mapping[DigitName, int]
Tiles = tuple[tuple[int, ...], ...]
Order = tuple[int, ...]

CANDIDATES = 150
"""The number of key assignments to compare; those found first tend to be short."""
VISITS = 3000
"""The most keys that the search tries."""
MOST_TILES = 5
"""The most tiles that the search tries; two or three suffice for every format in use."""
MOST_DIGITS = 40
"""The most digits for which there is a search."""


@cached(256)
def blocked_shape(blocking: Blocking, element: PrimitiveType, bits: int = 0) -> Spec:
    """Return the shape of a blocked array; if `bits` is 0, elements narrower than a byte take one byte each.

    [40,300] as (5,8) and (3,128), with contiguous blocks, of f32 -> f32[40,300]{1,0:T(8,128)}
    the same of s4, 4 bits -> s4[40,300]{1,0:T(8,128)E(4)}

    If digits are permuted, it is a CuteShape.

    Raises:
        LayoutError: there are more digits than tiles can order, the buffer exceeds 2^63 bits, or `bits` is
            neither the element's width nor its storage width.
    """
    if blocking.permutations:
        with compiler_lock:  # few patterns permute digits
            from tilejit.layout.formats.permuted import permuted_shape
        return permuted_shape(blocking, element, bits)
    width = width_of(element, bits)
    minor_to_major, tiles = spell(blocking)
    return make_shape(element, blocking.dimensions, minor_to_major, tiles, element_size_in_bits=width)


def spell(blocking: Blocking) -> tuple[Order, Tiles]:
    """Return minor_to_major and tiles of the buffer.

    [40,256] as (10,4) and (2,128), order (0,0) (1,0) (0,1) (1,1) -> (1, 0), ((4, 128),)

    Raises:
        LayoutError: the tiles for that many digits would cut the array into too many axes.
    """
    blocking = _without_units(blocking)
    orders = _orders(blocking)
    found = []
    for number, order in enumerate(orders):
        tiles = _shortest(blocking, order)
        if tiles is not None:
            found.append((_cost(tiles), number, tiles))
        if tiles == ():
            break
    if not found:
        return orders[0][::-1], _tiles(blocking, orders[0], _sure_keys(blocking, orders[0]))
    _, number, tiles = min(found)
    return orders[number][::-1], tiles


def _without_units(blocking: Blocking) -> Blocking:
    """The blocking without digits of size 1, except first ones: they move nothing, so tiles can omit them."""
    kept = [[k for k, size in enumerate(sizes) if k == 0 or size != 1] for sizes in blocking.digits]
    digits = tuple(tuple(sizes[k] for k in ks) for sizes, ks in zip(blocking.digits, kept, strict=True))
    order = tuple(DigitName(dim, kept[dim].index(k)) for dim, k in blocking.order if k in kept[dim])
    return Blocking(blocking.dimensions, digits, order)


def _orders(blocking: Blocking) -> list[Order]:
    """Orders of the dimensions to start from, most major first."""
    if blocking.heads is not None:
        return [blocking.heads]
    plain = tuple(range(len(blocking.dimensions)))
    if len(plain) <= 3:
        return list(permutations(plain))
    place = {digit: k for k, digit in enumerate(blocking.order)}
    by_first = sorted(plain, key=lambda d: place[DigitName(d, 0)])
    by_last = sorted(plain, key=lambda d: place[DigitName(d, len(blocking.digits[d]) - 1)])
    return list(dict.fromkeys((plain, tuple(by_first), tuple(by_last))))


def _cost(tiles: Tiles) -> tuple[int, int, int]:
    """Fewer tiles, then shorter ones, then fewer sizes of 1."""
    return len(tiles), sum(map(len, tiles)), sum(tile.count(1) for tile in tiles)


def _shortest(blocking: Blocking, order: Order) -> Tiles | None:
    """The fewest tiles, and among those the shortest, for one order of the dimensions; None if not found."""
    if len(blocking.order) > MOST_DIGITS:
        return None
    search = _Search(blocking, order)
    for count in range(MOST_TILES + 1):
        candidates = [_tiles(blocking, order, keys) for keys in search.keys(count)]
        if candidates:
            return min(candidates, key=_cost)
        if search.visits > VISITS:
            return None
    return None


class _Search:
    """A depth-first search for the keys of the digits in target order, smaller keys first."""

    def __init__(self, blocking: Blocking, order: Order) -> None:
        self.blocking = blocking
        self.visits = 0
        # Leading first digits stay in place, so that no tile size depends on the array's size.
        self.heads_stay = blocking.heads is not None
        # An axis that is cut gets padding. Cutting it always keeps the tiles the same for every size.
        dims = range(len(blocking.dimensions))
        self.cut = [self.heads_stay or blocking.is_padded(dim) for dim in dims]
        self.grown = [blocking.is_grown(dim) for dim in dims]
        self.placed: list[list[tuple[int, int]]] = [[] for _ in dims]
        self.steps = [int(back) for back in _goes_back(blocking, order)]
        self.left = [sum(self.steps[k + 1 :]) for k in range(len(self.steps))]

    def keys(self, count: int) -> Iterator[Keys]:
        """At most CANDIDATES assignments of keys with `count` bits."""
        for own in self.placed:
            own.clear()
        for found, keys in enumerate(self._extend({}, 0, 0, 1 << count), 1):
            yield dict(keys)
            if found == CANDIDATES:
                return

    def _extend(self, keys: dict[DigitName, int], place: int, low: int, limit: int) -> Iterator[Keys]:
        """Yield every continuation from a position, with keys from `low` up to `limit`, all in `keys`."""
        if place == len(self.blocking.order):
            yield keys
            return
        digit = self.blocking.order[place]
        for key in range(low + self.steps[place], limit - self.left[place]):
            self.visits += 1
            if self.visits > VISITS:
                return
            if self._fits(digit, key):
                keys[digit] = key
                self.placed[digit.dim].append((digit.number, key))
                yield from self._extend(keys, place + 1, key, limit)
                self.placed[digit.dim].pop()
                del keys[digit]

    def _fits(self, digit: DigitName, key: int) -> bool:
        """Whether a key is consistent with the keys of other digits of its dimension."""
        dim, number = digit
        if number == 0 and (key == 0 if self.grown[dim] else key > 0 and self.heads_stay):
            return False
        for other, beside in self.placed[dim]:
            if _taken_alone(*((key, beside) if number < other else (beside, key))):
                return False
            if key == beside == 0 and number + other == 1 and self.cut[dim]:
                return False
        return True


def _taken_alone(major: int, minor: int) -> bool:
    """Whether the lowest bit in which two keys differ is set in the first."""
    differ = major ^ minor
    return bool(differ & -differ & major)


def _goes_back(blocking: Blocking, order: Order) -> list[bool]:
    """For each digit in target order, whether it precedes its predecessor in the initial order."""
    at = [(order.index(dim), number) for dim, number in blocking.order]
    return [k > 0 and at[k] < at[k - 1] for k in range(len(at))]


def _sure_keys(blocking: Blocking, order: Order) -> Keys:
    """Keys that always work: low bits separate a dimension's digits, high bits follow the target order."""
    dims = range(len(blocking.dimensions))
    bits = (max((len(blocking.digits[d]) for d in dims), default=1) - 1).bit_length()
    keys: dict[DigitName, int] = {}
    run, last = int(any(blocking.is_grown(d) for d in dims)), 0
    for digit, back in zip(blocking.order, _goes_back(blocking, order), strict=True):
        # The digit's number with its bits reversed: the lowest bit separates the upper half from the lower.
        code = sum(1 << (bits - 1 - k) for k in range(bits) if digit.number >> k & 1)
        run += back or code < last
        last = code
        keys[digit] = run << bits | code
    return keys


def _tiles(blocking: Blocking, order: Order, keys: Keys) -> Tiles:
    """The tiles that sort digits by these keys."""
    axes = [[digit for digit in blocking.axes if digit.dim == dim] for dim in order]
    tiles: list[tuple[int, ...]] = []
    for bit in range(max(keys.values(), default=0).bit_length()):
        taken = [[digit for digit in axis if keys[digit] >> bit & 1] for axis in axes]
        first = next((k for k, axis in enumerate(taken) if axis), len(axes))
        if first == len(axes):
            continue
        tiles.append(tuple(blocking.extent(axis) for axis in taken[first:]))
        kept = [[digit for digit in axis if not keys[digit] >> bit & 1] for axis in axes[first:]]
        axes = axes[:first] + kept + taken[first:]
        if len(axes) > MAX_TILED_AXES:
            raise LayoutError(
                f"{len(blocking.order)} digits in this order need more than {MAX_TILED_AXES} axes of tiles\n"
                "  use fewer, or merge those that stay adjacent"
            )
    return tuple(tiles)
