"""Size the super-vectors of a transposed copy: inside its tiles or panels, or around the tiles."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.blocks import block_shape
from codegen.schedule.schedule import LOOPS_END, GivenSize, TileSize, TransposeSchedule, VectorSize
from codegen.schedule.transpose_box import DENSE_BYTES, PANEL_COLUMNS, TransposeBox

MOST_PANEL_LINES = 16
"""Maximum lines of each result row in a panel of the caller's size, so that it stays in the second cache."""

PANEL_ENDS = "a panel in cache has no more"
"""Why super-vectors of a transpose are smaller than requested."""


def in_strips(box: TransposeBox, cut: TransposeSchedule, size: tuple[int, int]) -> TransposeSchedule:
    """The cut into super-vectors of the caller's size, which are rounded up to full register blocks.

    Tiles of a size that fits in them hold several super-vectors; larger super-vectors hold tiles. A panel
    holds super-vectors, so they are at most as large as the largest panel that stays in cache.
    """
    if cut.block == "short":
        return _of_short_rows(box, cut, size)
    if cut.stage == "dense":
        return _in_panels(box, cut, size[1])
    least = box.side if cut.stage else block_shape(box.width, cut.block)[0]
    rows, columns = _rounded(size[0], least), _rounded(size[1], block_shape(box.width, cut.block)[1])
    if cut.stage:
        return _in_lines(box, cut, (rows, columns))
    pairs = tuple(zip((rows, columns), cut.tile, strict=True))
    if all(strip <= tile for strip, tile in pairs):
        tile = tuple(_rounded(tile, strip) for strip, tile in pairs)
    else:
        tile = tuple(map(min, pairs))
    return replace(cut, tile=(tile[0], tile[1]), strips=(rows, columns))


def given_size(box: TransposeBox, cut: TransposeSchedule, size: VectorSize) -> GivenSize:
    """The size used instead of the caller's, in elements of the box."""
    if cut.strips is None or isinstance(size, TileSize):
        return GivenSize(None, (cut.tile[0], cut.tile[1] * cut.together))
    given = size if isinstance(size, tuple) else (size, size)
    counts = box.counts(cut)
    became = tuple(map(min, zip(cut.strips, counts, strict=True)))
    sides = tuple(zip(became, counts, given, strict=True))
    limit = ""
    if any(strip < min(count, each) for strip, count, each in sides):
        limit = PANEL_ENDS
    elif any(count < each for _, count, each in sides):
        limit = LOOPS_END
    return GivenSize(size, (became[0], became[1]), limit=limit)


def _of_short_rows(box: TransposeBox, cut: TransposeSchedule, size: tuple[int, int]) -> TransposeSchedule:
    """Super-vectors of complete source rows, which are shorter than a lane; a panel is one."""
    rows, columns = box.counts(cut)
    if cut.stage == "dense":
        return replace(cut, strips=(rows, columns))
    strip = _rounded(size[0], box.side)
    if cut.stage:
        strip = min(strip, MOST_PANEL_LINES * box.side)
        return replace(cut, tile=(strip, columns), lines=strip // box.side, strips=(strip, columns))
    return replace(cut, tile=(strip, columns), strips=(strip, columns))


def _in_panels(box: TransposeBox, cut: TransposeSchedule, columns: int) -> TransposeSchedule:
    """Super-vectors of all short result rows, and panels of several.

    Panels of joined digits or of several layers have all columns.
    """
    rows, all_columns = box.counts(cut)
    unit = block_shape(box.width, cut.block)[1]
    strip, wide = _rounded(columns, unit), cut.tile[1]
    if len(cut.columns) > 1 or cut.layers:
        return replace(cut, strips=(rows, min(strip, _rounded(all_columns, unit))))
    most = max(DENSE_BYTES // (rows * box.width) // unit * unit, unit)
    strip = min(strip, most)
    wide = min(_rounded(wide, strip), most // strip * strip)
    return replace(cut, tile=(cut.tile[0], wide), strips=(rows, strip))


def _in_lines(box: TransposeBox, cut: TransposeSchedule, strips: tuple[int, int]) -> TransposeSchedule:
    """Super-vectors in panels of long result rows, of a multiple of their rows and columns."""
    rows, columns = min(strips[0], MOST_PANEL_LINES * box.side), min(strips[1], PANEL_COLUMNS)
    tall = min(_rounded(cut.lines * box.side, rows), MOST_PANEL_LINES * box.side // rows * rows)
    wide = min(_rounded(cut.tile[1], columns), PANEL_COLUMNS // columns * columns)
    return replace(cut, tile=(tall, wide), lines=tall // box.side, strips=(rows, columns))


def _rounded(count: int, unit: int) -> int:
    """The smallest multiple of a unit that is at least the count."""
    return -(-count // unit) * unit
