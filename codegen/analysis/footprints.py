"""The bytes that loads, stores and instructions of a kernel touch, proven to be inside their storage.

This does not prove that the address of a streamed store is a multiple of its size; the launch's guards ensure
it (`Launch.misaligned` runs if the destination does not start on a line).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from codegen.analysis.cases import Case, Facts
from codegen.analysis.given import Storage
from codegen.analysis.numbers import Numbers
from codegen.analysis.scope import Place, Pointer, Scope
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, Index, Least
from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Store
from codegen.ir.values import Each, Entries, Load, Step, Value
from codegen.ir.visit import loads
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


@dataclass(slots=True)
class Footprints:
    """Proves that the accesses of one kernel stay inside its storages.

    Attributes:
        numbers: the integers of the kernel.
        storages: the address of each storage, and its range in bytes.
    """

    numbers: Numbers
    storages: dict[str, tuple[Affine, int, int]] = field(default_factory=dict)

    def add_storage(self, name: str, storage: Storage, start: Affine, unit_bits: int, scope: Scope) -> None:
        """A storage at an unknown address, and the name of its first byte."""
        address = self.numbers.unknowns.new(f"address of {name}")
        self.storages[name] = address, storage.low, storage.stop
        self.point(name, (((), Place(name, start, unit_bits)),), scope)

    def point(self, name: str, pointer: Pointer, scope: Scope) -> None:
        """Let a name point somewhere; as a symbol it is the address."""
        scope.pointers[name] = pointer
        if len(pointer) > 1:
            scope.symbols[name] = self.numbers.unknowns.new(f"address {name}")
            return
        ((_, place),) = pointer
        address, _, _ = self.storages[place.storage]
        scope.symbols[name] = address * (8 // place.unit_bits) + place.offset

    def view(self, name: str, buffer: str, offset: Affine, scope: Scope, unit_bits: int) -> None:
        """Let a name point an offset after another name, in its own units, if there are any."""
        moved = []
        for facts, place in self.pointer(buffer, scope):
            at = place.offset + offset
            if unit_bits:
                at = self.numbers.unknowns.floor(at * place.unit_bits, unit_bits)
            moved.append((facts, Place(place.storage, at, unit_bits or place.unit_bits)))
        self.point(name, tuple(moved), scope)

    def pointer(self, name: str, scope: Scope) -> Pointer:
        """The places that a name points to."""
        if name not in scope.pointers:
            raise KernelError(f"bounds: {name} is not a buffer of {self.numbers.function.name}")
        return scope.pointers[name]

    def store(self, store: Store, scope: Scope) -> None:
        """The loads of the value, and the stored lanes, including masked ones."""
        if store.accumulate:
            raise KernelError(f"bounds: no rule for {store.array} being accumulated in")
        for value in store.values:
            self.reads(value, scope)
        self.access(store, store.value.shape, store.value.dtype, scope)

    def reads(self, value: Value, scope: Scope) -> Affine | None:
        """All loads of a value; returns the value if it is an integer."""
        number = self.numbers.number(value, scope) if value.dtype == "i64" else None
        for load in loads(value):
            if load.array in scope.pointers:
                self.access(load, load.shape, load.dtype, scope)
            elif load.shape:
                self.entries(load, scope)
            elif number is None:
                self.numbers.number(load, scope)
        return number

    def entries(self, load: Load, scope: Scope) -> None:
        """A load of several entries of a table, side by side."""
        if load.dtype != "bits64" or len(load.shape) != 1 or load.steps != (1,) or load.first is not None:
            raise KernelError(f"bounds: no rule for {load.dtype}{list(load.shape)} of the table {load.array}")
        self.numbers.entries(load.array, self.total(load.subscripts, scope), load.shape[0], scope)

    def access(self, access: Load | Store, shape: tuple[int, ...], dtype: str, scope: Scope) -> None:
        """A load or a store of a buffer."""
        if access.along:
            raise KernelError(f"bounds: no rule for subscripts of each lane of {access.array}")
        offset = self.total(access.subscripts, scope)
        counts = self.counts(access, shape, scope)
        if access.first is not None:
            lane = self.numbers.lane(0, shape[0])
            scope = scope.inside((Case((), (counts[0] - lane - Affine(1),)),))
        if access.offsets is None:
            low, high = self.lanes(access, counts, scope)
            if isinstance(access, Store) and access.carry is not None:  # the line may begin before the row
                low = low - Affine(LINE_BYTES - 1)
        else:
            low = high = self.numbers.number(access.offsets, scope)
        text = f"{access.array}[{' + '.join(map(str, access.subscripts))}]"
        what = f"{'store of' if isinstance(access, Store) else 'load of'} {text}, {_kind(dtype, shape)}"
        self.touch(access.array, offset + low, offset + high, bits_of(dtype), what, scope)

    def total(self, subscripts: Iterable[Index], scope: Scope) -> Affine:
        """The sum of the subscripts, which are offsets."""
        total = Affine()
        for subscript in subscripts:
            total = total + self.numbers.index(subscript, scope)
        return total

    def counts(self, access: Load | Store, shape: tuple[int, ...], scope: Scope) -> list[Affine]:
        """The number of lanes along each dimension."""
        counts = [Affine(count) for count in shape]
        if access.first is not None:
            counts[0] = self.numbers.index(Least((counts[0], access.first)), scope)
        return counts

    def lanes(self, access: Load | Store, counts: Sequence[Affine], scope: Scope) -> tuple[Affine, Affine]:
        """The lowest and the highest distance of a lane from the first."""
        low = high = Affine()
        if len(access.steps) != len(counts):
            raise KernelError(f"bounds: no rule for lanes of {access.array} without their distances")
        for count, step in zip(counts, access.steps, strict=True):
            nearest, farthest = self.distances(step, count, scope)
            low, high = low + nearest, high + farthest
        return low, high

    def distances(self, step: Step, count: Affine, scope: Scope) -> tuple[Affine, Affine]:
        """The lowest and the highest distance along one dimension."""
        match step:
            case Entries(table, first, half):
                _, most = self.numbers.unknowns.range(count)
                number = self.numbers.index(first, scope)
                entry = self.numbers.entries(table, number, max(most or 1, 1), scope, half)
                return entry, entry
            case Each(same):
                return self.distances(same, count, scope)
            case str():
                apart = self.numbers.symbol(step, scope)
            case Affine():
                apart = self.numbers.index(step, scope)
            case _:
                apart = Affine(step)
        if apart.terms:
            raise KernelError(f"bounds: the distance {step} between lanes is not known before the call")
        last = (count - Affine(1)) * apart.constant
        return (last, Affine()) if apart.constant < 0 else (Affine(), last)

    def touch(self, name: str, low: Affine, high: Affine, bits: int, what: str, scope: Scope) -> None:
        """Prove that an access of that many bits from one offset to another stays inside."""
        for facts, place in self.pointer(name, scope):
            if self.numbers.silent:
                continue
            units = 8 // place.unit_bits
            _, first, stop = self.storages[place.storage]
            known = (*scope.facts, *facts)
            begin, end = place.offset + low, place.offset + high + Affine(-(-bits // place.unit_bits))
            inside = (begin - Affine(first * units), Affine(stop * units) - end)
            if not all(self.numbers.unknowns.proves(row, known) for row in inside):
                self.refuse(what, place, (begin, end), (first * units, stop * units), known, scope)
            self.numbers.proven += 1

    def refuse(
        self,
        what: str,
        place: Place,
        reached: tuple[Affine, Affine],
        expected: tuple[int, int],
        facts: Facts,
        scope: Scope,
    ) -> None:
        """Raise for an access that may be outside."""
        low = self.numbers.unknowns.at_least(reached[0], expected[0], facts)
        high = self.numbers.unknowns.at_most(reached[1], expected[1], facts)
        units = "bytes" if place.unit_bits == 8 else "bits"
        raise KernelError(
            f"bounds: {what}{scope.text} of {self.numbers.function.name} may leave {place.storage}: expected "
            f"{units} {expected[0]} to {expected[1] - 1}, got {low} to {high - 1}"
        )

    def prefetch(self, load: Load, scope: Scope) -> None:
        """A prefetch may be outside, but the table entries with its address are read."""
        if load.offsets is not None:
            raise KernelError(f"bounds: no rule for gathers from {load.array}")
        self.lanes(load, self.counts(load, load.shape, scope), scope)

    def call(self, name: str, operands: tuple[str | Index, ...], scope: Scope) -> None:
        """An instruction, whose declaration states how many bytes of each buffer it touches."""
        called = instruction(name)
        if called.shapes:
            raise KernelError(f"bounds: {name} does not access memory")
        given = {k: self.numbers.index(x, scope) for k, x in enumerate(operands) if not isinstance(x, str)}
        buffers = {k: x for k, x in enumerate(operands) if isinstance(x, str)}
        if buffers.keys() != called.touched.keys():
            raise KernelError(
                f"bounds: {name} does not declare the bytes that it touches in {', '.join(buffers.values())}"
            )
        if not called.active and called.touched:
            raise KernelError(f"bounds: {name} does not declare how many bytes it touches")
        if not called.active or self.numbers.silent:
            return
        count, most = given[called.active.operand], called.active.most
        fits = [count, *([] if most is None else [Affine(most) - count])]
        if not all(self.numbers.unknowns.proves(row, scope.facts) for row in fits):
            low = self.numbers.unknowns.at_least(count, 0, scope.facts)
            high = self.numbers.unknowns.at_most(count, most or 0, scope.facts)
            raise KernelError(
                f"bounds: {name} of {operands[called.active.operand]} bytes{scope.text} of "
                f"{self.numbers.function.name}: expected 0 to {most or 'any'}, got {low} to {high}"
            )
        for k, buffer in buffers.items():
            # No byte is touched if the count is 0.
            inner = scope.inside((Case((), (count - Affine(1),)),))
            size = count * called.touched[k] - Affine(1)
            shown = f"{name}({', '.join(map(str, operands))}) at {buffer}"
            self.touch(buffer, Affine(), size, 8, shown, inner)


def _kind(dtype: str, shape: tuple[int, ...]) -> str:
    """A type as text: bits32, or bits32[16, 4]."""
    return f"{dtype}{list(shape)}" if shape else dtype
