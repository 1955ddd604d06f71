"""The soak's gathers and scatters: hostile indices in guarded memory, against Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tilejit as tj
from tests.kernels.indexed import CASES
from tests.tools.guard import Guarded

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

DTYPES = ("f4", "f8", "u1", "i2")
INDICES = ("i4", "i8", "u1", "u4")
MOST = 70

KERNELS = {
    (case.name, bounds): tj.kernel(virtual_vector_size=16, index_bounds=bounds)(case.function)
    for case in CASES
    for bounds in ("check", "mask")
}
"""The kernels, made once: the first case with some dtypes compiles for all."""


def indexed(case: Case) -> None:
    """A kernel with random indices, of which few or none are outside. Python gives the expected result."""
    chosen, bounds = case.one_of(*CASES), case.one_of("check", "check", "mask")
    dtype, index = np.dtype(case.one_of(*DTYPES)), np.dtype(case.one_of(*INDICES))
    size = case.pick(0, MOST) if chosen.rank == 1 else case.pick(1, 20)
    arrays = [case.rng.integers(0, 9, (size,) * chosen.rank).astype(dtype) for _ in range(2)]
    arrays.append(_indices(case, size, index, apart=chosen.apart))
    case.note(kernel=chosen.name, dtype=dtype, index=index, size=size, idx=arrays[2].tolist(), bounds=bounds)
    given = [_against_a_page(case, case.bench.arena(k), x) for k, x in enumerate(arrays)]
    wanted = [x.copy() for x in arrays]
    try:
        with np.errstate(all="ignore"):
            chosen.function(*wanted)
    except (IndexError, OverflowError):  # NumPy's own errors for indices outside
        if bounds == "mask":
            _run(case, chosen.name, bounds, given)  # the tests check its result; no page is touched
            return
        try:
            _run(case, chosen.name, bounds, given)
        except IndexError:
            wanted = arrays
        else:
            case.check(False, "an index outside is accepted")
    else:
        _run(case, chosen.name, bounds, given)
    for name, mine, right in zip(("y", "x", "idx"), given, wanted, strict=True):
        case.check(np.array_equal(mine, right), f"{name} differs")


def _run(case: Case, name: str, bounds: str, given: list[Any]) -> None:
    KERNELS[name, bounds](*given)
    case.check(all(case.bench.arena(k).untouched() for k in range(3)), "bytes beside an array changed")


def _indices(case: Case, size: int, dtype: np.dtype[Any], *, apart: bool) -> NDArray[Any]:
    """Indices into arrays of that size, some negative, and some outside unless they must differ."""
    info = np.iinfo(dtype)
    if apart:
        found = case.rng.permutation(size)
        found = np.where(case.rng.random(size) < 0.3 * (info.min < 0), found - size, found)
    else:
        found = case.rng.integers(max(-size, int(info.min)), max(size, 1), size)
    found = found.astype(dtype)
    if apart or not size or not case.chance(4):
        return found
    for _ in range(case.pick(1, 3)):
        outside = case.one_of(int(info.min), int(info.max), size, -size - 1)
        found[case.pick(0, size - 1)] = np.int64(outside).astype(dtype)
    return found


def _against_a_page(case: Case, arena: Guarded, like: NDArray[Any]) -> NDArray[Any]:
    room = arena.place(like.nbytes, at_end=case.chance(2))
    array = room.view(like.dtype).reshape(like.shape)
    array[...] = like
    return array
