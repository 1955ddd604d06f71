"""Packing and unpacking XLA tiled buffers: TileJIT, NumPy's pad-reshape-transpose, memcpy, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tilejit as tj
from bench.timing import aligned, interleaved

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True, slots=True)
class Case:
    """One format on one shape, and the share of memcpy that it has to reach."""

    dtype: Any
    rows: int
    columns: int
    tiles: tuple[tuple[int, int], ...]
    target: float

    @property
    def layout(self) -> str:
        """The layout's text."""
        return "{1,0:T" + "".join(f"({a},{b})" for a, b in self.tiles) + "}"

    def __str__(self) -> str:
        name = {"float32": "f32", "bfloat16": "bf16", "int8": "s8"}[np.dtype(self.dtype).name]
        return f"{name}[{self.rows},{self.columns}] T" + "".join(f"({a},{b})" for a, b in self.tiles)


CASES = (
    Case(np.float32, 4096, 4096, ((8, 128),), 0.85),
    Case(np.float32, 4096, 4096, ((32, 32), (16, 16)), 0.7),
    Case(BF16, 8192, 4096, ((8, 128), (2, 1)), 0.6),
    Case(np.float32, 4099, 4101, ((8, 128),), 0.5),
    Case(np.float32, 4099, 4101, ((32, 32), (16, 16)), 0.5),
    Case(BF16, 8191, 4101, ((8, 128), (2, 1)), 0.5),
)


def run(rounds: int, threads: int) -> list[dict[str, Any]]:
    """One row a case and direction."""
    return [row for case in CASES for row in measure(case, rounds, threads)]


def measure(case: Case, rounds: int, threads: int) -> list[dict[str, Any]]:
    """Pack and unpack one case; the answers are checked first."""
    rng = np.random.default_rng(0)
    x = aligned((case.rows, case.columns), case.dtype)
    x[...] = rng.integers(-100, 100, x.shape).astype(case.dtype)
    spec = tj.as_layout(case.layout, dims=x.shape, dtype=x.dtype)
    buffer = aligned((spec.physical_size,), x.dtype)
    back = aligned(x.shape, x.dtype)
    t = tj.pack(x, spec, out=buffer)
    expected = numpy_pack(x, case.tiles)
    if not np.array_equal(buffer.view(np.uint8), expected.view(np.uint8)):
        raise SystemExit(f"{case}: pack is wrong")
    tj.unpack(t, out=back)
    if not np.array_equal(back.view(np.uint8), x.view(np.uint8)):
        raise SystemExit(f"{case}: unpack is wrong")
    source, copy = aligned((x.nbytes,), np.uint8), aligned((x.nbytes,), np.uint8)
    memcpy = lambda: np.copyto(copy, source)  # noqa: E731
    moved = x.nbytes + buffer.nbytes
    rows = []
    for name, ours, theirs in (
        ("pack", lambda: tj.pack(x, spec, out=buffer, threads=threads), lambda: numpy_pack(x, case.tiles)),
        (
            "unpack",
            lambda: tj.unpack(t, out=back, threads=threads),
            lambda: numpy_unpack(buffer, x.shape, case.tiles),
        ),
    ):
        times = interleaved({"memcpy": memcpy, "tilejit": ours}, rounds)
        peer = interleaved({"numpy": theirs}, 2)["numpy"]
        memcpy_rate = 2 * x.nbytes / times["memcpy"].median
        rate = moved / times["tilejit"].median
        rows.append(
            {
                "case": f"{name} {case}",
                "GB/s": rate / 1e9,
                "best GB/s": moved / times["tilejit"].least / 1e9,
                "memcpy GB/s": memcpy_rate / 1e9,
                "share of memcpy": rate / memcpy_rate,
                "target": case.target,
                "times numpy": peer.median / times["tilejit"].median,
            }
        )
    return rows


def numpy_pack(x: np.ndarray, tiles: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Pad, reshape, transpose, copy: how it is done without a library."""
    for a, b in tiles:
        *lead, m, n = x.shape
        pad = [(0, 0)] * len(lead) + [(0, -m % a), (0, -n % b)]
        x = np.pad(x, pad) if -m % a or -n % b else x
        m, n = x.shape[-2:]
        k = len(lead)
        x = x.reshape(*lead, m // a, a, n // b, b).transpose(*range(k), k, k + 2, k + 1, k + 3)
    return np.ascontiguousarray(x).reshape(-1)


def numpy_unpack(
    buffer: np.ndarray, shape: tuple[int, int], tiles: tuple[tuple[int, int], ...]
) -> np.ndarray:
    """The same backwards."""
    extents = [list(shape)]
    for a, b in tiles:
        *lead, m, n = extents[-1]
        extents.append([*lead, -(-m // a), -(-n // b), a, b])
    x = buffer.reshape(extents[-1])
    for before, (a, b) in zip(reversed(extents[:-1]), reversed(tiles), strict=True):
        k = len(before) - 2
        x = x.transpose(*range(k), k, k + 2, k + 1, k + 3)
        x = x.reshape(*before[:-2], -(-before[-2] // a) * a, -(-before[-1] // b) * b)
        x = x[..., : before[-2], : before[-1]]
    return np.ascontiguousarray(x)
