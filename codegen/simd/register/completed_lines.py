"""Lines that consist of the last bytes of one register and the first bytes of the next.

AVX-512 with VBMI permutes the bytes of two registers in any order. In Numba's IR, lines are made by a weak
function that stores both registers and reloads the bytes between; `library` defines its replacement for CPUs
with that instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.memory import I8, I32, I64, load_untagged, store_untagged, vector
from codegen.support.cpu import VBMI, CpuLevel

SYMBOL = "tilejit.completed_line"

_LINE = vector(8, LINE_BYTES)
_KIND = ir.FunctionType(_LINE, [_LINE, _LINE, I64])


def completed(builder: Any, before: Any, row: Any, begun: Any) -> Any:
    """The last `begun` bytes of `before`, fewer than all, and as many first bytes of `row` as fill a line."""
    known = builder.module.globals.get(SYMBOL)
    return builder.call(known or _reloaded(builder.module), [before, row, begun])


def library(names: Iterable[str], level: CpuLevel) -> str:
    """LLVM IR that defines lines by the instruction of a level, or "" without a call or one."""
    if SYMBOL not in names or VBMI not in level.llvm_features:
        return ""
    module = ir.Module()
    function = ir.Function(module, _KIND, SYMBOL)
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    before, row, begun = function.args
    first = builder.trunc(builder.sub(ir.Constant(I64, LINE_BYTES), begun), I8)
    undefined = ir.Constant(_LINE, ir.Undefined)
    splat = builder.insert_element(undefined, first, ir.Constant(I32, 0))
    splat = builder.shuffle_vector(splat, undefined, ir.Constant(vector(32, LINE_BYTES), [0] * LINE_BYTES))
    order = builder.add(splat, ir.Constant(_LINE, [ir.Constant(I8, k) for k in range(LINE_BYTES)]))
    permute = ir.Function(module, ir.FunctionType(_LINE, [_LINE] * 3), "llvm.x86.avx512.vpermi2var.qi.512")
    builder.ret(builder.call(permute, [before, order, row]))
    return str(module)


def _reloaded(module: Any) -> Any:
    """A weak function: the linker may replace it."""
    function = ir.Function(module, _KIND, SYMBOL)
    function.linkage = "weak"
    for attribute in ("nounwind", "alwaysinline"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    before, row, begun = function.args
    both = builder.alloca(ir.ArrayType(I8, 2 * LINE_BYTES))
    both.align = LINE_BYTES
    at = builder.ptrtoint(both, I64)
    middle = builder.add(at, ir.Constant(I64, LINE_BYTES))
    store_untagged(builder, before, at)
    store_untagged(builder, row, middle)
    builder.ret(load_untagged(builder, builder.sub(middle, begun), _LINE))
    return function
