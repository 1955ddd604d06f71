"""Compile copies with the caller's keywords and this machine's properties."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from codegen import (
    AccessMap,
    CopyOptions,
    CopyProgram,
    CopyRequest,
    Element,
    compiler_lock,
    find_copy,
    footprint_bytes,
    may_stage,
    streamed_from,
)
from tilejit.layout.cute_shape import Spec
from tilejit.programs.tuning import DEFAULT, LIVE, Tuning

if TYPE_CHECKING:
    from codegen import LiveProgram, PermutedMap, StagedProgram

    Program: TypeAlias = CopyProgram | StagedProgram | LiveProgram


def compiled(
    src: AccessMap,
    dst: AccessMap,
    source: Element,
    target: Element,
    *,
    threads: int,
    tuning: Tuning = DEFAULT,
    swap: bool = False,
    padding: bytes | None = None,
    separate_padding: bool = False,
) -> CopyProgram:
    """The program of a copy in one pass, for that many threads.

    Args:
        src: the offsets of the source.
        dst: the offsets of the destination.
        source: the element of the source.
        target: the element of the destination.
        threads: the number of threads that run it.
        tuning: the caller's keywords; `tune=True` measures schedules before this returns.
        swap: whether to swap the bytes of each element.
        padding: one element of padding; None to leave padding unchanged.
        separate_padding: whether padding gets launches of its own.
    """
    request = _request(src, dst, source, target, threads, tuning, swap=swap, padding=padding)
    if tuning.tune is True:
        with compiler_lock:
            from codegen import tuned, tuned_copies
        pick = tuned(threads, specialize=tuning.specialize)
        pick_copy = tuned_copies(threads, specialize=tuning.specialize)
        request = replace(request, options=replace(request.options, pick=pick, pick_copy=pick_copy))
    return find_copy(replace(request, apart=separate_padding))


def chosen(
    direct: CopyProgram,
    source: Element,
    target: Element,
    *,
    threads: int = 1,
    tuning: Tuning = DEFAULT,
    swap: bool = False,
    padding: bytes | None = None,
    permuted: PermutedMap | None = None,
    stages: bool = True,
) -> Program:
    """The program of a copy: the one in one pass, or one that runs block by block if that is faster.

    With `tune=True`, both are measured before this returns. With `tune="live"`, the program tries several.

    Args:
        direct: the copy in one pass, compiled with the same arguments.
        source: the element of the source.
        target: the element of the destination.
        threads: the number of threads that run it.
        tuning: the caller's keywords.
        swap: whether to swap the bytes of each element.
        padding: one element of padding; None to leave padding unchanged.
        permuted: the layout of one side if it is a permuted one, and the other side an array.
        stages: whether the copy may run block by block.
    """
    found: CopyProgram | StagedProgram = direct
    if stages:
        found = _staged(direct, source, target, threads, tuning, padding, permuted) or direct
    if tuning.tune != LIVE:
        return found
    with compiler_lock:  # few processes tune
        from codegen import live_copy
    maps = direct.src, direct.dst
    return live_copy(found, _request(*maps, source, target, threads, tuning, swap=swap, padding=padding))


def settled(program: Program | None) -> CopyProgram | StagedProgram | None:
    """The program that runs all later calls; None while they try several, or if there is none."""
    if program is None or isinstance(program, CopyProgram):
        return program
    with compiler_lock:  # few programs are staged or live
        from codegen import LiveProgram
    return program.best if isinstance(program, LiveProgram) else program


def _staged(
    direct: CopyProgram,
    source: Element,
    target: Element,
    threads: int,
    tuning: Tuning,
    padding: bytes | None,
    permuted: PermutedMap | None,
) -> StagedProgram | None:
    """The block-by-block program of a copy if it is faster; None if it isn't.

    Sizes of super-vectors, and kernels for one shape, apply only to copies in one pass.
    """
    if replace(tuning, tune=False) != DEFAULT or not may_stage(footprint_bytes(direct.src, direct.dst)):
        return None
    pick = None
    with compiler_lock:  # imported here, because few copies are staged or tuned
        from codegen import staged_copy

        if tuning.tune is True:
            from codegen import tuned_copies

            pick = tuned_copies(threads)
    return staged_copy(
        direct,
        source,
        target,
        padding=padding,
        threads=threads,
        permuted=permuted,
        pick=pick,
    )


def _request(
    src: AccessMap,
    dst: AccessMap,
    source: Element,
    target: Element,
    threads: int,
    tuning: Tuning,
    *,
    swap: bool,
    padding: bytes | None,
) -> CopyRequest:
    """The request of a copy in one pass, without measurements."""
    options = CopyOptions(
        threads=threads,
        virtual_vector_size=_elements(tuning, target),
        specialize=tuning.specialize,
        stream_bytes=streamed_from(footprint_bytes(src, dst)),
        schedule=tuning.schedule,
    )
    return CopyRequest(src, dst, source, target, swap, padding, options)


def _elements(tuning: Tuning, element: Element) -> int | tuple[int, int] | None:
    """The sizes of super-vectors in elements of the destination."""
    if tuning.virtual_vector_size is None:
        return None
    with compiler_lock:  # few processes need it
        from codegen import sizes_in_elements

    rows, *columns = sizes_in_elements(tuning.virtual_vector_size, element.bits)
    return (rows, columns[0]) if columns else rows


def buffer_element(spec: Spec) -> Element:
    """The element of the shape's buffer."""
    return Element(spec.primitive_type, spec.bits)


def array_element(spec: Spec) -> Element:
    """The element of an array with the shape's dtype, in which packed elements have one byte each."""
    return Element(spec.primitive_type, 8 * spec.dtype.itemsize)
