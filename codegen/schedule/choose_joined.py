"""Choose which copies run as one launch for all boxes, and leave the others box by box."""

from __future__ import annotations

from codegen.ir.streams import Stream
from codegen.maps.boxed_copy import BoxedCopy
from codegen.schedule.choose_directives import chunk_loops
from codegen.schedule.choose_segments import SEGMENT_LIMITS, segments_of
from codegen.schedule.choose_swizzle import ChunkTable, chunk_table_of
from codegen.schedule.conditions import Conditions
from codegen.schedule.directives import Gather
from codegen.schedule.schedule import Schedule
from codegen.schedule.segments import Segments
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JoinedBoxes:
    """All boxes of a copy as one table, and how it runs.

    schedule  without inner loops: a table has their offsets
    table     covers all boxes, and the padding of segments if it is written
    """

    schedule: Schedule
    table: Segments | ChunkTable


def choose_joined(copy: BoxedCopy, when: Conditions, *, padded: bool) -> JoinedBoxes | None:
    """The boxes of a copy without conversions as one launch; None if separate launches are better.

    A gather serves copies larger than the cache whose runs share lines. A short table of chunks serves
    copies of any size whose boxes write these chunks side by side, unless a copy larger than the cache would
    read distant ones. `padded` says whether padding is written.
    """
    stream = when.is_large
    gathered = in_segments(copy, padded=padded) if stream else None
    if gathered is not None:
        return gathered
    chunks = in_chunks(copy, padded=padded, stream=stream)
    if chunks is None or (stream and isinstance(chunks.table, ChunkTable) and not chunks.table.is_near):
        return None
    return chunks


def in_segments(copy: BoxedCopy, *, padded: bool) -> JoinedBoxes | None:
    """The boxes as segments, which are gathered and stored past the cache; None if they have none."""
    segments = segments_of(copy, padded=padded, limits=SEGMENT_LIMITS)
    if segments is None:
        return None
    gather = Gather(segments.buffer_bytes, segments), Stream("given")
    return JoinedBoxes(Schedule((), directives=gather), segments)


def in_chunks(copy: BoxedCopy, *, padded: bool, stream: bool) -> JoinedBoxes | None:
    """The boxes as a table of chunks; None if they have none, or if there is padding to write."""
    chunks = chunk_table_of(copy)
    pads = padded and (copy.fill_first or any(pad.volume for pad in copy.pads))
    if chunks is None or pads:
        return None
    axes = tuple(f"joined{k}" for k in range(len(chunks.outer)))
    directives = chunk_loops(chunks.width).directed(stream=stream)
    return JoinedBoxes(Schedule(axes, directives=directives), chunks)
