"""What generated kernels call. Imports numba: import lazily."""

from __future__ import annotations

from typing import Any

from codegen.simd import bit_rows, bit_runs, bits, blocks, casts, memory, runs, transposes


def routines() -> dict[str, Any]:
    """The names a generated kernel may use."""
    names: dict[str, Any] = {}
    for module in (memory, runs, casts):
        names |= {k: v for k, v in vars(module).items() if k.startswith(PREFIXES)}
    names |= memory.ELEMENTS | transposes.TRANSPOSES | blocks.INTERLEAVES
    names |= bit_runs.BIT_RUNS | bit_rows.BIT_ROWS
    names |= bits.PACKERS | bits.UNPACKERS | bits.BIT_LOADS | bits.BIT_STORES
    return names


PREFIXES = (
    "move_u",
    "load_",
    "store_u",
    "store_f",
    "int64_at",
    "settled",
    "swap_",
    "copy_run",
    "stream_",
    "fill_run",
    "f32_",
    "bf16_",
)
