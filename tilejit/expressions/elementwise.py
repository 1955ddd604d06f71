"""Expressions of arrays as one kernel: `tilejit.elementwise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import update_wrapper
from typing import Any

import numpy as np

from codegen import Cache, Direct, Entry, Function, KernelError, on_clear
from tilejit.arrays.memory import Array, address
from tilejit.expressions.engine import BlockPlan
from tilejit.expressions.loops import Lowering, coalesced, parts_of_few_loops
from tilejit.expressions.outputs import apart, order_of_all, outputs
from tilejit.expressions.recorded import (
    Recorded,
    Recordings,
    broadcast_shape,
    is_number,
    plain,
)
from tilejit.expressions.recording import Stage
from tilejit.expressions.reductions import Arrays, Plan, form_of, group_of
from tilejit.expressions.stages import compute_in_stages
from tilejit.expressions.tiled import compute_tiled
from tilejit.kernels.direct_loops import Number, elementwise_entry
from tilejit.kernels.failures import judge
from tilejit.kernels.options import read_options
from tilejit.kernels.program import LoopOptions, LoopProgram
from tilejit.kernels.tuning import tuned
from tilejit.tiled.tiled_array import TiledArray


class Elementwise(Direct):
    """A function of elements that runs over arrays as one kernel.

    `python` is the function itself; `report()` and `source` show the kernel of the last call.
    """

    def __init__(self, python: Callable[..., Any], options: LoopOptions) -> None:
        update_wrapper(self, python)  # first: attributes of the function's own are none of the object's
        self.python, self.options = python, options
        self.programs: Cache[tuple[Any, ...], LoopProgram] = Cache()
        self._recordings = Recordings(python)
        self._plans: Cache[tuple[Any, ...], Plan] = Cache()
        self.block_plans: Cache[tuple[Any, ...], BlockPlan | None] = Cache()
        self._flat_programs: Cache[tuple[np.dtype[Any], ...], LoopProgram] = Cache()
        self.last: LoopProgram | None = None
        on_clear(self, Elementwise._answer_none_directly)

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
        program = self._flat_program(args, out) if flat else None
        if program is not None:
            self._call(program, [*[x.reshape(-1) for x in args], out.reshape(-1)], args, (), out)
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
        order = order_of_all(arrays, shape) if out is None else None
        outs = outputs(recorded.dtypes, out, [shape] * len(recorded.dtypes), mask, order)
        self.run(recorded, given, numbers, outs, mask, shape, fresh=out is None)
        made = outs if shape or out is not None else [x[()] for x in outs]
        return tuple(made) if recorded.several else made[0]

    _in_python = __call__

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A pickle or copy is of the function and the options: it compiles, or finds in the store, anew."""
        return self._by_name() or (Elementwise, (self.python, self.options))

    def _call(
        self,
        program: LoopProgram,
        operands: list[Any],
        given: Sequence[Any],
        numbers: Sequence[Number],
        out: Array | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        """One call; machine code answers the next ones like it, where `given` and `out` are all there is."""
        self.last, bound = program, program.bound(operands)
        self._answered_in_python()
        bound.run(operands)
        if bound.is_due:
            self._answer_directly(elementwise_entry(bound, operands, given, numbers, out, fresh=fresh))

    def answered(self, entry: Entry | None = None) -> None:
        """Python answered this call; machine code answers the next ones like it, where there is an entry."""
        self._answered_in_python()
        self._answer_directly(entry)

    def _flat_program(self, args: tuple[Any, ...], out: Array) -> LoopProgram | None:
        """What a call has shown to be right for arrays of these dtypes, alike, in C order, and apart or
        the very same: small arrays are computed before more could be looked at.
        """
        shape, here, size = out.shape, address(out), out.nbytes
        if not out.flags.c_contiguous:
            return None
        dtypes = [out.dtype]
        for x in args:
            if type(x) is not np.ndarray or x.shape != shape or not x.flags.c_contiguous:
                return None
            if -x.nbytes < address(x) - here < size and (address(x) != here or x.dtype is not out.dtype):
                return None
            dtypes.append(x.dtype)
        return self._flat_programs.get(tuple(dtypes))

    def record(self, given: Sequence[Any]) -> tuple[Recorded, list[Any]]:
        """What the function does with arguments of such dtypes and ranks, and the numbers for its kernels."""
        return self._recordings.of(given)

    def plan(self, recorded: Recorded, stages: Sequence[Stage], arrays: Arrays) -> Plan:
        """The plan of the first of these reductions, for arrays of such shapes and strides."""
        forms = tuple((x.shape, x.strides) for x in arrays.values())
        key = recorded, stages[0].name, forms
        plan = self._plans.get(key)
        if plan is None:
            group = group_of(stages, arrays)
            plan = self._plans.keep(key, Plan(group, arrays, recorded.scalars, self.options, self._reduction))
        self.last = plan.program or self.last
        return plan

    def new_program(self, key: tuple[Any, ...], function: Function, options: LoopOptions) -> LoopProgram:
        """A new program, remembered if `on_fail` lets it pass."""
        made = LoopProgram(function, options, free=True)
        judge(made, self.python.__name__)
        return self.programs.keep(key, made)

    def _reduction(
        self, key: tuple[Any, ...], function: Callable[[str], Function], sizes: str
    ) -> LoopProgram:
        """The program of a reduction, made once."""
        program = self.programs.get(key)
        if program is None:
            wish = self.options.virtual_vector_size
            own = sizes if wish == "auto" or (isinstance(wish, tuple) and len(wish) > 1) else wish
            options = replace(self.options, virtual_vector_size=own, fastest_varying=None)
            program = self.new_program(key, function(self.name), options)
        self.last = program
        return program

    def run(
        self,
        recorded: Recorded,
        given: list[Any],
        numbers: list[Any],
        outs: list[Array],
        mask: Array | None,
        shape: tuple[int, ...],
        arrays: Arrays | None = None,
        which: tuple[int, ...] = (),
        *,
        fresh: bool = False,
    ) -> None:
        """Compute outputs of one shape, all or those of these numbers; `arrays` has reductions too."""
        if 0 in shape:
            return
        ins = recorded.inputs(given, arrays, which)
        if mask is not None:
            ins["where"] = mask
        ins = {name: apart(x, outs) for name, x in ins.items()}
        operands = coalesced(list(ins.values()), outs, shape)
        first, *more = parts_of_few_loops(operands)
        program = self._mapped(recorded, which, list(ins), first, numbers)
        if more:
            for part in (first, *more):
                self._call(program, [*part, *numbers], [], recorded.numbers)
            return
        alone = recorded.simple and mask is None and not recorded.several
        only = outs[0] if alone else None
        if fresh and not (shape and outs[0].flags.c_contiguous):  # machine code makes arrays in C order
            only = None
        shown = given if only is not None else []
        self._call(program, [*operands, *numbers], shown, recorded.numbers, only, fresh=fresh)
        alike = alone and not numbers and len(ins) == len(given) and all(x.ndim for x in given)
        if alike and all(x.ndim == 1 and x.flags.c_contiguous for x in operands):
            self._flat_programs.keep((outs[0].dtype, *(x.dtype for x in given)), program)

    def _mapped(
        self,
        recorded: Recorded,
        which: tuple[int, ...],
        ins: list[str],
        operands: list[Array],
        numbers: list[Any],
    ) -> LoopProgram:
        """The program for operands of such forms: those of these names, then the results."""
        masked = "where" if "where" in ins else ""
        key = recorded, which, masked, tuple(map(form_of, operands))
        program = self.programs.get(key)
        if program is None:
            targets = [f"out{k}" for k in range(len(operands) - len(ins))]
            loops = Lowering([*ins, *targets], operands, recorded.scalars)
            made = [recorded.outputs[k] for k in which] if which else recorded.outputs
            function = loops.mapped(self.name, made, targets, masked)
            program = self.new_program(key, function, tuned(function, self.options, [*operands, *numbers]))
        return program

    @property
    def name(self) -> str:
        """What its kernels are called."""
        name = self.python.__name__
        return name if name.isidentifier() else "expression"

    @property
    def source(self) -> str:
        """The Python source of the last kernel.

        Raises:
            KernelError: there was no call yet.
        """
        return self._made().kernel.emitted.source

    def report(self) -> str:
        """What was vectorized, and how, in the last call.

        Raises:
            KernelError: there was no call yet.
        """
        program = self._made()
        return "\n".join(
            [f"elementwise {self.python.__name__}", *(f"  {x}" for x in program.vectorized.loops)]
        )

    def _made(self) -> LoopProgram:
        answer = self._last_answer()
        if answer is not None:
            program: LoopProgram = answer.note
            return program
        if self.last is None:
            raise KernelError(f"{self.python.__name__} has not been called yet")
        return self.last


def elementwise(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
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
    Each result has the shape, the dtype and the order in memory that NumPy 2 gives it; several are a tuple.
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
    checked = read_options("elementwise", {"vectorize_reductions": True, **options})

    def decorate(python: Callable[..., Any]) -> Elementwise:
        if not callable(python):
            raise TypeError(f"elementwise takes a function, not a {type(python).__name__}")
        return Elementwise(python, checked)

    return decorate if function is None else decorate(function)
