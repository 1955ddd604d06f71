"""Copies between two arrays of fixed layouts: checked, lowered and compiled once, then run many times."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen import ALL_FLAGS as ALL_FLAGS
from codegen import (
    Direct,
    Kernel,
    LayoutError,
    cached,
    compiler_lock,
    in_dask_worker,
    thread_count,
)
from tilejit.arrays import float_status
from tilejit.arrays.memory import Array, address
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.strided import (
    ArrayLayout,
    broadcast_strides,
    minor_axis,
    overlaps_itself,
    share_memory,
    slowness_of_copy,
    without_overlap,
)
from tilejit.copies.sizes import SIZES
from tilejit.programs import direct_policy
from tilejit.programs.compiled import settled
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.moves import Move, move_for
from tilejit.programs.native_calls import NativeCalls, native_calls
from tilejit.programs.stages import Stages
from tilejit.programs.tuning import (
    AUTO,
    DEFAULT,
    LIVE,
    STRUCTURE,
    Specialize,
    Tune,
    Tuning,
    VectorSize,
    read_tuning,
)

if TYPE_CHECKING:
    from codegen import Entry, FreshArray, SameArgument
    from tilejit.programs.compiled import Program

PLAIN_ARRAYS = (np.ndarray, np.memmap)
"""Types whose elements are at their strides, and that do not override assignment."""


class CopyPlan(Direct, Stages):
    """A copy between two array layouts, which can run many times.

    >>> src = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> dst = np.zeros((3, 2), np.float32)
    >>> plan = tilejit.plan_copy(dst, src.T)
    >>> plan(dst, src.T)
    >>> dst
    array([[0., 3.],
           [1., 4.],
           [2., 5.]], dtype=float32)

    `tilejit.plan_copy` creates it. It keeps no array alive, and any number of threads may call it. Copying a
    plan returns the plan itself; a pickled plan is rebuilt for the machine that loads it.

    Attributes:
        reason: why NumPy makes the copy, or "" if kernels do.
    """

    __slots__ = (
        "_call_count",
        "_calls",
        "_dst",
        "_dst_dtype",
        "_dst_shape",
        "_dst_strides",
        "_far",
        "_hides_underflow",
        "_in_dask",
        "_is_direct",
        "_near",
        "_program",
        "_sets_flags",
        "_src",
        "_src_dtype",
        "_src_shape",
        "_src_strides",
        "_threads",
        "_tuning",
        "reason",
    )

    def __init__(
        self, dst: ArrayLayout, src: ArrayLayout, tuning: Tuning, threads: int, *, in_dask: bool
    ) -> None:
        self._dst, self._src = dst, src
        self._dst_shape, self._dst_strides, self._dst_dtype = dst.shape, dst.strides, dst.dtype
        self._src_shape, self._src_strides, self._src_dtype = src.shape, src.strides, src.dtype
        self._near, self._far = src.low - dst.stop, src.stop - dst.low
        self._threads, self._in_dask, self._tuning = threads, in_dask, tuning
        self._call_count, self._is_direct = 0, False
        self._calls: NativeCalls | None = None
        self._program: Program | None = None
        move, strides = move_for(src.dtype, dst.dtype), broadcast_strides(src.shape, src.strides, dst.shape)
        self._sets_flags = move is not None and move.sets_flags
        self._hides_underflow = move is not None and move.hides_underflow
        self.reason = _why_numpy(dst, move)
        if move is None or self.reason or strides is None:
            return
        self._use(copy_program(dst.shape, dst.strides, strides, move, threads, tuning))

    def _use(self, program: Program) -> None:
        """Run that program from now on."""
        self._program = program
        if self._threads == 1:
            moved = 2 * prod(self._dst_shape) * self._dst_dtype.itemsize
            self._calls = native_calls(program, moved)

    @property
    def _compiled(self) -> Program:
        """The copy.

        Raises:
            LayoutError: NumPy makes it.
        """
        if self._program is None:
            raise LayoutError(f"NumPy makes this copy, so it has no kernel\n  {self.reason}")
        return self._program

    def __call__(self, dst: Array, src: Array) -> None:
        """Copy `src` to `dst`, as numpy.copyto(dst, src) does.

        Raises:
            LayoutError: an array differs from the plan's, or `dst` is read-only; nothing has been written.
            TypeError: an argument is not an array.
        """
        if not (
            type(dst) is np.ndarray
            and type(src) is np.ndarray
            and dst.shape == self._dst_shape
            and dst.strides == self._dst_strides
            and dst.dtype is self._dst_dtype
            and src.shape == self._src_shape
            and src.strides == self._src_strides
            and src.dtype is self._src_dtype
            and dst.flags.writeable
        ):
            self._check(dst, src)
            if type(dst) not in PLAIN_ARRAYS or type(src) not in PLAIN_ARRAYS:
                numpy_copyto(dst, without_overlap(dst, src))
                return
        self._run(dst, src)

    _in_python = __call__

    def __copy__(self) -> CopyPlan:
        return self

    def __deepcopy__(self, memo: object) -> CopyPlan:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of the same plan: addresses of code and tables differ by process."""
        threads = None if self._in_dask else self._threads
        dst, src = ((x.shape, x.strides, x.dtype) for x in (self._dst, self._src))
        return _planned_anew, (dst, src, self._tuning, threads)

    def _directly(self) -> CopyPlan:
        """Return the plan, with a native fast path if it is a sequence of kernel calls."""
        entry = self._direct_entry(self._dst_dtype, self._src_dtype)
        if entry is not None:
            self._answer_directly(entry)
            self._is_direct = True
        return self

    def _direct_entry(
        self,
        dst_dtype: np.dtype[Any],
        src_dtype: np.dtype[Any],
        new: FreshArray | None = None,
        *others: SameArgument,
    ) -> Entry | None:
        """The native entry for the copy, or None if it goes through Python.

        Args:
            dst_dtype: the destination's dtype object, which equals the plan's but may be another object.
            src_dtype: the source's dtype object, likewise.
            new: the array to allocate, if the destination is not an argument.
            others: the arguments after the source, with `new`.
        """
        if self._program is None or not self._calls or self._hides_underflow:
            return None
        with compiler_lock:  # few processes repeat a copy often enough
            from codegen import ArrayArgument, Disjoint, Entry
        dst = ArrayArgument(dst_dtype, self._dst_shape, self._dst_strides, written=True)
        src = ArrayArgument(src_dtype, self._src_shape, self._src_strides, written=False)
        src_at, dst_at = (0, 1 + len(others)) if new else (1, 0)
        calls, releases = self._calls.direct(src_at, dst_at), not self._calls.holds_gil
        note = self._calls  # keeps code and tables alive, because an entry only has addresses
        watches = ALL_FLAGS if self._sets_flags else 0
        if new:
            return Entry((src, *others), (), calls, "", releases, new, note, watches)
        disjoint = Disjoint(1, 0, self._near, self._far)
        return Entry((dst, src), (disjoint,), calls, "", releases, None, note, watches)

    def _check(self, dst: Any, src: Any) -> None:
        """Raise the error for arrays that fail the quick check, if they really differ from the plan's."""
        for name, array, layout in (("dst", dst, self._dst), ("src", src, self._src)):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
            difference = layout.difference(array)
            if difference:
                raise LayoutError(
                    f"{name} {difference}, as the plan requires\n  create a plan for this array"
                )
        if not dst.flags.writeable:
            raise LayoutError("dst is read-only\n  copy into an array of your own, or set its writeable flag")

    def _run_again(self, dst: Array, src: Array) -> None:
        """Run the copy; a plan that runs often gets a native fast path."""
        if self._is_direct:
            self(dst, src)
            return
        self._call_count += 1
        if self._call_count == direct_policy.DIRECT_FROM:
            self._directly()
        self._run(dst, src)

    def _run(self, dst: Array, src: Array) -> None:
        """Copy between arrays that are known to fit; `dst` is writable."""
        to, at = address(dst), address(src)
        if self._hides_underflow and float_status.reports_underflow():
            numpy_copyto(dst, without_overlap(dst, src), "unsafe")
        elif self._near < to - at < self._far:
            self._run_close(dst, src)
        elif self._calls:
            if self._sets_flags:
                float_status.clear()
            self._calls(at, to)
            if self._sets_flags:
                float_status.warn(float_status.raised())
        else:
            self._run_program(dst, src)

    def _run_close(self, dst: Array, src: Array) -> None:
        """Copy if one array reaches into the other, because a kernel must not see them share a byte."""
        if dst.size < SIZES.small_elements or dst is src:
            numpy_copyto(dst, without_overlap(dst, src), "unsafe")
        elif self._program is not None and share_memory(dst, src):
            _through_temporary(dst, src)
        else:
            self._run_program(dst, src)

    def _run_program(self, dst: Array, src: Array) -> None:
        """Run the copy on threads, or by NumPy if there is no program."""
        program = self._program
        if program is None:
            numpy_copyto(dst, without_overlap(dst, src), "unsafe")
            return
        flags: list[int] | None = [] if self._sets_flags else None
        threads = 1 if self._in_dask and in_dask_worker() else self._threads
        sides = address(src), address(dst)
        program.run(*sides, threads, alive=(dst, src), flags=flags, disjoint=True)  # see `_run_close`
        if self._tuning.tune == LIVE and (best := settled(program)) not in (None, program):
            self._use(best)
            self._directly()
        float_status.warn(*flags or ())

    def _prepare(self, to: int) -> None:
        """Load the kernels of copies to an address; its position in a cache line may change kernels."""
        if self._program is not None:
            self._program.prepare(to)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the copy calls, each once; empty if NumPy makes the copy."""
        return self._program.kernels if self._program else ()

    def report(self) -> str:
        """Describe the copy and every step: its schedule, and its nest before and after the passes.

        >>> src, dst = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
        >>> tilejit.plan_copy(dst, src.T).report().startswith("copy ")
        True

        Returns:
            Several lines of text.
        """
        head = f"copy {self._src}\n  to {self._dst}"
        if self._program is None:
            return f"{head}\nnumpy.copyto: {self.reason}\n"
        steps = "\n".join(step.report() for step in self._program.steps)
        blocks = "".join(self._blocks)
        return f"{head}\nthreads   {self._threads}\n{blocks}\n{steps or 'no elements'}\n"

    def __repr__(self) -> str:
        return f"<CopyPlan {self._dst} from {self._src}>"


def plan_copy(
    dst: Array,
    src: Array,
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
) -> CopyPlan:
    """Check and compile a copy between two arrays once, to run it many times; nothing is copied yet.

    >>> src = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> dst = np.zeros((3, 2), np.float32)
    >>> plan = tilejit.plan_copy(dst, src.T)
    >>> plan(dst, src.T)
    >>> dst[:, 1]
    array([3., 4., 5.], dtype=float32)

    As in `copyto`, a copy may read up to 15 bytes past a row of `src`, inside its span, and never writes
    there.

    Args:
        dst: an array with the shape, strides and dtype to write to.
        src: an array with the shape, strides and dtype to read. It is broadcast, converted and byte-swapped
            as in `copyto`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.

    Returns:
        The plan. `plan(dst, src)` copies between arrays like these.

    Raises:
        LayoutError: `src` does not broadcast to `dst`, `dst` is read-only, or a keyword has an invalid value.
        KernelValueError: `threads` is less than one.
        TypeError: an argument is not an array, or the rule "same_kind" forbids the conversion.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
    for name, array in (("dst", dst), ("src", src)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
    if not dst.flags.writeable:
        raise LayoutError("dst is read-only\n  plan for an array of your own, or set its writeable flag")
    if not np.can_cast(src.dtype, dst.dtype, "same_kind"):
        raise TypeError(
            f"{src.dtype} cannot be converted to {dst.dtype} according to the rule 'same_kind'"
            '\n  convert with src.astype, or copy with tilejit.copyto(dst, src, casting="unsafe")'
        )
    if broadcast_strides(src.shape, src.strides, dst.shape) is None:
        raise LayoutError(
            f"src of shape {src.shape} cannot be broadcast to dst of shape {dst.shape}\n"
            "  counted from the last, each dimension of src must equal that of dst, or be 1"
        )
    target = ArrayLayout(dst.shape, dst.strides, dst.dtype)
    source = ArrayLayout(src.shape, src.strides, src.dtype)
    plan = _planned(target, source, tuning, threads)
    plan._prepare(address(dst))
    return plan


def _planned(dst: ArrayLayout, src: ArrayLayout, tuning: Tuning, threads: int | None) -> CopyPlan:
    size = sum(prod(x.shape) * x.dtype.itemsize for x in (dst, src))
    count = thread_count(threads, size, slowness_of_copy(dst.minor_axis, src.minor_axis))
    plan = CopyPlan(dst, src, tuning, count, in_dask=threads is None)
    return plan._directly()


def _planned_anew(dst: Any, src: Any, tuning: Tuning, threads: int | None) -> CopyPlan:
    """Rebuild a pickled plan from (shape, strides, dtype) of both sides."""
    sides = [ArrayLayout(shape, strides, _canonical_dtype(dtype)) for shape, strides, dtype in (dst, src)]
    return _planned(sides[0], sides[1], tuning, threads)


def _canonical_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype object that arrays have: unpickling gives an equal one, but plans compare identity."""
    made: np.dtype[Any] = np.dtype(dtype.type)
    return made if made == dtype and dtype.metadata is None else dtype


@cached(1024)
def cached_plan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    src_shape: tuple[int, ...],
    src_strides: tuple[int, ...],
    src_dtype: np.dtype[Any],
    threads: int,
    tuning: Tuning = DEFAULT,
) -> CopyPlan | None:
    """The plan for arrays of those layouts, or None if NumPy makes the copy."""
    dst, src = ArrayLayout(shape, strides, dtype), ArrayLayout(src_shape, src_strides, src_dtype)
    plan = CopyPlan(dst, src, tuning, threads, in_dask=False)
    return None if plan.reason else plan


def _why_numpy(dst: ArrayLayout, move: Move | None) -> str:
    """Why no kernel makes the copy, or ""."""
    if move is None:
        return "these elements cannot be copied as bytes, or no kernel converts them"
    if overlaps_itself(dst.shape, dst.strides, dst.dtype.itemsize):
        return "elements of the destination share memory"
    return ""


def _through_temporary(dst: Array, src: Array) -> None:
    """Copy through a temporary, as if src had been copied first."""
    copied = src.copy(order="K")
    axes = minor_axis(dst.shape, dst.strides), minor_axis(copied.shape, copied.strides)
    count = thread_count(None, dst.nbytes + copied.nbytes, slowness_of_copy(*axes))
    layout = copied.shape, copied.strides, copied.dtype
    plan = cached_plan(dst.shape, dst.strides, dst.dtype, *layout, count)
    if plan is None:
        raise AssertionError("expected a plan for the same elements and destination")
    plan._run(dst, copied)
