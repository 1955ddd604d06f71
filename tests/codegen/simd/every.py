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
        f"{stream}staged_dense_by_{kind}s_u{8 * width}": (stream, kind, f"u{8 * width}")
        for width in (1, 2, 4, 8, 16, 32, 64)
        for kind in transposes.BLOCKS
        for stream in ("", "stream_")
        if _is_used(stream, kind, width)
    }
    return listed_routines() | {name: transpose_routine(*parts) for name, parts in transposed.items()}


def _is_used(stream: str, kind: str, width: int) -> bool:
    """Whether kernels use it.

    Two elements wider than a lane fill a line, and two half as wide as a lane fill a lane. Blocks
    that are stored in place, or in panels of long result rows, have their loops in the kernel.
    """
    if kind == "part":
        return width * 2 < LANE_BYTES and bool(stream)
    if kind == "band":
        return width < LANE_BYTES
    return width <= LANE_BYTES or (kind == "line" and bool(stream))
