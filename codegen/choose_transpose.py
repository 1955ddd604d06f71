"""Pick the schedule of a copy whose sides are contiguous along different digits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from codegen.ir import Convert, LoopNest, refs
from codegen.passes.normalise import int_size, scalar
from codegen.schedule import Schedule, TransposeSchedule
from codegen.tiles import LANE_BYTES, LINE_BYTES, block_shape, joined_run

VectorSize: TypeAlias = int | tuple[int, int]

MOST_JOINED = 1 << 14
"""Rows or columns that one table lists: 128 KiB."""

TILE_LINES = 6
"""Lines each way of a tile that is stored at its places."""

SHARED_SETS = {1: (6, 6), 2: (2, 12), 4: (6, 6), 8: (8, 8), 16: (6, 6), 32: (8, 6), 64: (8, 6)}
"""The same where source rows share sets of the cache, by the bytes of an element: rows, columns. Measured on
transposes of 64-128 MB with rows of a power of two, Zen 5, 2026-11."""

NARROWED_SETS = (1, 12)
"""The same where elements become narrower: each row of a block is two lines or more."""

ALIAS_BYTES = 2048
"""Rows whose distance is a multiple of this share sets of the first cache, which has few ways for them."""

FAR_BYTES = 1 << 17
"""From this distance on between source rows a tile has half as many: each row is a page of its own."""

PANEL_COLUMNS = {1: 2048, 2: 4096, 4: 2048, 8: 256, 16: 256, 32: 256, 64: 128}
"""Columns of a panel that is staged by long result rows, by the bytes of an element: long panels beat square
ones, as far as the buffer stays in the second cache."""

DENSE_BYTES = 1 << 17
"""A panel that is staged by short result rows."""

PADDED_COLUMNS = 1 << 13
"""Columns of such a panel where each has lines of its own in it: a MiB."""

PART_LINES = 6
"""Lines of each result row of a tile of source rows shorter than a lane."""

SPECIAL_BYTES = 1 << 17
"""Boxes below this, of edges mostly, are not worth kernels of their own for parts and bands."""

LAYERED_BYTES = 2048
"""Runs of the destination up to which tiles go through one buffer together."""

LONG_ROW_BYTES = 2048
"""Result rows from this length on are staged one by one: what they lose at both ends is a line in 32."""


SHORT_SOURCE_BYTES = 512
"""Source runs below this make too little of a panel of two lines a result row."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop of the nest, strides in bytes."""

    axis: str
    extent: int
    src: int
    dst: int


def transpose_schedule(
    nest: LoopNest, *, stream: bool, threads: int = 1, size: VectorSize | None = None
) -> Schedule | None:
    """The schedule where registers can be filled, or None where both contiguous digits are too short.

    `size` is what the caller wants of a tile, rows and columns, or both alike.
    """
    box = _Box.of(nest)
    found = box.direct() if stream else box.plain()
    if found is None and stream:
        found = box.staged()
    return None if found is None else box.schedule(found, threads, size)


def transpose_candidates(
    nest: LoopNest, first: Schedule, *, threads: int, size: VectorSize | None
) -> tuple[Schedule, ...]:
    """Schedules that are worth a measurement, all different, `first` in front: other stores, other tiles."""
    box = _Box.of(nest)
    ways = [way for way in (box.direct(), box.staged(), box.plain()) if way is not None]
    cuts = [first.transpose, *ways] if first.transpose else ways
    for cut in [first.transpose] if first.transpose and size is None else []:
        rows, columns = cut.tile
        shapes = [(rows, columns // 2), (rows, 2 * columns)]
        if not cut.stage:
            shapes += [(rows // 2, columns), (2 * rows, columns)]
        if cut.layers:
            cuts += [replace(cut, together=n) for n in (cut.together // 2, 2 * cut.together) if n]
        elif len(cut.columns) == 1 or not cut.stage:
            cuts += [replace(cut, tile=tile) for tile in shapes if min(tile) > 0]
    others = [box.schedule(cut, threads, size) for cut in cuts[1:]]
    return tuple(dict.fromkeys([first, *others]))


def misaligned(schedule: Schedule, nest: LoopNest) -> Schedule | None:
    """What to do instead where the destination does not begin on a line; None where it does not matter."""
    cut = schedule.transpose
    if cut is None or cut.stage or not cut.stream:
        return None
    box = _Box.of(nest)
    return box.schedule(box.staged() or replace(cut, stream=False), 1, None)


@dataclass(frozen=True, slots=True)
class _Box:
    """A nest as digits, and the two along which its sides are contiguous; widths in bytes."""

    walks: tuple[Walk, ...]
    row: Walk
    column: Walk
    width: int
    source_width: int
    converts: bool

    @classmethod
    def of(cls, nest: LoopNest) -> _Box:
        walks, (width, source_width) = _walks(nest), _widths(nest)
        row = next(w for w in walks if w.dst == width)
        column = next(w for w in walks if w.src == source_width)
        converts = isinstance(scalar(nest).value, Convert)
        return cls(tuple(walks), row, column, width, source_width, converts)

    @property
    def side(self) -> int:
        """Elements of a line."""
        return LINE_BYTES // self.width

    def schedule(self, cut: TransposeSchedule, threads: int, size: VectorSize | None) -> Schedule:
        taken = (*cut.rows, *cut.columns, cut.layers)
        others = sorted((w for w in self.walks if w.axis not in taken), key=lambda w: -abs(w.src))
        if size is not None:
            cut = self.resized(cut, size if isinstance(size, tuple) else (size, size))
        elif threads > 1:
            cut = self.shared(cut, _size(others), threads)
        return Schedule("transpose", tuple(w.axis for w in others), (), transpose=self.in_blocks(cut))

    def in_blocks(self, cut: TransposeSchedule) -> TransposeSchedule:
        """Tiles of whole blocks, unless one takes all: nothing narrower moves, and buffers hold a tile."""
        (rows, columns), (all_rows, all_columns) = cut.tile, self.counts(cut)
        rows = min(-(-rows // self.side) * self.side, all_rows)
        columns = min(-(-columns // self.side) * self.side, all_columns)
        return replace(cut, tile=(rows, columns))

    def counts(self, cut: TransposeSchedule) -> tuple[int, int]:
        """All rows and all columns, joined."""
        extents = {w.axis: w.extent for w in self.walks}
        return prod(extents[a] for a in cut.rows), prod(extents[a] for a in cut.columns)

    def resized(self, cut: TransposeSchedule, size: tuple[int, int]) -> TransposeSchedule:
        """Tiles of the caller's size, as far as a buffer for them stays in cache."""
        rows, columns = size
        if cut.stage == "rows":
            return replace(cut, tile=(rows, min(columns, PANEL_COLUMNS[self.width])))
        if cut.stage == "dense":
            most = max(DENSE_BYTES // (cut.tile[0] * self.width) // self.side * self.side, self.side)
            whole = len(cut.columns) > 1 or cut.layers
            return cut if whole else replace(cut, tile=(cut.tile[0], min(columns, most)))
        return replace(cut, tile=(rows, columns))

    def shared(self, cut: TransposeSchedule, others: int, threads: int) -> TransposeSchedule:
        """Narrower tiles where there would be too few for all threads."""
        rows, columns = self.counts(cut)
        across = -(-columns // cut.tile[1])
        if cut.layers:
            extent = next(w.extent for w in self.walks if w.axis == cut.layers)
            return replace(cut, together=max(1, min(cut.together, others * extent // (4 * threads))))
        tiles = others * -(-rows // cut.tile[0]) * across
        if tiles >= 4 * threads or (cut.stage == "dense" and len(cut.columns) > 1):
            return cut
        wanted = -(-columns * tiles // (4 * threads * across))
        return replace(cut, tile=(cut.tile[0], max(-(-wanted // self.side) * self.side, self.side)))

    def chain(self, first: Walk, on: str, without: tuple[Walk, ...]) -> list[Walk]:
        """The digits that follow each other without a hole on one side, most minor first."""
        width = self.width if on == "dst" else self.source_width
        chain, total = [first], first.extent
        while total <= MOST_JOINED:
            following = [
                w
                for w in self.walks
                if getattr(w, on) == total * width and w not in without and w not in chain
            ]
            if not following or total * following[0].extent > MOST_JOINED:
                break
            chain.append(following[0])
            total *= following[0].extent
        return chain

    @property
    def is_special(self) -> bool:
        """Whether the box may go by parts or bands, neither of which converts."""
        return not self.converts and earns_special(_size(self.walks) * self.width)

    def is_part(self, columns: int) -> bool:
        """Whether so many columns are a part of a lane that registers are worth filling with."""
        return 1 < columns < LANE_BYTES // self.width and self.is_special

    def block(self, rows: int, columns: int) -> str:
        """The block for so many rows and columns, or "" where registers cannot be filled."""
        if self.is_part(columns):
            return "part" if rows >= self.side else ""
        if columns >= self.side:
            return "band" if rows * self.width <= LANE_BYTES and self.is_special else "line"
        return "lane" if columns * self.width >= LANE_BYTES else ""

    def direct(self) -> TransposeSchedule | None:
        """Lines stored past the cache at their places: result rows must be whole lines that begin on one."""
        side, wide, best = self.side, TILE_LINES * self.side, None
        for rows in _prefixes(self.chain(self.row, "dst", (self.column,))):
            r = _size(rows)
            if r % side or any(w.dst % LINE_BYTES for w in self.walks if w not in rows):
                continue
            columns = tuple(self.chain(self.column, "src", rows))
            enough = next((p for p in _prefixes(list(columns)) if _size(p) >= wide), columns)
            c = _size(enough)
            part = self.is_part(c)
            if (c < side and not part) or (len(rows) > 1 and c < 2 * side and not part):
                continue
            # Two lines each way at least, better three, and few lines half full: what 57 permutations liked.
            score = min(r, 2 * side) / 2 / side * (0.8 + 0.2 * min(r, 3 * side) / 3 / side)
            key = score * min(c, wide) / wide * _filled(c, side), -len(rows)
            if best is None or key > best[0]:
                best = key, rows, enough
        if best is None:
            return None
        _, rows, columns = best
        if self.is_part(_size(columns)):
            tile = PART_LINES * side, _size(columns)
            return TransposeSchedule(_axes(rows), _axes(columns), tile, "", True, "part")
        down, across = TILE_LINES // 2 if abs(self.row.src) >= FAR_BYTES else TILE_LINES, TILE_LINES
        block = "lane"
        if self.row.src % ALIAS_BYTES == 0:
            (down, across), block = SHARED_SETS[self.width], "line"
            if self.source_width > self.width:
                down, across = NARROWED_SETS
        tile = down * side, across * side
        return TransposeSchedule(_axes(rows), _axes(columns), tile, "", True, block)

    def staged(self) -> TransposeSchedule | None:
        """Past the cache by way of a buffer, wherever result rows begin."""
        rows = tuple(self.chain(self.row, "dst", (self.column,)))
        columns = tuple(self.chain(self.column, "src", rows))
        r, c = _size(rows), _size(columns)
        block = self.block(r, c)
        if not block:
            return None
        long = r * self.width >= LONG_ROW_BYTES and c * self.source_width >= SHORT_SOURCE_BYTES
        if long or r * self.width * self.side > DENSE_BYTES:
            tile = r, PANEL_COLUMNS[self.width]
            return TransposeSchedule(_axes(rows), _axes(columns), tile, "rows", True, block)
        return self.dense(rows, columns, stream=True)

    def dense(
        self, rows: tuple[Walk, ...], columns: tuple[Walk, ...], *, stream: bool
    ) -> TransposeSchedule | None:
        """Panels of whole column digits, as many as fit, or pieces of the first; None where that is short."""
        run = _size(rows) * self.width
        most = max(DENSE_BYTES // run, self.side)
        if columns[0].dst != run:
            most = min(most, PADDED_COLUMNS)
        kept = 1
        while kept < len(columns) and _size(columns[: kept + 1]) <= most:
            kept += 1
        columns = columns[:kept]
        wide = _size(columns) if kept > 1 else max(most // self.side * self.side, self.side)
        block = self.block(_size(rows), _size(columns))
        if not block:
            return None
        cut = TransposeSchedule(_axes(rows), _axes(columns), (_size(rows), wide), "dense", stream, block)
        return self.layered(cut, rows, columns) if wide >= _size(columns) else cut

    def layered(
        self, cut: TransposeSchedule, rows: tuple[Walk, ...], columns: tuple[Walk, ...]
    ) -> TransposeSchedule:
        """Several tiles in one buffer where the result rows of one follow those of another: longer runs."""
        in_order = _size(rows) < block_shape(self.width, cut.block)[0]
        whole = _size(rows) * self.width
        run, _ = joined_run(whole, [(w.extent, w.dst) for w in columns], in_order=in_order)
        layers = next((w for w in self.walks if w.dst == run and w not in (*rows, *columns)), None)
        most = min(DENSE_BYTES // (whole * _size(columns)), LAYERED_BYTES // run)
        if layers is None or most < 2:
            return cut
        return replace(cut, layers=layers.axis, together=min(most, layers.extent))

    def plain(self) -> TransposeSchedule | None:
        """Blocks stored at their places; rows shorter than a line are staged."""
        side, best = self.side, None
        for rows in _prefixes(self.chain(self.row, "dst", (self.column,))):
            columns = tuple(self.chain(self.column, "src", rows))
            r, c = _size(rows), _size(columns)
            key = _filled(r, side) * _filled(c, side if c >= side else max(side // 4, 1)), -len(rows)
            if best is None or key > best[0]:
                best = key, rows, columns
        if best is None:
            return None
        _, rows, columns = best
        block = self.block(_size(rows), _size(columns))
        if not block:
            return None
        if _size(rows) < side:
            return self.dense(rows, columns, stream=False)
        tile = TILE_LINES * side, TILE_LINES * side
        return TransposeSchedule(_axes(rows), _axes(columns), tile, "", False, block)


def earns_special(size_bytes: int) -> bool:
    """Whether a box of so many bytes is worth a kernel that few others share."""
    return size_bytes >= SPECIAL_BYTES


def _walks(nest: LoopNest) -> list[Walk]:
    src, dst = refs(nest.innermost)
    if src is None:
        raise AssertionError("a transpose has a source")
    return [
        Walk(x.axis, int_size(x.extent), int_size(src.stride(x.axis)), int_size(dst.stride(x.axis)))
        for x in nest.loops
    ]


def _widths(nest: LoopNest) -> tuple[int, int]:
    return nest.buffer("dst").element.bits // 8, nest.buffer("src").element.bits // 8


def _prefixes(chain: list[Walk]) -> list[tuple[Walk, ...]]:
    return [tuple(chain[: k + 1]) for k in range(len(chain))]


def _size(walks: tuple[Walk, ...] | list[Walk]) -> int:
    return prod(w.extent for w in walks)


def _filled(count: int, block: int) -> float:
    """The share of whole blocks that elements fill."""
    return count / (-(-count // block) * block)


def _axes(walks: tuple[Walk, ...]) -> tuple[str, ...]:
    return tuple(w.axis for w in walks)
