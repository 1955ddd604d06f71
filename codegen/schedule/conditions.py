"""What the schedule of a box depends on besides the box."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import StridedBox
from codegen.schedule.machine import STREAM_BYTES, machine
from codegen.schedule.schedule import VectorSize
from codegen.support.dataclasses import dataclass

LOOPS_END = "its loops have no more"
"""Why super-vectors are smaller than requested where all iterations of their loops are in one."""

EDGE_PART = 128
"""Boxes that write less than this part of the bytes read and written are edges: they use the kernels of
copies in cache, which boxes of small copies have as well. A copy of MAX_BOXES equal boxes has none."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a copy runs, and what its caller asks for.

    threads       that share its loops
    footprint     bytes that the complete copy reads and writes
    stream_bytes  the least footprint of copies that are stored past the cache
    given         the caller's virtual_vector_size, in elements of the copy; None: the compiler's own
    merged        elements of the copy in one of the box
    tile          rows and columns of the tiles of a transpose; None: the compiler's own
    """

    threads: int = 1
    footprint: int = 0
    stream_bytes: int = STREAM_BYTES
    given: VectorSize | None = None
    merged: int = 1
    tile: tuple[int, int] | None = None

    @property
    def size(self) -> VectorSize | None:
        """The caller's size, in elements of the box."""
        if isinstance(self.given, tuple):
            rows, columns = self.given
            return rows, -(-columns // self.merged)
        return self.given and -(-self.given // self.merged)

    def became(self, size: VectorSize, limit: str) -> str:
        """What became of the caller's size: "virtual_vector_size 500 became 3x200 (its loops have no more)".

        size   of super-vectors, in elements of the box
        limit  why they are smaller than requested; "" if they are not
        """
        made = (size[0], size[1] * self.merged) if isinstance(size, tuple) else size * self.merged
        texts = ("x".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in (self.given, made))
        text = " became ".join(dict.fromkeys(texts))
        return f"virtual_vector_size {text}{f' ({limit})' if limit else ''}"

    @property
    def is_large(self) -> bool:
        """Whether the copy is too large for the cache."""
        return self.footprint >= self.stream_bytes

    def go_past_cache(self, box: StridedBox) -> bool:
        """Whether the copy is too large for the cache, and the box more than an edge of it."""
        is_edge = not box.entries and EDGE_PART * box.size_bytes < self.footprint
        return self.is_large and not is_edge

    def go_past_share(self, box: StridedBox, share: float) -> bool:
        """The same from a share of `stream_bytes` on, or of half of the last cache if that is less."""
        most = min(self.stream_bytes, machine().last_cache_bytes // 2 or self.stream_bytes)
        return replace(self, stream_bytes=int(most * share)).go_past_cache(box)


DEFAULT_CONDITIONS = Conditions()
