"""The soak's copies between strided arrays: any axes, strides and alignments, against NumPy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import tests.tools.strategies as random_of
import tilejit as tj
from tests.tools.guard import Guarded, span_bytes, strided_view
from tilejit.copies.plan import CopyPlan

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

Array = NDArray[Any]
MOST_BYTES = 200 << 10
REACH_BYTES = 1 << 21
SHORT = (2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 12)
LONG = (
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    48,
    63,
    64,
    65,
    66,
    100,
    127,
    128,
    129,
    192,
    255,
    256,
    300,
    512,
    1000,
    4097,
)
CASTS = (
    ("i1", "u1"),
    ("u2", "i4"),
    ("i4", "i8"),
    ("i8", "i2"),
    ("u1", "f4"),
    ("i4", "f8"),
    ("f4", "f8"),
    ("f8", "f4"),
    ("f4", ml_dtypes.bfloat16),
    ("<u2", ">u2"),
    (">u4", "<u4"),
    ("<c8", ">c8"),
    (">f8", "<f8"),
)


VECTOR_SIZES = (
    *("auto", 1, 3, 16, 64, 100, 256, 1024, 1 << 20),
    *((16, 32), (7, 5), (1, 1), (64, 64), (32, 256), (1024, 1024), (1 << 17, 8), (1, 1 << 20)),
    *("2*hw", "l1/4", "2*cores*hw", ("4", "2*hw")),
)


def keywords(case: Case) -> dict[str, Any]:
    """The `threads` keyword, and sometimes tuning keywords. Kernels for one shape are compiled again."""
    wanted: dict[str, Any] = {"threads": case.one_of(1, 1, 2, 3, None)}
    if case.chance(6):
        wanted["virtual_vector_size"] = case.one_of(*VECTOR_SIZES)
    if case.chance(60):
        wanted["specialize"] = "sizes"
    if case.chance(60):
        wanted["tune"] = True
    case.note(**wanted)
    return wanted


def copy_arrays(case: Case) -> None:
    """One copy, by a plan or by copyto. Small ones run a second time under `watching`."""
    source, target = _dtypes(case)
    dims = _dims(case, max(source.itemsize, target.itemsize))
    if len(dims) > 1 and not case.chance(3):
        dims, src_dims, dst_strides, src_strides = _transposed(case, dims, target.itemsize, source.itemsize)
    else:
        dst_strides = _strides(case, dims, target.itemsize, broadcast=False)
        src_dims = _broadcast(case, dims)
        src_strides = _strides(case, src_dims, source.itemsize, broadcast=True)
    room = _room(case, case.bench.target, span_bytes(target.itemsize, dims, dst_strides), "dst")
    data = _room(case, case.bench.source, span_bytes(source.itemsize, src_dims, src_strides), "src")
    dst, src = (
        strided_view(room, target, dims, dst_strides),
        strided_view(data, source, src_dims, src_strides),
    )
    case.note(copy=f"{source} {src_dims} {src_strides} to {target} {dims} {dst_strides}")
    kept = data.copy()
    wanted = room.copy()
    with warnings.catch_warnings(action="ignore"):
        np.copyto(strided_view(wanted, target, dims, dst_strides), src, "unsafe")
        how = keywords(case)
        plan = None
        if np.can_cast(source, target, "same_kind") and case.chance(2):
            plan = tj.plan_copy(dst, src, **how)
            _count(case, plan)
            plan(dst, src)
        else:
            tj.copyto(dst, src, "unsafe", **how)
        _compare(case, room, wanted, data, kept)


def _compare(
    case: Case, room: NDArray[np.uint8], wanted: NDArray[np.uint8], data: NDArray[np.uint8], kept: Array
) -> None:
    wrong = np.flatnonzero(room != wanted)
    if len(wrong):
        case.check(False, f"{len(wrong)} wrong bytes of {len(room)}, the first at {wrong[0]}")
    case.check(bool((data == kept).all()), "the source changed")
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the arrays changed"
    )


def _count(case: Case, plan: CopyPlan) -> None:
    """Note the kernels of a copy, or that NumPy makes it."""
    case.bench.kernels |= {kernel.name for kernel in plan.kernels}
    case.bench.counts["by NumPy"] += not plan.kernels


def _dtypes(case: Case) -> tuple[np.dtype[Any], np.dtype[Any]]:
    if case.chance(8):
        source, target = case.one_of(*CASTS)
        return np.dtype(source), np.dtype(target)
    size = case.one_of(1, 1, 2, 2, 4, 4, 4, 8, 8, 16, 16, case.pick(3, 15))
    own = np.dtype(f"V{size}")
    return own, own


def _dims(case: Case, itemsize: int) -> tuple[int, ...]:
    """Short and long dimensions, mixed."""
    room = (MOST_BYTES if case.chance(8) else case.one_of(1000, 4000, 20_000)) // itemsize
    dims: list[int] = []
    for _ in range(case.one_of(1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 9)):
        fits = [n for n in (SHORT if case.chance(2) else LONG) if n <= room]
        if not fits:
            break
        dims.append(case.one_of(*fits))
        room //= dims[-1]
    if case.chance(8) and room > 1:
        dims.append(case.pick(1, min(room, 400)))
    return tuple(dims[k] for k in random_of.permutation(case.pick, len(dims)))


def _broadcast(case: Case, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The source's own dimensions: sometimes some of them are one, or there are fewer."""
    if not case.chance(8):
        return dims
    return tuple(1 if case.chance(3) else n for n in dims)[case.pick(0, len(dims)) :]


def _strides(case: Case, dims: tuple[int, ...], itemsize: int, *, broadcast: bool) -> tuple[int, ...]:
    """Axes in any order, rows with padding that keeps lines aligned or not, reversed and repeated axes."""
    step = itemsize if not case.chance(12) else itemsize * case.pick(2, 3) + case.one_of(0, 0, 1)
    order = tuple(reversed(range(len(dims))))
    if case.chance(2):
        order = random_of.permutation(case.pick, len(dims))
    return _walked(case, dims, itemsize, order, step, broadcast=broadcast)


def _transposed(
    case: Case, dims: tuple[int, ...], target: int, source: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Both sides contiguous, along different axes; result rows often are full lines that begin on lines."""
    side = max(1, 64 // target)
    if case.chance(2) and np.prod(dims[:-1]) * side * target <= MOST_BYTES:
        dims = (*dims[:-1], max(dims[-1] // side, 1) * side)
    order = tuple(reversed(range(len(dims))))
    first = case.pick(1, len(dims) - 1)
    others = tuple(order[k] for k in range(len(dims)) if k != first)
    if case.chance(3):
        others = tuple(others[k] for k in random_of.permutation(case.pick, len(others)))
    dst_strides = _walked(case, dims, target, order, target, broadcast=False)
    src_strides = _walked(case, dims, source, (order[first], *others), source, broadcast=case.chance(4))
    return dims, dims, dst_strides, src_strides


def _walked(
    case: Case, dims: tuple[int, ...], itemsize: int, order: tuple[int, ...], step: int, *, broadcast: bool
) -> tuple[int, ...]:
    """Strides of axes in that order, the most minor first."""
    out = [0] * len(dims)
    padded, lines = case.chance(2), case.chance(2)
    for d in order:
        if broadcast and case.chance(16):
            continue
        out[d] = -step if case.chance(16) else step
        step *= dims[d]
        if padded and step < REACH_BYTES // 64:
            whole = 0, -step % 64, -step % 64, -step % 64 + 64, -step % 2048
            step += case.one_of(*whole) if lines else case.one_of(*whole, itemsize, case.pick(1, 64))
    if span_bytes(itemsize, dims, tuple(out)) <= REACH_BYTES:
        return tuple(out)
    return tuple(int(s) for s in np.empty(dims, f"V{itemsize}").strides)


def _room(case: Case, arena: Guarded, size: int, side: str) -> NDArray[np.uint8]:
    """Noise at any alignment, usually flush against a guard page."""
    at_end = case.chance(2)
    gap = case.one_of(0, 0, -size % 64 if at_end else 64, case.pick(1, 63))
    case.note(**{f"{side}_gap": gap, f"{side}_at_end": at_end})
    room = arena.place(size, at_end=at_end, gap=gap)
    room[:] = case.random_bytes(size)
    return room
