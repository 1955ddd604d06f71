"""Compare the padding of packed arrays in files with what `pack` writes there, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from codegen import dataclass, thread_count
from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack
from tilejit.files.pieces import MOST_BYTES, cut, has_padding, piece_buffer
from tilejit.files.windows import FileTiles
from tilejit.layout.cute_shape import Spec

BLOCK_BYTES = 1 << 20
"""Bytes to compare at a time, so that temporary arrays stay small; a multiple of any element's size."""


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding of one buffer.

    Attributes:
        slots: the slots that hold no element.
        differing: those with another value than the recorded one.
        first: the first of these, counted in elements from the start of the buffer; -1 if none differs.
    """

    slots: int
    differing: int = 0
    first: int = -1


def checked_padding(
    tiles: FileTiles, threads: int | None = None, advance: Callable[[int], None] | None = None
) -> Padding:
    """Compare the padding of a packed array with the layout's padding value; zero bits if it has none.

    Each part of the buffer is unpacked and packed again, so whatever differs is padding. A layout that never
    repeats takes memory for the entire array.

    Args:
        tiles: the packed array.
        threads: the number of threads; None chooses it from the size.
        advance: called with the number of bytes after each part.

    Raises:
        LayoutError: the file has become shorter.
    """
    spec = tiles.layout
    slots = max(0, spec.physical_size - prod(spec.dimensions))
    if not has_padding(spec):
        return Padding(slots)
    differing, first = 0, -1
    for begin, found, expected in _parts(tiles, threads):
        for at in range(0, len(found), BLOCK_BYTES):
            changed = found[at : at + BLOCK_BYTES] ^ expected[at : at + BLOCK_BYTES]
            if not changed.any():
                continue
            wrong = _slots(changed, spec)
            if differing == 0:
                first = 8 * (begin + at) // spec.bits + int(wrong.argmax())
            differing += int(np.count_nonzero(wrong))
        if advance:
            advance(len(found))
    return Padding(slots, differing, first)


def _parts(tiles: FileTiles, threads: int | None) -> Iterator[tuple[int, Array, Array]]:
    """The first byte of each part of the buffer, its bytes in the file, and those that `pack` writes."""
    spec = tiles.layout
    pieces = cut(spec, MOST_BYTES)
    if pieces is None or spec.size_in_bytes <= MOST_BYTES:
        made = pack(tiles.whole().unpack(threads=threads), spec, threads=threads).buffer
        yield 0, tiles.data.map(0, spec.size_in_bytes), made.view(np.uint8)
        return
    for begin, end, box in pieces.pieces():
        count = thread_count(threads, 2 * (end - begin))
        made = piece_buffer(spec, tiles[box], end - begin, count)
        yield begin, tiles.data.map(begin, end), made


def _slots(changed: Array, spec: Spec) -> Array:
    """Which slots have changed bits, also after the last slot of packed elements."""
    if not spec.packed:
        return np.asarray(changed.reshape(-1, spec.dtype.itemsize).any(axis=1))
    masks = ((1 << spec.bits) - 1) << np.arange(0, 8, spec.bits)
    return np.asarray((changed[:, None] & masks.astype(np.uint8)).reshape(-1) != 0)
