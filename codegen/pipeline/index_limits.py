"""Compiled checks of the elements that subscripts depend on, for calls that native code answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codegen.analysis.element_ranges import NONE
from codegen.ir.combiners import neutral
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.index import Affine, index_symbol
from codegen.ir.nodes import ArrayArg, Carried, For, Function, ScalarArg, Statement
from codegen.ir.values import Const, Load, Local, Op, Value
from codegen.pipeline.loops import loop_kernel, vectorize_function
from codegen.runtime.loop_kernel import LoopKernel
from codegen.schedule.machine import machine
from codegen.support.caching import cached

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from codegen.analysis.element_ranges import Limits
    from codegen.runtime.direct_entries import DirectCall

REGISTERS = 4
"""Registers of a super-vector: enough to hide the latency of comparisons."""

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The range of the numbers that elements are compared with."""

_SIDES = (("least", "min"), ("most", "max"))


def limits_call(limits: Limits, dtype: str, array: NDArray[Any], at: int) -> DirectCall | None:
    """A direct call whose result is 1 if an element is outside the limits, else 0; None without elements.

    Args:
        limits: the limits of the elements in a part of the array.
        dtype: the dtype of the array, as in kernels.
        array: an array with the layout of those that are checked.
        at: which argument of the call the array is.
    """
    part = array[limits.box] if limits.box else array
    if not part.size:
        return None
    offset = part.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    dense = part.flags.c_contiguous
    shape, strides = ((part.size,), (part.itemsize,)) if dense else (part.shape, part.strides)
    low, high = max(limits.low, 0 if dtype[0] == "u" else LEAST), min(limits.high, MOST)
    if low > high:
        low, high = NONE
    kernel = limits_kernel(dtype, len(shape), dense)
    bound = kernel.bind({"x": shape}, {"x": strides}, {"low": low, "high": high})
    call = bound.direct_call([at], {})
    assert call is not None, "expected a range of iterations for a kernel with a result"
    (_, result) = call.operands
    return replace(call, operands=((at, offset), result))


@cached(256)
def limits_kernel(dtype: str, rank: int, dense: bool) -> LoopKernel:
    """The kernel of `outside_function` in super-vectors."""
    function = outside_function(dtype, rank, dense)
    lanes = REGISTERS * machine().register_bytes // numpy_dtype(dtype).itemsize
    return loop_kernel(vectorize_function(function, (lanes,), None, reductions=True).function)


def outside_function(dtype: str, rank: int, dense: bool) -> Function:
    """Whether an element of x is below `low` or above `high`, as 1 or 0.

    least = min(x); most = max(x); return 1 if least < low or most > high else 0

    Unsigned elements of 2**63 or more are negative as signed ones, and `low` is not negative then.
    """
    names = [f"i{k}" for k in range(rank)]
    element = Load("x", tuple(map(index_symbol, names)), dtype)
    body: tuple[Statement, ...] = ()
    for k in reversed(range(rank)):
        carried = []
        for side, combiner in _SIDES:
            start: Value = Local(f"{side}_{k - 1}", dtype) if k else Const(neutral(combiner, dtype), dtype)
            own, inner = Local(f"{side}_{k}", dtype), Local(f"{side}_{k + 1}", dtype)
            update = Op(combiner, (own, element), dtype) if k == rank - 1 else inner
            carried.append(Carried(own.name, start, update, combiner))
        extent = index_symbol(f"x.shape[{k}]")
        body = (For(names[k], (Affine(),), (extent,), 1, body, tuple(carried)),)
    least, most = (Op("cast", (Local(f"{side}_0", dtype),), "i64") for side, _ in _SIDES)
    low, high = Local("low", "i64"), Local("high", "i64")
    tests = [Op("lt", (least, low), "i1"), Op("lt", (most, low), "i1"), Op("gt", (most, high), "i1")]
    outside = Op("or", (Op("or", (tests[0], tests[1]), "i1"), tests[2]), "i1")
    arguments = (
        ArrayArg("x", dtype, rank, "C" if dense else ""),
        ScalarArg("low", "i64"),
        ScalarArg("high", "i64"),
    )
    result = Op("select", (outside, Const(1, "i64"), Const(0, "i64")), "i64")
    return Function("outside", arguments, body, (result,))
