"""Buffers whose truth is known, and what `identify` says of them.

    python -m tests.tools.recognition --seed 1

makes 500 buffers, asks `identify` about each beside its original, and prints a table of truths by verdicts.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

import tilejit as tj
from tests.tools.rebuilt import elements_again, flat, packing_of, rebuilt, same_buffers
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Packing, Plane, extents
from tilejit.layout.dtypes import PrimitiveType, lookup, primitive_type
from tilejit.layout.formats.registry import find_format

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
MOST = 1 << 16
"""The most elements of an array."""

EXPECTED: dict[str, tuple[str, ...]] = {
    "once": ("exact",),
    "twice": ("exact",),
    "transposed": ("exact",),
    "halves or rows": ("exact",),
    "nibbles or bytes": ("exact",),
    "values": ("exact",),
    "cast": ("exact",),
    "planes": ("exact",),
    "corrupted": ("near",),
    "truncated": ("near",),
    "extended": ("near",),
    "constant": ("ambiguous",),
    "foreign": ("near", "unknown"),
    "random": ("unknown",),
    "no original": ("guess", "unknown"),
}
"""The verdicts that are right for each kind of buffer."""


@dataclass(frozen=True)
class Truth:
    """What was done to an array.

    Attributes:
        kind: a key of EXPECTED.
        format: the name of the format; empty for none of the catalog.
        parameters: its parameters.
        times: how often it was applied.
        changes: what else was done, in the words of `identify`.
    """

    kind: str
    format: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """A buffer and its original, and apart from them the truth.

    Attributes:
        data: the buffer, or buffers by name.
        original: the array, or planes by name; None if it is kept back.
        truth: what was done.
        whole: the buffer before it was damaged; None if it was not.
        planes: all planes, if the original is only one of them.
    """

    data: Any
    original: Any
    truth: Truth
    whole: Array | None = None
    planes: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Answer:
    """What `identify` said of a buffer."""

    made: Buffer
    found: tj.Identification

    @property
    def kind(self) -> str:
        """The kind of the buffer."""
        return self.made.truth.kind

    @property
    def is_expected(self) -> bool:
        """Whether the verdict is right, and a match tells how to make the buffer."""
        own = not self.made.truth.format or self.kind == "constant" or self.explains
        return self.found.verdict in EXPECTED[self.kind] and own

    @property
    def explains(self) -> bool:
        """Whether packing the original as the first match says gives the buffer, or what it was at first."""
        data = self.made.data if self.made.whole is None else self.made.whole
        original = self.made.original if self.made.planes is None else self.made.planes
        return bool(self.found.matches) and same_buffers(rebuilt(self.found.matches[0], original), data)

    @property
    def is_wrong(self) -> bool:
        """Whether the answer is sure of what is not true."""
        return self.found.verdict == "exact" and not ("exact" in EXPECTED[self.kind] and self.explains)


def own_formats() -> list[tuple[Format, Mapping[str, Any]]]:
    """Each format of the catalog with each of its variants."""
    found = [find_format(name) for name in tj.formats()]
    return [(one, given) for one in found if one.example for given in ({}, *one.variants)]


def dims_for(found: Format, packing: Packing | None, factor: int, extra: int) -> tuple[int, ...]:
    """Dimensions that a format takes: its example times a factor, plus `extra` where it pads."""
    assert found.example is not None
    dims = found.example[0]
    if packing is None:
        return tuple(size * factor + extra for size in dims)
    own, fixed = packing.axes, packing.multiples
    lead = len(dims) - len(own)
    if "numel" in fixed:
        return tuple(size * factor for size in dims)
    tail = (
        size * factor + (0 if axis in fixed else extra + k)
        for k, (axis, size) in enumerate(zip(own, dims[lead:], strict=True))
    )
    return (*dims[:lead], *tail) if own else tuple(size * factor + extra for size in dims)


def values_of(plane: Plane, dims: tuple[int, ...], dtype: str, rng: Rng) -> Array:
    """Random values of a plane."""
    if plane.bits:
        low, high = plane.code_range
        return rng.integers(low, high + 1, dims).astype(plane.array_dtype)
    return random_elements(lookup(plane.dtype) if plane.dtype else primitive_type(dtype), dims, rng)


def random_elements(element: PrimitiveType, dims: tuple[int, ...], rng: Rng) -> Array:
    """Random elements of a dtype."""
    numpy = element.numpy
    assert numpy is not None
    if element.kind == "float" and element.bits >= 16:
        return rng.standard_normal(dims).astype(numpy)
    values = rng.integers(0, 256, dims)
    return values.astype(np.uint8).view(numpy) if element.bits == 8 else values.astype(numpy)


def planes_of(found: Format, packing: Packing | None, dims: tuple[int, ...], rng: Rng) -> dict[str, Array]:
    """Random planes by name; one without a packing has the name "values"."""
    assert found.example is not None
    dtype = found.example[1]
    if packing is None:
        return {"values": random_elements(primitive_type(dtype), dims, rng)}
    if packing.main.bits:
        dtype = "float16"
    sizes = packing.sizes(dims, found.name)
    return {p.name: values_of(p, extents(p.axes, sizes), dtype, rng) for p in packing.planes}


def packed(found: Format, parameters: Mapping[str, Any], planes: Mapping[str, Array]) -> Any:
    """The buffer, or the buffers by name."""
    given = dict(planes) if len(planes) > 1 else next(iter(planes.values()))
    out = tj.pack(given, found.name, **parameters)
    several = isinstance(out, tj.PackedPlanes) and len(out.buffers) > 1
    return dict(out.buffers) if several else out.buffer


class Maker:
    """Buffers of each kind, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.formats = own_formats()
        self.kinds: dict[str, Callable[[], Buffer | None]] = {
            "once": self.once,
            "twice": self.twice,
            "transposed": self.transposed,
            "halves or rows": self.halves,
            "nibbles or bytes": self.nibbles,
            "values": self.values,
            "cast": self.cast,
            "planes": self.planes,
            "corrupted": self.corrupted,
            "truncated": self.truncated,
            "extended": self.extended,
            "constant": self.constant,
            "foreign": self.foreign,
            "random": self.random,
            "no original": self.no_original,
        }

    def buffers(self, count: int) -> list[Buffer]:
        """That many buffers, of each kind as many."""
        found = []
        while len(found) < count:
            make = [*self.kinds.values()][len(found) % len(self.kinds)]
            made = None
            while made is None:
                try:
                    made = make()
                except (tj.LayoutError, ValueError):  # not dimensions or values of the format
                    continue
            found.append(made)
        return found

    def _pick(
        self, single: bool = True
    ) -> tuple[Format, Mapping[str, Any], Packing | None, dict[str, Array]]:
        """A format and random planes of random dimensions, of one plane or of several."""
        while True:
            found, given = self.formats[self.rng.integers(len(self.formats))]
            packing = packing_of(found, given)
            if (packing is None or len(packing.planes) == 1) != single:
                continue
            factor, extra = int(self.rng.integers(1, 5)), int(self.rng.integers(0, 4))
            dims = dims_for(found, packing, factor, extra)
            if 256 <= prod(dims) <= MOST:
                return found, given, packing, planes_of(found, packing, dims, self.rng)

    def _truth(self, kind: str, found: Format, given: Mapping[str, Any], *changes: str) -> Truth:
        return Truth(kind, found.name, given, 1, tuple(changes))

    def once(self) -> Buffer:
        found, given, _, planes = self._pick()
        return Buffer(
            packed(found, given, planes), next(iter(planes.values())), self._truth("once", found, given)
        )

    def planes(self) -> Buffer:
        found, given, packing, planes = self._pick(single=False)
        truth = self._truth("planes", found, given)
        assert packing is not None
        alone = len(packing.buffers) == 1 and self.rng.integers(2)
        original: Any = planes[packing.main.name] if alone else planes
        return Buffer(packed(found, given, planes), original, truth, planes=planes if alone else None)

    def twice(self) -> Buffer | None:
        found, given, packing, planes = self._pick()
        if packing is None or packing.rounds:
            return None
        array = next(iter(planes.values()))
        own = packing_of(found, given, array)
        again = elements_again(own, array, packed(found, given, planes))
        if again is None:
            return None
        buffer = packed(found, given, {"values": again})
        return Buffer(buffer, array, replace(self._truth("twice", found, given), times=2))

    def transposed(self) -> Buffer | None:
        found, given, _, planes = self._pick()
        array = next(iter(planes.values()))
        if array.ndim < 2 or min(array.shape[-2:]) < 4:
            return None
        original = np.ascontiguousarray(array.swapaxes(-1, -2))
        return Buffer(
            packed(found, given, planes), original, self._truth("transposed", found, given, "transposed")
        )

    def halves(self) -> Buffer | None:
        found, given, _, planes = self._pick()
        array = next(iter(planes.values()))
        axis = int(self.rng.integers(array.ndim))
        size = array.shape[axis]
        if size % 2 or size < 8:
            return None
        order, text = (
            (np.r_[size // 2 : size, : size // 2], f"halves of axis {axis} swapped"),
            (np.arange(size).reshape(2, -1).T.ravel(), f"halves of axis {axis} interleaved"),
            (np.arange(size).reshape(-1, 2).T.ravel(), f"even and odd indices of axis {axis} separated"),
        )[self.rng.integers(3)]
        moved = np.take(array, order, axis)
        truth = self._truth("halves or rows", found, given, text)
        return Buffer(packed(found, given, {"values": moved}), array, truth)

    def nibbles(self) -> Buffer | None:
        found, given, packing, planes = self._pick()
        array = next(iter(planes.values()))
        if packing is None or packing.rounds or packing.main.bits not in (0, 2, 4):
            return None
        data, bits = flat(packed(found, given, planes)), packing.main.bits
        if bits and self.rng.integers(2):
            text = "first code in the high bits"
            digits = data[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
            data = (digits << np.arange(0, 8, bits, dtype=np.uint8)[::-1]).sum(1).astype(np.uint8)
        elif bits or array.itemsize == 1:
            width = int(self.rng.choice([2, 4]))
            if data.size % width:
                return None
            text = f"bytes of each {8 * width}-bit word reversed"
            data = data.reshape(-1, width)[:, ::-1].reshape(-1)
        else:
            text = "bytes of each element reversed"
            data = data.reshape(-1, array.itemsize)[:, ::-1].reshape(-1)
        return Buffer(data, array, self._truth("nibbles or bytes", found, given, text))

    def values(self) -> Buffer | None:
        found, given, packing, planes = self._pick()
        if packing is None or not packing.main.bits or packing.main.levels:
            return None
        array, bits = next(iter(planes.values())), packing.main.bits
        low = packing.main.code_range[0]
        if bits == 1 or low > 0:
            return None
        number = int(self.rng.integers(1, 1 << bits - 1)) if self.rng.integers(2) else 1 << bits - 1
        added = (array.astype(np.int64) - low + number) % (1 << bits) + low
        text = f"values + {number}" if number < 1 << bits - 1 else f"values ^ {number}"
        buffer = packed(found, given, {"values": added.astype(array.dtype)})
        return Buffer(buffer, array, self._truth("values", found, given, text))

    def cast(self) -> Buffer | None:
        found, given, packing, planes = self._pick()
        array = next(iter(planes.values()))
        if packing is None or packing.main.bits or packing.main.dtype:
            return None
        stored = self.rng.choice([ml_dtypes.bfloat16, np.float16])
        name = {"bfloat16": "bf16", "float16": "f16"}[np.dtype(stored).name]
        original = self.rng.standard_normal(array.shape).astype(np.float32)
        buffer = packed(found, given, {"values": original.astype(stored)})
        return Buffer(buffer, original, self._truth("cast", found, given, f"cast to {name}"))

    def corrupted(self) -> Buffer:
        found, given, packing, planes = self._pick()
        array = next(iter(planes.values()))
        whole = flat(packed(found, given, planes))
        data = whole.copy()
        while True:
            at = self.rng.integers(0, data.size, int(self.rng.integers(1, 9)))
            data[at] ^= self.rng.integers(1, 256, at.size, np.uint8)
            own = {**_own(packing, array), "dims": array.shape, **given}
            before, after = (flat(tj.unpack(x, found.name, **own)) for x in (whole, data))
            if not np.array_equal(before, after):
                return Buffer(data, array, self._truth("corrupted", found, given), whole)

    def truncated(self) -> Buffer:
        made = self.once()
        data = flat(made.data)
        cut = int(self.rng.integers(1, data.size // 4))
        kept = data[cut:] if self.rng.integers(2) else data[:-cut]
        return replace(made, data=kept, whole=data, truth=replace(made.truth, kind="truncated"))

    def extended(self) -> Buffer:
        made = self.once()
        more = self.rng.integers(0, 256, int(self.rng.integers(1, 200)), np.uint8)
        whole = flat(made.data)
        data = np.concatenate((whole, more) if self.rng.integers(2) else (more, whole))
        return replace(made, data=data, whole=whole, truth=replace(made.truth, kind="extended"))

    def constant(self) -> Buffer:
        found, given, packing, planes = self._pick()
        array = next(iter(planes.values()))
        low = packing.main.code_range[0] if packing is not None and packing.main.bits else 0
        same = np.full(array.shape, array.reshape(-1)[0] if low < 0 else max(low, 0)).astype(array.dtype)
        buffer = packed(found, given, {"values": same})
        return Buffer(buffer, same, self._truth("constant", found, given))

    def foreign(self) -> Buffer:
        rows, columns = (int(8 * self.rng.integers(4, 20)) for _ in range(2))
        array = self.rng.integers(0, 256, (rows, columns), np.uint8)
        number = int(self.rng.integers(len(FOREIGN)))
        buffer = np.ascontiguousarray(FOREIGN[number](array, self.rng))
        original = array & np.uint8(15) if number >= FIRST_OF_CODES else array
        return Buffer(buffer, original, Truth("foreign", parameters={"number": number}))

    def random(self) -> Buffer:
        made = self.once()
        data = self.rng.integers(0, 256, flat(made.data).size, np.uint8)
        return Buffer(data, made.original, Truth("random"))

    def no_original(self) -> Buffer:
        size = int(self.rng.integers(1, 1 << 16))
        return Buffer(self.rng.integers(0, 256, size, np.uint8), None, Truth("no original"))


def _own(packing: Packing | None, array: Array) -> dict[str, Any]:
    """The dtype that unpack needs."""
    if packing is not None and not packing.is_layout:
        return {}
    return {"dtype": array.dtype}


def _hilbert(array: Array, rng: Rng) -> Array:
    """Elements along a Hilbert curve of the enclosing power of two."""
    side = 1 << max(size - 1 for size in array.shape).bit_length()
    x, y = np.zeros(side * side, int), np.zeros(side * side, int)
    t, s = np.arange(side * side), 1
    while s < side:
        rx = 1 & t // 2
        ry = 1 & (t ^ rx)
        flip = (ry == 0) & (rx == 1)
        x, y = np.where(flip, s - 1 - x, x), np.where(flip, s - 1 - y, y)
        x, y = np.where(ry == 0, y, x), np.where(ry == 0, x, y)
        x, y, t, s = x + s * rx, y + s * ry, t // 4, 2 * s
    inside = (x < array.shape[1]) & (y < array.shape[0])
    return array[y[inside], x[inside]]


def _digits(array: Array, rng: Rng) -> Array:
    """Blocks of 8 x 8 in an order of digits that no format has."""
    rows, columns = (size // 8 for size in array.shape)
    digits = array.reshape(rows, 2, 2, 2, columns, 2, 2, 2)
    order = ((0, 4, 7, 2, 5, 1, 6, 3), (4, 0, 2, 7, 1, 6, 3, 5), (1, 0, 6, 4, 3, 7, 5, 2))[rng.integers(3)]
    return digits.transpose(order)


def _nibbles(codes: Array) -> Array:
    """Codes in pairs, the first low."""
    pairs = codes.reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 4


def _records(codes: Array, rng: Rng) -> Array:
    """A record of a scale and 8 codes in rotated pairs, for each 8 codes."""
    blocks = codes.reshape(-1, 8)[:, [0, 5, 2, 7, 4, 1, 6, 3]]
    scales = rng.standard_normal(len(blocks)).astype(np.float16).reshape(-1, 1).view(np.uint8)
    return np.concatenate([scales, blocks[:, ::2] | blocks[:, 1::2] << 4], axis=1)


FOREIGN: tuple[Callable[[Array, Rng], Array], ...] = (
    lambda a, rng: a[::-1],
    lambda a, rng: a[:, ::-1],
    lambda a, rng: np.roll(a, 3, 1),
    lambda a, rng: a[rng.permutation(len(a))],
    lambda a, rng: a[:, rng.permutation(a.shape[1])],
    lambda a, rng: rng.permutation(a.reshape(-1)),
    lambda a, rng: np.stack([np.roll(row, k) for k, row in enumerate(a)]),
    lambda a, rng: a.reshape(len(a) // 4, 4, -1, 8).transpose(2, 1, 3, 0),
    lambda a, rng: a.reshape(len(a) // 8, 8, -1, 2).transpose(1, 0, 2, 3)[:, ::-1],
    lambda a, rng: np.concatenate([a.diagonal(k) for k in range(1 - len(a), a.shape[1])]),
    lambda a, rng: a[np.arange(len(a)) ^ 5] if len(a) % 8 == 0 else a[::-1],
    lambda a, rng: a * np.uint8(5) + np.uint8(3),
    _hilbert,
    lambda a, rng: _digits(a & 15, rng),
    lambda a, rng: _nibbles(_digits(a & 15, rng)),
    lambda a, rng: _nibbles(np.concatenate([a[::2], a[1::2]])[:, rng.permutation(a.shape[1])] & 15),
    lambda a, rng: _nibbles(a & 15).reshape(-1, 4)[:, [2, 0, 3, 1]],
    lambda a, rng: _records(a & 15, rng),
)
"""Orders and values that are not in the catalog."""
FIRST_OF_CODES = 13
"""The first that packs codes of 4 bits."""


def answers(seed: int, count: int) -> list[Answer]:
    """What `identify` says of that many buffers."""
    return [Answer(made, tj.identify(made.data, made.original)) for made in Maker(seed).buffers(count)]


def confusion(found: list[Answer]) -> str:
    """The table of truths by verdicts, and the answers that are not expected."""
    verdicts = ("exact", "ambiguous", "near", "guess", "unknown")
    counts = Counter((answer.kind, answer.found.verdict) for answer in found)
    lines = [
        f"{'':18}" + "".join(f"{verdict:>11}" for verdict in verdicts) + f"{'unexpected':>12}{'wrong':>7}"
    ]
    for kind in EXPECTED:
        own = [answer for answer in found if answer.kind == kind]
        cells = "".join(f"{counts[kind, verdict] or '':>11}" for verdict in verdicts)
        odd, wrong = (sum(test) for test in ([not a.is_expected for a in own], [a.is_wrong for a in own]))
        lines.append(f"{kind:18}{cells}{odd or '':>12}{wrong or '':>7}")
    for answer in found:
        if not answer.is_expected:
            lines += [
                "",
                f"{'WRONG' if answer.is_wrong else 'unexpected'}: {answer.made.truth}",
                f"  {answer.found}",
            ]
    return "\n".join(lines)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    given = parser.parse_args()
    print(confusion(answers(given.seed, given.count)))


if __name__ == "__main__":
    main()
