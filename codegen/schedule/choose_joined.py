"""Choose which copies run as one launch for all boxes, and leave the others box by box."""

from __future__ import annotations

from collections.abc import Callable

from codegen.ir.streams import Stream
from codegen.ir.strided_box import StridedBox
from codegen.maps.boxed_copy import BoxedCopy
from codegen.schedule.choose import choose
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


def choose_joined(
    copy: BoxedCopy, largest: Callable[[], StridedBox | None], when: Conditions, *, padded: bool
) -> JoinedBoxes | None:
    """The boxes of a copy without conversions as one launch; None if separate launches are better.

    A short table of chunks serves copies of any size whose boxes write these chunks side by side. A gather
    serves copies larger than the cache whose runs share lines, unless most of them are in tiles that are
    transposed and streamed. A copy larger than the cache that would read distant chunks has a table only if
    it were gathered otherwise: packs of 34 to 134 MB to swizzled layouts are 1.2 to 1.9 times as fast that
    way (Zen 4, 2026-11).

    largest  returns the box that moves the most elements, if there is one
    padded   whether padding is written
    """
    stream = when.is_large
    chunks = in_chunks(copy, padded=padded, stream=stream)
    if chunks is not None and (not stream or (isinstance(chunks.table, ChunkTable) and chunks.table.is_near)):
        return chunks
    gathered = in_segments(copy, padded=padded) if stream else None
    if gathered is None or chunks is not None:
        return chunks if gathered else None
    box = largest()
    return None if box is not None and streams_in_place(box, when) else gathered


def streams_in_place(box: StridedBox, when: Conditions) -> bool:
    """Whether tiles of a box are transposed and streamed without scratch.

    Packs of 34 to 135 MB to bf16 T(32,32)(16,16), s8 T(16,16) and others are 1.3 to 2.2 times as fast that
    way as gathered, whole and ragged. If the destination begins inside a line, they are 1.0 to 1.5 times as
    fast (Zen 4, 2026-11).
    """
    found = choose(box, when)
    return found.transposes and found.stream and not found.staged


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
