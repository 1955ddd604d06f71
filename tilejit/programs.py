"""Copies compiled as the caller wishes, with what is known of this machine."""

from __future__ import annotations

from codegen.access import AccessMap
from codegen.calibrate import machine_thresholds
from codegen.ir import Element
from codegen.pipeline import CopyProgram, compile_copy, footprint_bytes
from codegen.schedule import Thresholds
from codegen.tune import tuned
from tilejit.layout.cute_shape import Spec
from tilejit.tuning import DEFAULT, Tuning


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
    pick = None
    if tuning.tune:
        pick = tuned(threads, specialize=tuning.specialize)
    return compile_copy(
        src,
        dst,
        source,
        target,
        swap=swap,
        padding=padding,
        threads=threads,
        virtual_vector_size=tuning.virtual_vector_size,
        specialize=tuning.specialize,
        thresholds=machine_thresholds(footprint_bytes(src, dst)),
        pick=pick,
        apart=apart,
    )


def buffer_element(spec: Spec) -> Element:
    """What the shape's buffer holds."""
    return Element(spec.primitive_type, spec.bits)


def compiled_in_cache(
    src: AccessMap, dst: AccessMap, source: Element, target: Element, *, streams: bool, footprint: int
) -> CopyProgram:
    """The program of a copy of which one side stays in cache.

    streams      whether the other side is the destination: then it is written past the caches where whole
    footprint    bytes, of all that is copied bit by bit, are many for this machine
    """
    past = streams and footprint >= machine_thresholds(footprint).stream_bytes
    return compile_copy(src, dst, source, target, thresholds=Thresholds(stream_bytes=0 if past else 1 << 62))
