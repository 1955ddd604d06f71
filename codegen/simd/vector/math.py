"""C library functions on vectors: exp, sin, pow and the like.

In Numba's IR each is a weak function that calls the scalar function lane by lane. `library` generates its
replacement for a level, which calls glibc's libmvec where available, with results within 4 ulp. The scalar
functions are within 1 or 2 ulp, so the last bits depend on the level and on the number of lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.families import FAMILIES, FLOATS, LANES, UNSIGNED
from codegen.simd.register.values import Lanewise, by_lanes, joined, lane, lanes_of, llvm_kind, number
from codegen.simd.vector.math_library import best_vector_symbol, scalar_symbol
from codegen.support.cpu import CpuLevel


def _symbol(name: str, dtype: str, lanes: int) -> str:
    """The placeholder of a function on registers: tilejit.exp.f32x16."""
    return f"tilejit.{name}.{dtype}x{lanes}"


_PLACEHOLDERS = {
    _symbol(name, dtype, lanes): (name, dtype, lanes)
    for name in C_FUNCTIONS
    for dtype in FLOATS
    for lanes in LANES
}
"""The function that each placeholder stands for."""


def _function(name: str) -> Lanewise:
    def emit(builder: Any, dtype: str, *operands: Any) -> Any:
        lanes = lanes_of(operands[0])
        if lanes == 1:
            return builder.call(_scalar(builder.module, name, dtype), operands)
        return builder.call(_placeholder(builder.module, name, dtype, lanes), operands)

    return emit


def _scalar(module: Any, name: str, dtype: str) -> Any:
    """The C library's function, marked `nobuiltin`: LLVM would replace some calls without permission."""
    function = _declared(module, scalar_symbol(name, dtype), llvm_kind(dtype, 1), C_FUNCTIONS[name])
    for attribute in ("nobuiltin", "nounwind", "readnone"):
        function.attributes.add(attribute)
    return function


def _declared(module: Any, symbol: str, kind: Any, arguments: int) -> Any:
    known = module.globals.get(symbol)
    return known or ir.Function(module, ir.FunctionType(kind, [kind] * arguments), symbol)


def _placeholder(module: Any, name: str, dtype: str, lanes: int) -> Any:
    """A weak function: the linker may replace it, so LLVM does not analyze its body."""
    symbol = _symbol(name, dtype, lanes)
    known = module.globals.get(symbol)
    if known:
        return known
    function = _declared(module, symbol, llvm_kind(dtype, lanes), C_FUNCTIONS[name])
    function.linkage = "weak"
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    scalar = _scalar(module, name, dtype)
    each = [builder.call(scalar, [lane(builder, a, k) for a in function.args]) for k in range(lanes)]
    builder.ret(joined(builder, each))
    return function


def library(names: Iterable[str], level: CpuLevel) -> str:
    """LLVM IR that defines the named functions that have vector versions at the level, or "" if none do."""
    module = ir.Module()
    for symbol in names:
        if symbol not in _PLACEHOLDERS:
            continue
        name, dtype, lanes = _PLACEHOLDERS[symbol]
        version = best_vector_symbol(level.name, name, dtype, lanes)
        if version:
            _define(module, symbol, name, dtype, lanes, version)
    return str(module) if module.functions else ""


def _define(module: Any, symbol: str, name: str, dtype: str, lanes: int, version: tuple[str, int]) -> None:
    """Call the vector version for each register. Lanes missing in a register repeat the first one."""
    vector_symbol, width = version
    arguments = C_FUNCTIONS[name]
    function = _declared(module, symbol, llvm_kind(dtype, lanes), arguments)
    vectorized = _declared(module, vector_symbol, llvm_kind(dtype, width), arguments)
    for attribute in ("nounwind", "readnone"):
        vectorized.attributes.add(attribute)
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    registers = []
    for start in range(0, lanes, width):
        indices = [k if k < lanes else 0 for k in range(start, start + width)]
        operands = [_chosen(builder, a, indices) for a in function.args]
        registers.append(builder.call(vectorized, operands))
    while len(registers) > 1:
        both = list(range(2 * lanes_of(registers[0])))
        registers = [
            _chosen(builder, a, both, b) for a, b in zip(registers[::2], registers[1::2], strict=True)
        ]
    builder.ret(registers[0] if lanes >= width else _chosen(builder, registers[0], list(range(lanes))))


def _chosen(builder: Any, a: Any, lanes: list[int], b: Any = None) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(a, a if b is None else b, mask)


def _power(builder: Any, dtype: str, base: Any, exponent: Any) -> Any:
    """Integers use repeated squaring, which wraps. A negative exponent, which NumPy rejects, gives 0."""
    if dtype in FLOATS:
        return _function("pow")(builder, dtype, base, exponent)
    zero = number(base.type, 0)
    if dtype in UNSIGNED:
        return _squared(builder, base, exponent)
    below = builder.icmp_signed("<", exponent, zero)
    raised = _squared(builder, base, builder.select(below, zero, exponent))
    return builder.select(below, zero, raised)


def _squared(builder: Any, base: Any, exponent: Any) -> Any:
    """One exponent bit per iteration, until no lane has any left."""
    kind, zero, one = base.type, number(base.type, 0), number(base.type, 1)
    before, loop, done = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(kind) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, one), zero)
    new_result = builder.select(odd, builder.mul(result, square), result)
    new_square, new_left = builder.mul(square, square), builder.lshr(left, one)
    steps = (result, one, new_result), (square, base, new_square), (left, exponent, new_left)
    for phi, first, following in steps:
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    some = builder.icmp_unsigned("!=", new_left, zero)
    if lanes_of(base) > 1:
        flags = builder.bitcast(some, ir.IntType(lanes_of(base)))
        some = builder.icmp_unsigned("!=", flags, number(flags.type, 0))
    builder.cbranch(some, loop, done)
    builder.position_at_end(done)
    return new_result


NAMED = {
    name: by_lanes(name, count, _power if name == "pow" else _function(name), FAMILIES[name].dtypes)
    for name, count in C_FUNCTIONS.items()
}
"""The routines of this module by their names in kernels."""
