"""Transposes of short result rows: panels in cache that leave as long runs.

Like other transfers, these are not loops: `passes/lower_copies` has the loops. Offsets are in bytes.
"""

from __future__ import annotations

from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfer_loops import LaneReads, Loop, Size, int_size
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransposeRuns:
    """Transpose short result rows: panels of them are filled in register blocks, and leave as long runs.

    Element (r, c) is read at row_step[r] + source_width * c. The last row is repeated in the table, because
    blocks may have more rows than the box. A panel has all rows and `tile` columns, and the same of up to
    `together` layers, whose result rows follow those of the layer before.

    panel_step   how far apart columns are in the panel, in bytes; or the offset of each
    run_columns  contiguous columns, which are a run in the destination as in the panel: one or all, unless
                 columns are joined of several digits. Then `run_offsets` has the offset of each run in the
                 destination, and `run_panel_offsets` in the panel.
    requests     lines of the next panel's source that are prefetched for each line that is written

    stream       whether full lines are stored past the cache
    separate     whether each column of a block has its own address, and not one from the columns before it
    strip        columns of the caller's super-vectors, whose blocks run together; 0: no size was given
    lanes        for fewer columns than a block has: blocks read lanes, of which `columns` are kept. Blocks
                 that may not are moved element by element
    convert      as in `Moves`; otherwise both widths are the same
    """

    source_width: int
    width: int
    rows: Size
    columns: Size
    row_step: OffsetTable
    column_step: Size | OffsetTable
    loops: tuple[Loop, ...]
    tile: Size
    block: tuple[int, int]
    panel_step: Size | OffsetTable
    run_columns: Size
    requests: Size
    stream: bool = False
    separate: bool = False
    strip: int = 0
    layers: Size = 1
    together: Size = 1
    run_offsets: OffsetTable | None = None
    run_panel_offsets: OffsetTable | None = None
    panel_bytes: Size = 0
    lanes: LaneReads | None = None
    convert: tuple[str, str] | None = None

    @property
    def trips(self) -> int:
        """Iterations of the first loop; sizes are numbers still."""
        return int_size(self.loops[0].extent)
