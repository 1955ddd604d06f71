"""Combiners of reductions and scans: their neutral elements, and the names of scans of super-vectors."""

from __future__ import annotations

from codegen.ir.nodes import COMBINERS

_SWAPPED = "_swapped"

_SCANS = {
    f"scan_{combiner}{_SWAPPED * swapped}": (combiner, swapped)
    for combiner in COMBINERS
    for swapped in (False, True)
}


def scan_op(combiner: str, *, swapped: bool = False) -> str:
    """The name of the scan: lane k becomes lanes 0 to k combined.

    swapped  whether the combiner takes the later lanes first: of equal numbers, `max(a, b)` is b
    """
    return f"scan_{combiner}{_SWAPPED * swapped}"


def scan_parts(name: str) -> tuple[str, bool] | None:
    """The combiner of a scan and whether its operands are swapped; None for another operation."""
    return _SCANS.get(name)


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
