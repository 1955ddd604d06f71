"""First rows and columns of an array that whole-array steps packed, read from a few of its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from codegen import LayoutError, cached
from tilejit.arrays.memory import Array
from tilejit.recognize.formats.candidates import Candidate
from tilejit.recognize.formats.orders import ROWS, Order, packed_at_random
from tilejit.recognize.formats.trials import Trial


class Corner(NamedTuple):
    """The first columns of some first rows.

    The buffer of the rows has equal parts, each of which begins with a part of the columns' buffer.

    Attributes:
        first: the order of the columns.
        last: for two applications, the order of the columns that hold their elements; else None.
        parts: the number of parts.
    """

    first: Order
    last: Order | None
    parts: int

    def unpacked(self, data: Array, buffers: Mapping[str, Array]) -> Array:
        """The elements of the columns.

        Args:
            data: the bytes of the rows.
            buffers: all buffers by name.
        """
        order = self.last or self.first
        few = data.reshape(self.parts, -1)[:, : order.size // self.parts].reshape(-1)
        found = order.unpacked(few, buffers)
        if self.last is None:
            return found
        rows, columns = self.first.dims
        elements = found[:: rows // self.parts, : rows // self.parts * columns]
        return self.first.unpacked_again(elements.reshape(-1), buffers)


def corner(trial: Trial) -> Corner | None:
    """The corner of a trial with first rows; None if its buffer has no such parts, or it has few columns."""
    order = trial.first
    if len(order.dims) != 2 or not order.candidate.is_own:
        return None
    rows, width = order.dims
    columns, parts = _columns_and_parts(order.candidate, order.buffer, rows) or (width, 1)
    if columns >= width or width % columns or rows % parts or order.size % parts:
        return None
    first, last = order.of_columns(columns), None
    if trial.second is not None:
        wide = rows // parts * columns
        if trial.second.dims != order.dims or wide > width:
            return None
        last = order.of_columns(wide)
        if last is None:
            return None
    return None if first is None else Corner(first, last, parts)


@cached(1 << 8)
def _columns_and_parts(candidate: Candidate, buffer: str, rows: int) -> tuple[int, int] | None:
    """The least columns, and the parts of the buffer of that many rows; two and three times as many agree."""
    packing = candidate.example_packing
    if packing is None or packing.steps or len(packing.planes) > 1:
        return None
    plane, rng = packing.main, np.random.default_rng(0)
    for columns in ROWS:
        if plane.bits:
            low, high = plane.code_range
            main = rng.integers(low, high, (rows, 3 * columns), endpoint=True).astype(plane.array_dtype)
        else:
            main = rng.normal(size=(rows, 3 * columns)).astype(np.float32)
        try:
            few, *many = (
                packed_at_random(candidate, packing, (rows, k * columns), main[:, : k * columns])[buffer]
                for k in (1, 2, 3)
            )
        except LayoutError:  # not a multiple
            continue
        parts = 1
        while parts <= rows and rows % parts == 0 and few.size % parts == 0:
            begins = few.reshape(parts, -1)
            if all(np.array_equal(x.reshape(parts, -1)[:, : begins.shape[1]], begins) for x in many):
                return columns, parts
            parts *= 2
    return None
