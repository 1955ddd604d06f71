"""Calls from kernels to other kernels by address."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.simd.register.intrinsics import statement
from codegen.simd.register.memory import I64

_KERNEL = ir.FunctionType(ir.VoidType(), [I64] * 5)


def _call(builder: Any, kernel: Any, *arguments: Any) -> None:
    builder.call(builder.inttoptr(kernel, _KERNEL.as_pointer()), list(arguments))


call_kernel = statement(_call, 6, "call_kernel")
"""call_kernel(kernel, operands, scratch, sizes, begin, end)"""
