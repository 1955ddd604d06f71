"""The engine of expressions: it runs them over plain arrays and owns everything cached between calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from codegen import BlockProgram, Cache, Entry, Function, dataclass
from tilejit.arrays.memory import Array, address
from tilejit.expressions.loops import Lowering, coalesced, parts_of_few_loops, result_names
from tilejit.expressions.memory_orders import Order, order_of_reduction, order_of_result
from tilejit.expressions.outputs import copied_if_overlapping
from tilejit.expressions.packing import Packing, Text
from tilejit.expressions.recorded import Recorded, Recordings
from tilejit.expressions.recording import Stage
from tilejit.expressions.reductions import Arrays, Plan, form_of, group_of
from tilejit.kernels.direct_loops import (
    DirectLoops,
    Number,
    Parameters,
    Result,
    elementwise_entry,
    function_name,
)
from tilejit.kernels.failures import report_failures
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.program import LoopProgram
from tilejit.kernels.tuning import tuned


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """An expression computed block by block, the program of its last block, and the names of its operands."""

    loops: BlockProgram
    program: LoopProgram
    names: tuple[str, ...]


class Engine(DirectLoops[Parameters, Result]):
    """The part of an `Elementwise` that runs calls in stages and calls over tiled arrays.

    Attributes:
        __call__: computes over plain arrays; `Elementwise` defines it.
    """

    __call__: Callable[..., Any]

    def __init__(self, python: Callable[Parameters, Result], options: LoopOptions) -> None:
        super().__init__(python, options)
        self._recordings = Recordings(python)
        self._programs: Cache[tuple[Any, ...], LoopProgram] = Cache()
        self._plans: Cache[tuple[Any, ...], Plan] = Cache()
        self._block_plans: Cache[tuple[Any, ...], BlockPlan | None] = Cache()
        self._flat_programs: Cache[tuple[np.dtype[Any], ...], LoopProgram] = Cache()
        self._orders: Cache[tuple[Any, ...], tuple[Order, ...]] = Cache()

    def ran(self, program: LoopProgram, packing: Callable[[], Packing] | None = None) -> None:
        """Record that this thread's last call ran this program from Python, and how it packed the results."""
        super().ran(program)
        self._last.packing = packing

    @property
    def schedule(self) -> str:
        """How super-vectors map to registers and threads, and how results are packed into tiles."""
        return self._with_packing("schedule", super().schedule)

    @property
    def source(self) -> str:
        """The Python source that Numba compiles: the kernel, and the copies that pack its results."""
        return self._with_packing("source", super().source)

    @property
    def llvm(self) -> str:
        """The optimized LLVM IR of the kernel, and of the copies that pack its results."""
        return self._with_packing("llvm", super().llvm)

    @property
    def asm(self) -> str:
        """The machine code of the kernel, and of the copies that pack its results, as assembly text."""
        return self._with_packing("asm", super().asm)

    def _with_packing(self, which: Text, own: str) -> str:
        packing = None if self._last_answer() else getattr(self._last, "packing", None)
        return packing().text(which, own) if packing else own

    def call(
        self,
        program: LoopProgram,
        operands: list[Any],
        given: Sequence[Any],
        numbers: Sequence[Number],
        out: Array | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        """Run one call; native code answers the next ones like it if `given` and `out` hold all arguments."""
        bound = program.bound(operands)
        self.ran(program)
        bound.run(operands)
        if bound.is_due:
            self._answer_directly(elementwise_entry(bound, operands, given, numbers, out, fresh=fresh))

    def answered(self, entry: Entry | None = None) -> None:
        """Record that Python answered this call; native code answers the next ones, if there is an entry."""
        self._answered_in_python()
        self._answer_directly(entry)

    def flat_program(self, args: tuple[Any, ...], out: Array) -> LoopProgram | None:
        """The program that earlier calls used for such arrays; None without one, or if they do not qualify.

        Arrays qualify if they have one shape, are in C order, and are disjoint or identical, and if `out` is
        writable. No more is checked, because small arrays take less time to compute than to check.
        """
        shape, here, size, flags = out.shape, address(out), out.nbytes, out.flags
        if not (flags.c_contiguous and flags.writeable):
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
        """Record the function for such dtypes and ranks; also return the numbers for its kernels."""
        return self._recordings.of(given)

    def plan(self, recorded: Recorded, stages: Sequence[Stage], arrays: Arrays) -> Plan:
        """The plan of the first reduction and of those that share its loops, for arrays of such strides."""
        forms = tuple((x.shape, x.strides) for x in arrays.values())
        key = recorded, stages[0].name, forms
        plan = self._plans.get(key)
        if plan is None:
            group = group_of(stages, arrays)
            orders = [order_of_reduction(recorded.forms, s.forms, s.core, arrays, s.axes) for s in group]
            made = Plan(group, orders, arrays, recorded.scalars, self.options, self._reduction)
            plan = self._plans.keep(key, made)
        if plan.program:
            self.ran(plan.program)
        return plan

    def orders(self, recorded: Recorded, arrays: Arrays, mask: Array | None) -> Sequence[Order]:
        """The memory order of each new result; empty if all are in C order, like the arrays."""
        given = [*arrays.values(), *([] if mask is None else [mask])]
        if all(x.flags.c_contiguous for x in given):
            return ()
        key = recorded, mask is None, *((x.shape, x.strides) for x in given)
        found = self._orders.get(key)
        if found is None:
            made = tuple(
                order_of_result(recorded.forms, form, arrays, mask) for form in recorded.output_forms
            )
            found = self._orders.keep(key, made)
        return found

    def block_plan(self, key: tuple[Any, ...], make: Callable[[], BlockPlan | None]) -> BlockPlan | None:
        """The cached plan to compute the expression block by block; None if that is impossible."""
        known = self._block_plans.get(key, "unknown")
        return known if not isinstance(known, str) else self._block_plans.keep(key, make())

    def program_for(
        self, key: tuple[Any, ...], make: Callable[[], tuple[Function, LoopOptions]]
    ) -> LoopProgram:
        """The program of a function, created once; cached if `on_fail` accepts it."""
        known = self._programs.get(key)
        if known is None:
            known = LoopProgram(*make(), free=True)
            report_failures(known, function_name(self.python))
            self._programs.keep(key, known)
        return known

    def _reduction(
        self, key: tuple[Any, ...], function: Callable[[str], Function], registers: int
    ) -> LoopProgram:
        """The program of a reduction, whose super-vectors have one dimension."""
        options = replace(self.options.of_rank(1), fastest_varying=None, auto_registers=registers)
        program = self.program_for(key, lambda: (function(self.name), options))
        self.ran(program)
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
        """Compute outputs of one shape.

        Args:
            recorded: the function's expressions.
            given: the arguments of the call.
            numbers: the numbers among them.
            outs: where to write.
            mask: the elements to compute; None for all.
            shape: the shape of the outputs.
            arrays: the arguments and the results of reductions, by name; None without reductions.
            which: the numbers of the outputs; () for all.
            fresh: whether the outputs are new, so that they overlap nothing.
        """
        if 0 in shape:
            return
        ins = recorded.inputs(given, arrays, which)
        if mask is not None:
            ins["where"] = mask
        if not fresh:
            ins = {name: copied_if_overlapping(x, outs) for name, x in ins.items()}
        operands = coalesced(list(ins.values()), outs, shape, self.options.rank)
        first, *more = parts_of_few_loops(operands)
        program = self._mapped(recorded, which, list(ins), first, numbers)
        if more:
            for part in (first, *more):
                self.call(program, [*part, *numbers], [], recorded.numbers)
            return
        alone = recorded.simple and mask is None and not recorded.several
        only = outs[0] if alone else None
        if fresh and not (shape and outs[0].flags.c_contiguous):  # native code creates arrays in C order
            only = None
        shown = given if only is not None else []
        self.call(program, [*operands, *numbers], shown, recorded.numbers, only, fresh=fresh)
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
        """The program for operands of such forms: the inputs with these names, then the results."""
        masked = "where" if "where" in ins else ""
        key = recorded, which, masked, tuple(map(form_of, operands))
        return self._programs.get(key) or self.program_for(
            key, partial(self._lowered, recorded, which, ins, operands, numbers)
        )

    def _lowered(
        self,
        recorded: Recorded,
        which: tuple[int, ...],
        ins: list[str],
        operands: list[Array],
        numbers: list[Any],
    ) -> tuple[Function, LoopOptions]:
        targets = result_names(len(operands) - len(ins))
        loops = Lowering([*ins, *targets], operands, recorded.scalars)
        outputs = [recorded.outputs[k] for k in which] if which else recorded.outputs
        function = loops.mapped(self.name, outputs, targets, "where" if "where" in ins else "")
        options = self.options.of_rank(operands[0].ndim)
        return function, tuned(function, options, [*operands, *numbers])

    @property
    def name(self) -> str:
        """The name of its kernels."""
        name = function_name(self.python)
        return name if name.isidentifier() else "expression"
