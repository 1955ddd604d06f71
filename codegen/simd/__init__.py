"""What generated kernels call. Imports numba: import lazily."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from codegen.simd import (
    alignment,
    bit_rows,
    bit_runs,
    bits,
    blocks,
    calls,
    direct,
    gathers,
    lines,
    memory,
    pieces,
    reversals,
    row_groups,
    runs,
    scalars,
    transposes,
    vector_names,
)
from codegen.simd.casts import conversion_routine
from codegen.simd.staging import staged_dense, staged_rows
from codegen.simd.transposes import moved, part_transpose, plain_transpose, stream_transpose
from codegen.tiles import LANE_BYTES

_TRANSPOSE = re.compile(r"(stream_)?(transpose|staged_rows|staged_dense)_by_(line|lane|part|band)s_(\w+)")

_OTHERS = {
    "call_kernel": calls.call_kernel,
    "elements_to_line": alignment.elements_to_line,
    "answered": direct.answered,
}
"""Routines that move no elements themselves."""


def routines(source: str) -> dict[str, Any]:
    """The routines that a generated kernel's source calls, by their names."""
    names: dict[str, Any] = {}
    for word in set(re.findall(r"[a-z]\w+", source)):
        found = _TRANSPOSE.fullmatch(word)
        if found:
            names[word] = transpose_routine(*found.groups())
        elif (scalar := scalars.scalar_routine(word)) is not None:
            names[word] = scalar
        elif (conversion := conversion_routine(word)) is not None:
            names[word] = conversion
        elif word in _OTHERS:
            names[word] = _OTHERS[word]
        elif word in _listed():
            names[word] = _listed()[word]
        elif (routine := vector_names.routine(word)) is not None:
            names[word] = routine
    return names


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
    for module in (memory, runs, gathers):
        names |= {k: v for k, v in vars(module).items() if k.startswith(PREFIXES)}
    names |= memory.ELEMENTS | transposes.SMALL_TRANSPOSES | blocks.INTERLEAVES
    names |= pieces.PIECES | reversals.REVERSALS | lines.LINE_INTERLEAVES | row_groups.ROW_GROUPS
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
    "prefetch_span",
)
