"""Native entries for calls of loop kernels: the arguments they check and the code they call.

An entry is created from one call that Python has checked, and covers only what that call showed: layouts,
which arrays are disjoint, and which are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from codegen import (
    Argument,
    ArrayArgument,
    Direct,
    DirectCall,
    Disjoint,
    Entry,
    FloatArgument,
    FreshArray,
    KernelError,
    SameAddress,
    SameArgument,
    ScalarArg,
    dataclass,
    on_clear,
)
from tilejit.arrays.memory import HUGE_BYTES, Array, address
from tilejit.arrays.strided import span
from tilejit.kernels.call_arguments import bits_of
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.program import BoundCall, LoopProgram


@dataclass(frozen=True, slots=True)
class Number:
    """A number among the arguments of a function that is also an argument of its kernels.

    Attributes:
        at: the position of the argument.
        scalar: its kernel argument; an integer is converted to that dtype before the call.
    """

    at: int
    scalar: ScalarArg


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DirectLoops(Direct, Generic[Parameters, Result]):
    """A function whose calls run programs of loops, from Python or from native code.

    `python` is the function itself, whose signature type checkers know. `program` is the one that this
    thread's last call ran; `schedule`, `directives`, `source`, `llvm` and `asm` describe it.
    """

    _NEVER = "was not called in this thread yet\n  call it first"

    def __init__(self, python: Callable[Parameters, Result], options: LoopOptions) -> None:
        wrapper: Any = self
        update_wrapper(wrapper, python)
        for name in getattr(python, "__dict__", ()):
            if hasattr(type(self), name):  # attributes of the function must not hide methods
                vars(self).pop(name, None)
        self.python, self.options = python, options
        self._last = threading.local()
        on_clear(self, DirectLoops._answer_none_directly)

    def ran(self, program: LoopProgram) -> None:
        """Record that this thread's last call came from Python and runs this program."""
        self._last.program = program
        self._answered_in_python()

    @property
    def program(self) -> LoopProgram:
        """The program of this thread's last call.

        Raises:
            KernelError: there was no call in this thread yet.
        """
        answer = self._last_answer()
        found: LoopProgram | None = answer.note if answer else getattr(self._last, "program", None)
        if found is None:
            raise KernelError(f"{function_name(self.python)} {self._NEVER}")
        return found

    @property
    def schedule(self) -> str:
        """The directives, and how super-vectors map to registers and threads."""
        return self.program.schedule

    @property
    def directives(self) -> str:
        """How the loops run, in the form that `schedule=` takes; "" if they run element by element."""
        return ", ".join(map(str, self.program.directives))

    @property
    def source(self) -> str:
        """The Python source of the kernel that Numba compiles."""
        return self.program.kernel.source

    @property
    def llvm(self) -> str:
        """The kernel's optimized LLVM IR."""
        return self.program.kernel.llvm

    @property
    def asm(self) -> str:
        """The kernel's machine code, as assembly text."""
        return self.program.kernel.asm

    def __repr__(self) -> str:
        return f"<tilejit.{type(self).__name__} {function_name(self.python)}>"


def function_name(python: Callable[..., Any]) -> str:
    """The name of a function; that of its type if it has none, such as partial."""
    return getattr(python, "__name__", type(python).__name__)


def kernel_entry(bound: BoundCall, given: Sequence[Any]) -> Entry | None:
    """The entry for calls of a kernel like this one, or None if they go through Python.

    Python checks the elements of arrays of subscripts.
    """
    settled = _settled(bound, given)
    if settled is None:
        return None
    runs, pairs = settled
    checks = runs.index_calls(given)
    if checks is None:
        return None
    written = {k for k, _ in bound._written}
    named = [(x, k in written) for k, x in enumerate(given)]
    return _entry(runs, named, pairs, range(len(given)), given, checks=checks)


def elementwise_entry(
    bound: BoundCall,
    operands: Sequence[Any],
    given: Sequence[Any],
    numbers: Sequence[Number],
    out: Array | None,
    *,
    fresh: bool,
) -> Entry | None:
    """The entry for calls of an expression like this one, or None if they go through Python.

    Args:
        bound: the call's program for these shapes.
        operands: the kernel's arguments: views of the arrays in `given`, then of `out`, then the `numbers`.
        given: the arguments of the call.
        numbers: the numbers among them.
        out: the result if it is an array.
        fresh: whether `out` is a new array rather than the `out=` of the call.
    """
    arrays = [k for k, x in enumerate(given) if isinstance(x, np.ndarray)]
    outs = [] if out is None else [len(given)]
    everything = list(given) if out is None else [*given, out]
    settled = _settled(bound, operands)
    if settled is None or not given or (fresh and out is not None and out.nbytes >= HUGE_BYTES):
        return None
    views = zip(operands, [*arrays, *outs], strict=False)
    if any(address(x) != address(everything[k]) for x, k in views):
        return None
    places = [*arrays, *outs, *(number.at for number in numbers)]
    if out is None or fresh:
        returns = None if out is None else FreshArray(out.dtype, out.shape)
        return _entry(settled[0], [(x, False) for x in given], [], places, operands, returns=returns)
    pairs = [_pair(k, given[k], len(given), out) for k in arrays]
    named = [*((x, False) for x in given), (out, True)]
    return _entry(settled[0], named, pairs, places, operands, keyword="out", returns=len(given))


def _settled(bound: BoundCall, given: Sequence[Any]) -> tuple[BoundCall, list[Disjoint | SameAddress]] | None:
    """The program that runs, and the pairs of arrays that decide it; None if overlap needs a closer check."""
    pairs: list[Disjoint | SameAddress] = []
    same = []
    for (i, a), (j, b), low, high, alike in bound._pairs:
        far = address(given[j]) - address(given[i])
        if alike and not far:
            pairs.append(SameAddress(i, j))
            same.append(bound.program.named_by(a, b))
        elif low < far < high:
            return None
        else:
            pairs.append(Disjoint(i, j, low, high))
    return (bound.program.twin(tuple(same)).bound(given) if same else bound), pairs


def _pair(at: int, x: Array, out_at: int, out: Array) -> Disjoint | SameAddress | None:
    """The relation of an argument to the result: identical elements, or disjoint; None if neither."""
    far = address(out) - address(x)
    if not far and x.shape == out.shape and x.strides == out.strides and x.dtype == out.dtype:
        return SameAddress(at, out_at)
    (low, stop), (out_low, out_stop) = (span(a.shape, a.strides, a.itemsize) for a in (x, out))
    disjoint = Disjoint(at, out_at, low - out_stop, stop - out_low)
    return None if disjoint.low < far < disjoint.high else disjoint


def _entry(
    runs: BoundCall,
    named: Sequence[tuple[Any, bool]],
    pairs: Sequence[Disjoint | SameAddress | None],
    places: Sequence[int],
    operands: Sequence[Any],
    *,
    keyword: str = "",
    returns: int | FreshArray | None = None,
    checks: tuple[DirectCall, ...] = (),
) -> Entry | None:
    """The entry if native code can check all arguments.

    Args:
        runs: the call's program for these shapes.
        named: the arguments of the call, and whether each is written.
        pairs: the relations of arrays that native code checks.
        places: the position of each operand of the kernel among these arguments.
        operands: the operands; numbers that must be identical are entered in the table.
        keyword: the name of the last argument if it is passed by keyword.
        returns: the result, unless the kernel returns numbers.
        checks: calls that precede the kernel's and may refuse.
    """
    arguments = [_argument(value, written=written) for value, written in named]
    same = {n: k for n, (k, dtype) in enumerate(runs._missing) if dtype and _is_same(arguments[places[k]])}
    wide = all(dtype in ("", "f64") or n in same for n, (_, dtype) in enumerate(runs._missing))
    known = {n: bits_of(operands[k], runs._missing[n][1]) for n, k in same.items()}
    call = runs._kernel.direct_call([places[k] for k, _ in runs._missing], known)
    dtypes = runs._kernel.result_dtypes
    if call is None or not wide or runs._threads > 1 or len(dtypes) > 1:
        return None
    whole = tuple(x for x in arguments if x is not None), tuple(x for x in pairs if x is not None)
    if len(whole[0]) < len(arguments) or len(whole[1]) < len(pairs) or any(x is None for x in dtypes):
        return None  # `None in dtypes` would fail, because NumPy's float64 is equal to None
    result = dtypes[0] if dtypes else returns
    return Entry(*whole, (*checks, call), keyword, not runs._hold, result, runs.program, refuses=len(checks))


def _is_same(argument: Argument | None) -> bool:
    return isinstance(argument, SameArgument)


def _argument(value: Any, *, written: bool) -> Argument | None:
    if isinstance(value, np.ndarray):
        return ArrayArgument(value.dtype, value.shape, value.strides, written)
    if type(value) is float:
        return FloatArgument()
    return SameArgument(value) if type(value) in (int, bool) else None
