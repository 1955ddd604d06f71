"""Expressions of arrays, recorded instead of computed: what `elementwise` gives a function to work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen.errors import KernelError
from codegen.frontend.functions import UFUNCS, call_ufunc
from codegen.frontend.operands import Operand, apply, cast, literal, truth
from codegen.loops import typing

REDUCTIONS = {"sum": "add", "min": "min", "max": "max", "amin": "min", "amax": "max", "mean": "add"}
"""NumPy's names, and what combines two elements."""


class Reduced:
    """All elements of an expression combined: name is NumPy's."""

    def __init__(self, name: str, operand: Operand) -> None:
        self.name, self.operand = name, operand


class Traced(NDArrayOperatorsMixin):
    """An element of an array, or what is computed of it; NumPy's operators and functions record what they do.

    >>> np.exp(-x * x) + 1      # x: Traced
    """

    __array_priority__ = 1000

    def __init__(self, operand: Operand) -> None:
        self.operand = operand

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Record a function of NumPy.

        Raises:
            KernelError: kernels do not know it, or not with these keywords.
        """
        if method != "__call__" or keywords or ufunc.nout != 1:
            raise KernelError(f"np.{ufunc.__name__} of expressions goes without out=, where= and methods")
        operands = tuple(operand_of(x) for x in inputs)
        op = UFUNCS.get(ufunc.__name__)
        if op and all(x.dtype in typing.WEAK for x in operands):
            return Traced(
                apply(op, *operands)
            )  # numbers of Python stay such, and take the dtype of what they meet
        return Traced(call_ufunc(ufunc.__name__, operands))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        name = function.__name__
        if name == "where" and len(args) == 3 and not keywords:
            condition, then, otherwise = (operand_of(x) for x in args)
            chosen = Operand("i1", truth(condition))
            return Traced(apply("select", chosen, then, otherwise))
        if name in REDUCTIONS and len(args) == 1 and not {k for k, v in keywords.items() if v is not None}:
            return Reduced(
                "min" if name == "amin" else "max" if name == "amax" else name, operand_of(args[0])
            )
        raise KernelError(
            f"np.{name} cannot be recorded with these arguments\n  there are NumPy's functions of elements, "
            "np.where, and np.sum, min, max, mean of everything"
        )

    def astype(self, dtype: Any, **keywords: Any) -> Traced:
        """Converted, as arrays are."""
        if keywords:
            raise KernelError("astype of expressions takes a dtype and nothing else")
        return Traced(cast(self.operand, typing.dtype_name(np.dtype(dtype))))

    def __bool__(self) -> bool:
        raise KernelError(
            "an expression is recorded once for all elements\n  write np.where(c, x, y) for a choice"
        )

    def __iter__(self) -> Any:
        raise KernelError("an expression is recorded for one element; it has no parts")

    def __getitem__(self, key: Any) -> Any:
        raise KernelError("an expression is recorded for one element; it has no parts")


def _reduction(name: str) -> Callable[[Traced], Reduced]:
    def reduce(self: Traced) -> Reduced:
        return Reduced(name, self.operand)

    reduce.__doc__ = f"The {name} of all elements."
    return reduce


for _name in ("sum", "min", "max", "mean"):
    setattr(Traced, _name, _reduction(_name))


def operand_of(value: Any) -> Operand:
    """What a value is in an expression.

    Raises:
        KernelError: it is an array, which must be an argument, or no number.
    """
    if isinstance(value, Traced):
        return value.operand
    if isinstance(value, Reduced):
        raise KernelError("a sum of everything is a result; compute with it in a second expression")
    if isinstance(value, np.ndarray) and value.ndim:
        raise KernelError("an array in an expression\n  make it an argument of the function")
    return literal(value[()] if isinstance(value, np.ndarray) else value)
