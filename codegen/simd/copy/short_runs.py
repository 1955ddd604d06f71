"""Chunks: less than a line each, contiguous in the destination, at offsets from a table in the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    I64,
    int64_at,
    load,
    move_8,
    move_16,
    move_32,
    pointer,
    prefetch_line,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.register.shuffles import shuffle

PREFETCH_BYTES = 256
"""Prefetch distance while few chunks are read: those read next mostly follow in the source."""

AHEAD = 64
"""Prefetch distance in chunks: 0.5 to 2 KiB."""

MOVES = {8: move_8, 16: move_16, 32: move_32}


def _line(width: int, *, stream: bool) -> Any:
    """A line of the destination from as many chunks as fill it."""
    count = LINE_BYTES // width

    def emit(builder: Any, dst: Any, src: Any, table: Any) -> None:
        chunks = []
        for k in range(count):
            entry = pointer(builder, builder.add(table, ir.Constant(I64, 8 * k)), I64)
            chunks.append(load(builder, builder.add(src, builder.load(entry)), vector(64, width // 8)))
        while len(chunks) > 1:
            both = list(range(2 * chunks[0].type.count))
            chunks = [shuffle(builder, a, b, both) for a, b in zip(chunks[::2], chunks[1::2], strict=True)]
        (store_streaming if stream else store)(builder, chunks[0], dst)

    return statement(emit, 3, f"{'stream' if stream else 'store'}_line_of_{width}")


def _copier(width: int) -> Callable[..., None]:
    move, line, step = MOVES[width], _line(width, stream=False), LINE_BYTES // width

    @for_kernels
    def copy_chunks(dst, src, count, offsets):
        """Full lines first. The chunks read next mostly follow in the source, in another order."""
        whole = count - count % step
        for k in range(0, whole, step):
            prefetch_line(src + PREFETCH_BYTES + width * k)
            line(dst + width * k, src, offsets + 8 * k)
        for k in range(whole, count):
            move(dst + width * k, src + int64_at(offsets, k))

    return copy_chunks


def _streamer(width: int, plain: Any) -> Callable[..., None]:
    line, step = _line(width, stream=True), LINE_BYTES // width

    @for_kernels
    def stream_chunks(dst, src, count, offsets):
        """Non-temporal stores, if the destination is aligned and consists of full lines."""
        if (dst | count * width) & 63:
            plain(dst, src, count, offsets)
            return
        if count <= AHEAD:
            for k in range(0, count, step):
                prefetch_line(src + PREFETCH_BYTES + width * k)
                line(dst + width * k, src, offsets + 8 * k)
            return
        for k in range(0, count, step):
            prefetch_line(src + int64_at(offsets, min(k + AHEAD, count - 1)))
            line(dst + width * k, src, offsets + 8 * k)

    return stream_chunks


def _family() -> dict[str, Any]:
    """Each of them, plain and streaming, by its name in kernels."""
    out: dict[str, Any] = {}
    for width in MOVES:
        out[f"copy_chunks_u{8 * width}"] = _copier(width)
        out[f"stream_chunks_u{8 * width}"] = _streamer(width, out[f"copy_chunks_u{8 * width}"])
    return out


CHUNKS = _family()
