"""Expressions over arrays that are recorded instead of computed: the stand-ins that `elementwise` passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen import (
    HALF_TYPES,
    UFUNCS,
    Const,
    KernelError,
    Operand,
    apply_op,
    call_ufunc,
    cast_operand,
    dtypes,
    literal_operand,
    select_operand,
    strong_operand,
    truth_operand,
)
from tilejit.expressions.composed import COMPOSED
from tilejit.expressions.recording import Part, Recording
from tilejit.expressions.reduced_axes import bound_arguments
from tilejit.expressions.stand_in import StandIn, UnknownAttributeError
from tilejit.expressions.traced_reductions import PRODUCTS, REDUCTIONS, check_exponent, product, reduced


class Traced(StandIn, NDArrayOperatorsMixin):
    """An element of an array, or an expression of elements; NumPy's operators and functions record it.

    >>> np.exp(-x * x) + 1      # x: Traced
    """

    __array_priority__ = 1000

    def __init__(self, part: Part, recording: Recording) -> None:
        (self.operand, self.names, self.form), self.recording = part, recording

    def made(self, operand: Operand, *parts: Any) -> Traced:
        """The result of an elementwise function of these parts."""
        known = [_part(part) for part in parts if isinstance(part, Traced)]
        names = frozenset[str]().union(*(part.names for part in known))
        form = self.recording.forms.computed(*(part.form for part in known))
        return Traced(Part(operand, names, form), self.recording)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Record a NumPy function.

        Raises:
            KernelError: kernels do not support it, or not with these keywords.
        """
        name = ufunc.__name__
        if method == "__call__" and name in PRODUCTS and not keywords:
            return _product(self.recording, name, *inputs)
        if method == "__call__" and any(out is x for out in keywords.get("out", ()) for x in inputs):
            raise KernelError(
                "expressions cannot be modified in place\n"
                "  write y = y + x for y += x, and pass out= to the call"
            )
        if method != "__call__" or keywords or ufunc.nout != 1:
            raise KernelError(
                f"np.{name} of expressions does not support keyword arguments, ufunc methods or several "
                "results\n"
                "  pass out= and where= to the call; write x.astype(...) for dtype="
            )
        if name in COMPOSED:
            composed: Traced = COMPOSED[name](*inputs)
            return composed.made(composed.operand, *inputs)
        op = UFUNCS.get(name)
        operands = _operands(op or name, inputs)
        if op == "pow":
            check_exponent(self.recording, *map(_part, inputs))
            if _is_root(*operands):
                name = op = "sqrt"
                operands = (cast_operand(operands[0], dtypes.promote([x.dtype for x in operands])),)
        if op and all(x.dtype in dtypes.WEAK for x in operands):
            # Python numbers stay Python numbers and take the dtype of the other operand.
            return self.made(apply_op(op, *operands), *inputs)
        return self.made(call_ufunc(name, operands), *inputs)

    def __pow__(self, exponent: Any) -> Any:
        """np.power, except where NumPy's operator differs: squares of booleans, and roots of halves."""
        if type(exponent) is int and exponent == 2 and self.operand.dtype == "i1":
            return np.square(self)
        if type(exponent) is float and exponent == 0.5 and self.operand.dtype in HALF_TYPES:
            return np.sqrt(self)
        return np.power(self, exponent)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        name = function.__name__
        if name == "where" and len(args) == 3 and not keywords:
            condition, (then, otherwise) = operand_of(args[0]), _operands("select", args[1:])
            holds = Operand("i1", truth_operand(condition))
            # NumPy makes an array of two Python numbers, so the result is not weak.
            found = dtypes.concrete(dtypes.promote([then.dtype, otherwise.dtype]))
            then, otherwise = select_operand(then, found), select_operand(otherwise, found)
            return self.made(strong_operand(apply_op("select", holds, then, otherwise)), *args)
        if name == "clip":
            return _clipped(*args, **keywords)
        if name == "real":
            return self.real
        if name in REDUCTIONS:
            return _reduced(self.recording, name, *bound_arguments(name, args, keywords))
        if name in PRODUCTS and len(args) == 2 and not keywords:
            return _product(self.recording, name, *args)
        home = function.__module__.replace("numpy", "np", 1)
        raise KernelError(
            f"{home}.{name} cannot be recorded with these arguments\n"
            "  use NumPy's elementwise functions, np.where, np.clip, np.sum, min, max, mean, or np.dot and "
            "vdot of vectors"
        )

    def astype(self, dtype: Any, **keywords: Any) -> Traced:
        """Convert to a dtype, like an array's astype."""
        if keywords:
            raise KernelError(f"astype of an expression does not support {', '.join(keywords)}")
        operand = cast_operand(self.operand, dtypes.dtype_name(np.dtype(dtype)))
        return Traced(Part(operand, self.names, self.recording.forms.converted(self.form)), self.recording)

    def dot(self, other: Any) -> Traced:
        """Sum the products along the last dimension, like np.dot."""
        return _product(self.recording, "dot", self, other)

    def conjugate(self) -> Traced:
        """The expression itself, because expressions are real."""
        return self

    conj = conjugate

    @property
    def real(self) -> Traced:
        """The expression itself, because expressions are real."""
        return self

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Clip like np.clip."""
        return _clipped(self, min, max)

    @property
    def ndim(self) -> int:
        """The number of dimensions; a function is recorded for each rank."""
        return self.recording.rank(self.names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements.

        Raises:
            UnknownAttributeError: the expression is a Python number.
        """
        if self.operand.dtype in dtypes.WEAK:
            raise UnknownAttributeError("a Python number has no dtype")
        return dtypes.numpy_dtype(self.operand.dtype)


def _clipped(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None, **keywords: Any
) -> Any:
    """np.clip: the minimum of the maximum."""
    if keywords:
        raise KernelError(f"np.clip of an expression does not support {', '.join(keywords)}")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if isinstance(a, Traced) and a.operand.dtype[0] in "iu" and a.operand.dtype != "i1":
        info = np.iinfo(a.dtype)  # as in NumPy, Python bounds beyond the dtype have no effect
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return np.positive(a)
    bounded = a if low is None else np.maximum(a, low)
    bounded = bounded if high is None else np.minimum(bounded, high)
    return bounded.made(bounded.operand, a, low, high) if isinstance(bounded, Traced) else bounded


class Integer(NDArrayOperatorsMixin):
    """An integer among the arguments; combined with an expression, it becomes an argument of the kernel.

    Any other use of it, such as `if n > 2` or `axis=n`, needs its value and raises NumberNeeded.
    """

    __array_priority__ = 1000

    def __init__(self, name: str, at: int, value: Any, recording: Recording) -> None:
        self.name, self.at, self.kind, self.recording = name, at, type(value), recording

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance(n, int) gives the same result as for the integer
        return self.kind

    def operand_with(self, op: str, others: list[str]) -> Operand:
        """The integer as an operand of an operation whose other operands have these dtypes.

        n + f32 -> f32, to which NumPy converts a Python int; an np.int16 stays i16

        Raises:
            NumberNeeded: all other operands are numbers, or the compiler optimizes for the value.
        """
        weak = self.kind is int
        dtype = "weak_int" if weak else dtypes.dtype_name(np.dtype(self.kind))
        kinds = [dtype, *others] if op != "select" else [dtype, dtype, *others]
        if op == "pow" or op not in _COMBINES or all(x in dtypes.WEAK for x in others):
            raise self.recording.needed()
        found = dtypes.concrete(dtypes.operand_type(op, kinds))
        if op in ("floordiv", "mod") and not dtypes.is_float(found):
            raise self.recording.needed()  # constant divisors are cheaper
        held = found if weak else dtype
        return self.recording.number(self.at, f"{self.name}_{held}" if weak else self.name, held)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Record a NumPy function.

        Raises:
            NumberNeeded: there is no expression among its arguments.
        """
        return self._expression(inputs).__array_ufunc__(ufunc, method, *inputs, **keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self._expression(args).__array_function__(function, types, args, keywords)

    def _expression(self, inputs: Any) -> Traced:
        for x in inputs:
            if isinstance(x, Traced):
                return x
        raise self.recording.needed()

    def _needed(self, *args: Any) -> Any:
        raise self.recording.needed()

    __bool__ = __int__ = __index__ = __float__ = __complex__ = __hash__ = _needed
    __str__ = __repr__ = __format__ = __round__ = __trunc__ = __floor__ = __ceil__ = _needed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python probes for protocols that the stand-in does not support
            raise AttributeError(name)
        raise self.recording.needed()


_COMBINES = frozenset({*UFUNCS.values(), "select"})
"""The operations that may combine an integer argument with an expression."""


def _operands(op: str, inputs: Any) -> tuple[Operand, ...]:
    """The operands of an operation, with integer arguments in the dtype of the others."""
    known = [None if type(x) is Integer else operand_of(x) for x in inputs]
    others = [x.dtype for x in known if x is not None]
    return tuple(
        x.operand_with(op, others) if operand is None else operand
        for x, operand in zip(inputs, known, strict=True)
    )


def _method(name: str) -> Callable[..., Traced]:
    def reduce(self: Traced, *args: Any, **keywords: Any) -> Traced:
        return _reduced(self.recording, name, *bound_arguments(name, (self, *args), keywords))

    reduce.__doc__ = f"Reduce like np.{name}."
    return reduce


for _name in ("sum", "min", "max", "mean"):
    setattr(Traced, _name, _method(_name))


def operand_of(value: Any) -> Operand:
    """The operand for a value in an expression.

    Raises:
        KernelError: the value is an array, which must be an argument instead, or is not a number.
    """
    if isinstance(value, Traced):
        return value.operand
    if type(value) is Integer:
        raise value.recording.needed()
    if isinstance(value, np.ndarray) and value.ndim:
        raise KernelError("an expression cannot contain an array\n  make it an argument of the function")
    return literal_operand(value[()] if isinstance(value, np.ndarray) else value)


def _is_root(base: Operand, exponent: Operand) -> bool:
    """Whether NumPy's float loops take a square root, which differs from the power for -inf and -0.0."""
    found = dtypes.result_type("pow", [base.dtype, exponent.dtype])
    known = isinstance(exponent.value, Const) and exponent.value.value == 0.5
    return known and base.dtype not in dtypes.WEAK and found in ("f32", "f64")


def _part(value: Any) -> Part:
    """The part for a value in an expression; a number depends on no arrays."""
    if isinstance(value, Traced):
        return Part(value.operand, value.names, value.form)
    return Part(operand_of(value), frozenset(), None)


def _reduced(recording: Recording, name: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Traced:
    """A reduction of an expression, which may be a number."""
    return Traced(reduced(recording, name, _part(x), axis, dtype, keepdims), recording)


def _product(recording: Recording, name: str, a: Any, b: Any) -> Traced:
    """A product of vectors, one of which may be a number."""
    return Traced(product(recording, name, _part(a), _part(b)), recording)
