"""Choose which copies run as one launch for all boxes, and leave the others box by box."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.maps.lowered_copy import LoweredCopy
from codegen.schedule.choose import padded_rank
from codegen.schedule.choose_segments import SEGMENT_LIMITS, segments_of
from codegen.schedule.choose_swizzle import ChunkTable, chunk_table_of
from codegen.schedule.schedule import Schedule, Thresholds
from codegen.schedule.segments import Segments


@dataclass(frozen=True, slots=True)
class JoinedBoxes:
    """All boxes of a copy as one table, and how it runs.

    schedule  of mode "gather" with segments, of mode "chunks" with a table of chunks
    table     covers all boxes, and the padding of segments if it is written
    """

    schedule: Schedule
    table: Segments | ChunkTable


def choose_joined(
    copy: LoweredCopy, *, padded: bool, footprint: int, thresholds: Thresholds, threads: int = 1
) -> JoinedBoxes | None:
    """The boxes of a copy without conversions as one launch; None where separate launches are better.

    A gather serves copies larger than the cache whose runs share lines. A short table of chunks serves
    copies of any size whose boxes write these chunks side by side, unless a copy larger than the cache would
    read distant ones. `padded` says whether padding is written.
    """
    stream = footprint >= thresholds.stream_bytes
    segments = segments_of(copy, padded=padded, limits=SEGMENT_LIMITS) if stream else None
    if segments is not None:
        return JoinedBoxes(Schedule("gather", (), (), rank=0, stream=True), segments)
    chunks = chunk_table_of(copy)
    pads = padded and (copy.fill_first or any(pad.volume for pad in copy.pads))
    if chunks is None or pads or (stream and not chunks.is_near):
        return None
    axes = tuple(f"d{k}" for k in range(len(chunks.outer)))
    rank, shared = padded_rank(len(axes), threads), threads > 1
    return JoinedBoxes(Schedule("chunks", axes, (), rank=rank, stream=stream, shared=shared), chunks)
