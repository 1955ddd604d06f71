"""The indices of an array that a view holds: CuTe's identity tensor, divided and composed like a layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, zip_longest
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.cute.int_tuple import flatten
from tilejit.cute.layout import Layout, extent
from tilejit.cute.modes import flat_modes
from tilejit.cute.underscore import is_underscore
from tilejit.support.tokens import MAX_INT64

Indices = NDArray[np.int64]
Operation = Callable[[Layout, Any], Layout]


class ViewAxis(NamedTuple):
    """An axis of a view.

    Attributes:
        size: the number of elements.
        steps: the step from one of them to the next, in indices of each dimension of the array.
    """

    size: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A map from coordinates of a view to indices of elements: starts + sum of coordinate * steps.

    Attributes:
        dims: the array's dimensions.
        starts: the index at coordinate 0.
        axes: the axes of the view.
        profile: the sizes of the axes, nested as in CuTe.
    """

    dims: tuple[int, ...]
    starts: tuple[int, ...]
    axes: tuple[ViewAxis, ...]
    profile: Any

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis."""
        return tuple(axis.size for axis in self.axes)

    def reach(self, dim: int) -> tuple[int, int]:
        """The lowest and the highest index of a dimension, both included."""
        reaches = [(axis.size - 1) * axis.steps[dim] for axis in self.axes]
        start = self.starts[dim]
        return start + sum(min(0, r) for r in reaches), start + sum(max(0, r) for r in reaches)

    def beyond(self) -> int | None:
        """The first dimension in which the view passes the end of the array; None if there is none."""
        if 0 in self.sizes:
            return None
        for dim, size in enumerate(self.dims):
            low, high = self.reach(dim)
            if low < 0 or high >= size:
                return dim
        return None

    def indices(self, numbers: Indices) -> tuple[Indices, ...]:
        """The index along each dimension for row-major numbers of coordinates."""
        out = [np.full_like(numbers, start) for start in self.starts]
        for axis in reversed(self.axes):
            coordinate = numbers % axis.size
            numbers = numbers // axis.size
            for index, step in zip(out, axis.steps, strict=True):
                if step:
                    index += coordinate * step
        return tuple(out)

    def predicate(self, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each coordinate is an element of the array, 0 <= index < size; `inside` starts as True."""
        for dim, size in enumerate(self.dims):
            index: Any = np.array(self.starts[dim])
            for k, axis in enumerate(self.axes):
                if axis.steps[dim]:
                    along = [1] * len(self.axes)
                    along[k] = axis.size
                    index = index + (np.arange(axis.size) * axis.steps[dim]).reshape(along)
            inside &= (index >= 0) & (index < size)
        return inside


@dataclass(frozen=True, slots=True)
class Identity:
    """The layout of an array's own indices: a stride represents the steps along all dimensions at once.

    Identity.of((32, 16), (129, 65)).layout -> (32,16):(1,129)    its steps(258) -> (0, 2)

    CuTe writes such strides as multiples of basis vectors. Here a basis vector is a number.

    Attributes:
        dims: the array's dimensions.
        radices: more than twice the longest step along each dimension.
        weights: the stride of each dimension: the product of the radices before it.
    """

    dims: tuple[int, ...]
    radices: tuple[int, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, dims: tuple[int, ...], radices: Sequence[int]) -> Identity:
        """The identity of an array.

        Raises:
            LayoutError: the strides exceed 64 bits.
        """
        weights = tuple(accumulate(radices, mul, initial=1))
        if weights[-1] > MAX_INT64:
            raise LayoutError(
                f"a view of {len(dims)} dimensions has steps beyond 64 bits\n"
                "  use smaller tilers, or slice the array first"
            )
        return cls(dims, tuple(radices), weights[:-1])

    @classmethod
    def by_dimension(cls, dims: tuple[int, ...], tilers: Sequence[Any]) -> Identity:
        """The identity for operations that apply a separate tiler to each dimension."""
        longest = [reach_of(size, part) for size, part in zip_longest(dims, tilers)]
        return cls.of(dims, [2 * reach + 1 for reach in longest])

    @classmethod
    def across(cls, dims: tuple[int, ...], reaches: Sequence[int]) -> Identity:
        """The identity for operations that join dimensions: sums of two indices within `reaches` differ.

        A layout composed with this one is therefore a layout in every dimension.
        """
        return cls.of(dims, [4 * reach + 1 for reach in reaches])

    @property
    def layout(self) -> Layout:
        """The identity as a layout, one mode for each dimension."""
        return Layout(self.dims, self.weights)

    def steps(self, stride: int) -> tuple[int, ...]:
        """The steps that a stride represents."""
        out: list[int] = []
        for radix in self.radices[:-1]:
            half = radix // 2
            digit = (stride + half) % radix - half
            out.append(digit)
            stride = (stride - digit) // radix
        return (*out, stride) if self.radices else ()

    def stride(self, steps: Sequence[int]) -> int:
        """The stride that represents some steps."""
        return sum(map(mul, steps, self.weights))

    def read(self, layout: Layout, start: int = 0) -> IndexMap:
        """The map for a layout that the algebra derived from the identity, and for its first offset."""
        axes = tuple(ViewAxis(size, self.steps(step)) for size, step in flat_modes(layout))
        return IndexMap(self.dims, self.steps(start), axes, layout.shape)


def flat_map(dims: tuple[int, ...], starts: Sequence[int], axes: Sequence[ViewAxis]) -> IndexMap:
    """A map whose axes are not nested."""
    return IndexMap(dims, tuple(starts), tuple(axes), tuple(axis.size for axis in axes))


def along(dim: int, rank: int, step: int) -> tuple[int, ...]:
    """The steps along one dimension.

    1, 3, 5 -> (0, 5, 0)
    """
    return tuple(step if d == dim else 0 for d in range(rank))


def reach_of(size: int, part: Any) -> int:
    """An upper bound on indices and steps after dividing or composing a dimension with a tiler."""
    return 1 if is_underscore(part) else size + 2 * _reach(part)


def _reach(part: Any) -> int:
    if isinstance(part, tuple | list):
        return sum(map(_reach, part))
    if isinstance(part, Layout):
        low, high = extent(part)
        return high - low + sum(map(abs, flatten(part.stride))) + 1
    return 0 if is_underscore(part) else abs(int(part))
