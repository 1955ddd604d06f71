"""The routines that generated kernels call, by their names. Imports numba: import lazily."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from codegen.ir.copies.tiles import LANE_BYTES
from codegen.simd import direct
from codegen.simd.copy import (
    bit_rows,
    bit_runs,
    interleaves,
    joined_rows,
    reversals,
    row_groups,
    runs,
    segments,
    short_runs,
    transposes,
)
from codegen.simd.copy.casts import conversion_routine
from codegen.simd.copy.staging import staged_dense, staged_rows
from codegen.simd.copy.transposes import moved, part_transpose, plain_transpose, stream_transpose
from codegen.simd.register import alignment, bits, calls, memory
from codegen.simd.vector import names, scalars

_TRANSPOSE = re.compile(r"(stream_)?(transpose|staged_rows|staged_dense)_by_(line|lane|part|band)s_(\w+)")

_OTHERS = {
    "call_kernel": calls.call_kernel,
    "elements_to_line": alignment.elements_to_line,
    "answered": direct.answered,
}
"""Routines that move no elements themselves."""


def routines(source: str) -> dict[str, Any]:
    """The routines that a generated kernel's source calls, by their names."""
    found_routines: dict[str, Any] = {}
    for word in set(re.findall(r"[a-z]\w+", source)):
        found = _TRANSPOSE.fullmatch(word)
        if found:
            found_routines[word] = transpose_routine(*found.groups())
        elif (scalar := scalars.scalar_routine(word)) is not None:
            found_routines[word] = scalar
        elif (conversion := conversion_routine(word)) is not None:
            found_routines[word] = conversion
        elif word in _OTHERS:
            found_routines[word] = _OTHERS[word]
        elif word in _listed():
            found_routines[word] = _listed()[word]
        elif (routine := names.routine(word)) is not None:
            found_routines[word] = routine
    return found_routines


def transpose_routine(stream: str | None, how: str, kind: str, element: str) -> Any:
    """One of the many transposes, made when it is first wanted."""
    what = moved(element)
    match how:
        case "staged_rows":
            return staged_rows(what, kind)
        case "staged_dense":
            return staged_dense(what, kind, stream=bool(stream))
        case _ if kind == "part":
            return part_transpose(what, stream=bool(stream))
        case _:
            return (stream_transpose if stream else plain_transpose)(what, kind)


def every_routine() -> dict[str, Any]:
    """All that move elements, but for conversions fused with transposes: as many as pairs of types.

    What computes is in `vector_names`.
    """
    transposed = {
        f"{stream}{how}_by_{kind}s_u{8 * width}": (stream, how, kind, f"u{8 * width}")
        for width in (1, 2, 4, 8, 16, 32, 64)
        for kind in transposes.BLOCKS
        for stream in ("", "stream_")
        for how in ("transpose", "staged_rows", "staged_dense")
        if _is_used(stream, how, kind, width)
    }
    return _listed() | {name: transpose_routine(*parts) for name, parts in transposed.items()}


def _is_used(stream: str, how: str, kind: str, width: int) -> bool:
    """Rows are staged for streaming only; two elements wider than a lane fill a line, half as wide a lane."""
    if how == "staged_rows" and not stream:
        return False
    if kind == "part":
        return width * 2 < LANE_BYTES and (bool(stream) or how == "transpose")
    if kind == "band":
        return width < LANE_BYTES and how == "staged_dense"
    if width <= LANE_BYTES or (stream and how == "transpose"):
        return True
    return kind == "line" and (bool(stream) or how == "transpose")


@cache
def _listed() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for module in (memory, runs, segments):
        names |= {k: v for k, v in vars(module).items() if k.startswith(PREFIXES)}
    names |= memory.ELEMENTS | transposes.SMALL_TRANSPOSES | interleaves.INTERLEAVES
    names |= short_runs.CHUNKS | reversals.REVERSALS | joined_rows.LINE_INTERLEAVES | row_groups.ROW_GROUPS
    names |= bit_runs.BIT_RUNS | bit_rows.BIT_ROWS
    names |= bits.PACKERS | bits.UNPACKERS | bits.BIT_LOADS | bits.BIT_STORES
    return names


PREFIXES = (
    "move_u",
    "load_",
    "store_u",
    "store_f",
    "int64_at",
    "opaque",
    "swap_",
    "copy_run",
    "stream_",
    "fill_run",
    "prefetch_span",
)
