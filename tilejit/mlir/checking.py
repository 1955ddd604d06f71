"""Check that a super-vectorized text computes the same results as its scalar form, by running both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from numbers import Integral
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from codegen import (
    FLOAT_FUNCTIONS,
    ArrayArg,
    For,
    KernelError,
    KernelIndexError,
    KernelValueError,
    Op,
    Statement,
    dataclass,
    index_arrays,
    numpy_dtype,
    parts,
    values_of,
)
from tilejit.mlir.dtypes import MemRef, number_of
from tilejit.mlir.module import Module, parse
from tilejit.mlir.program import Program
from tilejit.mlir.types import shape_text
from tilejit.mlir.vectorize import compiled, request_of

ROUNDINGS = 64
"""The number of machine epsilons by which math functions may differ."""
EXACT_FUNCTIONS = ("sqrt", "rint", "copysign", "fma")
"""Math functions whose results are correctly rounded, and therefore equal."""
FEWEST_LANES = 8
"""The number of lanes to assume when choosing sizes for a text without vectors."""
MOST_ELEMENTS = 1 << 21
"""The most elements of one array; sizes that need more are skipped."""
LONGER = 5
"""The number of elements by which arrays continue past their loops."""
LARGEST_TOLERANCE = 0.25
"""The limit of relative tolerances."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a successful `check`: what it compared.

    >>> text = "func.func @same(%x: f32) -> f32 { return %x : f32 }"
    >>> mlir.check(text, text).functions
    ('same',)

    Attributes:
        functions: the names of the functions.
        cases: the sizes of each call, in elements.
        tolerance: the largest relative tolerance that was allowed; 0.0 if everything was compared exactly.
    """

    functions: tuple[str, ...]
    cases: tuple[str, ...]
    tolerance: float

    def __str__(self) -> str:
        names = ", ".join(f"@{name}" for name in self.functions)
        how = f"within {self.tolerance:.2g}" if self.tolerance else "exactly"
        calls = "1 call agrees" if len(self.cases) == 1 else f"{len(self.cases)} calls agree"
        return f"{names}: {calls} {how}"


def check(
    scalar: str | Module, vectorized: str | Module, *, sizes: Sequence[int] | None = None, seed: int = 0
) -> Checked:
    """Run two texts on the same random arrays and compare everything they write and return.

    >>> text = '''
    ... func.func @fill(%x: f32, %A: memref<8xf32>) {
    ...   affine.for %i = 0 to 8 { affine.store %x, %A[%i] : memref<8xf32> }
    ...   return
    ... }'''
    >>> print(mlir.check(text, mlir.super_vectorize(text, virtual_vector_size=4)))
    @fill: 1 call agrees exactly

    Both texts are compiled. Functions are paired by name; texts of one function each may use different names.
    For every size, arrays end with the loops in one call and continue past them in another, which detects
    missing masks of stores. Calls that the scalar function rejects because of an index outside an array are
    skipped.

    Integers and floats must agree exactly, with two exceptions. Math functions such as tan use different code
    in super-vectors, and may differ by 64 times the machine epsilon. Loops that carry floats may add them in
    another order, and may differ by the epsilon times the number of elements of the largest array. Both
    tolerances are relative to the result, or to 1 if the result is smaller, and at most 0.25.

    Args:
        scalar: the reference: a text, or the Module that `parse` returned.
        vectorized: the text to check, such as the output of `super_vectorize` or mlir-opt.
        sizes: the values to try for sizes that the text leaves open, in elements. None takes values near
            multiples of the super-vector's sizes.
        seed: the seed of the random numbers.

    Returns:
        A `Checked`, which prints as a summary.

    Raises:
        KernelError: results differ (the message names the first element that differs and the sizes of the
            call), signatures differ, a function is missing, or a function rejects all sizes.
        TypeError: an argument has the wrong type.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TypeError(f"seed: expected an integer, got {type(seed).__name__}")
    pairs = _pairs(_module(scalar), _module(vectorized))
    cases: list[str] = []
    tolerance = 0.0
    for one, other in pairs:
        _check_signatures(one, other)
        found = list(_compared(one, other, _sizes(other, sizes), int(seed)))
        if not found:
            raise KernelError(
                f"@{one.name} rejects all sizes, because its scalar form would access elements outside an "
                "array\n"
                "  pass other sizes="
            )
        cases += [case for case, _ in found]
        tolerance = max(tolerance, *(allowed for _, allowed in found))
    return Checked(tuple(one.name for one, _ in pairs), tuple(cases), tolerance)


def _module(given: Any) -> Module:
    return given if isinstance(given, Module) else parse(given)


def _pairs(scalar: Module, vectorized: Module) -> tuple[tuple[Program, Program], ...]:
    """The functions to compare."""
    if len(scalar.programs) == len(vectorized.programs) == 1:
        return ((scalar.programs[0], vectorized.programs[0]),)
    return tuple((program, vectorized[program.name]) for program in scalar.programs)


def _check_signatures(one: Program, other: Program) -> None:
    """Raise if the arguments or results of two functions differ."""
    kinds = [
        ([(a.dtype, m and len(m.sizes)) for a, m in zip(p.declared, p.memrefs, strict=True)], len(p.returns))
        for p in (one, other)
    ]
    if kinds[0] != kinds[1]:
        raise KernelError(
            f"@{one.name} and @{other.name} have different signatures\n"
            "  pass the same arguments and results to both"
        )


def _sizes(program: Program, given: Sequence[int] | None) -> tuple[int, ...]:
    """The sizes to try."""
    if given is None:
        lanes = max(program.lanes, default=FEWEST_LANES)
        return tuple(sorted({1, *(k * lanes + more for k in (1, 2) for more in (-1, 0, 3))}))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"sizes: expected a list of numbers, got {type(given).__name__}")
    wrong = [type(n).__name__ for n in given if isinstance(n, bool) or not isinstance(n, Integral)]
    if wrong:
        raise TypeError(f"sizes: expected a list of numbers, got {wrong[0]}")
    if not given or min(given) < 0:
        raise KernelValueError(f"sizes: expected one or more nonnegative numbers, got {list(given)}")
    return tuple(map(int, given))


def _compared(one: Program, other: Program, sizes: Sequence[int], seed: int) -> Iterator[tuple[str, float]]:
    """Compare calls; yield the sizes and the tolerance of each one."""
    bodies = one.function.body, other.function.body
    sums, approximates = any(map(_carries_floats, bodies)), any(map(_approximates, bodies))
    done: set[str] = set()
    needed = _largest_bound(one.function.body)
    for size in sizes:
        for extent in (size, max(size + LONGER, needed)):
            if not all(_fits(memref, extent) for memref in (*one.memrefs, *one.allocations)):
                continue
            rng = np.random.default_rng([seed, size, extent])
            arguments = _arguments(one, size, extent, rng)
            case = _described(one, arguments)
            if case in done:
                continue
            done.add(case)
            try:
                expected = _outcome(one, arguments)
            except (KernelIndexError, KernelValueError):
                continue
            try:
                found = _outcome(other, arguments)
            except KernelError as error:
                raise KernelError(f"@{other.name} in super-vectors fails with {case}: {error}") from error
            elements = max((x.size for x in expected.values() if isinstance(x, np.ndarray)), default=1)
            roundings = max(elements * sums, ROUNDINGS * approximates)
            yield case, _agree(one, case, expected, found, roundings)


def _fits(memref: MemRef | None, size: int) -> bool:
    """Whether an array of that size is within the limit of elements."""
    return memref is None or prod(_shape(memref, size)) <= MOST_ELEMENTS


def _arguments(program: Program, size: int, extent: int, rng: np.random.Generator) -> list[Any]:
    """Random arrays and numbers. An index is the size, or less if arrays continue past the loops.

    Elements that are used as subscripts are inside every array.
    """
    out: list[Any] = []
    indices = 0
    subscripts = index_arrays(program.function)
    least = min([n for memref in program.memrefs if memref for n in _shape(memref, extent)], default=0)
    for declared, memref in zip(program.declared, program.memrefs, strict=True):
        if memref is not None:
            shape = _shape(memref, extent)
            inside = declared.name in subscripts
            out.append(
                rng.integers(0, max(least, 1), shape).astype(numpy_dtype(declared.dtype))
                if inside
                else _random(declared.dtype, shape, rng)
            )
        elif declared.name in program.indices:
            out.append(max(0, size - 3 * indices) if extent > size else size)
            indices += 1
        else:
            out.append(_random(declared.dtype, (), rng)[()])
    return out


def _shape(memref: MemRef, extent: int) -> tuple[int, ...]:
    """The sizes of an array; every size that the text leaves open is `extent`."""
    return tuple(extent if n is None else n for n in memref.static_sizes)


def _random(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Numbers between -2 and 2, or integers up to 100."""
    kind = numpy_dtype(dtype)
    if dtype == "i1":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if kind.kind in "iu":
        return np.asarray(rng.integers(0 if kind.kind == "u" else -100, 100, shape)).astype(kind)
    return np.asarray(rng.uniform(-2, 2, shape)).astype(kind)


def _described(program: Program, arguments: Sequence[Any]) -> str:
    """The sizes of a call: n = 259, A of 264x264"""
    parts = []
    for declared, given in zip(program.declared, arguments, strict=True):
        if isinstance(declared, ArrayArg):
            parts.append(f"{declared.name} of {shape_text(given.shape) or 'one element'}")
        elif declared.name in program.indices:
            parts.append(f"{declared.name} = {given}")
    return ", ".join(parts) or "no sizes"


def _outcome(program: Program, arguments: Sequence[Any]) -> dict[str, Any]:
    """The written arrays and returned values of a call, by name."""
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    returned = program(*given, execute=partial(compiled, request_of(None, program)))
    results = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    arrays = {f"argument {k}": x for k, x in enumerate(given) if isinstance(x, np.ndarray)}
    return {**arrays, **{f"result {k}": x for k, x in enumerate(results)}}


def _agree(
    program: Program, case: str, expected: dict[str, Any], found: dict[str, Any], roundings: int
) -> float:
    """The tolerance within which all values agree.

    Raises:
        KernelError: a value differs.
    """
    most = 0.0
    for name, exact in expected.items():
        a, b = np.asarray(exact), np.asarray(found[name])
        if a.shape != b.shape:
            raise KernelError(
                f"@{program.name} differs in super-vectors with {case}: "
                f"expected the shape {a.shape}, got {b.shape}"
            )
        tolerance = _tolerance(a.dtype, roundings)
        most = max(most, tolerance)
        wrong = np.argwhere(_differ(a, b, tolerance))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            raise KernelError(
                f"@{program.name} differs in super-vectors with {case}: {_place(program, name, at)} is "
                f"{b[at]}, not {a[at]}; {len(wrong)} of {a.size} elements differ\n"
                "  compare the bounds, the masks and the steps of its loops"
            )
    return most


def _place(program: Program, name: str, at: tuple[int, ...]) -> str:
    """The name of an element: C[3, 256]"""
    kind, _, number = name.partition(" ")
    base = program.declared[int(number)].name if kind == "argument" else f"result {number}"
    return f"{base}[{', '.join(map(str, at))}]" if at else base


def _tolerance(dtype: np.dtype[Any], roundings: int) -> float:
    """The relative tolerance of a dtype for that many roundings."""
    if not roundings or dtype.kind in "iub":
        return 0.0
    return min(roundings * float(ml_dtypes.finfo(dtype).eps), LARGEST_TOLERANCE)  # type: ignore[no-untyped-call]


def _differ(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    if a.dtype.kind in "iub":
        return np.asarray(a != b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= tolerance * np.maximum(np.maximum(np.abs(x), np.abs(y)), 1.0)
    return np.asarray(~((x == y) | near | (np.isnan(x) & np.isnan(y))))


def _carries_floats(body: Sequence[Statement]) -> bool:
    """Whether loops carry floats from one iteration to the next."""
    loops = [statement for statement in body if isinstance(statement, For)]
    return any(
        any(carried.start.dtype[0] in "fb" for carried in loop.carried) or _carries_floats(loop.body)
        for loop in loops
    )


def _largest_bound(body: Sequence[Statement]) -> int:
    """The largest constant upper bound of a loop, which is the least size of its arrays."""
    found = 0
    for loop in body:
        if isinstance(loop, For):
            numbers = [n for n in map(number_of, loop.upper) if n is not None]
            found = max(found, *numbers, _largest_bound(loop.body))
    return found


def _approximates(body: tuple[Statement, ...]) -> bool:
    """Whether statements call functions such as tan, whose results are approximate."""
    return any(
        isinstance(part, Op) and part.name in FLOAT_FUNCTIONS and part.name not in EXACT_FUNCTIONS
        for value in values_of(body)
        for part in parts(value)
    )
