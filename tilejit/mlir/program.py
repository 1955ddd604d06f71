"""A function of MLIR text as a program that runs on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np

from codegen import (
    ArrayArg,
    Const,
    Function,
    KernelError,
    KernelValueError,
    OutOfMemoryError,
    ScalarArg,
    dataclass,
    evaluate_index,
    numpy_dtype,
)
from tilejit.mlir.dtypes import MemRef
from tilejit.mlir.types import shape_text

Execute: TypeAlias = Callable[[Function, Sequence[Any]], tuple[Any, ...]]
"""Runs a kernel on its arguments, in order, and returns its results."""


@dataclass(frozen=True, slots=True)
class Program:
    """A function of an MLIR text as a kernel, whose last arguments are the arrays that the text allocates.

    >>> text = "func.func @same(%x: f32) -> f32 { return %x : f32 }"
    >>> program = mlir.parse(text)["same"]
    >>> program.name, len(program.memrefs)
    ('same', 1)

    `parse` creates it.

    Attributes:
        function: the kernel: arguments of the text first, then an array for each allocation.
        memrefs: the memref of each argument of the text; None for a number.
        allocations: the memrefs that the text allocates, with sizes in terms of its arguments.
        returns: for each result, the name of an array or a position among the results of `function`.
        indices: the arguments of the type index, and the arrays whose elements have it.
        index_results: the positions of results that have the type index.
        spelled: the text's spelling of names that differ in the kernel.
        constants: the numbers, except indices, that the text defines outside loops.
        lanes: the shape of the vectors in the text; () without vectors.
        source: the text of a function that has vectors.
    """

    function: Function
    memrefs: tuple[MemRef | None, ...]
    allocations: tuple[MemRef, ...]
    returns: tuple[str | int, ...]
    indices: frozenset[str] = frozenset()
    index_results: frozenset[int] = frozenset()
    spelled: Mapping[str, str] = field(default_factory=dict)
    constants: tuple[Const, ...] = ()
    lanes: tuple[int, ...] = ()
    source: str = ""

    @property
    def name(self) -> str:
        """The function's name in the text."""
        return self.function.name

    def __call__(self, *arguments: Any, execute: Execute) -> Any:
        """Run the function with `execute`; arrays are written in place.

        Returns:
            None, one number or array, or a tuple of them.

        Raises:
            KernelError: the number of arguments differs.
            KernelValueError: an argument does not match the declared type.
            OutOfMemoryError: an array that the function allocates does not fit in memory.
            TypeError: an argument is neither an array nor a number.
        """
        if len(arguments) != len(self.memrefs):
            raise KernelError(
                f"@{self.name}: expected {len(self.memrefs)} arguments, got {len(arguments)}\n"
                f"  pass {', '.join(a.name for a in self.declared) or 'none'}"
            )
        checked = [
            self._array(a, m, given) if m is not None and isinstance(a, ArrayArg) else self._number(a, given)
            for a, m, given in zip(self.declared, self.memrefs, arguments, strict=True)
        ]
        checked += self._allocated(checked)
        orders = [_order(a) if isinstance(a, np.ndarray) else "" for a in checked]
        function = replace(
            self.function,
            arguments=tuple(
                replace(a, order=order) if isinstance(a, ArrayArg) else a
                for a, order in zip(self.function.arguments, orders, strict=True)
            ),
        )
        numbers = execute(function, checked)
        by_name = {a.name: given for a, given in zip(function.arguments, checked, strict=True)}
        returned = tuple(by_name[r] if isinstance(r, str) else numbers[r] for r in self.returns)
        return returned[0] if len(returned) == 1 else returned or None

    @property
    def declared(self) -> tuple[ArrayArg | ScalarArg, ...]:
        """The arguments that the text declares."""
        return self.function.arguments[: len(self.memrefs)]

    def _array(self, argument: ArrayArg, memref: MemRef, given: object) -> np.ndarray[Any, Any]:
        """Check an array against its memref, and return it in the kernel's dtype."""
        if not isinstance(given, np.ndarray):
            raise TypeError(f"{argument.name} of @{self.name}: expected an array, got {type(given).__name__}")
        wanted = numpy_dtype(argument.dtype)
        # MLIR integers are signless, so signed and unsigned arrays are both accepted.
        signless = (
            given.dtype.kind in "iu" and given.dtype.itemsize == wanted.itemsize and wanted.kind in "iu"
        )
        if given.dtype != wanted and not (signless and given.dtype.isnative):
            raise self._refused(argument, f"expected {wanted}, got {given.dtype}", "convert it with astype")
        if given.ndim != argument.rank:
            cause = f"expected {argument.rank} dimensions, got {given.ndim}"
            raise self._refused(argument, cause, "pass an array of that rank")
        sizes = memref.static_sizes
        if any(size not in (None, n) for size, n in zip(sizes, given.shape, strict=True)):
            cause = f"expected the shape {shape_text(sizes)}, got {shape_text(given.shape)}"
            raise self._refused(argument, cause, "pass an array of that shape, or write `?` in the type")
        return given if given.dtype == wanted else given.view(wanted)

    def _number(self, argument: ArrayArg | ScalarArg, given: object) -> Any:
        """Convert a number to its dtype; a float in place of an integer is a TypeError."""
        dtype = numpy_dtype(argument.dtype)
        kind: type = Integral if dtype.kind in "iub" else Real
        exact = isinstance(given, np.generic) and given.dtype == dtype
        if not (exact or isinstance(given, kind)):
            raise TypeError(
                f"{argument.name} of @{self.name}: expected one {dtype}, got {type(given).__name__}"
            )
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= int(given) <= limits.max:  # type: ignore[call-overload]
                cause = f"{given} is out of range for {dtype}"
                raise self._refused(argument, cause, f"pass a value from {limits.min} to {limits.max}")
        return dtype.type(given)

    def _refused(self, argument: ArrayArg | ScalarArg, cause: str, fix: str) -> KernelValueError:
        return KernelValueError(f"{argument.name} of @{self.name}: {cause}\n  {fix}")

    def _allocated(self, given: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        values = _sizes(self.declared, given)
        return [self._allocate(memref, values) for memref in self.allocations]

    def _allocate(self, memref: MemRef, values: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Allocate zeros, so that a program that reads them by mistake fails the same way each time."""
        shape = tuple(int(evaluate_index(size, values)) for size in memref.sizes)
        try:
            return np.zeros(shape, numpy_dtype(memref.dtype))
        except (ValueError, MemoryError, OverflowError) as error:
            kind = OutOfMemoryError if isinstance(error, MemoryError) else KernelValueError
            raise kind(
                f"@{self.name} allocates {memref.name} with the shape {shape}: {error}\n  pass other sizes"
            ) from None


def _sizes(arguments: Sequence[ArrayArg | ScalarArg], given: Sequence[Any]) -> dict[str, int]:
    """The values of names in index expressions: integer arguments, sizes of arrays."""
    values: dict[str, int] = {}
    for argument, value in zip(arguments, given, strict=True):
        if isinstance(argument, ArrayArg):
            values |= {f"{argument.name}.shape[{k}]": n for k, n in enumerate(value.shape)}
        elif numpy_dtype(argument.dtype).kind in "iu":
            values[argument.name] = int(value)
    return values


def _order(array: np.ndarray[Any, Any]) -> Literal["C", "F", ""]:
    if array.flags.c_contiguous:
        return "C"
    return "F" if array.flags.f_contiguous else ""
