"""Swizzled copies in CUTLASS's shared-memory layouts: tiles of 8 rows or columns of 128, 64 or 32 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from bench import peers
from bench.arrays import Array, aligned, bits, filled, flat_bytes, short_name, shrunk
from bench.jobs import Case, Job
from bench.recipe import Steps

ROWS = 8
CHUNK_BYTES = 16
"""Bytes that all of these swizzles keep together."""


@dataclass(frozen=True, slots=True)
class Swizzled:
    """Tiles of 8 rows of `row_bytes`, stored row-major, with 16-byte chunks XORed with the row.

    `turned` layouts do the same to the transposed array: tiles have 8 columns.
    """

    dtype: Any
    dims: tuple[int, int]
    row_bytes: int
    turned: bool = False

    @property
    def chunks(self) -> int:
        """Chunks in a row of a tile."""
        return self.row_bytes // CHUNK_BYTES

    def layout(self, dims: tuple[int, ...]) -> str:
        """The text of the layout for an array with those dimensions."""
        width = np.dtype(self.dtype).itemsize
        rows, columns = reversed(dims) if self.turned else dims
        row, tile = self.row_bytes // width, ROWS * self.row_bytes // width
        bits_, base = self.chunks.bit_length() - 1, (CHUNK_BYTES // width).bit_length() - 1
        modes = [
            (f"({ROWS},{rows // ROWS})", f"({row},{ROWS * columns})"),
            (f"({row},{columns // row})", f"(1,{tile})"),
        ]
        shape, strides = zip(*(modes[::-1] if self.turned else modes), strict=True)
        return f"Sw<{bits_},{base},3> o 0 o ({','.join(shape)}):({','.join(strides)})"

    def steps(self, x: Array, buffer: Array) -> Steps:
        """Copy each row in chunks, by the definition: XOR bits 7 and up of the byte into bits 4 and up."""
        x = x.T if self.turned else x
        rows, columns = x.shape
        chunk = CHUNK_BYTES // x.itemsize
        split = (rows // ROWS, ROWS, columns // (chunk * self.chunks), self.chunks, chunk)
        source = x.reshape(split)
        target = buffer.reshape(split[0], split[2], ROWS, self.chunks, chunk)
        return tuple(
            (target[:, :, y, c ^ (y * self.chunks // 8)], source[:, y, :, c])
            for y in range(ROWS)
            for c in range(self.chunks)
        )


SWIZZLED = (
    Swizzled(np.uint8, (8192, 8192), 128),
    Swizzled(np.float16, (8192, 4096), 128),
    Swizzled(np.float32, (4096, 4096), 128),
    Swizzled(np.float16, (8192, 4096), 64),
    Swizzled(np.float16, (8192, 4096), 32),
    Swizzled(np.uint8, (8192, 8192), 128, turned=True),
    Swizzled(np.float16, (8192, 4096), 128, turned=True),
    Swizzled(np.float16, (8192, 4096), 64, turned=True),
    Swizzled(np.float32, (4096, 4096), 128, turned=True),
)


def cases(quick: bool) -> Iterator[Case]:
    """A pack and an unpack for each layout."""
    for each in SWIZZLED:
        small = shrunk(each.dims, each.dtype, quick)
        dims = tuple(-(-n // 512) * 512 for n in small)
        for operation in ("pack", "unpack"):
            what = "columns" if each.turned else "rows"
            shape = f"{short_name(each.dtype)}[{','.join(map(str, dims))}]"
            name = f"{operation} {shape} {what} of {each.row_bytes} bytes"
            yield Case("relayout", "swizzled", name, partial(_job, each, dims, operation))


def _job(each: Swizzled, dims: tuple[int, ...], operation: str, threads: int) -> Job:
    x = filled(dims, each.dtype)
    buffer, layout = aligned((x.size,), each.dtype), each.layout(dims)
    there = peers.by_numpy(each.steps(bits(x), bits(buffer)))
    there()
    if operation == "pack":
        return Job(
            moved_bytes=2 * x.nbytes,
            out=buffer,
            expected=flat_bytes(buffer).copy(),
            ours=lambda: lambda: tj.pack(x, layout, out=buffer, threads=threads),
            peers={"numpy": lambda: there},
        )
    out = aligned(dims, each.dtype)
    back = tuple((source, target) for target, source in each.steps(bits(out), bits(buffer)))
    tiled = tj.TiledArray.from_buffer(buffer, tj.as_layout(layout, dtype=x.dtype, dims=dims))
    return Job(
        moved_bytes=2 * x.nbytes,
        out=out,
        expected=flat_bytes(x),
        ours=lambda: lambda: tj.unpack(tiled, out=out, threads=threads),
        peers={"numpy": lambda: peers.by_numpy(back)},
    )
