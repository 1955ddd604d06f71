"""Transposes: transfers that move blocks of rows and columns through registers.

Like other transfers, these are not loops: `passes/lower_copies` has the loops. Offsets are in bytes.
"""

from __future__ import annotations

from typing import TypeAlias

from codegen.ir.lines import LINE_BYTES
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import TileSchedule
from codegen.schedule.transfer_loops import Loop, Size, int_size
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneReads:
    """Which blocks may read a full lane of each row, although rows are shorter.

    A lane that begins at the end of the source reads beyond it. While the source offset of the other digits
    is less than `open_offset`, every block may. Elsewhere, blocks that begin at a row in
    [`closed_start`, `closed_stop`) may not.
    """

    closed_start: Size
    closed_stop: Size
    open_offset: Size


@dataclass(frozen=True, slots=True)
class TileLevel:
    """A pair of loops over parts of a transpose, one over rows and one over columns.

    index, stop  how their names end: i_tile and i_stop
    size         rows and columns of a part
    """

    index: str
    stop: str
    size: tuple[int, int]


class _Scheduled:
    """What both kinds of transposes have.

    Attributes:
        loops: outermost first; the tiles or panels of rows and columns are among them.
        schedule: how tiles and blocks run.
    """

    __slots__ = ()

    loops: tuple[Loop, ...]
    schedule: TileSchedule

    @property
    def stream(self) -> bool:
        """Whether full lines are stored past the cache."""
        return self.schedule.stream

    @property
    def trips(self) -> int:
        """Iterations of the first loop; sizes are numbers still."""
        return int_size(self.loops[0].extent)


@dataclass(frozen=True, slots=True)
class TransposeTiles(_Scheduled):
    """Transpose rows x columns elements of `width` bytes, tile by tile, in register blocks.

    Element (r, c) is read at row_step * r + source_width * c and stored at column_step * c + width * r, in
    bytes. A step is a table of offsets instead where several digits are joined. `tile` and `block` are rows x
    columns; `schedule` says how they run. The loops over super-vectors of the caller's size run inside those
    over tiles, or around them if they are larger in either direction.

    If tiles are staged by rows, each goes through a panel in cache, from which full lines are stored wherever
    result rows begin. The innermost loop is then the one over tiles of rows.

    With `convert`, as in `Moves`, each element is converted. Otherwise both widths are the same.

    With `lanes`, there are fewer columns than a block has: blocks read lanes, of which `columns` are stored.
    Blocks that may not are moved element by element.
    """

    source_width: int
    width: int
    rows: Size
    columns: Size
    row_step: Size | OffsetTable
    column_step: Size | OffsetTable
    loops: tuple[Loop, ...]
    tile: tuple[int, int]
    block: tuple[int, int]
    schedule: TileSchedule
    lanes: LaneReads | None = None
    convert: tuple[str, str] | None = None

    @property
    def staged(self) -> bool:
        """Whether tiles go through a panel."""
        return self.schedule.stage == "rows"

    @property
    def outer(self) -> TileLevel:
        """The level of the loops around blocks: tiles, or super-vectors if those hold tiles."""
        size = self.schedule.around(self.tile)
        return TileLevel("strip" if size == self.schedule.strips else "tile", "stop", size)

    @property
    def inner(self) -> TileLevel | None:
        """The level inside the outer one: the other one of the two; None if there is no other."""
        strips = self.schedule.strips
        if strips is None or strips == self.tile:
            return None
        if self.outer.size == strips:
            return TileLevel("tile", "tile_stop", self.tile)
        return TileLevel("strip", "strip_stop", strips)

    @property
    def panel_pitch(self) -> int:
        """Bytes from row to row of the panel: a line, then the tile's part of a result row."""
        return self.tile[0] * self.width + LINE_BYTES

    @property
    def panel_bytes(self) -> int:
        """The size of the panel; 0 without one."""
        return self.tile[1] * self.panel_pitch + LINE_BYTES if self.staged else 0

    @property
    def trips(self) -> int:
        """Iterations of the first loop; sizes are numbers still."""
        first = self.loops[0]
        sizes = {"rows": (self.rows, self.outer.size[0]), "columns": (self.columns, self.outer.size[1])}
        count, step = sizes.get(first.axis, (first.extent, 1))
        return -(-int_size(count) // step)


@dataclass(frozen=True, slots=True)
class TransposeRuns(_Scheduled):
    """Transpose short result rows: panels of them are filled in register blocks, and leave as long runs.

    Element (r, c) is read at row_step[r] + source_width * c. The last row is repeated in the table, because
    blocks may have more rows than the box. A panel has all rows and `tile` columns, and the same of up to
    `together` layers, whose result rows follow those of the layer before.

    panel_step   how far apart columns are in the panel, in bytes; or the offset of each
    run_columns  contiguous columns, which are a run in the destination as in the panel: one or all, unless
                 columns are joined of several digits. Then `run_offsets` has the offset of each run in the
                 destination, and `run_panel_offsets` in the panel.
    requests     lines of the next panel's source that are prefetched for each line that is written

    `schedule`, `lanes` and `convert` are those of `TransposeTiles`.
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
    schedule: TileSchedule
    layers: Size = 1
    together: Size = 1
    run_offsets: OffsetTable | None = None
    run_panel_offsets: OffsetTable | None = None
    panel_bytes: Size = 0
    lanes: LaneReads | None = None
    convert: tuple[str, str] | None = None


Transpose: TypeAlias = TransposeTiles | TransposeRuns
"""Both kinds."""
