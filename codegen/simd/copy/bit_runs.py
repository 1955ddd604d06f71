"""Packing contiguous runs of one element per byte, and unpacking them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.bits import PACKERS, UNPACKERS, WIDTHS
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I32, I64, load, prefetch, statement, store, store_streaming, vector
from codegen.simd.register.shuffles import shuffle

WORD_BYTES = 8
HALF_BYTES = 4
"""The shortest run that is packed in registers: a TPU word, for sources that are stored in columns."""

SHORT_BYTES = 256
"""For shorter destinations, the two unaligned ends that streaming leaves cost more than it gains."""

PREFETCH_BYTES = 1024
"""Prefetch distance in the source of a long run."""


def splat(kind: Any, value: int) -> Any:
    """A vector constant with the same number in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def spread(bits: int, lane_bits: int) -> int:
    """A mask of the low `bits` bits of every byte of a lane."""
    return sum(((1 << bits) - 1) << k for k in range(0, lane_bits, 8))


def join(builder: Any, src: Any, count: int, bits: int) -> Any:
    """Pack the 8/bits * count source bytes at an address into `count` bytes."""
    if bits == 1:
        return _join_flags(builder, src, count)
    lanes = vector(64 // bits, count)
    value = builder.and_(load(builder, src, lanes), splat(lanes, spread(bits, 64 // bits)))
    for shift in {4: (4,), 2: (6, 12)}[bits]:
        value = builder.or_(value, builder.lshr(value, splat(lanes, shift)))
    return builder.trunc(value, vector(8, count))


def _join_flags(builder: Any, src: Any, count: int) -> Any:
    step = min(count, WORD_BYTES)
    flags, words = vector(8, 8 * step), vector(8 * step, count // step)
    joined = ir.Constant(words, ir.Undefined)
    for k in range(count // step):
        value = load(builder, builder.add(src, ir.Constant(I64, 8 * step * k)), flags)
        word = builder.bitcast(builder.icmp_unsigned("!=", value, splat(flags, 0)), words.element)
        joined = builder.insert_element(joined, word, ir.Constant(I32, k))
    return builder.bitcast(joined, vector(8, count))


def part(builder: Any, packed: Any, bits: int) -> Any:
    """Unpack a vector of packed bytes to one element per byte."""
    count = packed.type.count
    wide = vector(8, count * 8 // bits)
    if bits == 1:
        bit = ir.Constant(wide, [1 << k % 8 for k in range(8 * count)])
        repeated = shuffle(builder, packed, packed, [k // 8 for k in range(8 * count)])
        flags = builder.icmp_unsigned("!=", builder.and_(repeated, bit), splat(wide, 0))
        return builder.zext(flags, wide)
    lanes = vector(64 // bits, count)
    value = builder.zext(packed, lanes)
    for shift, mask in {4: ((4, 0x0F0F),), 2: ((12, 0x000F000F), (6, 0x03030303))}[bits]:
        moved = builder.or_(value, builder.shl(value, splat(lanes, shift)))
        value = builder.and_(moved, splat(lanes, mask))
    return builder.bitcast(value, wide)


def _packer(bits: int, count: int, stream: bool) -> Any:
    """Pack `count` bytes of the destination. The streaming version also prefetches as much of the source."""
    group = 8 // bits

    def emit(builder: Any, dst: Any, src: Any) -> None:
        if stream:
            for k in range(0, count * group, LINE_BYTES):
                prefetch(builder, builder.add(src, ir.Constant(I64, PREFETCH_BYTES + k)))
        (store_streaming if stream else store)(builder, join(builder, src, count, bits), dst)

    return statement(emit, 2, f"join_{count}_u{bits}")


def _unpacker(bits: int, count: int, stream: bool) -> Any:
    """Unpack `count` bytes of the source."""

    def emit(builder: Any, dst: Any, src: Any) -> None:
        if stream:
            prefetch(builder, builder.add(src, ir.Constant(I64, PREFETCH_BYTES)))
        value = part(builder, load(builder, src, vector(8, count)), bits)
        (store_streaming if stream else store)(builder, value, dst)

    return statement(emit, 2, f"part_{count}_u{bits}")


def _pack_run(bits: int) -> Callable[..., None]:
    sizes = LINE_BYTES, WORD_BYTES, HALF_BYTES
    moves = tuple(_packer(bits, n, False) for n in sizes)
    return _run(moves, PACKERS[f"pack_bits_{bits}"], LINE_BYTES, dst_step=1, src_step=8 // bits)


def _unpack_run(bits: int) -> Callable[..., None]:
    step = LINE_BYTES * bits // 8
    moves = tuple(_unpacker(bits, n, False) for n in (step, WORD_BYTES, HALF_BYTES))
    return _run(moves, UNPACKERS[f"unpack_bits_{bits}"], step, dst_step=8 // bits, src_step=1)


def _run(
    moves: tuple[Any, ...], scalar: Any, step: int, *, dst_step: int, src_step: int
) -> Callable[..., None]:
    """The routine over `count` packed bytes, from moves of `step` packed bytes, of a word and of half a word.

    dst_step, src_step  bytes on each side per packed byte
    """
    line, word, half = moves

    @for_kernels
    def run(dst, src, count):
        """Full lines of the destination, then words, then one more word that overlaps the last."""
        if count < HALF_BYTES:
            scalar(dst, src, count, 1)
            return
        if count < WORD_BYTES:
            half(dst, src)
            half(dst + (count - HALF_BYTES) * dst_step, src + (count - HALF_BYTES) * src_step)
            return
        whole = count & -step
        for k in range(0, whole, step):
            line(dst + k * dst_step, src + k * src_step)
        last = count - WORD_BYTES
        for k in range(whole, last, WORD_BYTES):
            word(dst + k * dst_step, src + k * src_step)
        if whole < count:
            word(dst + last * dst_step, src + last * src_step)

    return run


def _stream_pack_run(bits: int, plain: Any) -> Callable[..., None]:
    line, group = _packer(bits, LINE_BYTES, True), 8 // bits

    @for_kernels
    def stream_pack_run(dst, src, count):
        begin = -dst & 63 if count >= SHORT_BYTES else 0
        stop = begin + ((count - begin) & -LINE_BYTES) if count >= SHORT_BYTES else 0
        if begin:
            plain(dst, src, begin)
        for k in range(begin, stop, LINE_BYTES):
            line(dst + k, src + k * group)
        if stop < count:
            plain(dst + stop, src + stop * group, count - stop)

    return stream_pack_run


def _stream_unpack_run(bits: int, plain: Any) -> Callable[..., None]:
    step, group = LINE_BYTES * bits // 8, 8 // bits
    line = _unpacker(bits, step, True)

    @for_kernels
    def stream_unpack_run(dst, src, count):
        begin = stop = 0
        if count * group >= SHORT_BYTES and dst % group == 0:
            begin = (-dst & 63) // group
            stop = begin + ((count - begin) & -step)
        if begin:
            plain(dst, src, begin)
        for k in range(begin, stop, step):
            line(dst + k * group, src + k)
        if stop < count:
            plain(dst + stop * group, src + stop, count - stop)

    return stream_unpack_run


def _family() -> dict[str, Any]:
    """Packing and unpacking, plain and streaming, by their names in kernels."""
    out: dict[str, Any] = {}
    for bits in WIDTHS:
        for name, make, streaming in (
            (f"pack_run_{bits}", _pack_run, _stream_pack_run),
            (f"unpack_run_{bits}", _unpack_run, _stream_unpack_run),
        ):
            out[name] = make(bits)
            out[f"stream_{name}"] = streaming(bits, out[name])
    return out


BIT_RUNS = _family()
