"""Super-vectorize and run MLIR text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    MOST_DIMS,
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
from tilejit.mlir.reduction_loops import Reductions, check_reductions, read_reductions, with_reductions
from tilejit.mlir.spans import aliases
from tilejit.mlir.types import shape_text
from tilejit.mlir.unmasked import check_unmasked

Sizes: TypeAlias = int | str | Sequence[int | str]
Dims: TypeAlias = int | Sequence[int]
Request: TypeAlias = tuple[tuple[Size, ...], tuple[int, ...] | None, bool, bool]
"""Sizes, the dimensions that they traverse, and whether reductions and scans vectorize."""
Results: TypeAlias = tuple[Any, ...]

TAIL = "mask"
"""The printed form masks the remainder of a loop, as MLIR does."""


def super_vectorize(
    text: str,
    *,
    virtual_vector_size: Sizes | None = None,
    fastest_varying: Dims | None = None,
    vectorize_reductions: Reductions = False,
    options: str | None = None,
    report: bool = False,
    masks: str = "needed",
    vectorize_scans: bool = False,
) -> str:
    """Super-vectorize the loops of an MLIR text, and print it as `mlir-opt -affine-super-vectorize` does.

    >>> text = '''
    ... func.func @fill(%x: f32, %A: memref<8xf32>) {
    ...   affine.for %i = 0 to 8 { affine.store %x, %A[%i] : memref<8xf32> }
    ...   return
    ... }'''
    >>> print(mlir.super_vectorize(text, virtual_vector_size=4), end="")
    func.func @fill(%x: f32, %A: memref<8xf32>) {
      affine.for %i = 0 to 8 step 4 {
        %0 = vector.broadcast %x : f32 to vector<4xf32>
        vector.transfer_write %0, %A[%i] : vector<4xf32>, memref<8xf32>
      }
      return
    }

    Functions that already have vectors, and functions that cannot be read, stay unchanged. At least one
    function must be readable.

    Args:
        text: the MLIR text.
        virtual_vector_size: one to eight sizes in elements, the outermost first, such as 256, (32, 256) or
            ("cores", "2*hw").
        fastest_varying: for each size, the memory dimension that it traverses, 0 for the innermost, such as 0
            or (1, 0).
        vectorize_reductions: whether reductions vectorize, with one size only; floats are then added in
            another order. Names of loop indices allow it only for those loops: "i", ("i", "k").
        options: these three options as mlir-opt writes them: "virtual-vector-size=32,256
            test-fastest-varying=1,0 vectorize-reductions".
        report: whether comments before a function describe how each loop vectorizes, or why the function
            cannot be read.
        masks: "needed" masks stores where a loop may end inside a super-vector. "none" prints no masks, like
            MLIR; all loops must then end where their arrays end or after whole super-vectors.
        vectorize_scans: whether loops with carried values that are also used, such as running sums,
            vectorize; floats are then grouped differently.

    Returns:
        The MLIR text.

    Raises:
        KernelError: no function can be read, a size or a dimension is invalid, or `masks` is "none" and a
            store needs a mask.
        TypeError: an option has the wrong type, or no size is given.
    """
    if masks not in ("needed", "none"):
        raise KernelValueError(
            f'masks: expected "needed" or "none", got {str(masks)[:40]!r}\n  write one of these'
        )
    module = parse(text)
    reductions = read_reductions(vectorize_reductions)
    request = _requested(virtual_vector_size, fastest_varying, reductions, options, vectorize_scans)
    if request is None:
        raise TypeError(
            "virtual_vector_size: expected a number or a tuple of numbers, got None\n"
            "  pass 256, (32, 256), or options="
        )
    if not isinstance(reductions, bool):
        check_reductions((m for m in module.members if isinstance(m, Program)), reductions)
    stays = any(isinstance(member, Unread) or member.lanes for member in module.members)
    made = [definitions] if stays and (definitions := aliases(text)) else []
    for member in module.members:
        if isinstance(member, Unread):
            lines = f"@{member.name} cannot be read: {member.cause}".splitlines() if member.cause else ()
            comments = "".join(f"// {line}\n" for line in lines) if report else ""
            made.append(comments + member.source)
            continue
        if member.lanes:
            made.append((_about_vectors(member) if report else "") + member.source)
            continue
        if not isinstance(reductions, bool):
            member = with_reductions(member, reductions)
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
    vectorize_reductions: Reductions = False,
    options: str | None = None,
    interpreted: bool = False,
    vectorize_scans: bool = False,
) -> Any:
    """Run a function of an MLIR text on arrays and numbers; arrays are written in place.

    >>> text = '''
    ... func.func @fill(%x: f32, %A: memref<8xf32>) {
    ...   affine.for %i = 0 to 8 { affine.store %x, %A[%i] : memref<8xf32> }
    ...   return
    ... }'''
    >>> out = np.zeros(8, np.float32)
    >>> mlir.run(text, "fill", 1.5, out, virtual_vector_size=4)
    >>> out
    array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5], dtype=float32)

    Results for overlapping arrays are those of the scalar loops.

    Args:
        text: the MLIR text.
        name: the name of the function, with or without `@`.
        arguments: an array for each memref and a number for each scalar of the function.
        virtual_vector_size: sizes of super-vectors, as in `super_vectorize`. None runs the loops as they are.
        fastest_varying: as in `super_vectorize`.
        vectorize_reductions: as in `super_vectorize`.
        options: as in `super_vectorize`.
        interpreted: whether to interpret the function, which is slow, instead of compiling it.
        vectorize_scans: as in `super_vectorize`.

    Returns:
        What the function returns: None, one number or array, or a tuple of them.

    Raises:
        KernelError: the text cannot be read or lacks the function, an argument does not match its type, or a
            subscript is outside its array.
        TypeError: an argument is neither an array nor a number, or an option has the wrong type.
    """
    program, reductions = parse(text)[name], read_reductions(vectorize_reductions)
    if not isinstance(reductions, bool):
        check_reductions((program,), reductions)
        program = with_reductions(program, reductions)
    request = _requested(virtual_vector_size, fastest_varying, reductions, options, vectorize_scans)
    execute = _interpret if interpreted else compiled
    return program(*arguments, execute=partial(execute, request_of(request, program)))


def request_of(request: Request | None, program: Program) -> Request | None:
    """How to vectorize a program: as requested, or by the shape of its vectors."""
    return (program.lanes, None, False, False) if request is None and program.lanes else request


def _about_vectors(program: Program) -> str:
    """Comments on a function with vectors: how their lanes run."""
    wide = vectorized(program.function, program.lanes, None, False, False)
    lines = [
        f"@{program.name} has vectors and stays unchanged; it runs in super-vectors of "
        f"{shape_text(program.lanes)}",
        *wide.loops,
    ]
    return "".join(f"// {line}\n" for line in lines)


def _interpret(request: Request | None, function: Function, given: Sequence[Any]) -> Results:
    """Run a function in the interpreter, super-vectorized if requested."""
    if request is not None:
        wide = vectorized(function, *request)
        by_name = {a.name: value for a, value in zip(function.arguments, given, strict=True)}
        if not any(np.may_share_memory(by_name[a], by_name[b]) for a, b in wide.checks):
            function = wide.function
    return tuple(interpret(function, given))


def compiled(request: Request | None, function: Function, given: Sequence[Any]) -> Results:
    """Run a function as a kernel, super-vectorized if requested."""
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
    """The super-vector form of a kernel, and the reports on its loops."""
    return vectorize_function(function, LoopOptions(sizes).sizes(function), fastest, reductions, TAIL, scans)


def _requested(
    sizes: Sizes | None,
    fastest: Dims | None,
    reductions: bool | tuple[str, ...],
    options: str | None,
    scans: bool,
) -> Request | None:
    """The checked options, from keywords or a string; None without sizes."""
    scans = read_truth("vectorize_scans", scans)
    if options is not None:
        if sizes is not None or fastest is not None or reductions:
            raise TypeError(
                "options= already sets the sizes, the dimensions and reductions\n"
                "  omit options=, or the other three keywords"
            )
        read = read_pass_options(options)
        sizes, fastest, reductions = read.virtual_vector_size, read.fastest_varying, read.vectorize_reductions
    if sizes is None:
        return None
    shape = read_vector_sizes(sizes, MOST_DIMS, 'write 256, (32, 256) or "2*hw"')
    dims = None if fastest is None else _dimensions(fastest)
    if dims is not None and (len(dims) != len(shape) or len(set(dims)) != len(dims)):
        raise KernelValueError(
            f"fastest_varying is {dims}, but virtual_vector_size is {shape}\n"
            "  write a different dimension for each size"
        )
    return shape, dims, reductions is True, scans


def _dimensions(given: Dims) -> tuple[int, ...]:
    many = tuple(given) if isinstance(given, tuple | list) else (given,)
    wrong = [type(n).__name__ for n in many if isinstance(n, bool) or not isinstance(n, Integral)]
    if wrong:
        raise TypeError(f"fastest_varying: expected a number or a tuple of numbers, got {wrong[0]}")
    numbers = tuple(map(int, many))
    if not 1 <= len(numbers) <= MOST_DIMS or min(numbers) < 0:
        text = ", ".join(map(shown, numbers)) or "()"
        raise KernelValueError(
            f"fastest_varying: expected one to {MOST_DIMS} nonnegative numbers, got {text}"
        )
    return numbers
