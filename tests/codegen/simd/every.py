"""Every routine that generated kernels call to move elements."""

from __future__ import annotations

from typing import Any

from codegen.ir.lines import LANE_BYTES
from codegen.simd.copy import transposes
from codegen.simd.routines import listed_routines, transpose_routine


def every_routine() -> dict[str, Any]:
    """Every routine that moves elements, except conversions fused with transposes (one per pair of types).

    Vector arithmetic is in `vector.names`.
    """
    transposed = {
        f"{stream}{how}_by_{kind}s_u{8 * width}": (stream, how, kind, f"u{8 * width}")
        for width in (1, 2, 4, 8, 16, 32, 64)
        for kind in transposes.BLOCKS
        for stream in ("", "stream_")
        for how in ("staged_rows", "staged_dense")
        if _is_used(stream, how, kind, width)
    }
    return listed_routines() | {name: transpose_routine(*parts) for name, parts in transposed.items()}


def _is_used(stream: str, how: str, kind: str, width: int) -> bool:
    """Whether kernels use it: rows are staged only for streaming.

    Two elements wider than a lane fill a line, and two half as wide as a lane fill a lane. Blocks
    that are stored in place have their loops in the kernel.
    """
    if how == "staged_rows" and (not stream or kind != "part"):
        return False
    if kind == "part":
        return width * 2 < LANE_BYTES and bool(stream)
    if kind == "band":
        return width < LANE_BYTES and how == "staged_dense"
    return width <= LANE_BYTES or (kind == "line" and bool(stream))
