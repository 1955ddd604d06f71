"""Every stage of one copy on file: its nests, what its run-time tables hold, and the kernel's source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.ir.copies.nodes import Element, LoopNest
from codegen.ir.copies.printer import format_nest
from codegen.ir.copies.segments import HALF, HEAD, MOVES, Segments
from codegen.pipeline import gather
from codegen.pipeline.copies import compile_copy
from codegen.runtime.copy_calls import SegmentCalls
from codegen.schedule.schedule import Thresholds
from tests.codegen.simd.test_segments import ALWAYS
from tests.tools.goldens import GOLDEN, check_golden
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map
from tilejit.memory import bytes_map

GATHERED = "u8[9,50]{1,0:T(4,40)}"


def test_stages_of_a_gather(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 40 and 10 bytes, which the unpacked rows join; segments of a few rows."""
    monkeypatch.setattr(gather, "SEGMENT_LIMITS", replace(ALWAYS, least_bytes=64, most_bytes=256))
    spec, element, parts = as_layout(GATHERED), Element("u8", 8), [f"unpack {GATHERED}\n"]
    plain = bytes_map(spec.dimensions, np.empty(spec.dimensions, spec.dtype).strides, 1)

    def observe(name: str, nest: LoopNest) -> None:
        parts.append(f"--- {name}\n{format_nest(nest)}")

    program = compile_copy(
        access_map(spec), plain, element, element, observe=observe, thresholds=Thresholds(0)
    )
    (launch,) = program.launches
    assert isinstance(launch.calls, SegmentCalls)
    parts.append(f"--- tables\n{_tables(launch.calls.segments)}")
    parts.append(f"--- kernel\n{launch.step.kernel.source}")
    check_golden(GOLDEN / "stages" / "unpack_u8_4x40_gathered.txt", "\n".join(parts), request)


def _tables(made: Segments) -> str:
    """The table of segments, then the moves of each part as bytes: source offset -> offset in the segment."""
    lines = ["segments: source, start, part, next source, bytes of the segment"]
    entries = made.entries(0, made.count)
    lines += [f"    {', '.join(map(str, entry))}" for entry in entries.tolist()]
    table = made.moves.tolist()
    for start in sorted({entry[2] for entry in entries.tolist()}):
        ends, first = table[start : start + len(MOVES)], start + HEAD
        lines.append(f"moves of part {start}{', padding' * table[first - 1]}")
        for width, end in zip(MOVES, ends, strict=True):
            moves = [divmod(move, HALF) for move in table[first:end]]
            if moves:
                lines.append(f"    {width} bytes: {', '.join(f'{low} -> {high}' for high, low in moves)}")
            first = end
    return "\n".join(lines) + "\n"
