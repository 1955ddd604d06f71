"""Kernels written as loops in Python: `tilejit.kernel`, and what may be said of their loops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, Unpack, overload

import numpy as np

from codegen import LOOP_MARK, ArrayArg, Cache, ScalarArg, check_fits, lazy, specialize_sizes
from tilejit.arrays.strided import order_of
from tilejit.kernels.call_arguments import call_key
from tilejit.kernels.direct_loops import DirectLoops, Parameters, Result, kernel_entry
from tilejit.kernels.failures import judge
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.options import KernelKeywords, options_signature, read_options
from tilejit.kernels.program import BoundCall, LoopProgram
from tilejit.kernels.promises import check_names
from tilejit.kernels.tuning import tuned
from tilejit.programs.tuning import SIZES
from tilejit.support.notebook import notebook_html

Loop = TypeVar("Loop", bound=Iterable[int])
Indices = TypeVar("Indices")


def parallel(loop: Loop) -> Loop:
    """Say that the iterations of a loop may run at the same time: `for i in tilejit.parallel(range(n))`.

    The outermost loop of a kernel is then shared out among threads where the arrays are large. It is a
    promise, not a question: iterations that write what others read give any of the possible results. Python
    runs it as it is.
    """
    return loop


def reduction(loop: Loop) -> Loop:
    """Say that a loop may reduce in any order: `for k in tilejit.reduction(range(n))`.

    It may run in lanes then, without `vectorize_reductions`; sums round differently. Python runs it as it is.
    """
    return loop


def scan(loop: Loop) -> Loop:
    """Say that a loop may group the terms of its scans: `for i in tilejit.scan(range(n))`.

    >>> for i in tilejit.scan(range(a.shape[0])):
    ...     s += a[i]
    ...     y[i] = s

    Such a loop may run in lanes even without `vectorize_scans`. Sums of floats round differently. Python runs
    it as it is.
    """
    return loop


def min_distance(loop: Loop, distance: int) -> Loop:
    """Say that iterations nearer than this are independent: `for i in tilejit.min_distance(range(n), 8)`.

    >>> for i in tilejit.min_distance(range(y.shape[0] - k), 8):
    ...     y[i + k] = 0.5 * y[i]

    So many iterations may then run at a time, although the compiler cannot prove that they may: here, `k` is
    at least 8. With a smaller `k` the values may be wrong, but all accesses stay in the arrays. Verify mode
    checks the promise. Python runs the loop as it is.

    Args:
        loop: a range.
        distance: iterations, at least 1: a number in the text, or a global.
    """
    return loop


def permutation(array: Indices) -> Indices:
    """Promise that the elements of an array of subscripts differ: `y[tilejit.permutation(idx)[i]] = x[i]`.

    Stores to `y` may then run in lanes, in any order. Negative elements count from the end, and what they
    count to differs as well. Verify mode compares the elements in each call. Python runs it as it is.

    >>> @tilejit.kernel
    ... def scatter(y, idx, x):
    ...     for i in range(len(idx)):
    ...         y[tilejit.permutation(idx)[i]] = x[i]

    Args:
        array: an array of integers, an argument of the kernel.

    Returns:
        The array itself.
    """
    return array


for _function in (parallel, reduction, scan, min_distance, permutation):
    setattr(_function, LOOP_MARK, _function.__name__)


class Kernel(DirectLoops[Parameters, Result]):
    """A function of loops that runs as machine code, compiled for the dtypes that it is called with.

    `python` is the function itself. What was made of it in the last specialization (the first call with such
    arguments, or `specialize`) is in `nest`, `vectorized`, `schedule`, `source` and `report()`.
    """

    _NEVER = "was not specialized in this thread yet\n  call it, or .specialize(*arguments) first"

    def __init__(self, function: Callable[Parameters, Result], options: LoopOptions) -> None:
        super().__init__(function, options)
        self._programs: Cache[tuple[Any, ...], LoopProgram] = Cache()
        self._calls: Cache[tuple[Any, ...], BoundCall] = Cache()

    @lazy
    def _source(self) -> Any:
        from codegen import read_function

        return read_function(self.python)

    @lazy
    def _signature(self) -> inspect.Signature:
        assert self._source  # read first, which says what is no function; some have no signature
        return inspect.signature(self.python)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run it: arrays are written in place, numbers are returned as NumPy's.

        Raises:
            KernelError: the function says what kernels do not do.
            IndexError: an access might leave its array (this and the next two are KernelErrors as well).
            ValueError: an array that is written is read-only, or a size does not go with the options.
            OverflowError: an integer does not fit.
            TypeError: an argument is neither an array nor a number.

        Nothing is written then.
        """
        given = self._given(args, kwargs)
        key = tuple([call_key(value) for value in given])
        try:
            call = self._calls.get(key)
        except TypeError:  # of what has no hash: no array, and no number
            call = None
        if call is None:
            call = self._bind(key, given)
        self.ran(call.program)
        found: Result = call.run(given)
        if call.is_due and not kwargs:
            self._answer_directly(kernel_entry(call, given))
        return found

    _in_python = __call__

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A pickle or copy is of the function and the options: it compiles, or finds in the store, anew."""
        return self._by_name() or (Kernel, (self.python, self.options))

    def _bind(self, key: tuple[Any, ...], given: tuple[Any, ...]) -> BoundCall:
        program = self._program(given)
        named = list(zip(program.function.arguments, given, strict=True))
        shapes = {a.name: x.shape for a, x in named if isinstance(x, np.ndarray)}
        check_fits(program.function, shapes, {a.name: x for a, x in named if type(x) is int})
        return self._calls.keep(key, BoundCall(program, given))

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by their places; those that have defaults may be left out at the end."""
        if not kwargs:
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def _program(self, given: tuple[Any, ...]) -> LoopProgram:
        key = tuple([_kind(value, sized=self.options.specialize == SIZES) for value in given])
        program = self._programs.get(key)
        if program is None:
            program = self._programs.keep(key, self._specialized(given))
        return program

    def _specialized(self, given: tuple[Any, ...]) -> LoopProgram:
        names = list(self._signature.parameters)
        if len(given) > len(names):
            raise TypeError(
                f"{self.python.__name__} takes {len(names)} arguments, and {len(given)} are given"
            )
        arguments = [_argument(name, value) for name, value in zip(names, given, strict=False)]
        function = self._source.typed(arguments, masked=self.options.index_bounds == "mask")
        check_names(self.options.no_alias, function)
        if self.options.specialize == SIZES:
            named = zip(function.arguments, given, strict=True)
            shapes = {a.name: x.shape for a, x in named if isinstance(x, np.ndarray)}
            function = specialize_sizes(function, shapes)
        program = LoopProgram(function, tuned(function, self.options, given))
        judge(program, self.python.__name__)
        return program

    def specialize(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Kernel[Parameters, Result]:
        """Type and vectorize it for such arguments without running it; the kernel, to ask it what it made.

        >>> add.specialize(a, b, c).report()

        Raises:
            KernelError: as a call, but for bounds.
            TypeError: an argument is neither an array nor a number.
        """
        self.ran(self._program(self._given(args, kwargs)))
        return self

    @property
    def nest(self) -> str:
        """The scalar loops, printed in the manner of MLIR."""
        return _printed(self.program.function)

    @property
    def vectorized(self) -> str:
        """The loops over super-vectors, printed in the manner of MLIR's vector dialect."""
        return _printed(self.program.vectorized.function)

    @property
    def schedule(self) -> str:
        """How super-vectors become registers and threads."""
        return self.program.schedule

    @property
    def source(self) -> str:
        """The Python source of the kernel that Numba compiles."""
        return self.program.kernel.emitted.source

    def report(self) -> str:
        """Each loop: vectorized how, or the reason why not and what stands in the way; then the schedule."""
        program = self.program
        head = f"kernel {self.python.__name__}({', '.join(map(_argument_text, program.function.arguments))})"
        loops = [f"  {report}" for report in program.vectorized.loops] or ["  no loops"]
        notes = [
            f"  no_alias promises that {a} and {b} share no memory: calls do not compare them"
            for a, b in program.vectorized.checks
            if program.trusts(a, b)
        ]
        if program.indexed:
            masked = self.options.index_bounds == "mask"
            how = "masks leave out those outside" if masked else "calls check them"
            notes.append(f"  elements of {' and '.join(sorted(program.indexed))} are subscripts: {how}")
        return "\n".join([head, *loops, *notes, f"  {program.schedule}"])

    def _repr_html_(self) -> str | None:
        """The loops, and what was made of them, as notebooks show it."""
        return notebook_html("kernel_html", self)


@overload
def kernel(
    function: Callable[Parameters, Result], /, **options: Unpack[KernelKeywords]
) -> Kernel[Parameters, Result]: ...


@overload
def kernel(
    function: None = None, /, **options: Unpack[KernelKeywords]
) -> Callable[[Callable[Parameters, Result]], Kernel[Parameters, Result]]: ...


def kernel(function: Any = None, /, **options: Any) -> Any:
    """Make a kernel of a Python function of loops over arrays.

    >>> @tilejit.kernel(virtual_vector_size=256)
    ... def add(a, b, c):
    ...     for i in range(a.shape[0]):
    ...         for j in range(a.shape[1]):
    ...             c[i, j] = a[i, j] + b[i, j]

    virtual_vector_size    lanes of the super-vectors: 256, (32, 256) for two loops; in terms of the machine,
                           "2*hw" for two registers, "l1/4" for a quarter of the L1 data cache, "2*cores*hw".
                           Those of more than a few registers run as strips of registers. "auto": a few
                           registers, or a square that is transposed in them where arrays are walked along
                           different dimensions
    fastest_varying        for each size the memory dimension, the innermost 0, that lanes walk; None: any
    vectorize_reductions   sums and the like in lanes too, which changes their rounding
    vectorize_scans        running sums and the like in lanes too (`s += a[i]; y[i] = s`): integers and
                           extremes exactly, floats with another rounding
    no_alias               arrays that share no memory with others that the kernel uses, by name: "y",
                           ("y", "z"); True: all. Calls do not compare them then, and run in lanes. A broken
                           promise gives wrong values, but accesses stay in the arrays: calls compare arrays
                           of subscripts anyway
    verify                 calls check no_alias, `tilejit.min_distance` and `tilejit.permutation` and raise an
                           error where one is broken, as they do with TILEJIT_VERIFY=1; slow
    tail                   the last iterations: "mask", "scalar", "shift" (the last super-vector begins
                           earlier; "mask" where what is written is read), "assume_divisible" (checked)
    on_fail                loops that cannot be vectorized stay "scalar", or do and "warn"; or "raise"
    vectorize_at           "before_tile": loops as they stand become super-vectors; "after_tile": loops one
                           right inside the other are cut into tiles of whole super-vectors first, where no
                           dependence forbids it, and those in the tiles become super-vectors
    parallel               None: loops in `tilejit.parallel` on threads where arrays are large; True: as if
                           the outermost loop were annotated, which is the same promise; a number: so, on so
                           many threads; False: one thread
    fastmath               floats in lanes may be multiplied and added in one step, divided by way of
                           reciprocals and reordered, reductions too; NaN and infinity stay what they are
    specialize             "structure": a kernel serves arrays of all sizes; "sizes": a kernel for each shape,
                           with the sizes as numbers
    index_bounds           subscripts that are elements of arrays, x[idx[i]]: "check" refuses a call in which
                           one is outside; with "mask", such a load gives 0, and such a store is skipped
    tune                   where the size is "auto", the first call with such arguments measures a few sizes
                           on copies of the arrays and keeps the fastest, in the store, too

    Globals and variables around the function are numbers of the kernel: what they are when it is specialized
    for new dtypes, not in each call. What changes from call to call is an argument.

    A negative power of an integer is an error, as NumPy has it, or a float, where Python makes one of numbers
    in the text; where the exponent is read from an array it is 0.

    Where Python would go on or raise, kernels compute as arrays do: integers of Python have 64 bits and wrap
    around, `i // n` and `i % n` of integers are 0 where n is, math.sqrt(-1.0) and its like are NaN.

    `a[-1]`, with a number in the text, is the last element; other subscripts that become negative are
    outside of the array, except `x[idx[i]]`: elements of arrays of integers count from the end as NumPy's do.
    Both sides of `x if c else y` are read, and what stands under an `if` as well, though it stores only where
    the condition holds. Arrays that share memory run element by element in the order of the loops, unless
    they are one and the same.

    Raises:
        KernelError: an option has no such value.
        TypeError: what is decorated is not a function, or there is no such option.
    """
    checked = read_options("kernel", KernelKeywords, options)

    def decorate(python: Callable[Parameters, Result]) -> Kernel[Parameters, Result]:
        if not callable(python):
            raise TypeError(f"a kernel is made of a function, not of a {type(python).__name__}")
        return Kernel(python, checked)

    return decorate if function is None else decorate(function)


kernel.__dict__["__signature__"] = options_signature(KernelKeywords)  # for its **options


def _kind(value: Any, *, sized: bool) -> Any:
    """What a specialization depends on of an argument; sized: the shape of an array too."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, order_of(value), value.shape if sized else value.ndim
    return type(value)


def _argument(name: str, value: Any) -> ArrayArg | ScalarArg:
    from codegen import dtypes

    if isinstance(value, np.ndarray):
        if type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"{name} is a {type(value).__name__}; kernels take plain arrays of NumPy")
        return ArrayArg(name, dtypes.dtype_name(value.dtype, name), value.ndim, order_of(value))
    return dtypes.argument(name, value)


def _argument_text(argument: ArrayArg | ScalarArg) -> str:
    if isinstance(argument, ScalarArg):
        return f"{argument.name}: {argument.dtype}"
    order = argument.order or "strided"
    return f"{argument.name}: {argument.dtype}[{', '.join('?' * argument.rank)}] {order}"


def _printed(function: Any) -> str:
    from codegen import format_function

    return format_function(function)
