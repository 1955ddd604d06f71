"""Values of super-vectors as values of registers.

A value that is the same in all lanes remains a number until an operation combines it with a register.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import held_dtype
from codegen.ir.index import Affine, Index, index_symbol, index_symbols
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value
from codegen.passes.index_values import computed_index, summed
from codegen.passes.register_scans import slid
from codegen.passes.register_scope import Lanes, Registers, Scope, spread
from codegen.support.errors import KernelError


def registers_of(value: Value, scope: Scope) -> Registers:
    """The number, or one value per register if the lanes differ."""
    match value:
        case Const():
            return replace(value, shape=())
        case Local():
            return _local(value, scope)
        case IndexValue():
            return _index_value(value, scope)
        case Load():
            return _load(value, scope)
        case Op("broadcast", (operand,)):
            return registers_of(operand, scope)
        case Op(name, (vector,)) if name.startswith("reduce_"):
            return _combined(name, registers_of(vector, scope))
        case Op("last", (vector,)):
            registers = registers_of(vector, scope)
            return replace(value, operands=registers[-1:]) if isinstance(registers, tuple) else registers
        case Op("slide", (first, vector)) if scope.lanes is not None:
            return slid(registers_of(first, scope), registers_of(vector, scope), scope.lanes)
        case Op():
            return _operation(value, scope)
        case Reduce(combiner, vector, start, dtype):
            total = _combined(f"reduce_{combiner}", registers_of(vector, scope))
            return Op(combiner, (number_of(start, scope), total), dtype)
    raise AssertionError(f"split_registers: no rule for {type(value).__name__}")


def number_of(value: Value, scope: Scope) -> Value:
    """A value that is the same in all lanes.

    Raises:
        KernelError: its lanes differ.
    """
    found = registers_of(value, scope)
    if isinstance(found, tuple):
        raise KernelError("expected a number, got a super-vector")
    return found


def _local(value: Local, scope: Scope) -> Registers:
    if value.name in scope.held:
        return scope.held[value.name]
    if value.dtype[0] in "iu":
        return _as_number(index_symbol(value.name), value.dtype)
    return replace(value, shape=())


def _as_number(index: Index, dtype: str) -> Value:
    """An index expression as a number of a dtype."""
    number = IndexValue(index)
    return number if dtype == "i64" else Op("cast", (number,), dtype)


def _index_value(value: IndexValue, scope: Scope) -> Registers:
    lanes = scope.lanes
    if lanes is None or not value.shape or not lanes.moves(value.index):
        return _as_number(value.index, value.dtype)
    found = [_index_register(lanes.shifted(value.index, r), lanes) for r in range(lanes.registers)]
    if value.dtype == "i64":
        return tuple(found)
    return tuple(Op("cast", (each,), value.dtype, lanes.shape) for each in found)


def _index_register(index: Index, lanes: Lanes) -> Value:
    """An index expression in each lane of a register."""

    def repeated(number: Value) -> Value:
        return Op("broadcast", (number,), "i64", lanes.shape)

    def known(index: Index) -> Value | None:
        if lanes.index not in index_symbols(index):
            return repeated(IndexValue(index))
        if not isinstance(index, Affine):
            return None
        step = index.coefficient(lanes.index) * lanes.step
        return IndexValue(index, "i64", lanes.shape, steps=(step,))

    return computed_index(index, known, lambda number: repeated(Const(number, "i64")), lanes.shape)


def _load(load: Load, scope: Scope) -> Registers:
    lanes = scope.lanes
    if load.offsets is not None:
        return _at_offsets(load, registers_of(load.offsets, scope), lanes)
    number = Load(load.array, load.subscripts, load.dtype)
    if lanes is None or not load.shape:
        return number
    if any(load.along):
        return _gathered(load, lanes)
    (step,) = load.steps
    if step == 0:
        return number
    found = [at_register(number, lanes, register) for register in range(lanes.registers)]
    return tuple(replace(each, shape=lanes.shape, steps=(step,), first=lanes.live) for each in found)


def _at_offsets(load: Load, offsets: Registers, lanes: Lanes | None) -> Registers:
    """Loads of registers whose lanes have offsets of their own, or of a number at its offset."""
    if not isinstance(offsets, tuple):
        return Load(load.array, (*load.subscripts, offset_of(offsets)), load.dtype)
    assert lanes is not None, "expected registers inside lanes"
    number = Load(load.array, load.subscripts, load.dtype, lanes.shape, first=lanes.live)
    return tuple(replace(number, offsets=each) for each in offsets)


def offset_of(number: Value) -> Index:
    """The index expression that a local stands for."""
    assert isinstance(number, Local), "offsets have names"
    return index_symbol(number.name)


def _gathered(load: Load, lanes: Lanes) -> tuple[Value, ...]:
    """Registers whose lanes each compute their own address, because a subscript divides the index."""
    fixed = tuple(s for s in load.subscripts if not lanes.moves(s))
    moving = [s for s in load.subscripts if lanes.moves(s)]
    number = Load(load.array, fixed, load.dtype, lanes.shape, first=lanes.live)
    offsets = (
        [_index_register(lanes.shifted(s, register), lanes) for s in moving]
        for register in range(lanes.registers)
    )
    return tuple(replace(number, offsets=summed(each)) for each in offsets)


def at_register(load: Load, lanes: Lanes, register: int) -> Load:
    """A load at the first lane of a register."""
    return replace(load, subscripts=tuple(lanes.shifted(s, register) for s in load.subscripts))


def _operation(value: Op, scope: Scope) -> Registers:
    operands = [registers_of(operand, scope) for operand in value.operands]
    lanes = scope.lanes
    if lanes is None or not any(isinstance(each, tuple) for each in operands):
        return Op(value.name, tuple(operands), value.dtype)  # type: ignore[arg-type]
    columns = zip(*(spread(each, lanes) for each in operands), strict=True)
    return tuple(Op(value.name, each, value.dtype, lanes.shape) for each in columns)


def _combined(name: str, found: Registers) -> Value:
    """All lanes combined: registers first, in pairs, so that the chain of dependent operations is short.

    Halves are combined as f32, and rounded once.
    """
    assert isinstance(found, tuple), "lanes that are combined are in registers"
    dtype, held = found[0].dtype, held_dtype(found[0].dtype)
    registers = [each if dtype == held else Op("cast", (each,), held, each.shape) for each in found]
    combiner = name.removeprefix("reduce_")
    while len(registers) > 1:
        half = len(registers) // 2
        pairs = zip(registers[:half], registers[half:], strict=False)
        joined: list[Value] = [Op(combiner, pair, held, pair[0].shape) for pair in pairs]
        registers = [*joined, *registers[2 * half :]]
    total = Op(name, (registers[0],), held)
    return total if dtype == held else Op("cast", (total,), dtype)
