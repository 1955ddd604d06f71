"""Check promises of loops element by element, as `TILEJIT_VERIFY=1` and `verify=True` request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from codegen.ir.index import Index
from codegen.ir.interpreter import Run
from codegen.ir.nodes import MANY, ArrayArg, For, Function, Store
from codegen.ir.values import Load
from codegen.ir.visit import loops_of
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelValueError


def promises_independence(function: Function) -> bool:
    """Whether a loop promises that iterations, or near ones, are independent."""
    return any(loop.node.promise for root in loops_of(function.body) for loop in root.all())


def check_independence(function: Function, arguments: Sequence[Any]) -> None:
    """Check that iterations which are promised to be independent access no element that another one writes.

    It interprets the function on copies of the arrays, which takes microseconds for each element.

    Raises:
        KernelValueError: iterations depend on each other that are promised not to; it names them.
    """
    run = _Watch({}, {}, {})
    for argument, given in zip(function.arguments, arguments, strict=True):
        run.bind(argument, given.copy(order="K") if isinstance(argument, ArrayArg) else given)
        if isinstance(argument, ArrayArg):
            run.storage[argument.name] = given.__array_interface__["data"][0], given.strides
    with np.errstate(all="ignore"):
        run.block(function.body)


@dataclass(slots=True)
class _Marked:
    """A running loop whose iterations, or those nearer than a distance, are promised to be independent.

    touched  by the address of an element, the last two iterations that read it and that wrote it
    """

    loop: For
    index: int = 0
    iteration: int = 0
    touched: tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]] = field(
        default_factory=lambda: ({}, {})
    )

    def touch(self, address: int, *, stores: bool) -> int | None:
        """Note an access; an earlier iteration that breaks the promise with a conflicting one, or None."""
        now, near = self.iteration, None
        for of_stores, known in enumerate(self.touched):
            if stores or of_stores:
                before = max(n for n in (-1, *known.get(address, ())) if n < now)
                if before >= 0 and (self.loop.parallel or now - before < self.loop.min_distance):
                    near = before
        known = self.touched[stores]
        latest = known[address][0] if address in known else -1
        if latest < now:
            known[address] = now, latest
        return near


@dataclass(slots=True)
class _Watch(Run):
    """Interprets a function and looks at each access in loops that promise independence."""

    storage: dict[str, tuple[int, Sequence[int]]] = field(default_factory=dict)
    marked: list[_Marked] = field(default_factory=list)

    def loop(self, loop: For) -> None:
        """Run a loop."""
        if loop.promise:
            self.marked.append(_Marked(loop))
        Run.loop(self, loop)
        if loop.promise:
            self.marked.pop()

    def iterations(self, loop: For, start: int, stop: int) -> Iterator[int]:
        """The iterations of a loop, counted if it is marked."""
        for number, index in enumerate(Run.iterations(self, loop, start, stop)):
            if self.marked and self.marked[-1].loop is loop:
                self.marked[-1].index, self.marked[-1].iteration = index, number
            yield index

    def load(self, load: Load) -> Any:
        """Load an element."""
        self.touch(load.array, load.subscripts, stores=False)
        return Run.load(self, load)

    def store(self, store: Store) -> None:
        """Store an element, if its condition holds."""
        if store.where is None or self.value(store.where):
            if store.accumulate:
                self.touch(store.array, store.subscripts, stores=False)
            self.touch(store.array, store.subscripts, stores=True)
        Run.store(self, store)

    def touch(self, array: str, subscripts: tuple[Index, ...], *, stores: bool) -> None:
        """Note an access in all marked loops."""
        if not self.marked:
            return
        place = self.position(array, subscripts, ())
        start, strides = self.storage[array]
        address = start + sum(k * step for k, step in zip(place, strides, strict=True))
        for marked in self.marked:
            earlier = marked.touch(address, stores=stores)
            if earlier is not None:
                element = f"{array}[{', '.join(map(str, place))}]"
                before = marked.index - (marked.iteration - earlier) * marked.loop.step
                raise KernelValueError(
                    f"iterations {before} and {marked.index} of {marked.loop.index} access {element}, but "
                    f"{_promise(marked.loop, marked.iteration - earlier)}, or call it with other arguments"
                )


def _promise(loop: For, found: int) -> str:
    """What a loop promises, and the fix if iterations at this distance depend on each other."""
    if loop.parallel or loop.min_distance == MANY:
        return f"{loop.promise} promises that iterations are independent\n  remove it"
    return (
        f"min_distance promises that iterations nearer than {loop.min_distance} are independent\n"
        f"  promise at most {found}"
    )
