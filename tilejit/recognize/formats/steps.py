"""Matches with formats that whole-array steps pack: their first rows are compared, then all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, Plane
from tilejit.copies.bit_streams import pack_stream, unpack_stream
from tilejit.copies.planes import buffer_sizes, pack_planes, unpack_planes
from tilejit.layout.dtypes import lookup
from tilejit.layout.formats.examples import example_planes
from tilejit.recognize.formats.candidates import Candidate, candidates
from tilejit.recognize.formats.changes import NOTHING, Change, changes
from tilejit.recognize.formats.other_planes import Planes
from tilejit.recognize.formats.readings import (
    PLAIN,
    UNCHANGED,
    Reordering,
    ValueChange,
    most_frequent,
    reorderings,
)
from tilejit.recognize.formats.storage import Storage, holds, storages
from tilejit.recognize.formats.whole import SMALL, Comparison, Sides, compare_arrays

NEAR = 0.5
"""The least agreement of a near match."""
SAMPLES = 1 << 14
"""Elements of the first rows that are compared."""
ROWS = (16, 32, 64, 128, 256)
"""Numbers of rows; the first rows are compared that no other row changes."""
Buffers = dict[str, Array]


class Step(NamedTuple):
    """A format that whole-array steps pack, applied once or twice to an array after a change."""

    candidate: Candidate
    packing: Packing
    storage: Storage
    change: Change
    times: int
    reordering: Reordering = PLAIN
    values: ValueChange = UNCHANGED

    @property
    def texts(self) -> tuple[str, ...]:
        """What was done beside packing, in words."""
        own = self.change.text, self.reordering.text, self.values.text(self.storage.bits)
        return tuple(filter(None, own))

    @property
    def simplicity(self) -> tuple[int, int, bool]:
        """A key that sorts simple explanations first."""
        return len(self.texts), self.times, len(self.packing.buffers) > 1

    def unpacked(self, buffers: Buffers, dims: tuple[int, ...]) -> Array:
        """The main plane of buffers; codes as uint8."""
        if self.reordering.flip:
            buffers = {name: self.reordering.restored(data) for name, data in buffers.items()}
        found = self._once(buffers, dims)
        if self.times == 2:
            found = self._once({self.packing.buffers[0]: pack_stream(found, self.storage.bits)}, dims)
        return found

    def _once(self, buffers: Buffers, dims: tuple[int, ...]) -> Array:
        found = unpack_planes(buffers, self.candidate.name, dims, None, dict(self.candidate.parameters))
        main = found[self.packing.main.name] if isinstance(found, dict) else found
        return self.storage.raw(main).reshape(dims) if self.storage.is_code else main

    def packed(self, array: Array) -> Array:
        """The bytes of an array, for a format of one plane in one buffer."""
        moved = self.change.apply(array)
        codes = moved
        if self.storage.is_code:
            codes = self.values.applied(self.storage.raw(moved).reshape(moved.shape), self.storage.bits)
        for _ in range(self.times):
            codes = _as_given(codes, self.packing.main)
            data = pack_planes(codes, self.candidate.name, dict(self.candidate.parameters)).buffer
            data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            if self.times == 2:
                codes = unpack_stream(data, self.storage.bits, codes.size).reshape(codes.shape)
        return self.reordering.restored(data)

    def rounded(self, array: Array) -> Array:
        """The array as the format stores it."""
        if not self.packing.rounds:
            return array
        packed: Any = pack_planes(array, self.candidate.name, dict(self.candidate.parameters))
        found: Array = packed.unpack()
        return found


class Stepped(NamedTuple):
    """A format that whole-array steps pack, and how far it explains the buffers."""

    step: Step
    comparison: Comparison
    dims: tuple[int, ...]
    fault: str = ""


def stepped(planes: Planes, array: Array) -> list[Stepped]:
    """The formats that explain an array, or else most of it."""
    found = _stepped(planes, array)
    exact = [row for row in found if row.comparison.agreement == 1.0]
    return exact or found


def stepped_of_other_sizes(planes: Planes, array: Array) -> list[Stepped]:
    """The formats of one buffer that explain an array if bytes are added, or left out.

    The first bytes of the buffer of a large array must be there.
    """
    if len(planes.buffers) > 1:
        return []
    ((name, data),) = planes.buffers.items()
    found = []
    for size in _sizes(array):
        if size == data.size or 2 * data.size < size:
            continue
        kept = min(size, data.size)
        whole, behind = np.zeros((2, size), np.uint8)
        whole[:kept], behind[size - kept :] = data[:kept], data[data.size - kept :]
        fault = size_fault(data.size - size, at_start=False)
        for tried, at_start in ((whole, False), (behind, True)):
            fault = size_fault(data.size - size, at_start=at_start)
            own = planes._replace(buffers={name: tried})
            found += [row._replace(fault=fault) for row in _stepped(own, array)]
    return found


def size_fault(extra: int, *, at_start: bool) -> str:
    """What is wrong with a buffer that has more or fewer bytes than a format writes; empty for nothing."""
    if not extra:
        return ""
    unit = "byte" if abs(extra) == 1 else "bytes"
    if extra > 0:
        return f"{extra} {unit} {'precede' if at_start else 'follow'}"
    return f"{-extra} {unit} missing at the {'start' if at_start else 'end'}"


def _sizes(array: Array) -> set[int]:
    """The bytes of the buffers of an array in all formats that steps pack."""
    found = set()
    for candidate, packing, _ in _candidates(array):
        for dims in {change.dims(array.shape) for change in changes(array.shape)}:
            with suppress(LayoutError):
                sizes = buffer_sizes(candidate.name, dims, None, dict(candidate.parameters))
                found.add(sizes[packing.buffers[0]])
    return found


def _candidates(array: Array) -> Iterator[tuple[Candidate, Packing, Storage]]:
    """The formats that steps pack, and the type in which each may store an array's elements."""
    kinds = storages(array)
    for candidate in candidates():
        packing = candidate.example_packing
        if packing is None or not _has_steps(packing):
            continue
        for storage in kinds:
            if holds(packing.main, storage):
                yield candidate, packing, storage


def _stepped(planes: Planes, array: Array) -> list[Stepped]:
    return [row for tried in _candidates(array) for row in _matches(*tried, planes, array)]


def _has_steps(packing: Packing) -> bool:
    """Whether the places of the main plane are unknown."""
    main = packing.main.name
    return bool(packing.steps) or any(
        main in field.planes and (field.codec or (field.values and field.take)) for field in packing.fields
    )


def _matches(
    candidate: Candidate, packing: Packing, storage: Storage, planes: Planes, array: Array
) -> Iterator[Stepped]:
    buffers = dict(planes.buffers)
    if len(buffers) == 1:
        buffers = {packing.buffers[0]: next(iter(buffers.values()))}
    if packing.buffers[0] not in buffers:
        return
    if not packing.steps:  # the others hold other planes
        buffers = {packing.buffers[0]: buffers[packing.buffers[0]]}
    by_dims: dict[tuple[int, ...], list[Change]] = {}
    for change in changes(array.shape):
        by_dims.setdefault(change.dims(array.shape), []).append(change)
    alone = len(packing.planes) == 1 and storage.bits * array.size == 8 * buffers[packing.buffers[0]].size
    for dims, own in by_dims.items():
        if not _fits(candidate, packing, planes, buffers, dims):
            continue
        for times in (1, 2) if alone and storage.is_code else (1,):
            for way in _ways(packing, storage, array, buffers[packing.buffers[0]].size):
                step = Step(candidate, packing, storage, own[0], times, way)
                try:
                    yield from _compared(step, own, buffers, array)
                except LayoutError:  # the buffer holds what the format never stores
                    continue


def _ways(packing: Packing, storage: Storage, array: Array, size: int) -> list[Reordering]:
    """How the buffer may be reordered; of a large one, few ways are tried."""
    if len(packing.planes) > 1 or not storage.is_code:
        return [PLAIN]
    ways = [way for way in reorderings(storage.bits, size) if not way.halves]
    return ways if array.size <= SMALL else [way for way in ways if way.flip < 8]


def _fits(
    candidate: Candidate, packing: Packing, planes: Planes, buffers: Buffers, dims: tuple[int, ...]
) -> bool:
    try:
        sizes = buffer_sizes(candidate.name, dims, None, dict(candidate.parameters))
        first = packing.buffers[0]
        if (packing.steps and len(sizes) > len(buffers)) or sizes[first] != buffers[first].size:
            return False
        return planes.fits(packing, candidate.name, dims)
    except LayoutError:
        return False


def _compared(step: Step, own: list[Change], buffers: Buffers, array: Array) -> Iterator[Stepped]:
    """The comparisons of all elements, for each change with which the first rows agree."""
    dims = own[0].dims(array.shape)
    is_small = array.size <= SMALL or step.packing.steps
    rows = 0 if is_small else _first_rows(step.candidate, len(dims))
    part, first = dims, buffers
    if 0 < rows < dims[0]:
        part = (rows, *dims[1:])
        sizes = buffer_sizes(step.candidate.name, part, None, dict(step.candidate.parameters))
        first = {name: data[: sizes[name]] for name, data in buffers.items()}
    found = step.unpacked(first, part)
    some = _some(part)
    for change in own:
        tried = step._replace(change=change)
        if step.packing.rounds:
            full = change.origin(tuple(np.unravel_index(np.arange(prod(part)), part)))
            wanted = tried.rounded(array[full].reshape(part))[some]
        else:
            wanted = array[change.origin(some)]
        values, share = _values(step.storage, found[some], wanted)
        if share > NEAR:
            tried = tried._replace(values=values)
            if found.shape != dims:
                found, part = step.unpacked(buffers, dims), dims
                some = _some(part)
            yield Stepped(tried, _whole(tried, found, array), dims)


def _some(dims: tuple[int, ...]) -> tuple[Array, ...]:
    """The indices of some elements; all of a small array."""
    size = prod(dims)
    numbers = np.arange(size) if size <= SAMPLES else np.random.default_rng(0).integers(0, size, SAMPLES)
    return tuple(np.unravel_index(numbers, dims))


def _whole(step: Step, found: Array, array: Array) -> Comparison:
    if not step.packing.rounds:
        return compare_arrays(found, Sides(step.storage, step.values, step.change, array))
    rounded = step.rounded(step.change.apply(array))
    return compare_arrays(found, Sides(step.storage, step.values, NOTHING, rounded))


def _values(storage: Storage, found: Array, wanted: Array) -> tuple[ValueChange, float]:
    """The change of values that most elements have, and their share."""
    right = storage.raw(wanted)
    if not storage.is_code:
        got = np.ascontiguousarray(found).reshape(-1).view(np.uint8).reshape(right.shape)
        return UNCHANGED, float(np.mean((got == right).all(-1)))
    codes = found.reshape(1, -1)
    inside = np.ones(codes.shape, bool)
    (xor,), share = most_frequent(codes ^ right, inside)
    (added,), other = most_frequent(codes - right & np.uint8((1 << storage.bits) - 1), inside)
    change = ValueChange("^", xor) if share[0] >= other[0] else ValueChange("+", added)
    return change if change.number else UNCHANGED, float(max(share[0], other[0]))


@cache
def _first_rows(candidate: Candidate, rank: int) -> int:
    """The least number of first rows whose bytes are the first ones of every buffer; 0 if there is none."""
    packing = candidate.example_packing
    assert packing is not None
    assert candidate.found is not None
    assert candidate.found.example is not None
    (_, *rest), _ = candidate.found.example
    if rank > len(rest) + 1:
        return 1
    for rows in ROWS:
        try:
            small, large = (_example(candidate, packing, (count, *rest)) for count in (rows, 2 * rows))
        except LayoutError:  # not a multiple
            continue
        if all(np.array_equal(a, b[: a.size]) for a, b in zip(small, large, strict=True)):
            return rows
    return 0


def _example(candidate: Candidate, packing: Packing, dims: tuple[int, ...]) -> list[Array]:
    """The bytes of random planes whose first rows do not depend on the number of rows."""
    planes = random_planes(packing, candidate.name, dims)
    packed = pack_planes(planes, candidate.name, dict(candidate.parameters))
    return [np.ascontiguousarray(b).reshape(-1).view(np.uint8) for b in packed.buffers.values()]


def random_planes(packing: Packing, name: str, dims: tuple[int, ...]) -> dict[str, Array]:
    """Random values of each plane; planes of any dtype are f16."""

    def values(shape: tuple[int, ...], number: int, seed: int) -> Array:
        return np.random.default_rng(seed).integers(0, number, shape)

    return example_planes(packing, packing.sizes(dims, name), lookup("f16"), values)


def _as_given(codes: Array, plane: Plane) -> Array:
    """Codes modulo 2**bits as users give them."""
    low, _ = plane.code_range if plane.bits else (0, 0)
    if low < 0:
        signed = codes.astype(np.int16)
        return np.where(signed >= 1 << plane.bits - 1, signed - (1 << plane.bits), signed).astype(np.int8)
    return codes
