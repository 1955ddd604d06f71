"""The verifier: what every form of a function must satisfy, whichever pass made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from codegen.ir.combiners import scans_by
from codegen.ir.families import FAMILIES
from codegen.ir.index import Index, elements_in, index_symbols
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import (
    COMBINERS,
    Alloc,
    ArrayArg,
    BufferArg,
    Call,
    Compare,
    For,
    Function,
    If,
    Let,
    Prefetch,
    Statement,
    Store,
    View,
)
from codegen.ir.values import (
    Const,
    Each,
    Entries,
    IndexValue,
    Load,
    Local,
    Op,
    Reduce,
    Step,
    Value,
    VectorShape,
)
from codegen.support.dataclasses import dataclass

Kind: TypeAlias = "tuple[str, VectorShape] | ArrayArg | BufferArg | None"
"""A local's dtype and shape, an array, a buffer, or None for the index of a loop."""

RANGE = (BEGIN, END)
"""The range of the loop that calls share."""

LANEWISE = ("select", "cast", "fma", "round_to_odd", "pow")
"""The operations besides operators whose operands have the lanes of the result."""


def verify(function: Function) -> None:
    """Raise if a name is unknown where it is used, or if dtypes or shapes do not agree.

    Raises:
        AssertionError: the function is not well formed; the message names the statement.
    """
    names: dict[str, Kind] = {}
    for buffer in function.buffers:
        names[buffer.name] = buffer
    for argument in function.arguments:
        if argument.name in names and not isinstance(names[argument.name], BufferArg):
            raise AssertionError(f"{function.name}: two arguments are {argument.name}")
        if isinstance(argument, ArrayArg):
            names[argument.name] = argument
        elif argument.name not in names:
            names[argument.name] = (argument.dtype, ())
    scope = Scope(function.name, names, bool(function.buffers))
    scope.body(function.body)
    for result in function.results:
        scope.value(result)


@dataclass(slots=True)
class Scope:
    """The names that are known at a statement.

    Attributes:
        function: the function's name.
        names: the kinds of the names.
        flat: whether arrays are flat buffers, whose elements have any dtype.
        carried: what the loops around carry, which statements may assign.
        branch: whether the statements are a branch of an `If`, which may assign names once more.
        at: the statement, for messages.
    """

    function: str
    names: dict[str, Kind]
    flat: bool
    carried: frozenset[str] = frozenset()
    branch: bool = False
    at: object = None

    def error(self, what: str) -> AssertionError:
        """The error to raise about the statement."""
        return AssertionError(f"{self.function}: {what}\n  in {self.at}")

    def body(self, statements: Sequence[Statement]) -> None:
        """Check statements in order; names that they define are known to the following ones."""
        for statement in statements:
            self.at = statement
            self.statement(statement)

    def inside(
        self, statements: Sequence[Statement], more: Mapping[str, Kind], carried: Iterable[str] = ()
    ) -> dict[str, Kind]:
        """The names known at the end of a body, which are unknown after it."""
        names, carries = {**self.names, **more}, self.carried.union(carried)
        inner = Scope(self.function, names, self.flat, carries, branch=not more)
        inner.body(statements)
        return inner.names

    def statement(self, statement: Statement) -> None:
        """Check a statement, and add the names that it defines."""
        match statement:
            case Let(name, value):
                self.value(value)
                kind = value.dtype, value.shape
                again = (self.branch or name in self.carried) and self.names.get(name) == kind
                if name in self.names and not again:
                    raise self.error(f"{name} is assigned twice")
                self.names[name] = kind
            case Store():
                self.store(statement)
            case For():
                self.loop(statement)
            case View(name, buffer, offset, lines=lines):
                self.memory(buffer)
                self.index(offset)
                self.table(lines)
                again = self.branch and isinstance(self.names.get(name), BufferArg)
                if name in self.names and not again:
                    raise self.error(f"the view {name} has the name of something else")
                self.names[name] = BufferArg(name)
            case Alloc(name, size):
                if isinstance(size, str):
                    self.symbols([size])
                self.names[name] = BufferArg(name)
            case Prefetch(load):
                self.access(load, load.shape)
            case If(tests, then, otherwise):
                for test in tests:
                    self.test(test)
                first, second = (self.inside(body, {}) for body in (then, otherwise))
                self.names |= {name: kind for name, kind in first.items() if second.get(name, 0) == kind}
            case Call(name, operands):
                if not is_instruction(name):
                    raise self.error(f"{name} is not an instruction")
                for operand in operands:
                    self.memory(operand) if isinstance(operand, str) else self.index(operand)
            case _:
                raise AssertionError(f"verify: no rule for {type(statement).__name__}")

    def test(self, test: Compare | Value) -> None:
        """Check a test of an `If`."""
        if isinstance(test, Compare):
            self.index(test.left)
            self.index(test.right)
        else:
            self.value(test)
            if test.shape != ():
                raise self.error(f"a test has the shape {test.shape}")

    def loop(self, loop: For) -> None:
        """Check a loop, its carried values and its bodies."""
        for bound in (*loop.lower, *loop.upper):
            self.index(bound)
        if not (loop.lower and loop.upper):
            raise self.error(f"loop {loop.index} has no bounds")
        if loop.step == 0:
            raise self.error(f"loop {loop.index} has step 0")
        if loop.size < 1 or loop.step % loop.size:
            raise self.error(f"loop {loop.index}: {loop.size} of {loop.step}")
        carried: dict[str, Kind] = {}
        for each in loop.carried:
            self.value(each.start)
            carried[each.name] = (each.start.dtype, each.start.shape)
        own: dict[str, Kind] = {**carried, loop.index: None}
        inner = Scope(self.function, self.inside(loop.body, own, carried), self.flat, at=loop)
        for each in loop.carried:
            inner.value(each.update)
            kind = each.update.dtype, each.update.shape
            if kind != carried[each.name]:
                raise self.error(f"{each.name} goes from {carried[each.name]} to {kind}")
        self.names |= carried

    def store(self, store: Store) -> None:
        """Check a store."""
        for value in store.values:
            self.value(value)
        value = store.value
        self.access(store, value.shape)
        if store.first is not None and value.dtype.startswith("bits") and len(value.shape) < 2:
            raise self.error(f"{store.array} stores the first rows of {value.shape}")
        array = self.names[store.array]
        if isinstance(array, ArrayArg) and not self.flat and value.dtype != array.dtype:
            raise self.error(f"{array.name} of {array.dtype} gets {value.dtype}")
        if store.where is not None:
            mask = store.where.dtype, store.where.shape
            if mask != ("i1", value.shape):
                raise self.error(f"the mask of {value.shape} is {mask}")
        if store.carry is not None and value.shape and store.carry.shape != value.shape:
            raise self.error(f"rows of {value.shape} are carried as {store.carry.shape}")
        if store.accumulate not in ("", *COMBINERS):
            raise self.error(f"{store.accumulate} is not a combiner")

    def access(self, access: Load | Store, shape: VectorShape) -> None:
        """Check the memory, the subscripts and the lanes of a load or a store."""
        self.memory(access.array)
        array = self.names[access.array]
        for subscript in access.subscripts:
            self.index(subscript, shape if self.flat else ())
        if isinstance(array, ArrayArg):
            given = len(access.subscripts)
            if given != array.rank:
                raise self.error(f"{array.name} has rank {array.rank}, and {given} subscripts")
        for what, entries in (("dims", access.dims), ("steps", access.steps), ("along", access.along)):
            if len(entries) not in (0, len(shape)):
                raise self.error(f"{access.array}: {what} {entries} for lanes {shape}")
        for dim in access.dims:
            if dim is not None and not 0 <= dim < len(access.subscripts):
                raise self.error(f"{access.array} has no subscript {dim}")
        for step in access.steps:
            self.step(step)
        self.indices(access.along)
        if access.first is not None:
            self.index(access.first)
        if access.offsets is not None and access.offsets.shape != shape:
            raise self.error(f"{access.array}: offsets {access.offsets.shape}")

    def step(self, step: Step) -> None:
        """Check the distance between lanes."""
        match step:
            case int():
                pass
            case str():
                self.symbols([step])
            case Each(same):
                self.step(same)
            case Entries(table, first):
                self.table(table)
                self.index(first)
            case _:
                self.index(step)

    def table(self, name: str) -> None:
        """Check that a name is an array of offsets, or empty."""
        if name and not isinstance(self.names.get(name), ArrayArg):
            raise self.error(f"{name} is not a table")

    def value(self, value: Value) -> None:
        """Check a value and its operands."""
        match value:
            case Local(name, dtype, shape):
                if name not in self.names:
                    raise self.error(f"{name} is unknown")
                if self.names[name] != (dtype, shape):
                    raise self.error(f"{name} is {self.names[name]}, not {dtype}{shape}")
            case IndexValue(index, _, shape, along, steps):
                self.index(index)
                self.indices(along)
                for entries in (along, steps):
                    if len(entries) not in (0, len(shape)):
                        raise self.error(f"{value}: {entries} for lanes {shape}")
            case Load(array, _, dtype, shape):
                if value.offsets is not None:
                    self.value(value.offsets)
                self.access(value, shape)
                own = self.names[array]
                if isinstance(own, ArrayArg) and not self.flat and own.dtype != dtype:
                    raise self.error(f"{array} of {own.dtype} is loaded as {dtype}")
            case Op(name, operands, _, shape):
                for operand in operands:
                    self.value(operand)
                self.operation(value)
            case Reduce(combiner, vector, start, dtype):
                self.value(vector)
                self.value(start)
                kinds = {vector.dtype, start.dtype, dtype}
                if combiner not in COMBINERS or len(kinds) != 1:
                    raise self.error(f"{combiner} of {kinds}")
            case Const():
                pass
            case _:
                raise AssertionError(f"verify: no rule for {type(value).__name__}")

    def operation(self, value: Op) -> None:
        """Check the operands of an operation."""
        name, operands = value.name, value.operands
        if is_instruction(name):
            instruction(name).check_operands(operands, selected=False)
            return
        family = FAMILIES.get(name)
        if family is None or scans_by(name):
            return
        if len(operands) != family.arity:
            raise self.error(f"{name} takes {family.arity} operands, got {len(operands)}")
        if family.is_operator or name in LANEWISE:
            shapes = {operand.shape for operand in operands} - {()} | {value.shape}
            if len(shapes) != 1:
                raise self.error(f"{name} of the shapes {[x.shape for x in operands]} gives {value.shape}")
        if family.is_operator and len({operand.dtype for operand in operands}) != 1:
            raise self.error(f"{name} of {[x.dtype for x in operands]}")

    def memory(self, name: str) -> None:
        """Check that a name is an array or a buffer."""
        if not isinstance(self.names.get(name), ArrayArg | BufferArg):
            raise self.error(f"{name} is not an array or a buffer")

    def index(self, index: Index, shape: VectorShape = ()) -> None:
        """Check the names of an index expression, some of which may differ in the lanes of a shape."""
        for element in elements_in(index):
            self.memory(element.array)
        self.symbols(index_symbols(index), shape)

    def indices(self, names: Iterable[str]) -> None:
        """Check the names of loops along which lanes run."""
        for name in names:
            if name and self.names.get(name, 0) is not None:
                raise self.error(f"{name} is not the index of a loop")

    def symbols(self, symbols: Iterable[str], shape: VectorShape = ()) -> None:
        """Check the symbols of index expressions: indices, integers, sizes, addresses of buffers."""
        for symbol in symbols:
            array, extent, _ = symbol.partition(".shape[")
            name = array if extent else symbol
            if symbol not in RANGE and name not in self.names:
                raise self.error(f"{symbol} is unknown")
            kind = self.names.get(name)
            if isinstance(kind, tuple) and (kind[0][0] not in "iu" or kind[1] not in ((), shape)):
                raise self.error(f"{symbol} is {kind}, not an integer")
