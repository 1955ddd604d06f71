"""The ranges of the elements of arrays that subscripts depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.bounds import Domain
from codegen.analysis.ranges import Range
from codegen.ir.index import ArrayElement, FloorDiv, Index, Sum
from codegen.support.dataclasses import dataclass

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
NONE: Range = (1, 0)

_UNSIGNED = {np.dtype(f"i{n}"): (np.dtype(f"u{n}"), (1 << 8 * n - 1) - 1) for n in (1, 2, 4, 8)}
"""The unsigned dtype of each signed one, and its largest number."""


def range_of(values: NDArray[Any]) -> Range:
    """The minimum and the maximum of some integers; the minimum may be given as 0 if it is larger.

    One pass suffices if none is negative, because negative numbers are the largest unsigned ones.
    """
    if not values.size:
        return NONE
    unsigned, most = _UNSIGNED.get(values.dtype, (values.dtype, None))
    high = int(np.maximum.reduce(values.view(unsigned), axis=None))
    if most is None or high <= most:
        return 0, high
    return int(values.min()), int(values.max())


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the elements in a part of an array."""

    array: str
    box: tuple[slice, ...]
    low: int
    high: int

    def hold(self, arrays: Arrays) -> bool:
        """Whether the elements are within the limits."""
        low, high = range_of(arrays[self.array][self.box])
        return low > high or (self.low <= low and high <= self.high)


def narrowed(index: Index, wanted: Range, domain: Domain) -> tuple[ArrayElement, Range] | None:
    """The element in an expression, and a range of the element that keeps the expression in `wanted`.

    idx[i] + j + 1 from 0 to 9, j from 0 to 3 -> idx[i] from -1 to 5
    idx[i] // 2 from 0 to 9                   -> idx[i] from 0 to 19
    idx[i] + idx[j]                           -> None, as there are several elements
    """
    low, high = wanted
    match index:
        case ArrayElement():
            return index, wanted
        case FloorDiv(of, by):
            return narrowed(of, (low * by, high * by + by - 1), domain)
        case Sum(((part, k),), rest):
            least, most = domain.extremes(rest)
            if least is None or most is None:
                return None
            first, last = (low - least, high - most)[:: 1 if k > 0 else -1]
            return narrowed(part, (-(-first // k), last // k), domain)
    return None
