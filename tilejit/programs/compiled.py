"""Compile copies with the caller's keywords and this machine's properties."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
from tilejit.programs.tuning import DEFAULT, Tuning

if TYPE_CHECKING:
    from codegen import PermutedMap, StagedProgram


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
    """The program of a copy for that many threads.

    Args:
        src: the offsets of the source.
        dst: the offsets of the destination.
        source: the element of the source.
        target: the element of the destination.
        threads: the number of threads that run it.
        tuning: the caller's keywords; `tune` measures schedules before this returns.
        swap: whether to swap the bytes of each element.
        padding: one element of padding; None to leave padding unchanged.
        separate_padding: whether padding gets launches of its own.
    """
    pick, pick_copy = None, None
    if tuning.tune:
        with compiler_lock:
            from codegen import tuned, tuned_copies
        pick = tuned(threads, specialize=tuning.specialize)
        pick_copy = tuned_copies(threads, specialize=tuning.specialize)
    options = CopyOptions(
        threads=threads,
        virtual_vector_size=_elements(tuning, target),
        specialize=tuning.specialize,
        stream_bytes=streamed_from(footprint_bytes(src, dst)),
        pick=pick,
        pick_copy=pick_copy,
        schedule=tuning.schedule,
    )
    return find_copy(CopyRequest(src, dst, source, target, swap, padding, options, separate_padding))


def staged(
    direct: CopyProgram,
    source: Element,
    target: Element,
    *,
    threads: int = 1,
    tuning: Tuning = DEFAULT,
    padding: bytes | None = None,
    permuted: PermutedMap | None = None,
) -> CopyProgram | StagedProgram:
    """The block-by-block program of a copy if it is faster; otherwise `direct`.

    `tune` measures both before this returns. Sizes of super-vectors, and kernels for one shape, apply only to
    copies in one pass.
    """
    if replace(tuning, tune=False) != DEFAULT or not may_stage(footprint_bytes(direct.src, direct.dst)):
        return direct
    pick = None
    with compiler_lock:  # imported here, because few copies are staged or tuned
        from codegen import staged_copy

        if tuning.tune:
            from codegen import tuned_copies

            pick = tuned_copies(threads)
    found = staged_copy(
        direct,
        source,
        target,
        padding=padding,
        threads=threads,
        permuted=permuted,
        pick=pick,
    )
    return found or direct


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
