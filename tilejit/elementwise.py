"""Expressions of arrays as one kernel: `tilejit.elementwise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from math import prod
from typing import Any

import numpy as np

from codegen.direct_calls import Direct
from codegen.errors import KernelError, LayoutError
from codegen.loops.ir import ScalarArg
from codegen.loops.typing import dtype_name
from tilejit.convert import pack
from tilejit.direct_loops import elementwise_entry
from tilejit.elementwise_loops import Lowering, coalesced
from tilejit.loop_program import LoopOptions, LoopProgram
from tilejit.memory import Array, address, empty
from tilejit.strided import order_of, share_memory
from tilejit.tiled_array import TiledArray

MOST_ARRAYS = 64


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a function made of its arguments, for their dtypes: expressions of `elements`, or reductions."""

    outputs: tuple[Any, ...]
    dtypes: tuple[np.dtype[Any], ...]
    several: bool
    reduces: tuple[str, ...]


class Elementwise(Direct):
    """A function of elements that runs over arrays as one kernel.

    `python` is the function itself; `report()` and `source` show the kernel of the last call.
    """

    def __init__(self, python: Callable[..., Any], options: LoopOptions) -> None:
        self.python, self.options = python, options
        self._recorded: dict[tuple[Any, ...], _Recorded] = {}
        self._programs: dict[tuple[Any, ...], LoopProgram] = {}
        self._flat_programs: dict[tuple[np.dtype[Any], ...], LoopProgram] = {}
        self._last: LoopProgram | None = None
        update_wrapper(self, python)

    def __call__(self, *args: Any, out: Any = None, where: Any = True) -> Any:
        """Compute; see `tilejit.elementwise`."""
        program = self._flat_program(args, out) if where is True and type(out) is np.ndarray else None
        if program is not None:
            operands = [*[x.reshape(-1) for x in args], out.reshape(-1)]
            self._call(program, operands, args, out)
            return out
        if any(isinstance(x, TiledArray) for x in (*args, out)):
            return self._on_tiled(args, out, where)
        given = [x if isinstance(x, np.ndarray) or _is_number(x) else np.asarray(x) for x in args]
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        if not arrays:
            raise TypeError("no argument is an array; elementwise computes over arrays")
        recorded = self._record(given)
        mask = None if where is True else np.asarray(where)
        if mask is not None and mask.dtype != np.bool_:
            raise TypeError(f"where is an array of bool, not of {mask.dtype}")
        if mask is not None and recorded.reduces:
            raise KernelError(
                "where= with a sum of everything\n  write np.where(mask, x, 0) in the expression"
            )
        shape = _broadcast([*arrays, *([mask] if mask is not None else [])])
        if recorded.reduces:
            if out is not None:
                raise KernelError("sums of everything are returned; they take no out=")
            return self._reduced(recorded, given, shape)
        outs = self._outputs(recorded, out, shape, mask)
        self._run(recorded, given, outs, mask, shape, fresh=out is None)
        return tuple(outs) if recorded.several else outs[0]

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

    def _record(self, given: list[Any]) -> _Recorded:
        key = tuple(x.dtype if isinstance(x, np.ndarray) else _constant(x) for x in given)
        found = self._recorded.get(key)
        if found is None:
            found = self._recorded[key] = self._trace(given)
        return found

    def _trace(self, given: list[Any]) -> _Recorded:
        """Call the function once with stand-ins for elements."""
        from codegen.frontend.operands import Operand
        from codegen.loops import typing
        from codegen.loops.ir import Local
        from tilejit.traced import Reduced, Traced, operand_of

        stand_ins: list[Any] = []
        for k, x in enumerate(given):
            if isinstance(x, np.ndarray):
                name = typing.dtype_name(x.dtype)
                stand_ins.append(Traced(Operand(name, Local(_array(k), name))))
            elif isinstance(x, float | np.floating):
                scalar = typing.argument(_array(k), x)
                stand_ins.append(
                    Traced(Operand(scalar.dtype, Local(scalar.name, typing.concrete(scalar.dtype))))
                )
            else:
                stand_ins.append(x)
        made = self.python(*stand_ins)
        several = isinstance(made, tuple)
        outputs, dtypes, reduces = [], [], []
        for each in made if several else (made,):
            if isinstance(each, Reduced):
                reduces.append(each.name)
                operand = each.operand
            else:
                operand = operand_of(each)
            outputs.append(operand)
            dtypes.append(typing.numpy_dtype(typing.concrete(operand.dtype)))
        if not outputs:
            raise KernelError(f"{self.python.__name__} returns nothing")
        if reduces and len(reduces) < len(outputs):
            raise KernelError(
                "sums of everything beside results for each element\n  make two functions of it"
            )
        return _Recorded(tuple(outputs), tuple(dtypes), several, tuple(reduces))

    def _outputs(
        self, recorded: _Recorded, out: Any, shape: tuple[int, ...], mask: Array | None
    ) -> list[Array]:
        wanted = recorded.dtypes
        if out is None:
            make = empty if mask is None else np.zeros
            return [make(shape, dtype) for dtype in wanted]
        outs = list(out) if isinstance(out, tuple) else [out]
        if len(outs) != len(wanted):
            raise LayoutError(f"out has {len(outs)} arrays for {len(wanted)} results")
        for each, dtype in zip(outs, wanted, strict=True):
            if not isinstance(each, np.ndarray):
                raise TypeError(f"out is an array, not {type(each).__name__}")
            if each.shape != shape:
                raise LayoutError(f"out has the shape {each.shape}, the result {shape}")
            if not np.can_cast(dtype, each.dtype, "same_kind"):
                raise TypeError(f"the result is {dtype}, which does not become {each.dtype} by 'same_kind'")
            if not each.flags.writeable:
                raise LayoutError("out is read-only\n  give an array of your own")
        return outs

    def _run(
        self,
        recorded: _Recorded,
        given: list[Any],
        outs: list[Array],
        mask: Array | None,
        shape: tuple[int, ...],
        *,
        fresh: bool,
    ) -> None:
        if any(share_memory(a, b) for k, a in enumerate(outs) for b in outs[:k]):
            raise LayoutError("two arrays of out share memory")
        if 0 in shape:
            return
        ins = {_array(k): _apart(x, outs) for k, x in enumerate(given) if isinstance(x, np.ndarray)}
        if mask is not None:
            ins["where"] = _apart(mask, outs)
        targets = [f"out{k}" for k in range(len(outs))]
        operands = coalesced(list(ins.values()), outs, shape)
        scalars = _scalars(given)
        key = id(recorded), mask is not None, tuple(map(_form, operands))
        program = self._programs.get(key)
        if program is None:
            loops = Lowering([*ins, *targets], operands, scalars)
            function = loops.mapped(
                self._name, recorded.outputs, targets, "where" if mask is not None else ""
            )
            program = self._programs[key] = LoopProgram(function, self.options)
        only = outs[0] if mask is None and not recorded.several else None
        self._call(
            program, [*operands, *_numbers(given)], given if only is not None else [], only, fresh=fresh
        )
        plain = mask is None and not scalars and not recorded.several and len(ins) == len(given)
        if plain and all(x.ndim == 1 and x.flags.c_contiguous for x in operands):
            self._flat_programs[outs[0].dtype, *(x.dtype for x in given)] = program

    _in_python = __call__

    def _call(
        self,
        program: LoopProgram,
        operands: list[Any],
        given: Sequence[Any],
        out: Array | None = None,
        *,
        fresh: bool = False,
    ) -> Any:
        """One call; machine code answers the next ones like it, where `given` and `out` are all there is."""
        self._last, bound = program, program.bound(operands)
        self._answered_in_python()
        found = bound.run(operands)
        if bound.is_due:
            self._answer_directly(elementwise_entry(bound, operands, given, out, fresh=fresh))
        return found

    def _reduced(self, recorded: _Recorded, given: list[Any], shape: tuple[int, ...]) -> Any:
        count = prod(shape)
        if not count and not {"min", "max"}.isdisjoint(recorded.reduces):
            raise KernelError("the least or largest of no elements\n  there has to be one")
        found: tuple[Any, ...] = tuple(dtype.type(0) for dtype in recorded.dtypes)
        if count:
            ins = {_array(k): x for k, x in enumerate(given) if isinstance(x, np.ndarray)}
            operands = coalesced(list(ins.values()), [], shape)
            key = id(recorded), tuple(map(_form, operands))
            program = self._programs.get(key)
            if program is None:
                loops = Lowering(list(ins), operands, _scalars(given))
                function = loops.reduced(self._name, recorded.outputs, recorded.reduces)
                program = self._programs[key] = LoopProgram(function, self.options)
            simple = not recorded.several and recorded.reduces != ("mean",)
            value = self._call(program, [*operands, *_numbers(given)], given if simple else [])
            found = value if isinstance(value, tuple) else (value,)
        with np.errstate(all="ignore"):
            results = tuple(
                np.divide(x, count) if name == "mean" else x
                for x, name in zip(found, recorded.reduces, strict=True)
            )
        return results if recorded.several else results[0]

    @property
    def _name(self) -> str:
        name = self.python.__name__
        return name if name.isidentifier() else "expression"

    def _on_tiled(self, args: tuple[Any, ...], out: Any, where: Any) -> Any:
        """Slot by slot, padding too, where all have one layout; else through plain arrays, and packed."""
        if where is not True:
            raise KernelError("where= goes with plain arrays\n  write np.where(mask, x, y) in the expression")
        arrays = [x for x in (*args, out) if isinstance(x, TiledArray)]
        spec = arrays[0].spec
        tiled_or_number = all(isinstance(x, TiledArray) or _is_number(x) for x in args)
        one_layout = tiled_or_number and all(x.spec == spec for x in arrays) and not spec.packed
        if one_layout and (out is None or isinstance(out, TiledArray)):
            slots = [x.buffer if isinstance(x, TiledArray) else x for x in args]
            recorded = self._record(slots)
            if not (recorded.reduces or recorded.several) and recorded.dtypes == (spec.dtype,):
                return TiledArray(self(*slots, out=None if out is None else out.buffer), spec)
        plain = [x.numpy() if isinstance(x, TiledArray) else x for x in args]
        if not isinstance(out, TiledArray):
            return self(*plain, out=out)
        made = self(*plain)
        if isinstance(made, tuple):
            raise LayoutError("several results for one tiled array")
        return pack(made, out.spec, out=out, padding="keep")

    @property
    def source(self) -> str:
        """The Python source of the last kernel.

        Raises:
            KernelError: there was no call yet.
        """
        return self._made().kernel.emitted.source

    def report(self) -> str:
        """What was vectorised, and how, in the last call.

        Raises:
            KernelError: there was no call yet.
        """
        program = self._made()
        return "\n".join(
            [f"elementwise {self.python.__name__}", *(f"  {x}" for x in program.vectorised.loops)]
        )

    def _made(self) -> LoopProgram:
        answer = self._last_answer()
        if answer is not None:
            program: LoopProgram = answer.note
            return program
        if self._last is None:
            raise KernelError(f"{self.python.__name__} has not been called yet")
        return self._last


def elementwise(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make one kernel of an expression of arrays.

    >>> @tilejit.elementwise
    ... def gauss(x, y):
    ...     return np.exp(-x * x) + y
    >>> gauss(x, y, out=z)
    >>> tilejit.elementwise(lambda x: np.sum(np.cos(x)))(x)

    The function is called once for each combination of dtypes, with stand-ins for elements: operators,
    NumPy's functions of elements, np.where and astype are recorded; np.sum, min, max and mean of everything
    end an expression. Arrays are broadcast, results typed as NumPy 2 types them; several results are a tuple.
    out: an array, or a tuple of them, which may be arguments too; where: as in NumPy's functions, other
    elements of a new result are 0. TiledArrays of one layout are computed slot by slot, padding too, and give
    that layout; of several, or with an `out` of another layout, the result is computed plain and packed.

    Sums run in lanes: the error of n terms is at most (n / 64 + 8) units in the last place of the sum of all
    magnitudes. Functions such as exp are within 4 units in the last place. options: those of `kernel`.

    Raises:
        KernelError: what cannot be recorded; nothing is written.
        LayoutError: shapes do not broadcast, or `out` does not fit.
        TypeError: an argument is of a wrong type.
    """
    from tilejit.kernels import _options

    checked = _options(**{"vectorize_reductions": True, **options})

    def decorate(python: Callable[..., Any]) -> Elementwise:
        if not callable(python):
            raise TypeError(f"elementwise takes a function, not a {type(python).__name__}")
        return Elementwise(python, checked)

    return decorate if function is None else decorate(function)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.generic)


def _array(k: int) -> str:
    return f"x{k}"


def _broadcast(arrays: list[Array]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError as error:
        raise LayoutError(f"the arguments do not broadcast: {error}") from None


def _apart(x: Array, outs: list[Array]) -> Array:
    """The array, or a copy of it where an output reaches into it elsewhere than at the same elements."""
    for out in outs:
        same = address(x) == address(out) and x.shape == out.shape and x.strides == out.strides
        if not (same and x.dtype == out.dtype) and share_memory(x, out):
            return x.copy(order="K")
    return x


def _form(x: Array) -> tuple[Any, ...]:
    """What the kernel hangs on of an operand: dtype, order, and which dimensions it is repeated along."""
    return x.dtype, x.ndim, order_of(x), tuple(stride != 0 for stride in x.strides)


def _constant(value: Any) -> Any:
    """Floats are arguments of the kernel; integers and booleans of Python stand in it."""
    return type(value) if isinstance(value, float | np.floating) else (type(value), value)


def _scalars(given: list[Any]) -> list[ScalarArg]:
    return [
        ScalarArg(_array(k), "f64" if isinstance(x, float) else dtype_name(x.dtype))
        for k, x in enumerate(given)
        if isinstance(x, float | np.floating)
    ]


def _numbers(given: list[Any]) -> list[Any]:
    return [x for x in given if isinstance(x, float | np.floating)]
