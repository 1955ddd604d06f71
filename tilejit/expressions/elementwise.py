"""Expressions over arrays as one kernel: `tilejit.elementwise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from tilejit.arrays.memory import Array
from tilejit.expressions.engine import Engine
from tilejit.expressions.outputs import outputs
from tilejit.expressions.recorded import NO_ARRAYS, broadcast_shape, check_mask, is_number, plain
from tilejit.expressions.stages import compute_in_stages
from tilejit.expressions.tiled import compute_tiled
from tilejit.kernels.direct_loops import Parameters, Result, function_name
from tilejit.kernels.options import LoopKeywords, options_signature, read_options
from tilejit.layout.as_layout import LayoutLike
from tilejit.tiled.tiled_array import TiledArray

Out: TypeAlias = Array | TiledArray | tuple[Array | TiledArray, ...]
"""Destinations of results: one array, or one for each of several results."""


class Elementwise(Engine[Parameters, Result]):
    """A function of elements that runs over whole arrays as one kernel.

    >>> scaled = tilejit.elementwise(lambda x, y: 2 * x + y)
    >>> scaled(np.array([1.0, 2.0]), np.array([10.0, 20.0]))
    array([12., 24.])

    `tilejit.elementwise` creates it. `schedule`, `source`, `llvm`, `asm` and `report()` describe the kernel
    of this thread's last call. If that call packed its results into tiles, the first four also have the
    copies that did it.

    Attributes:
        python: the Python function.
    """

    @overload
    def __call__(self, *args: Parameters.args, **keywords: Parameters.kwargs) -> Result: ...

    @overload
    def __call__(
        self, *args: Any, out: Out | None, where: ArrayLike = True, layout: LayoutLike | None = None
    ) -> Any: ...

    @overload
    def __call__(self, *args: Any, where: ArrayLike, layout: LayoutLike | None = None) -> Any: ...

    @overload
    def __call__(self, *args: Any, layout: LayoutLike | None) -> Any: ...

    def __call__(
        self, *args: Any, out: Any = None, where: Any = True, layout: Any = None, **keywords: Any
    ) -> Any:
        """Compute; see `tilejit.elementwise`."""
        for name in keywords:
            raise TypeError(
                f"{function_name(self.python)}: unexpected keyword {name}\n"
                f"  pass arguments by position: f(…, {name})"
            )
        flat = where is True and type(out) is np.ndarray and layout is None
        program = self.flat_program(args, out) if flat else None
        if program is not None:
            self.call(program, [*[x.reshape(-1) for x in args], out.reshape(-1)], args, (), out)
            return out
        places = out if isinstance(out, tuple) else (out,)
        if layout is not None or any(isinstance(x, TiledArray) for x in (*args, *places, where)):
            return compute_tiled(self, args, out, where, layout)
        given = [x if is_number(x) else plain(x, f"argument {k}") for k, x in enumerate(args)]
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        if not arrays:
            raise TypeError(NO_ARRAYS)
        recorded, numbers = self.record(given)
        mask = None if where is True else plain(where, "where")
        if mask is not None:
            check_mask(mask)
        if not recorded.simple:
            return compute_in_stages(self, recorded, given, numbers, out, mask)
        shape = broadcast_shape([*arrays, *([mask] if mask is not None else [])])
        orders = self.orders(recorded, recorded.inputs(given, None, ()), mask) if out is None else ()
        outs = outputs(recorded.dtypes, out, [shape] * len(recorded.dtypes), mask, orders)
        self.run(recorded, given, numbers, outs, mask, shape, fresh=out is None)
        made = outs if shape or out is not None else [x[()] for x in outs]
        return tuple(made) if recorded.several else made[0]

    _in_python = __call__

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle the function and the options; the copy compiles, or finds its kernels in the store."""
        return self._by_name() or (Elementwise, (self.python, self.options))

    def report(self) -> str:
        """Describe how this thread's last call was vectorized.

        >>> double = tilejit.elementwise(lambda x: 2 * x)
        >>> _ = double(np.ones(3))
        >>> print(double.report().splitlines()[0])
        elementwise <lambda>

        Returns:
            Several lines of text.

        Raises:
            KernelError: there was no call yet.
        """
        loops = self.program.vectorized.loops
        return "\n".join([f"elementwise {function_name(self.python)}", *(f"  {x}" for x in loops)])


@overload
def elementwise(
    function: Callable[Parameters, Result], /, **options: Unpack[LoopKeywords]
) -> Elementwise[Parameters, Result]: ...


@overload
def elementwise(
    function: None = None, /, **options: Unpack[LoopKeywords]
) -> Callable[[Callable[Parameters, Result]], Elementwise[Parameters, Result]]: ...


def elementwise(function: Any = None, /, **options: Any) -> Any:
    """Compile an expression over arrays to one kernel.

    >>> @tilejit.elementwise
    ... def gauss(x, y):
    ...     return np.exp(-x * x) + y
    >>> gauss(np.array([0.0, 1.0]), np.array([1.0, 1.0])).round(4)
    array([2.    , 1.3679])

    Reductions, elementwise results that use them, and tiled results work as well:

    >>> x = np.array([[1.0, 3.0], [2.0, 2.0]], np.float32)
    >>> tilejit.elementwise(lambda x: x / np.sum(x, axis=1, keepdims=True))(x)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]], dtype=float32)
    >>> tilejit.elementwise(lambda x: x * 0.5)(x, layout="{1,0:T(2,2)}").buffer
    array([0.5, 1.5, 1. , 1. ], dtype=float32)

    **Recording.** The function is called once for each combination of dtypes and ranks, with stand-ins for
    elements. They record operators, NumPy's elementwise functions, np.where, np.clip and astype. They also
    record np.sum, min, max and mean with axis, keepdims and dtype, as functions or methods, and np.dot,
    np.vdot and @ of two vectors or of a matrix and a vector. Globals and variables of enclosing functions are
    constants of the kernel. Float arguments are arguments of the kernel, and so are integers that are
    combined with an expression. Powers, integer divisors and integers that the function inspects
    (`if n > 2`, `axis=n`) are constants, and each value gets its own kernel.

    **Calls.** A call takes arrays and numbers by position, and three keywords. `out` is an array to write to,
    or a tuple of arrays for several results. It may contain arguments, because results depend only on values
    from before the call. `where` works as in NumPy's functions, and the other elements of a new result are 0;
    results that are reductions do not support it. `layout` packs new results into TiledArrays; pass anything
    that `as_layout` reads. Arguments in the other byte order are converted.

    **Results.** Each result has the shape, dtype and memory order of NumPy 2's result; several results are a
    tuple. A bfloat16 array and a Python float give bfloat16, as NumPy keeps its own float dtypes; ml_dtypes
    would give float32. Integers that do not fit, integers to negative powers and undefined operations raise
    NumPy's errors, as a KernelError that is also an OverflowError, ValueError or TypeError. No floating-point
    warnings are issued; results are inf or NaN, as in NumPy.

    **Accuracy.** Sums run in lanes and blocks. For any length, the error is at most 32 ulp of the sum of all
    magnitudes. f32 sums continue in f64 from block to block, f64 sums are compensated, and half-precision
    sums use f32 until the end. The number of threads changes where blocks start. With
    vectorize_reductions=False, a block is added up in order. Functions such as exp are within 4 ulp.
    Reductions of one shape along the same axes share a kernel. Results computed from them run in a second
    kernel, which reads the arrays again.

    **Tiles.** TiledArrays of one layout are computed slot by slot, padding included, and give a result in
    that layout. If `out` or `layout` names another layout, the result is computed and packed block by block
    through a buffer in cache. Tiled arguments and masks are unpacked in the same way, so memory is read once
    and written once. Padding is written as by `pack`, but `where` leaves it unchanged. Some calls go through
    a whole plain array instead: those with results below 512 KiB, layouts without repeating blocks, dtypes
    without kernels, tiled arguments of reductions, or tiled arguments but no tiled result.

    Args:
        function: the function. None returns a decorator.
        virtual_vector_size: see `tilejit.kernel`.
        fastest_varying: see `tilejit.kernel`.
        vectorize_reductions: True by default here.
        tail: see `tilejit.kernel`.
        on_fail: see `tilejit.kernel`; it applies to each new kernel before it runs.
        vectorize_at: see `tilejit.kernel`.
        parallel: see `tilejit.kernel`.
        fastmath: see `tilejit.kernel`.
        tune: see `tilejit.kernel`; reductions and blocks are not tuned.

    Returns:
        An `Elementwise`, or a decorator that returns one.

    Raises:
        KernelError: an option has an invalid value. Calls raise it for operations that cannot be recorded and
            for kernels that on_fail="raise" rejects, before anything is written.
        TypeError: the argument is not a function, or an option does not exist. Calls raise it for arguments
            of the wrong type.
        OverflowError: in a call, an integer does not fit; it is a KernelError as well.
        ValueError: in a call, an integer has a negative power; it is a KernelError as well.
        LayoutError: in a call, shapes do not broadcast, or `out` does not fit.
    """
    checked = read_options("elementwise", LoopKeywords, {"vectorize_reductions": True, **options})

    def decorate(python: Callable[Parameters, Result]) -> Elementwise[Parameters, Result]:
        if not callable(python):
            raise TypeError(f"elementwise: expected a function, got {type(python).__name__}")
        return Elementwise(python, checked)

    return decorate if function is None else decorate(function)


elementwise.__dict__["__signature__"] = options_signature(LoopKeywords, vectorize_reductions=True)
