"""The programs of pack and unpack: in one pass, or block by block if that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen import AccessMap, CopyProgram, Element, cached, compiler_lock
from tilejit.arrays.memory import bytes_map, halved
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element, chosen, compiled
from tilejit.programs.tuning import DEFAULT, Tuning

if TYPE_CHECKING:
    from codegen import PermutedMap
    from tilejit.programs.compiled import Program


@cached(512)
def pack_program(
    spec: Spec,
    strides: tuple[int, ...],
    source: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning,
) -> Program:
    """The program that packs an array, block by block if that is faster.

    It runs in one pass if a keyword sets the sizes. With `tune`, both methods are tried.

    Args:
        spec: the shape and layout to pack into.
        strides: the strides of the array, in bytes.
        source: the element of the array.
        fill: one element of padding; None to leave padding unchanged.
        swap: whether the array's bytes are in the other order.
        threads: the number of threads that run it.
        tuning: the caller's keywords.
    """
    program = single_pass_pack(spec, strides, source, fill, swap, threads, tuning)
    return _chosen(program, spec, source, buffer_element(spec), fill, swap, threads, tuning)


@cached(512)
def unpack_program(
    spec: Spec, strides: tuple[int, ...], target: Element, swap: bool, threads: int, tuning: Tuning
) -> Program:
    """The program that unpacks into an array; the arguments are as in `pack_program`."""
    program = single_pass_unpack(spec, strides, target, swap, threads, tuning)
    return _chosen(program, spec, buffer_element(spec), target, None, swap, threads, tuning)


def _chosen(
    program: CopyProgram,
    spec: Spec,
    source: Element,
    target: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning,
) -> Program:
    """The program in one pass, or one that runs block by block, which only swizzled layouts have."""
    permuted = None if swap or source != target else _permuted(spec)
    if swap:  # the parts of elements whose bytes are swapped
        source = target = Element(f"u{program.dst.element_bits}", program.dst.element_bits)
    return chosen(
        program,
        source,
        target,
        threads=threads,
        tuning=tuning,
        swap=swap,
        padding=fill,
        permuted=permuted,
        stages=permuted is not None,
    )


def _permuted(spec: Spec) -> PermutedMap | None:
    """The layout as a permuted map; None unless it is swizzled."""
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
) -> CopyProgram:
    """The program that packs an array in one pass; the arguments are as in `pack_program`."""
    src, dst = bytes_map(spec.dimensions, strides, source.bits // 8), access_map(spec)
    target = buffer_element(spec)
    if swap:
        src, dst, source = _swapped(spec, src, dst)
        target = source
    return compiled(src, dst, source, target, threads=threads, tuning=tuning, swap=swap, padding=fill)


@cached(512)
def single_pass_unpack(
    spec: Spec,
    strides: tuple[int, ...],
    target: Element,
    swap: bool,
    threads: int,
    tuning: Tuning = DEFAULT,
) -> CopyProgram:
    """The program that unpacks into an array in one pass; the arguments are as in `pack_program`."""
    src, dst = access_map(spec), bytes_map(spec.dimensions, strides, target.bits // 8)
    source = buffer_element(spec)
    if swap:
        src, dst, source = _swapped(spec, src, dst)
        target = source
    return compiled(src, dst, source, target, threads=threads, tuning=tuning, swap=swap)


def _swapped(spec: Spec, src: AccessMap, dst: AccessMap) -> tuple[AccessMap, AccessMap, Element]:
    """The maps of a copy that swaps bytes, and its element; complex numbers are swapped part by part."""
    if spec.dtype.kind == "c":
        src, dst = halved(src), halved(dst)
    return src, dst, Element(f"u{dst.element_bits}", dst.element_bits)


@cached(64)
def padding_program(spec: Spec, fill: bytes, threads: int) -> CopyProgram:
    """The program that writes only the padding."""
    dst, element = access_map(spec), buffer_element(spec)
    program = compiled(dst, dst, element, element, padding=fill, threads=threads, separate_padding=True)
    return program.pads_only()
