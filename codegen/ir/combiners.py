"""Combiners of reductions and scans: their neutral elements, and the operations of scans.

A scan combines lanes by a combiner of `COMBINERS`, or in a way of its own that names one:

    max_swapped, min_swapped    the later lane is the left operand: of equal numbers, `max(a, b)` returns b
    gt, ge, lt, le              the later lane if it compares so with the earlier one; no lane is NaN
"""

from __future__ import annotations

from codegen.ir.nodes import COMBINERS
from codegen.ir.values import Op, Value, VectorShape

_SWAPPED = {"max_swapped": "max", "min_swapped": "min"}
_RELATIONS = {"gt": "max", "ge": "max", "lt": "min", "le": "min"}
_SCANS = {f"scan_{how}": how for how in (*COMBINERS, *_SWAPPED, *_RELATIONS)}


def scan_op(how: str) -> str:
    """The name of a scan in `Op`: lane k becomes lanes 0 to k combined."""
    return f"scan_{how}"


def scans_by(name: str) -> str:
    """How a scan combines lanes, "" for another operation."""
    return _SCANS.get(name, "")


def combiner_of(how: str) -> str:
    """The combiner that a scan combines by: gt -> max."""
    return (_SWAPPED | _RELATIONS).get(how, how)


def combined(how: str, earlier: Value, later: Value, dtype: str, shape: VectorShape = ()) -> Value:
    """Two values of a scan, combined."""
    if how in _RELATIONS:
        return Op("select", (Op(how, (later, earlier), "i1", shape), later, earlier), dtype, shape)
    operands = (later, earlier) if how in _SWAPPED else (earlier, later)
    return Op(combiner_of(how), operands, dtype, shape)


def neutral(combiner: str, dtype: str) -> int | float | bool:
    """The identity of a combiner. For sums of floats it is -0.0, because -0.0 + 0.0 is 0.0.

    add f32 -> -0.0    min i8 -> 127    and u8 -> 255    max f64 -> -inf
    """
    if dtype == "i1":
        return combiner in ("and", "mul", "min")
    if combiner in ("add", "mul"):
        floats, integers = {"add": (-0.0, 0), "mul": (1.0, 1)}[combiner]
        return integers if dtype[0] in "iu" else floats
    if dtype[0] not in "iu":
        return float("inf") if combiner == "min" else float("-inf")
    bits, signed = int(dtype[1:]), dtype[0] == "i"
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return {"min": most, "max": least, "and": -1 if signed else most, "or": 0, "xor": 0}[combiner]
