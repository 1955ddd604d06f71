"""The copies of pack and unpack: in one pass, or block by block if that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen import AccessMap, CopyProgram, Element, cached, compiler_lock
from tilejit.arrays.memory import bytes_map, halved
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element, compiled, staged
from tilejit.programs.tuning import DEFAULT, Tuning

if TYPE_CHECKING:
    from codegen import PermutedMap, StagedProgram


@cached(512)
def pack_program(
    spec: Spec,
    strides: tuple[int, ...],
    source: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning,
) -> CopyProgram | StagedProgram:
    """The copy from an array of such elements and strides in bytes; block by block if that is faster.

    It runs in one pass if a keyword sets the sizes; with `tune`, the measured faster way. fill: one element
    of padding, None to keep the present padding. swap: whether the array's bytes are in the other order.
    """
    program = single_pass_pack(spec, strides, source, fill, swap, threads, tuning)
    if swap or source != buffer_element(spec):
        return program
    permuted = _permuted(spec)
    if permuted is None:
        return program
    return staged(program, source, source, threads=threads, tuning=tuning, padding=fill, packed_as=permuted)


@cached(512)
def unpack_program(
    spec: Spec, strides: tuple[int, ...], target: Element, swap: bool, threads: int, tuning: Tuning
) -> CopyProgram | StagedProgram:
    """The copy into an array of such elements and strides in bytes; block by block as for a pack."""
    program = single_pass_unpack(spec, strides, target, swap, threads, tuning)
    if swap or target != buffer_element(spec):
        return program
    permuted = _permuted(spec)
    if permuted is None:
        return program
    return staged(program, target, target, threads=threads, tuning=tuning, unpacked_from=permuted)


def _permuted(spec: Spec) -> PermutedMap | None:
    """The layout as a permuted one, if it is swizzled."""
    if not isinstance(spec, CuteShape):
        return None
    with compiler_lock:  # few layouts are swizzled
        from tilejit.layout.permuted import permuted_map
    return permuted_map(spec)


@cached(512)
def single_pass_pack(
    spec: Spec,
    strides: tuple[int, ...],
    source: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning = DEFAULT,
    apart: bool = False,
) -> CopyProgram:
    """The copy of a pack in one pass; `apart` gives padding launches of its own."""
    src, dst = bytes_map(spec.dimensions, strides, source.bits // 8), access_map(spec)
    target = buffer_element(spec)
    if swap:
        src, dst, source = _swapped(spec, src, dst)
        target = source
    return compiled(
        src, dst, source, target, threads=threads, tuning=tuning, swap=swap, padding=fill, apart=apart
    )


@cached(512)
def single_pass_unpack(
    spec: Spec,
    strides: tuple[int, ...],
    target: Element,
    swap: bool,
    threads: int,
    tuning: Tuning = DEFAULT,
) -> CopyProgram:
    """The copy of an unpack in one pass; `swap` writes bytes in the other order."""
    src, dst = access_map(spec), bytes_map(spec.dimensions, strides, target.bits // 8)
    source = buffer_element(spec)
    if swap:
        src, dst, source = _swapped(spec, src, dst)
        target = source
    return compiled(src, dst, source, target, threads=threads, tuning=tuning, swap=swap)


def _swapped(spec: Spec, src: AccessMap, dst: AccessMap) -> tuple[AccessMap, AccessMap, Element]:
    """The maps of a copy that swaps bytes, and the unit it swaps: the parts of complex numbers one by one."""
    if spec.dtype.kind == "c":
        src, dst = halved(src), halved(dst)
    return src, dst, Element(f"u{dst.element_bits}", dst.element_bits)


@cached(64)
def padding_program(spec: Spec, fill: bytes, threads: int) -> CopyProgram:
    """Only the padding: a copy without elements."""
    dst, element = access_map(spec), buffer_element(spec)
    return compiled(dst, dst, element, element, padding=fill, threads=threads, apart=True).pads_only()
