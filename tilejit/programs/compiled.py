"""Copies compiled as the caller wishes, with what is known of this machine."""

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
    machine_thresholds,
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
    apart: bool = False,
) -> CopyProgram:
    """The program of a copy for so many threads; `tuning` may have its schedules measured now.

    `apart` keeps boxes and padding apart, each a launch of its own.
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
        thresholds=machine_thresholds(footprint_bytes(src, dst)),
        pick=pick,
        pick_copy=pick_copy,
    )
    return find_copy(CopyRequest(src, dst, source, target, swap, padding, options, apart))


def staged(
    direct: CopyProgram,
    source: Element,
    target: Element,
    *,
    threads: int = 1,
    tuning: Tuning = DEFAULT,
    padding: bytes | None = None,
    packed_as: PermutedMap | None = None,
    unpacked_from: PermutedMap | None = None,
) -> CopyProgram | StagedProgram:
    """The copy block by block where that is faster, which `tuning` may have measured now; else `direct`.

    Sizes of super-vectors, and kernels for one shape, are those of copies in one pass.
    """
    if replace(tuning, tune=False) != DEFAULT:
        return direct
    pick = None
    with compiler_lock:  # few copies are staged, and few are tuned
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
        packed_as=packed_as,
        unpacked_from=unpacked_from,
        pick=pick,
    )
    return found or direct


def _elements(tuning: Tuning, element: Element) -> int | tuple[int, int] | None:
    """The sizes of super-vectors in elements of the destination."""
    if tuning.virtual_vector_size is None:
        return None
    from codegen import sizes_in_elements  # which few processes need

    rows, *columns = sizes_in_elements(tuning.virtual_vector_size, element.bits)
    return (rows, columns[0]) if columns else rows


def buffer_element(spec: Spec) -> Element:
    """What the shape's buffer holds."""
    return Element(spec.primitive_type, spec.bits)


def array_element(spec: Spec) -> Element:
    """What an array of the shape's dtype holds: packed elements have a byte each there."""
    return Element(spec.primitive_type, 8 * spec.dtype.itemsize)
