"""Packs, unpacks and relayouts of fixed layouts, checked and compiled once and called many times."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from codegen import (
    ALL_FLAGS,
    Direct,
    LayoutError,
    cached,
    compiler_lock,
    thread_count,
    threads_by_size,
)
from tilejit.arrays import float_status
from tilejit.arrays.memory import HUGE_BYTES, Array, address
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.strided import ArrayLayout, slowness_of_copy
from tilejit.arrays.values import check_range, extend_sign, widens_to
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.programs import direct_policy
from tilejit.programs.compiled import settled
from tilejit.programs.moves import move_for
from tilejit.programs.native_calls import NativeCalls, native_calls
from tilejit.programs.pack_programs import pack_program, padding_program, unpack_program
from tilejit.programs.relayout_programs import relayout_program
from tilejit.programs.stages import Stages
from tilejit.programs.tuning import Casting, Tuning, casting_error, may_cast
from tilejit.tiled.boxes import read_box
from tilejit.tiled.conversions import converted, drops_imaginary_parts, pieces
from tilejit.tiled.outputs import check_target, refuse_keep
from tilejit.tiled.plan_elements import (
    cast_of,
    extends_sign,
    has_upper_bits,
    is_swapped,
    pack_element,
    unpack_element,
)
from tilejit.tiled.sides import ArraySide, TiledSide

if TYPE_CHECKING:
    from codegen import Entry
    from tilejit.programs.compiled import Program


Tiled = TypeVar("Tiled")
"""The class of tiled arrays, which is defined above this module."""
Taken = TypeVar("Taken")
Out = TypeVar("Out")
Result = TypeVar("Result")


class TiledPlan(Direct, Stages, Generic[Taken, Out, Result]):
    """A copy between two sides, which can run many times.

    >>> plan = tilejit.plan_pack("{1,0:T(8,128)}", (1000, 300), np.float32)
    >>> x = np.zeros((1000, 300), np.float32)
    >>> t = plan(x)
    >>> plan(x, t) is t
    True

    It keeps no array alive, and any number of threads may call it. Copying a plan returns the plan itself; a
    pickled plan is rebuilt for the machine that loads it.

    Args:
        given: the arguments of the subclass, from which a pickle rebuilds the plan.
        src: the side that is read.
        dst: the side that is written.
        threads: the number of threads; None chooses it from the size.
        moved_bytes: bytes read and written; None counts all of both sides.
        cast: the dtypes of the elements that are read and written, if they differ.
    """

    __slots__ = (
        "_call_count",
        "_calls",
        "_dst",
        "_far",
        "_given",
        "_hides_underflow",
        "_is_open",
        "_loses_imaginary",
        "_moved_bytes",
        "_near",
        "_sets_flags",
        "_slowness",
        "_src",
        "_threads",
        "_warns",
    )

    name = "source"
    """The name of the first argument in messages."""

    def __init__(
        self,
        given: tuple[Any, ...],
        src: ArraySide | TiledSide,
        dst: ArraySide | TiledSide,
        threads: int | None,
        moved_bytes: int | None = None,
        cast: tuple[np.dtype[Any], np.dtype[Any]] | None = None,
    ) -> None:
        self._given, self._src, self._dst, self._call_count = given, src, dst, 0
        self._near, self._far = src.layout.low - dst.layout.stop, src.layout.stop - dst.layout.low
        self._moved_bytes = src.size_bytes + dst.size_bytes if moved_bytes is None else moved_bytes
        self._threads = threads
        self._slowness = slowness_of_copy(dst.minor_axis, src.minor_axis)
        self._is_open = threads_by_size(threads, self._moved_bytes, self._slowness) == 1
        self._calls: NativeCalls | None = None
        move = move_for(*cast) if cast else None
        self._sets_flags = move is not None and move.sets_flags
        self._hides_underflow = move is not None and move.hides_underflow
        self._loses_imaginary = cast is not None and drops_imaginary_parts(*cast)
        self._warns = cast is not None and (move is None or move.sets_flags)

    def __call__(self, source: Taken, out: Out | None = None) -> Result:
        """Copy the source to `out`, or to new memory, and return the destination.

        Args:
            source: the array, or the tiled array, to read; it has the plan's shape, dtype and strides or
                layout.
            out: where to write, likewise; None allocates it.

        Returns:
            `out`, or the new array or tiled array.

        Raises:
            LayoutError: an argument differs from the plan's, `out` is read-only, or the two overlap; nothing
                has been written.
            TypeError: an argument has the wrong type.
            FloatingPointError: an element cannot be converted, and `np.errstate` asks for an error; `out` has
                its previous elements.
        """
        src = self._src.memory(source, self.name)
        self._check(src)
        result: Result
        if out is None:
            self._check_new()
            result, dst = self._dst.new()
        else:
            result, dst = self._dst.output(out, src)
        at, to = address(src), address(dst)
        if self._near < to - at < self._far:
            check_target(dst, src)
        if self._is_open:
            self._find_calls()
        if self._warns:
            self._run_cast(src, dst, (source, result), out)
        elif self._calls:
            self._calls(at, to)
        else:
            self._run(src, dst, (source, result))
        self._finish(dst)
        self._call_count += 1
        if self._native and direct_policy.is_repeated(self._call_count):
            self._answer_directly(self._entry(source, out))
        return result

    _in_python = __call__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments that rebuild the plan: addresses of code and tables differ by process."""
        return type(self), self._given

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._src} to {self._dst}>"

    @abstractmethod
    def program(self, threads: int) -> Program | None:
        """Return the copy for a number of threads.

        >>> plan = tilejit.plan_pack("{1,0:T(2,2)}", (3, 5), np.float32)
        >>> plan.program(1) is None
        False

        Args:
            threads: the number of threads that run it.

        Returns:
            The compiled copy, or None if NumPy converts the elements.
        """

    @property
    def _compiled(self) -> Program:
        """The copy.

        Raises:
            LayoutError: NumPy converts the elements.
        """
        program = self.program(thread_count(self._threads, self._moved_bytes, self._slowness))
        if program is None:
            raise LayoutError(f"NumPy converts the elements of {self!r}, so the copy has no kernel")
        return program

    @property
    def _is_answerable(self) -> bool:
        """Whether native code, which checks no values, may answer calls."""
        return True

    def _check(self, source: Array) -> None:
        """Check the values of the source, if needed."""
        return

    def _check_new(self) -> None:
        """Raise if the result needs an `out`."""
        return

    def _finish(self, target: Array) -> None:
        """Adjust the written elements, if needed."""
        return

    def _through_numpy(self, source: Array, target: Array) -> None:
        """Copy with NumPy if no kernel converts the elements."""
        raise AssertionError("expected a conversion that NumPy makes")

    def _find_calls(self) -> None:
        program = self.program(1)
        found = settled(program)
        self._calls = native_calls(found, self._moved_bytes) if found else None
        self._is_open = found is None and program is not None  # which tries others

    def _run(self, source: Array, target: Array, alive: object) -> None:
        threads = thread_count(self._threads, self._moved_bytes, self._slowness)
        program = self.program(threads)
        if program is None or (self._hides_underflow and float_status.reports_underflow()):
            casts = float_status.Casts()
            with casts:
                self._through_numpy(source, target)
            casts.react()
            return
        flags: list[int] | None = [] if self._sets_flags else None
        program.run(address(source), address(target), threads, alive=alive, flags=flags)
        float_status.warn(*flags or ())

    def _run_cast(self, source: Array, target: Array, alive: object, out: object) -> None:
        """Copy, and warn as NumPy's casts do; if that raises, `out` gets its previous elements back."""
        old = target.copy() if out is not None and float_status.may_raise() else None
        try:
            if self._loses_imaginary:
                float_status.warn_of_imaginary_parts()
            if self._calls and not self._hides_underflow:
                float_status.clear()
                self._calls(address(source), address(target))
                float_status.warn(float_status.raised())
            else:
                self._run(source, target, alive)
        except BaseException:
            if old is not None:
                numpy_copyto(target, old)
            raise

    def _entry(self, source: Any, out: Any) -> Entry | None:
        """Return the native entry for calls like this one, or None if they go through Python."""
        calls = self._calls
        if calls is None or not self._is_answerable or self._moved_bytes > HUGE_BYTES:
            return None
        if self._hides_underflow or (self._sets_flags and out is not None):  # an error must not change `out`
            return None
        with compiler_lock:  # most processes repeat few calls
            from codegen import Disjoint, Entry, FreshArray
        arguments = [self._src.argument(source, written=False)]
        pairs: tuple[Disjoint, ...] = ()
        returns: FreshArray | int = FreshArray(self._dst.layout.dtype, self._dst.layout.shape)
        if out is not None:
            arguments.append(self._dst.argument(out, written=True))
            pairs, returns = (Disjoint(0, 1, self._near, self._far),), 1
        known = tuple(x for x in arguments if x is not None)
        if len(known) < len(arguments):
            return None
        return Entry(
            known,
            pairs,
            calls.direct(0, 1),
            releases=not calls.holds_gil,
            returns=returns,
            note=calls,  # keeps code and tables alive, because an entry only has addresses
            holder=self._dst.holder(out),
            watches=ALL_FLAGS if self._sets_flags else 0,
        )


class PackPlan(TiledPlan[Array, "Array | Tiled", Tiled]):
    """A pack of arrays of one shape, strides and dtype, which can run many times.

    >>> plan = tilejit.plan_pack("{1,0:T(2,2)}", (2, 2), np.float32)
    >>> plan(np.eye(2, dtype=np.float32)).buffer
    array([1., 0., 0., 1.], dtype=float32)

    `tilejit.plan_pack` creates it.

    Args:
        kind: the class of the results, `TiledArray`.
        spec: the layout of the results.
        array: the shape of the arrays in elements, their strides in bytes, and their dtype.
        fill: the bytes of one padding slot; None keeps the padding of `out`.
        casting: the conversions of dtypes that are allowed, as in NumPy.
        threads: the number of threads; None chooses it from the size.
        tuning: how the copy is compiled.

    Raises:
        TypeError: `casting` does not allow the conversion.
    """

    __slots__ = ("_checks_range", "_clears_bits", "_element")

    name = "x"

    def __init__(
        self,
        kind: type[Tiled],
        spec: Spec,
        array: tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]],
        fill: bytes | None,
        casting: Casting,
        threads: int | None,
        tuning: Tuning,
    ) -> None:
        given = kind, spec, array, fill, casting, threads, tuning
        element, self._checks_range = pack_element(array[2], spec, casting)
        cast = cast_of(element, spec, array[2], spec.dtype)
        super().__init__(given, ArraySide(ArrayLayout(*array)), TiledSide(kind, spec), threads, cast=cast)
        self._element = element
        self._clears_bits = self._checks_range and has_upper_bits(spec)
        if self._clears_bits and fill is None:  # padding keeps its bits, so NumPy converts
            self._element, self._clears_bits = None, False

    def program(self, threads: int) -> Program | None:
        """Return the copy for a number of threads.

        >>> plan = tilejit.plan_pack("{1,0:T(2,2)}", (3, 5), np.float32)
        >>> plan.program(1) is None
        False

        Args:
            threads: the number of threads that run it.

        Returns:
            The compiled copy, or None if NumPy converts the elements.
        """
        if self._element is None:
            return None
        _, spec, (_, strides, dtype), fill, _, _, tuning = self._given
        return pack_program(spec, strides, self._element, fill, is_swapped(dtype), threads, tuning)

    @property
    def _is_answerable(self) -> bool:
        return not self._checks_range

    def _check(self, source: Array) -> None:
        if self._checks_range:
            check_range(source, self._given[1].element)

    def _check_new(self) -> None:
        if self._given[3] is None:
            refuse_keep()

    def _finish(self, target: Array) -> None:
        if self._clears_bits:
            stored = target.view(np.uint8)
            np.bitwise_and(stored, (1 << self._given[1].element.bits) - 1, out=stored)

    def _through_numpy(self, source: Array, target: Array) -> None:
        """Convert with NumPy in pieces and write each piece to its tiles, so that memory use stays small."""
        kind, spec, _, fill, *_ = self._given
        if fill is not None:
            padding_program(spec, fill, 1).run(0, address(target), alive=target)
        tiled = kind(target, spec)
        for box in pieces(source.shape, source.itemsize):
            tiled[box] = converted(source[box], spec.dtype)


class UnpackPlan(TiledPlan[Tiled, Array, Array], Generic[Tiled]):
    """An unpack of one layout into arrays of one dtype and strides, which can run many times.

    >>> plan = tilejit.plan_unpack("f32[2,2]{1,0:T(2,2)}")
    >>> plan(tilejit.pack(np.arange(4, dtype=np.float32).reshape(2, 2), "{1,0:T(2,2)}"))
    array([[0., 1.],
           [2., 3.]], dtype=float32)

    `tilejit.plan_unpack` creates it.

    Args:
        kind: the class of the sources, `TiledArray`.
        spec: the layout of the sources.
        strides: the strides of the results in bytes.
        dtype: the dtype of the results.
        casting: the conversions of dtypes that are allowed, as in NumPy.
        threads: the number of threads; None chooses it from the size.
        tuning: how the copy is compiled.

    Raises:
        LayoutError: no element type corresponds to the dtype.
        TypeError: `casting` does not allow the conversion.
    """

    __slots__ = ("_element", "_extends_sign")

    name = "t"

    def __init__(
        self,
        kind: type[Tiled],
        spec: Spec,
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        casting: Casting,
        threads: int | None,
        tuning: Tuning,
    ) -> None:
        native = dtype if dtype is spec.dtype else dtype.newbyteorder("=")
        if native != spec.dtype:
            from_numpy(dtype)
        if not widens_to(spec.element, native) and not may_cast(spec.dtype, native, casting):
            sides = f"the layout is {spec.primitive_type}, but the result is {dtype}"
            raise casting_error(spec.dtype, native, casting, sides)
        given = kind, spec, strides, dtype, casting, threads, tuning
        array = ArrayLayout(spec.dimensions, strides, dtype)
        self._element, self._extends_sign = unpack_element(spec, dtype), extends_sign(spec, dtype)
        cast = cast_of(self._element, spec, spec.dtype, dtype)
        super().__init__(given, TiledSide(kind, spec), ArraySide(array), threads, cast=cast)

    def program(self, threads: int) -> Program | None:
        """Return the copy for a number of threads.

        >>> plan = tilejit.plan_unpack("f32[3,5]{1,0:T(2,2)}")
        >>> plan.program(1) is None
        False

        Args:
            threads: the number of threads that run it.

        Returns:
            The compiled copy, or None if NumPy converts the elements.
        """
        if self._element is None:
            return None
        _, spec, strides, dtype, _, _, tuning = self._given
        return unpack_program(spec, strides, self._element, is_swapped(dtype), threads, tuning)

    @property
    def _is_answerable(self) -> bool:
        return not self._extends_sign

    def _finish(self, target: Array) -> None:
        if self._extends_sign:
            extend_sign(target, self._given[1].element.bits)

    def _through_numpy(self, source: Array, target: Array) -> None:
        """Convert with NumPy in pieces, so that memory use stays small."""
        spec = self._given[1]
        for box in pieces(spec.dimensions, spec.dtype.itemsize):
            target[box] = converted(read_box(source, spec, (*box, ...)), target.dtype)


class RelayoutPlan(TiledPlan[Tiled, "Array | Tiled", Tiled]):
    """A relayout from one layout to another, which can run many times.

    >>> plan = tilejit.plan_relayout("f32[2,2]{1,0}", "{0,1}")
    >>> t = tilejit.pack(np.arange(4, dtype=np.float32).reshape(2, 2), "{1,0}")
    >>> plan(t).buffer
    array([0., 2., 1., 3.], dtype=float32)

    `tilejit.plan_relayout` creates it.

    Args:
        kind: the class of the sources and the results, `TiledArray`.
        source: the layout of the sources.
        target: the layout of the results.
        fill: the bytes of one padding slot; None keeps the padding of `out`.
        threads: the number of threads; None chooses it from the size.
        tuning: how the copy is compiled.
    """

    __slots__ = ()

    name = "t"

    def __init__(
        self,
        kind: type[Tiled],
        source: Spec,
        target: Spec,
        fill: bytes | None,
        threads: int | None,
        tuning: Tuning,
    ) -> None:
        given = kind, source, target, fill, threads, tuning
        super().__init__(given, TiledSide(kind, source), TiledSide(kind, target), threads)

    def program(self, threads: int) -> Program:
        """Return the copy for a number of threads.

        >>> plan = tilejit.plan_relayout("f32[3,5]{1,0:T(2,2)}", "{0,1}")
        >>> len(plan.program(1).kernels) > 0
        True

        Args:
            threads: the number of threads that run it.

        Returns:
            The compiled copy.
        """
        _, source, target, fill, _, tuning = self._given
        return relayout_program(source, target, fill, threads, tuning)

    def _check_new(self) -> None:
        if self._given[3] is None:
            refuse_keep()


unpack_plan = cached(512)(UnpackPlan)
relayout_plan = cached(512)(RelayoutPlan)
pack_plan = cached(512)(PackPlan)
"""The plans that calls share."""
