"""Compile kernels ahead of the first copy that needs them: for named formats, and for NumPy transposes.

Nothing is copied. Programs are planned for hypothetical arrays, small and large, divisible and not, and their
launch plans and kernels are stored. Many shapes share one kernel, so a few shapes represent most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np

from codegen import LayoutError, dataclass, default_store, thread_count
from tilejit.arrays.memory import LINE_BYTES
from tilejit.arrays.strided import minor_axis, slowness_of_copy
from tilejit.copies.plan import cached_plan
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.formats.registry import called
from tilejit.layout.strides import row_major_strides
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import pack_program, unpack_program
from tilejit.programs.tuning import DEFAULT
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.sides import minor_dimension

Dims = tuple[int, ...]
Copy = TypeVar("Copy")
OnStep: TypeAlias = Callable[[int, int, str], None]
"""Called with the number of finished steps, the number of all steps, and the current step."""

SIZES = (1 << 16, 4 << 20, 64 << 20)
"""Sizes of arrays in bytes: in cache, beyond it on one thread, and beyond it on several."""

WIDTHS = (1, 2, 4, 8, 16)
"""Element sizes in bytes to transpose."""

PROGRAMS = 2
"""The most programs that one copy here represents: a pack and an unpack."""

MOST_AXES = 4
"""The most dimensions of arrays to transpose, in every order of axes."""

BEGINS = (0, LINE_BYTES // 4)
"""Positions of destinations within a cache line: TileJIT's at its start, NumPy's a quarter into it."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """How many copies were planned, and how many of their kernels were compiled or already stored."""

    copies: int
    compiled: int
    stored: int


def warm_format(name: str, on_step: OnStep | None = None) -> Warmed:
    """Compile the kernels of packs and unpacks of a format, for every dtype that it supports.

    "blis-a, mr=8" -> Warmed(copies=60, compiled=21, stored=0)

    Args:
        name: the format, with its parameters.
        on_step: called before each copy with the copies done, their total, and a description of the next.

    Raises:
        LayoutError: the format does not exist.
        KernelError: a kernel could not be built.
    """
    check_format(name)
    return _counted(list(_format_specs(name)), _pack_and_unpack, on_step)


def check_format(name: str) -> None:
    """Raise unless the text is a format with its own parameters.

    Raises:
        LayoutError: the format does not exist, or a parameter is invalid.
        TypeError: the format does not take a parameter.
    """
    found, _ = called(name, {})
    if found.example:
        dims, dtype = found.example
        as_layout(name, dtype=dtype, dims=dims)


def warm_transposes(on_step: OnStep | None = None) -> Warmed:
    """Compile the kernels of NumPy transposes: every order of two to four axes, every width.

    Raises:
        KernelError: a kernel could not be built.
    """
    return _counted(list(_transposes()), _transpose, on_step)


def _counted(copies: Sequence[Copy], prepare: Callable[[Copy], int], on_step: OnStep | None) -> Warmed:
    """Prepare all copies, and count their kernels."""
    store = default_store()
    hits, misses = store.hits, store.misses
    store.plans_left += PROGRAMS * len(copies)
    count = 0
    for k, copy in enumerate(copies):
        if on_step:
            on_step(k, len(copies), f"{store.misses - misses} compiled, {copy}")
        count += prepare(copy)
    return Warmed(count, store.misses - misses, store.hits - hits)


def _format_specs(name: str) -> Iterator[Spec]:
    """Every layout to pack into and to unpack."""
    small = (called(name, {})[0].example or ((16, 16), ""))[0]
    seen = set()
    for element in PRIMITIVE_TYPES.values():
        if not element.is_array_element:
            continue
        for size in SIZES:
            for dims in shapes(small, size * 8 // element.storage_bits):
                try:
                    spec = as_layout(name, dtype=element, dims=dims)
                    check_packable(spec)
                except LayoutError:  # no rule for the dtype, or only for packed elements
                    continue
                # Elements of equal width share kernels.
                alike = str(spec).partition("[")[2], spec.bits, spec.dtype.itemsize
                if alike not in seen:
                    seen.add(alike)
                    yield spec


def _pack_and_unpack(spec: Spec) -> int:
    itemsize = spec.dtype.itemsize
    strides = tuple(itemsize * step for step in row_major_strides(spec.dimensions))
    slowness = slowness_of_copy(minor_dimension(spec), minor_axis(spec.dimensions, strides))
    threads = thread_count(None, prod(spec.dimensions) * itemsize + spec.size_in_bytes, slowness)
    own = array_element(spec)
    pack = pack_program(spec, strides, own, bytes(itemsize), False, threads, DEFAULT)
    unpack = unpack_program(spec, strides, own, False, threads, DEFAULT)
    for program in (pack, unpack):
        for begin in BEGINS:
            program.prepare(begin)
    return 1


@dataclass(frozen=True, slots=True)
class Transpose:
    """An array in C order, and the new order of its axes."""

    dims: Dims
    order: Dims
    dtype: np.dtype[np.generic]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}] transposed to axes {self.order}"


def _transposes() -> Iterator[Transpose]:
    for width in WIDTHS:
        dtype = np.dtype(np.complex128 if width == 16 else f"u{width}")
        for rank in range(2, MOST_AXES + 1):
            for order in permutations(range(rank)):
                for size in SIZES:
                    for dims in shapes((8,) * rank, size // width):
                        yield Transpose(dims, order, dtype)


def _transpose(copy: Transpose) -> int:
    """Prepare the copy of a transposed view to C order, if a kernel makes it."""
    dims, order, dtype = copy.dims, copy.order, copy.dtype
    strides = [dtype.itemsize * step for step in row_major_strides(dims)]
    shape, turned = (tuple(sizes[axis] for axis in order) for sizes in (dims, strides))
    if turned == tuple(strides):
        return 0
    straight = tuple(dtype.itemsize * step for step in row_major_strides(shape))
    slowness = slowness_of_copy(minor_axis(shape, straight), minor_axis(shape, turned))
    threads = thread_count(None, 2 * prod(dims) * dtype.itemsize, slowness)
    plan = cached_plan(shape, straight, dtype, shape, turned, dtype, threads)
    if plan is None:
        return 0
    for begin in BEGINS:
        plan._prepare(begin)
    return 1


def shapes(small: Dims, elements: int) -> tuple[Dims, ...]:
    """A shape of about that many elements, and shapes that tiles do not divide.

    Tiles divide no dimension, all but the last one, or only the last one. The last tile is nearly full, has
    one index, or has a few that move as a word.

    ((16, 32), 1) -> (16, 32), (15, 31), (16, 31), (15, 32), (13, 25), …, (14, 28), (16, 28), (14, 32)
    """
    even = list(small)
    while prod(even) < elements:
        even[even.index(min(even))] *= 2
    out = [even]
    cuts: tuple[Callable[[int], int], ...] = (
        lambda n: n - 1,
        lambda n: n - n // 4 + 1,
        lambda n: n - n // 4 + min(4, n // 8),
    )
    for cut in cuts:
        uneven = [cut(n) if n > 2 else n for n in even]
        out += [uneven, [*even[:-1], uneven[-1]], [*uneven[:-1], even[-1]]]
    return tuple(dict.fromkeys(tuple(dims) for dims in out))
