"""The copies that pack and unpack make: in one pass, or block by block where that is faster."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from codegen import CopyProgram, Element, compiler_lock
from tilejit.arrays.memory import bytes_map, halved
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element, compiled, staged
from tilejit.programs.tuning import DEFAULT, Tuning

if TYPE_CHECKING:
    from codegen import PermutedMap, StagedProgram


@lru_cache(maxsize=512)
def pack_way(
    spec: Spec,
    strides: tuple[int, ...],
    source: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning,
) -> CopyProgram | StagedProgram:
    """The copy from an array of such elements and strides, in bytes; block by block where that is faster.

    Never that where a keyword says how; with `tune`, where it was measured to be. fill: one element of
    padding, None to keep what there is; swap: whether the array's bytes are in the other order.
    """
    program = pack_at_once(spec, strides, source, fill, swap, threads, tuning)
    if swap or source != buffer_element(spec):
        return program
    permuted = _permuted(spec)
    if permuted is None:
        return program
    return staged(program, source, source, threads=threads, tuning=tuning, padding=fill, packed_as=permuted)


@lru_cache(maxsize=512)
def unpack_way(
    spec: Spec, strides: tuple[int, ...], threads: int, tuning: Tuning
) -> CopyProgram | StagedProgram:
    """The copy into an array of those strides, in bytes; block by block as a pack is."""
    program = unpack_program(spec, strides, threads=threads, tuning=tuning)
    permuted = _permuted(spec)
    if permuted is None:
        return program
    element = buffer_element(spec)
    return staged(program, element, element, threads=threads, tuning=tuning, unpacked_from=permuted)


def _permuted(spec: Spec) -> PermutedMap | None:
    """The layout as a permuted one, if it is swizzled."""
    if not isinstance(spec, CuteShape):
        return None
    with compiler_lock:  # few layouts are swizzled
        from tilejit.layout.permuted import permuted_map
    return permuted_map(spec)


@lru_cache(maxsize=512)
def pack_at_once(
    spec: Spec,
    strides: tuple[int, ...],
    source: Element,
    fill: bytes | None,
    swap: bool,
    threads: int,
    tuning: Tuning = DEFAULT,
    apart: bool = False,
) -> CopyProgram:
    """The copy of a pack in one pass; `apart`: padding has launches of its own."""
    src, dst = bytes_map(spec.dimensions, strides, source.bits // 8), access_map(spec)
    target = buffer_element(spec)
    if swap and spec.dtype.kind == "c":
        src, dst = halved(src), halved(dst)
        source = target = Element(f"u{dst.element_bits}", dst.element_bits)
    elif swap:
        source = target = Element(f"u{source.bits}", source.bits)
    return compiled(
        src, dst, source, target, threads=threads, tuning=tuning, swap=swap, padding=fill, apart=apart
    )


@lru_cache(maxsize=512)
def unpack_program(
    spec: Spec, strides: tuple[int, ...], *, threads: int = 1, tuning: Tuning = DEFAULT
) -> CopyProgram:
    """The copy that `unpack` makes in one pass into an array of those strides, in bytes."""
    dst = bytes_map(spec.dimensions, strides, spec.dtype.itemsize)
    source = buffer_element(spec)
    target = Element(spec.primitive_type, 8 * spec.dtype.itemsize)
    return compiled(access_map(spec), dst, source, target, threads=threads, tuning=tuning)


@lru_cache(maxsize=64)
def padding_program(spec: Spec, fill: bytes, threads: int) -> CopyProgram:
    """Only the padding: a copy of the elements of nothing."""
    dst, element = access_map(spec), buffer_element(spec)
    return compiled(dst, dst, element, element, padding=fill, threads=threads, apart=True).pads_only()
