"""The facts about conversions between element types: their meaning, floating-point flags, and costs."""

from __future__ import annotations

from typing import Any

from codegen.ir.element_types import BYTE_FLOAT_TYPES, HALF_TYPES, INTEGER_TYPES

IN_REGISTERS, IN_INTEGERS = 18, 130
"""The cost of a conversion that CPUs have, or nearly have; and of one in integer arithmetic on the bits of
short floats. Both are at most so much. Only the former takes blocks: LLVM starts a conversion in all rows of
a block before it finishes the first, and the latter would spill."""

_SHORT = frozenset((*HALF_TYPES, *BYTE_FLOAT_TYPES))
_WHOLE = frozenset(("pred", *INTEGER_TYPES))
_IN_F16 = frozenset(("pred", "s8", "s16", "u8"))
_FROM_F16 = frozenset(("pred", "f32", "f64"))


def converted(source: str, target: str, value: Any) -> Any:
    """convert_f32_to_bf16: out[k] = the bits of bf16(f32 a[k]), as NumPy and ml_dtypes convert."""
    # The interpreter's, which copies that are stored do not load.
    import numpy as np

    from codegen.ir.buffers import bits_of_element, element_of
    from codegen.ir.dtypes import stored_dtype
    from codegen.ir.operations import compute

    elements = np.array([element_of(int(bits), source) for bits in np.ravel(value)], stored_dtype(source))
    found = [bits_of_element(element, target) for element in compute("cast", [elements], target)]
    return np.array(found, object).reshape(np.shape(value))


def sets_flags(source: str, target: str) -> bool:
    """Whether a conversion may set a flag that NumPy reads: overflow, underflow or invalid.

    The kernels' integer arithmetic sets none, not even for a signaling NaN.
    """
    if source in _WHOLE:
        return target == "f16" and source not in _IN_F16
    if source in BYTE_FLOAT_TYPES or (target == "f32" and source in HALF_TYPES):
        return False
    return source != "f16" or target not in _FROM_F16


def cost(source: str, target: str) -> int:
    """Vector instructions per register, at most, in one of two classes."""
    in_integers = target in _SHORT or (source in _SHORT and source != "bf16")
    return IN_INTEGERS if in_integers else IN_REGISTERS
