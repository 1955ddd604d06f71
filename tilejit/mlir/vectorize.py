"""MLIR text, super-vectorized and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    Function,
    KernelValueError,
    Size,
    Vectorized,
    cached,
    interpret,
    read_vector_sizes,
    shown,
    vectorize_function,
)
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.options import read_truth
from tilejit.kernels.pass_options import read_pass_options
from tilejit.kernels.program import LoopProgram
from tilejit.mlir.module import Unread, parse
from tilejit.mlir.printing import format_program
from tilejit.mlir.program import Program
from tilejit.mlir.spans import aliases
from tilejit.mlir.unmasked import check_unmasked

Sizes: TypeAlias = int | str | Sequence[int | str]
Dims: TypeAlias = int | Sequence[int]
Request: TypeAlias = tuple[tuple[Size, ...], tuple[int, ...] | None, bool, bool]
"""Sizes, the dimensions that they walk, and whether reductions and scans are vectorized."""
Results: TypeAlias = tuple[Any, ...]

TAIL = "mask"
"""What is left of a loop at its end is masked in the printed form, as in MLIR's."""


def super_vectorize(
    text: str,
    *,
    virtual_vector_size: Sizes | None = None,
    fastest_varying: Dims | None = None,
    vectorize_reductions: bool = False,
    options: str | None = None,
    report: bool = False,
    masks: str = "needed",
    vectorize_scans: bool = False,
) -> str:
    """The text with its loops super-vectorized, as `mlir-opt -affine-super-vectorize` prints them.

    Functions that can't be read stay as they are, unless there are no others; so do functions with vectors.

    virtual_vector_size   one to three sizes, the outermost first: 256, (32, 256), ("cores", "2*hw")
    fastest_varying       for each the memory dimension, counted from the innermost, that it walks: 0, (1, 0)
    vectorize_reductions  reductions too, one size only; floats are then added in another order
    options               these three as a string of mlir-opt's instead:
                          "virtual-vector-size=32,256 test-fastest-varying=1,0 vectorize-reductions"
    report                what became of each loop, and why a function was not read, in comments before it
    masks                 "needed": stores are masked where a loop may end inside a super-vector; "none": as
                          MLIR prints them, for loops that end with their arrays or after whole super-vectors
    vectorize_scans       carried values that the loop also uses, such as running sums; floats are then added
                          in another grouping

    Raises:
        KernelError: no function of the text can be read, a size or a dimension makes no sense, or `masks`
            is "none" and a store needs one.
        TypeError: an option is of a wrong type, or there is no size.
    """
    if masks not in ("needed", "none"):
        raise KernelValueError(f'masks is "needed" or "none", not {str(masks)[:40]!r}\n  write one of these')
    module = parse(text)
    request = _requested(virtual_vector_size, fastest_varying, vectorize_reductions, options, vectorize_scans)
    if request is None:
        raise TypeError(
            "virtual_vector_size is a number or a tuple of numbers, not None\n"
            "  give 256, (32, 256), or options="
        )
    stays = any(isinstance(member, Unread) or member.lanes for member in module.members)
    made = [definitions] if stays and (definitions := aliases(text)) else []
    for member in module.members:
        if isinstance(member, Unread):
            lines = f"@{member.name} is not read: {member.cause}".splitlines() if member.cause else ()
            comments = "".join(f"// {line}\n" for line in lines) if report else ""
            made.append(comments + member.source)
            continue
        if member.lanes:
            made.append((_about_vectors(member) if report else "") + member.source)
            continue
        wide = vectorized(member.function, *request)
        comments = "".join(f"// {loop}\n" for loop in wide.loops) if report else ""
        if masks == "none":
            check_unmasked(member, wide.function)
        printed = format_program(replace(member, function=wide.function), masked=masks == "needed")
        made.append(comments + printed)
    return "\n".join(made)


def run(
    text: str,
    name: str,
    /,
    *arguments: Any,
    virtual_vector_size: Sizes | None = None,
    fastest_varying: Dims | None = None,
    vectorize_reductions: bool = False,
    options: str | None = None,
    interpreted: bool = False,
    vectorize_scans: bool = False,
) -> Any:
    """Run a function of a text on arrays and numbers; arrays are written in place.

    run(vector_add_2d, "vector_add_2d", 64, 512) -> float32(9.0)

    Compiled, in super-vectors where `virtual_vector_size` or `options` are given, as in `super_vectorize`; or
    interpreted, which is slow and obvious. Arrays that overlap run as the scalar loops do.

    Raises:
        KernelError: the text cannot be read, has no such function, or an argument or a subscript misfits.
        TypeError: an argument is neither an array nor a number, or an option is of a wrong type.
    """
    program = parse(text)[name]
    request = _requested(virtual_vector_size, fastest_varying, vectorize_reductions, options, vectorize_scans)
    execute = _interpret if interpreted else compiled
    return program(*arguments, execute=partial(execute, request_of(request, program)))


def request_of(request: Request | None, program: Program) -> Request | None:
    """How to vectorize a program: as it is asked for, or by the shape of the vectors that it has."""
    return (program.lanes, None, False, False) if request is None and program.lanes else request


def _about_vectors(program: Program) -> str:
    """Comments on a function that has vectors: what becomes of their lanes when it runs."""
    size = "x".join(map(str, program.lanes))
    wide = vectorized(program.function, program.lanes, None, False, False)
    lines = [
        f"@{program.name} has vectors and stays as it is; it runs in super-vectors of {size}",
        *wide.loops,
    ]
    return "".join(f"// {line}\n" for line in lines)


def _interpret(request: Request | None, function: Function, given: Sequence[Any]) -> Results:
    """By the interpreter, either form."""
    if request is not None:
        wide = vectorized(function, *request)
        by_name = {a.name: value for a, value in zip(function.arguments, given, strict=True)}
        if not any(np.may_share_memory(by_name[a], by_name[b]) for a, b in wide.checks):
            function = wide.function
    return tuple(interpret(function, given))


def compiled(request: Request | None, function: Function, given: Sequence[Any]) -> Results:
    """By a kernel; one lane is the scalar loops."""
    sizes, fastest, reductions, scans = request or ((1,), None, False, False)
    options = LoopOptions(sizes, fastest, reductions, vectorize_scans=scans)
    results = _kernel(function, options)(*given)
    return results if isinstance(results, tuple) else () if results is None else (results,)


@cached(64)
def _kernel(function: Function, options: LoopOptions) -> LoopProgram:
    return LoopProgram(function, options)


def vectorized(
    function: Function,
    sizes: tuple[Size, ...],
    fastest: tuple[int, ...] | None,
    reductions: bool,
    scans: bool,
) -> Vectorized:
    """The super-vector form of a kernel, and what became of its loops."""
    return vectorize_function(function, LoopOptions(sizes).sizes(function), fastest, reductions, TAIL, scans)


def _requested(
    sizes: Sizes | None, fastest: Dims | None, reductions: bool, options: str | None, scans: bool
) -> Request | None:
    """The options as keywords or as a string, checked; None without sizes."""
    reductions = read_truth("vectorize_reductions", reductions)
    scans = read_truth("vectorize_scans", scans)
    if options is not None:
        if sizes is not None or fastest is not None or reductions:
            raise TypeError(
                "options= already sets the sizes, the dimensions and reductions\n  give one or the other"
            )
        read = read_pass_options(options)
        sizes, fastest, reductions = read.virtual_vector_size, read.fastest_varying, read.vectorize_reductions
    if sizes is None:
        return None
    shape = read_vector_sizes(sizes, 3, 'write 256, (32, 256) or "2*hw"')
    dims = None if fastest is None else _dimensions(fastest)
    if dims is not None and (len(dims) != len(shape) or len(set(dims)) != len(dims)):
        raise KernelValueError(
            f"fastest_varying is {dims} where virtual_vector_size is {shape}\n"
            "  write one dimension for each size, none twice"
        )
    return shape, dims, reductions, scans


def _dimensions(given: Dims) -> tuple[int, ...]:
    many = tuple(given) if isinstance(given, tuple | list) else (given,)
    wrong = [type(n).__name__ for n in many if isinstance(n, bool) or not isinstance(n, Integral)]
    if wrong:
        raise TypeError(f"fastest_varying is a number or a tuple of numbers, not of {wrong[0]}")
    numbers = tuple(map(int, many))
    if not 1 <= len(numbers) <= 3 or min(numbers) < 0:
        text = ", ".join(map(shown, numbers)) or "()"
        raise KernelValueError(f"fastest_varying is {text}\n  write one to three numbers from 0 up")
    return numbers
