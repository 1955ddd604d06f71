"""Kernels written as loops in Python: `tilejit.kernel`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Unpack, overload

import numpy as np

from codegen import ArrayArg, Cache, ScalarArg, check_fits, compiler_lock, lazy, specialize_sizes
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import order_of
from tilejit.kernels.call_arguments import call_key
from tilejit.kernels.direct_loops import DirectLoops, Parameters, Result, kernel_entry
from tilejit.kernels.failures import report_failures
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.options import KernelKeywords, options_signature, read_options
from tilejit.kernels.program import BoundCall, LoopProgram
from tilejit.kernels.promises import check_names
from tilejit.kernels.tuning import tuned
from tilejit.programs.tuning import SIZES
from tilejit.support.notebook import notebook_html

SHORT_ROWS = (2, 3, 4)
"""Elements of rows that kernels interleave in registers; their number is a part of the kernel."""


class Kernel(DirectLoops[Parameters, Result]):
    """A Python function of loops, compiled to machine code for the dtypes of its arguments.

    >>> @tilejit.kernel
    ... def add(a, b, c):
    ...     for i in range(len(c)):
    ...         c[i] = a[i] + b[i]
    >>> c = np.zeros(3)
    >>> add(np.ones(3), np.ones(3), c)
    >>> c
    array([2., 2., 2.])

    `tilejit.kernel` creates it. `nest`, `vectorized`, `schedule`, `directives`, `source`, `llvm`, `asm` and
    `report()` describe the last specialization in this thread: that of the last call, or of `specialize`.

    Attributes:
        python: the Python function.
    """

    _NEVER = "was not specialized in this thread yet\n  call it, or .specialize(*arguments) first"

    def __init__(self, function: Callable[Parameters, Result], options: LoopOptions) -> None:
        super().__init__(function, options)
        self._programs: Cache[tuple[Any, ...], LoopProgram] = Cache()
        self._calls: Cache[tuple[Any, ...], BoundCall] = Cache()

    @lazy
    def _source(self) -> Any:
        with compiler_lock:  # a fork waits until the module is loaded
            from codegen import read_function
        return read_function(self.python)

    @lazy
    def _signature(self) -> inspect.Signature:
        assert self._source  # raises for objects that are not functions
        return inspect.signature(self.python)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the kernel: it writes arrays in place and returns numbers as NumPy scalars.

        Nothing is written if it raises.

        Raises:
            KernelError: the function uses something that kernels do not support.
            IndexError: an access might be outside its array (this and the next two are KernelErrors as well).
            ValueError: an array that is written is read-only, or a size conflicts with the options.
            OverflowError: an integer does not fit.
            TypeError: an argument is neither an array nor a number.
        """
        given = self._given(args, kwargs)
        key = tuple([call_key(value) for value in given])
        try:
            call = self._calls.get(key)
        except TypeError:  # raised for unhashable values, which are neither arrays nor numbers
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
        """Pickle the function and the options; the copy compiles, or finds its kernels in the store."""
        return self._by_name() or (Kernel, (self.python, self.options))

    def _bind(self, key: tuple[Any, ...], given: tuple[Any, ...]) -> BoundCall:
        program = self._program(given)
        named = list(zip(program.function.arguments, given, strict=True))
        shapes = {a.name: x.shape for a, x in named if isinstance(x, np.ndarray)}
        check_fits(program.function, shapes, {a.name: x for a, x in named if type(x) is int})
        return self._calls.keep(key, BoundCall(program, given))

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by position; trailing ones that have defaults may be omitted."""
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
            raise TypeError(f"{self.python.__name__} takes {len(names)} arguments, got {len(given)}")
        sized = self.options.specialize == SIZES
        arguments = [_argument(name, value, sized=sized) for name, value in zip(names, given, strict=False)]
        function = self._source.typed(arguments, masked=self.options.index_bounds == "mask")
        check_names(self.options.no_alias, function)
        named = zip(function.arguments, given, strict=True)
        known = {a.name: _layout(x, sized=sized)[0] for a, x in named if isinstance(x, np.ndarray)}
        function = specialize_sizes(function, known)
        program = LoopProgram(function, tuned(function, self.options, given))
        report_failures(program, self.python.__name__)
        if self.options.schedule is not None:
            _ = program.kernel  # a schedule that loops cannot have raises now
        return program

    def specialize(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Kernel[Parameters, Result]:
        """Type and vectorize the kernel for some arguments, without running it.

        >>> @tilejit.kernel
        ... def add(a, b, c):
        ...     for i in range(len(c)):
        ...         c[i] = a[i] + b[i]
        >>> x = np.ones(3)
        >>> print(add.specialize(x, x, x).nest.splitlines()[0])
        func.func @add(%a: memref<?xf64>, %b: memref<?xf64>, %c: memref<?xf64>) {

        Args:
            args: arguments as for a call; their dtypes, ranks and memory orders count.
            kwargs: the same by name.

        Returns:
            The kernel itself, which now describes this specialization.

        Raises:
            KernelError: as for a call, except that bounds are not checked.
            TypeError: an argument is neither an array nor a number.
        """
        self.ran(self._program(self._given(args, kwargs)))
        return self

    @property
    def nest(self) -> str:
        """The scalar loops, printed in the style of MLIR."""
        return _printed(self.program.function)

    @property
    def vectorized(self) -> str:
        """The loops over super-vectors, printed in the style of MLIR's vector dialect."""
        return _printed(self.program.in_super_vectors)

    def report(self) -> str:
        """Describe how each loop was vectorized, or why not, followed by the schedule.

        >>> @tilejit.kernel
        ... def add(a, b, c):
        ...     for i in range(len(c)):
        ...         c[i] = a[i] + b[i]
        >>> x = np.ones(3)
        >>> print(add.specialize(x, x, x).report().splitlines()[0])
        kernel add(a: f64[?] C, b: f64[?] C, c: f64[?] C)

        Returns:
            Several lines of text.

        Raises:
            KernelError: the kernel was not specialized in this thread yet.
        """
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
            how = "masks skip those out of bounds" if masked else "calls check them"
            notes.append(f"  elements of {' and '.join(sorted(program.indexed))} are subscripts: {how}")
        return "\n".join([head, *loops, *notes, f"  {program.schedule}"])

    def _repr_html_(self) -> str | None:
        """Render the loops and the generated code for a notebook."""
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
    """Compile a Python function of loops over arrays.

    >>> @tilejit.kernel(virtual_vector_size=256)
    ... def add(a, b, c):
    ...     for i in range(a.shape[0]):
    ...         for j in range(a.shape[1]):
    ...             c[i, j] = a[i, j] + b[i, j]
    >>> c = np.zeros((2, 3))
    >>> add(np.ones((2, 3)), np.ones((2, 3)), c)
    >>> c
    array([[2., 2., 2.],
           [2., 2., 2.]])

    Globals and variables of enclosing functions are constants of the kernel, read when it is specialized for
    new dtypes and not at each call. Pass values that change as arguments.

    An integer to a negative power is an error, as in NumPy; between literals it is a float, as in Python; if
    the exponent is read from an array, the result is 0.

    Kernels compute as NumPy arrays do where Python would raise or promote: integers have 64 bits and wrap
    around, `i // n` and `i % n` of integers are 0 if n is 0, and math.sqrt(-1.0) and similar calls return
    NaN.

    `a[-1]` with a literal is the last element. Other subscripts that become negative are out of bounds,
    except in `x[idx[i]]`: elements of integer arrays count from the end, as in NumPy. Both branches of `x if
    c else y` are read. Operands under an `if` are read as well, and it stores only if its condition holds. If
    arrays overlap, the kernel runs element by element in the order of the loops, unless they are the same
    array.

    Args:
        function: the function. None returns a decorator.
        virtual_vector_size: lanes of the super-vectors: 256, or (32, 256) for two loops. "2*hw" is two
            registers, "l1/4" a quarter of the L1 data cache, and "2*cores*hw" counts cores as well.
            Super-vectors of more than a few registers run as strips of registers. "auto" takes a few
            registers, or a square that is transposed in registers if arrays are traversed along different
            dimensions.
        fastest_varying: for each size, the memory dimension that its lanes traverse in stores, 0 for the
            innermost. The report names loads that traverse another one. None takes any.
        vectorize_reductions: whether sums and other reductions vectorize, which changes their rounding.
        vectorize_scans: whether running sums and other scans vectorize (`s += a[i]; y[i] = s`). Integers and
            extremes stay exact; floats round differently.
        no_alias: the names of arrays that share no memory with other arrays of the kernel: "y", ("y", "z"),
            or True for all. Calls then skip the comparison and always run vectorized. If the promise is
            broken, values are wrong, but accesses stay inside the arrays; arrays of subscripts are compared
            regardless.
        verify: whether calls check no_alias, `tilejit.parallel`, `tilejit.vectorizable`,
            `tilejit.min_distance` and `tilejit.permutation`, and raise if one is broken. This is slow.
            TILEJIT_VERIFY=1 does the same.
        tail: the last iterations: "shift", where the last register begins early enough to be full; "clamp",
            where the last super-vector does; "mask"; "scalar"; or "assume_divisible", which calls check.
            Shifted and clamped tails repeat iterations. If the kernel reads what it writes, they are masked,
            or scalar on processors without masks.
        on_fail: how to handle loops that do not vectorize: "scalar" runs them unvectorized, "warn" also
            warns, and "raise" raises an error.
        vectorize_at: "before_tile" vectorizes the loops as written. "after_tile" first tiles perfectly nested
            loops by whole super-vectors, if dependences permit, and vectorizes the loops within the tiles.
        parallel: None runs loops in `tilejit.parallel` on threads if arrays are large. True treats the
            outermost loop as annotated, which is the same promise. A number does the same on that many
            threads. False uses one.
        fastmath: whether floats in lanes may use fused multiply-add, division by reciprocals and reordering,
            reductions included. NaN and infinity keep their meaning.
        tune: if the size is "auto", the first call with such arguments measures a few sizes on copies of the
            arrays and keeps the fastest, in the store as well.
        specialize: "structure" compiles one kernel for arrays of all sizes, and others for dense rows of 2, 3
            or 4 elements; "sizes" compiles one for each shape, and for the strides of its arrays.
        index_bounds: for subscripts that are elements of arrays, x[idx[i]]. "check" raises if one is out of
            bounds. With "mask", such a load returns 0 and such a store is skipped.
        schedule: how the loops run, instead of the sizes, `tail` and `vectorize_at`: any of Tile, Reorder,
            Vectorize, Tail, Stream and Parallel, as in 'Tile("i", 64), Vectorize(i=16), Tail("i", "mask")'.
            `Kernel.directives` prints those of a kernel. Loops that can't run this way are an error.

    Returns:
        A `Kernel`, or a decorator that returns one.

    Raises:
        KernelError: an option has an invalid value.
        TypeError: the argument is not a function, or an option does not exist.
    """
    checked = read_options("kernel", KernelKeywords, options)

    def decorate(python: Callable[Parameters, Result]) -> Kernel[Parameters, Result]:
        if not callable(python):
            raise TypeError(f"expected a function to compile, got {type(python).__name__}")
        return Kernel(python, checked)

    return decorate if function is None else decorate(function)


kernel.__dict__["__signature__"] = options_signature(KernelKeywords)  # for its **options


def _kind(value: Any, *, sized: bool) -> Any:
    """An argument's part of a specialization's key."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, order_of(value), _layout(value, sized=sized)
    return type(value)


def _layout(value: Array, *, sized: bool) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """The sizes and the strides of an array that are part of its kernel; None for others.

    These are all if sized. Otherwise, they are those of rows of a few elements, which are interleaved:

    (1000, 3), (12, 4) -> (None, 3), (12, 4)    (1000, 300), (1200, 4) -> (None, None), (None, None)
    """
    if sized:
        return value.shape, value.strides
    outer, inner = (None,) * (value.ndim - 2), value.shape[-1:]
    if (
        value.ndim > 1
        and inner[0] in SHORT_ROWS
        and value.strides[-2:] == (inner[0] * value.itemsize, value.itemsize)
    ):
        return (*outer, None, *inner), (*outer, *value.strides[-2:])
    return (None,) * value.ndim, ()


def _argument(name: str, value: Any, *, sized: bool) -> ArrayArg | ScalarArg:
    with compiler_lock:
        from codegen import dtypes
    if isinstance(value, np.ndarray):
        if type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"{name}: expected a plain NumPy array, got {type(value).__name__}")
        _, strides = _layout(value, sized=sized)
        return ArrayArg(name, dtypes.dtype_name(value.dtype, name), value.ndim, order_of(value), strides)
    return dtypes.argument(name, value)


def _argument_text(argument: ArrayArg | ScalarArg) -> str:
    if isinstance(argument, ScalarArg):
        return f"{argument.name}: {argument.dtype}"
    order = argument.order or "strided"
    return f"{argument.name}: {argument.dtype}[{', '.join('?' * argument.rank)}] {order}"


def _printed(function: Any) -> str:
    with compiler_lock:
        from codegen import format_function
    return format_function(function)
