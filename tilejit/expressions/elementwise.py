"""Expressions of arrays as one kernel: `tilejit.elementwise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from tilejit.arrays.memory import Array
from tilejit.expressions.engine import Engine
from tilejit.expressions.outputs import outputs
from tilejit.expressions.recorded import broadcast_shape, is_number, plain
from tilejit.expressions.stages import compute_in_stages
from tilejit.expressions.tiled import compute_tiled
from tilejit.kernels.direct_loops import Parameters, Result
from tilejit.kernels.options import LoopKeywords, options_signature, read_options
from tilejit.layout.as_layout import LayoutLike
from tilejit.tiled.tiled_array import TiledArray

Out: TypeAlias = Array | TiledArray | tuple[Array | TiledArray, ...]
"""Where results go: one array, or one for each of several results."""


class Elementwise(Engine[Parameters, Result]):
    """A function of elements that runs over arrays as one kernel.

    `python` is the function itself; `report()` and `source` show the kernel of the last call in this
    thread.
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
                f"{self.python.__name__} takes arguments by position; {name} is not out, where or layout\n"
                f"  write f(…, {name}) for f(…, {name}={name})"
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
            raise TypeError("no argument is an array; elementwise computes over arrays")
        recorded, numbers = self.record(given)
        mask = None if where is True else plain(where, "where")
        if mask is not None and mask.dtype != np.bool_:
            raise TypeError(f"where is an array of bool, not of {mask.dtype}")
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
        """A pickle or copy is of the function and the options: it compiles, or finds in the store, anew."""
        return self._by_name() or (Elementwise, (self.python, self.options))

    @property
    def source(self) -> str:
        """The Python source of the kernel of this thread's last call.

        Raises:
            KernelError: there was no call yet.
        """
        return self.program.kernel.emitted.source

    def report(self) -> str:
        """What was vectorized, and how, in this thread's last call.

        Raises:
            KernelError: there was no call yet.
        """
        loops = self.program.vectorized.loops
        return "\n".join([f"elementwise {self.python.__name__}", *(f"  {x}" for x in loops)])


@overload
def elementwise(
    function: Callable[Parameters, Result], /, **options: Unpack[LoopKeywords]
) -> Elementwise[Parameters, Result]: ...


@overload
def elementwise(
    function: None = None, /, **options: Unpack[LoopKeywords]
) -> Callable[[Callable[Parameters, Result]], Elementwise[Parameters, Result]]: ...


def elementwise(function: Any = None, /, **options: Any) -> Any:
    """Make one kernel of an expression of arrays.

    >>> @tilejit.elementwise
    ... def gauss(x, y):
    ...     return np.exp(-x * x) + y
    >>> gauss(x, y, out=z)
    >>> tilejit.elementwise(lambda x: np.sum(np.cos(x)))(x)

    >>> tilejit.elementwise(lambda x: x / np.sum(x, axis=1, keepdims=True))(x)
    >>> tilejit.elementwise(lambda x: x * 0.5)(x, layout="{1,0:T(8,128)(2,1)}")

    The function is called once for each combination of dtypes and ranks, with stand-ins for elements:
    operators, NumPy's functions of elements, np.where, np.clip and astype are recorded, and np.sum, min, max
    and mean with axis, keepdims and dtype (methods too), np.dot, vdot and @ of vectors or of a matrix with a
    vector.
    What it reads besides its arguments, globals and variables around it, stays in the kernel as it was then.
    Floats are arguments of the kernel, and integers where they meet an expression; powers, integer divisors
    and integers that the function looks at (`if n > 2`, `axis=n`) stand in it, a kernel for each.
    Each result has the shape, the dtype and the order in memory that NumPy 2's functions give it; several are
    a tuple. (NumPy's operators write large results over temporary arrays, whose order those then have.)
    out: an array, or a tuple of them, which may be arguments too: results are of what was there before the
    call; where: as in NumPy's functions, other elements of a new result are 0; a result that is itself a
    reduction takes no where.

    Of bfloat16 and a float of Python, `z + 1.5` or np.where(z > 0, z, 0.0), bfloat16 is left, as NumPy leaves
    its own floats what they are; with ml_dtypes it would give float32.

    Reductions of one shape along the same axes are one kernel; what is computed of them, and results for each
    element beside them, is another, which reads the arrays again.

    Integers of Python that do not fit, integers to negative powers and operations without a meaning raise
    what NumPy raises (a KernelError that is an OverflowError, a ValueError or a TypeError as well). Of
    divisions by zero, overflows and invalid values, of which NumPy warns by `np.errstate`, nothing is said:
    results are the same, inf and NaN, and no flag is read. Arguments of the other byte order are converted.

    Sums run in lanes and blocks: whatever their length, the error is at most 64 halves of a unit in the last
    place of the sum of all magnitudes (along contiguous elements np.sum's own bound is 35 for ten million of
    them, ours 32; elsewhere np.sum's grows with their number, ours does not). f32 goes on in f64 from block
    to block, f64 is compensated, halves are f32 until they are done. Several threads cut blocks elsewhere;
    with vectorize_reductions=False a block is added up one by one. Functions such as exp are within 4 units
    in the last place.

    TiledArrays of one layout are computed slot by slot, padding too, and give that layout. With an `out` of
    another, or a `layout` for new TiledArrays (whatever `as_layout` reads), the result is computed and packed
    block by block through a buffer in cache, tiled arguments and masks are unpacked so: memory is read once
    and written once. Padding is written as `pack` does, but with `where`, which leaves it. Results below
    512 KiB, layouts without blocks that repeat themselves and dtypes that kernels do not know go through a
    whole plain array instead; so do tiled arguments of reductions, and those where no result is tiled.

    options: those of `kernel`; vectorize_reductions is True. on_fail is asked of each new kernel, before it
    runs; tune leaves reductions and blocks as they are.

    Raises:
        KernelError: what cannot be recorded, or what on_fail="raise" refuses; nothing is written.
        OverflowError: an integer does not fit (a KernelError, too).
        ValueError: an integer to a negative power (a KernelError, too).
        LayoutError: shapes do not broadcast, or `out` does not fit.
        TypeError: an argument is of a wrong type.
    """
    checked = read_options("elementwise", LoopKeywords, {"vectorize_reductions": True, **options})

    def decorate(python: Callable[Parameters, Result]) -> Elementwise[Parameters, Result]:
        if not callable(python):
            raise TypeError(f"elementwise takes a function, not a {type(python).__name__}")
        return Elementwise(python, checked)

    return decorate if function is None else decorate(function)


elementwise.__dict__["__signature__"] = options_signature(LoopKeywords, vectorize_reductions=True)
