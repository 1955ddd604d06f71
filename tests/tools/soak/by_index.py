"""The soak's put, take_along_axis and put_along_axis: hostile indices in guarded memory, against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tilejit as tj
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.sizes import kernels_for_all_sizes

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

ROUTINES = ("put", "take_along_axis", "put_along_axis")
DTYPES = ("?", "u1", "i2", "f4", "f8", "c16", "V3", ">i4", "M8[s]", "S5")
INDICES = ("i8", "i8", "i4", "i2", "u1", "u8", ">i8")


def by_index(case: Case) -> None:
    """An array with any strides, indices of which few or none are outside, and values. NumPy has copies."""
    name, dtype = case.one_of(*ROUTINES), np.dtype(case.one_of(*DTYPES))
    shape = tuple(case.pick(1, 12) for _ in range(case.pick(1, 3)))
    axis = case.pick(0, len(shape) - 1)
    mode = case.one_of("raise", "wrap", "clip")
    index = np.dtype(case.one_of(*INDICES))
    if name == "put":
        places: tuple[int, ...] = (case.pick(1, 60),)
    else:
        places = tuple(case.pick(1, 20) if k == axis else case.one_of(n, n, 1) for k, n in enumerate(shape))
    x = _placed(case, 0, _elements(case, dtype, shape))
    extent = x.size if name == "put" else shape[axis]
    indices = _placed(case, 1, _indices(case, places, extent, index, far=mode != "wrap"))
    values = _placed(case, 2, _elements(case, dtype, case.one_of(places, places[-1:], (1,))))
    case.note(routine=name, dtype=dtype, shape=shape, index=index, places=places, axis=axis, mode=mode)
    copies = _copied(x), _copied(indices), _copied(values)
    theirs = _outcome(name, np, copies, axis, mode)
    before = x.copy()
    with kernels_for_all_sizes():
        ours = _outcome(name, tj, (x, indices, values), axis, mode, threads=case.one_of(None, 1, 3))
    case.check(ours == theirs, f"{ours} is not {theirs}")
    # NumPy's `put` may write elements before it finds an index outside.
    right = before if name == "put" and isinstance(theirs, tuple) else copies[0]
    case.check(x.tobytes() == right.tobytes(), "the array differs")
    case.check(indices.tobytes() == copies[1].tobytes(), "the indices changed")
    case.check(values.tobytes() == copies[2].tobytes(), "the values changed")
    case.check(all(case.bench.arena(k).untouched() for k in range(3)), "bytes beside an array changed")


def _outcome(
    name: str, module: Any, arrays: tuple[NDArray[Any], ...], axis: int, mode: str, **keywords: Any
) -> Any:
    """The bytes of the result, or None; or the exception's type and text."""
    x, indices, values = arrays
    try:
        if name == "put":
            return module.put(x, indices, values, mode, **keywords)
        if name == "put_along_axis":
            return module.put_along_axis(x, indices, values, axis, **keywords)
        return module.take_along_axis(x, indices, axis, **keywords).tobytes()
    except Exception as error:
        return type(error), str(error)


def _elements(case: Case, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    size = int(np.prod(shape)) * dtype.itemsize
    limit = 2 if dtype.kind == "b" else 64
    return case.rng.integers(0, limit, size, np.uint8).view(dtype).reshape(shape)


def _indices(
    case: Case, shape: tuple[int, ...], extent: int, dtype: np.dtype[Any], *, far: bool
) -> NDArray[Any]:
    """Random indices in bounds, and in one case of four some outside, as `far` as the dtype allows.

    NumPy wraps an index by one extent at a time, which takes years for the farthest ones.
    """
    info = np.iinfo(dtype)
    found = case.rng.integers(max(-extent, int(info.min)), min(extent, int(info.max)), shape).astype(dtype)
    if case.chance(4):
        for _ in range(case.pick(1, 3)):
            outside = case.one_of(extent, -extent - 1, 3 * extent, -5 * extent)
            if far:
                outside = case.one_of(int(info.min), int(info.max), outside)
            if info.min <= outside <= info.max:
                found.reshape(-1)[case.pick(0, found.size - 1)] = outside
    return found


def _copied(x: NDArray[Any]) -> NDArray[Any]:
    """The same elements at the same strides, which determine NumPy's order of access."""
    room = np.zeros(span_bytes(x.itemsize, x.shape, x.strides), np.uint8)
    view = strided_view(room, x.dtype, x.shape, x.strides)
    view[...] = x
    return view


def _placed(case: Case, number: int, like: NDArray[Any]) -> NDArray[Any]:
    """The same elements against a guard page: axes in any order, some with gaps, some reversed."""
    strides, step = [0] * like.ndim, like.itemsize
    for k in case.rng.permutation(like.ndim).tolist():
        step *= case.one_of(1, 1, 2)
        strides[k] = step * case.one_of(1, 1, -1)
        step *= like.shape[k]
    arena: Guarded = case.bench.arena(number)
    room = arena.place(span_bytes(like.itemsize, like.shape, tuple(strides)), at_end=case.chance(2))
    view = strided_view(room, like.dtype, like.shape, tuple(strides))
    view[...] = like
    return view
