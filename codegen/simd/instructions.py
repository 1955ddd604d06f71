"""The LLVM builders of the instructions that `codegen/ir/instructions.py` declares, by name.

A builder is a routine that Numba inlines into a kernel: an intrinsic, or a short compiled function. Those of
conversions are built when a kernel first uses them, by `copy/casts.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.ir.element_types import CONVERSIONS
from codegen.ir.instructions import conversion as declared_conversion
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.copy.bit_parts import PARTS
from codegen.simd.copy.casts import conversion, swap
from codegen.simd.copy.runs import copy_part, drain_part, fill_part
from codegen.simd.register.alignment import elements_to_line
from codegen.simd.register.byte_shuffles import BYTE_SHUFFLES
from codegen.simd.register.interleaves import INTERLEAVES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.memory import I32, memcpy, prefetch_line, stream_fence, vector
from codegen.simd.register.orders import ORDERS
from codegen.simd.register.packed_bits import PACKED_BIT_OPERATIONS
from codegen.simd.register.shuffles import concatenated
from codegen.simd.register.transposed import transposed
from codegen.simd.register.values import Vector


def _repeated_line(*inputs: Any) -> tuple[Any, Emit]:
    """repeated_line(low, high): 16 bytes, four times."""
    kind = Vector("u8", LINE_BYTES)

    def emit(builder: Any, low: Any, high: Any) -> Any:
        pair: Any = ir.Constant(vector(64, 2), ir.Undefined)
        for k, half in enumerate((low, high)):
            pair = builder.insert_element(pair, half, ir.Constant(I32, k))
        lane = builder.bitcast(pair, vector(8, LANE_BYTES))
        return concatenated(builder, [lane] * 4)

    return kind(*inputs), emit


BUILDERS: dict[str, Any] = {
    "copy_part": copy_part,
    "copy_block": memcpy,
    "drain_part": drain_part,
    "elements_to_line": elements_to_line,
    "fill_part": fill_part,
    "prefetch_line": prefetch_line,
    "repeated_line": routine("repeated_line", 2, _repeated_line),
    "stream_fence": stream_fence,
    "transposed": transposed,
    **ORDERS,
    **BYTE_SHUFFLES,
    **INTERLEAVES,
    **PARTS,
    **PACKED_BIT_OPERATIONS,
    **{f"swap_{bits}": swap(bits) for bits in (16, 32, 64)},
}

_CONVERSIONS = {
    declared_conversion(*pair).name: pair for pair in CONVERSIONS if not pair[0].startswith("swap ")
}


def builder_of(name: str) -> Any:
    """The builder of an instruction; None for any other name."""
    if name in _CONVERSIONS:
        return conversion(*_CONVERSIONS[name])
    return BUILDERS.get(name)
