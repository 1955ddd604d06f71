"""Invariants of a copy as boxes, one per function; `TILEJIT_VERIFY=1` and the tests check them.

A failed check raises KernelError, which names the invariant and a witness. Kernels run on raw addresses, so
some checks are never skipped. `launch_of` calls `check_range`, `check_lanes` and `check_stage` for every
launch; with TILEJIT_VERIFY, `proofs.prove_launch` also proves every access of its kernel.
`CopyProgram.run` calls `check_disjoint`, so that source and destination do not overlap. Plans compare the
spans of their two arrays and then check exactly. `relayout` checks the memory behind `out`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from codegen.analysis.ranges import affine_range, check_range
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import StridedBox
from codegen.maps.access import map_offset
from codegen.maps.boxed_copy import BoxedCopy
from codegen.maps.digit_trees import Leaf, Offsets, Opaque, Split, Switch, Tree, Window, ceil_div
from codegen.maps.refine import Box, PairLeaf, PairSplit, PairSwitch, PairTable, PairTree
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import LaneReads, Loop, Size, int_size
from codegen.schedule.offset_tables import OffsetTable, Table
from codegen.support.errors import KernelError

PROBES = 64
"""Indices that `check_probes` compares: first, last, middle, then random ones."""


def verify_copy(copy: BoxedCopy) -> None:
    """Check all invariants of a copy as boxes.

    Raises:
        KernelError: an invariant does not hold.
    """
    for access in (copy.src, copy.dst):
        for root in access.roots:
            check_tree(root.tree)
    for tree in copy.trees:
        check_pair_tree(tree)
    check_volumes(copy)
    for box in copy.boxes:
        check_box_bounds(box, copy)
        check_injective(box, copy.dst.width)
    check_probes(copy)


def check_tree(tree: Tree) -> None:
    """Invariant 1: every tile is at least 1, `high` covers all tiles, and `low` covers one tile."""
    match tree:
        case Leaf(extent, _) | Opaque(extent, _, _, _):
            if extent < 0:
                raise KernelError(f"verify: a digit of extent {extent}")
        case Window(extent, inner, start, step):
            last = start + step * (extent - 1)
            if extent > 0 and not (0 <= start < inner.extent and 0 <= last < inner.extent):
                raise KernelError(f"verify: a window {start}..{last} outside [0, {inner.extent})")
            check_tree(inner)
        case Split(extent, tile, high, low):
            if tile < 1 or high.extent < ceil_div(extent, tile) or low.extent != tile:
                raise KernelError(
                    f"verify: a split of {extent} by {tile} has digits {high.extent} and {low.extent}"
                )
            check_tree(high)
            check_tree(low)
        case Switch(extent, tile, starts, cases):
            if len(starts) != len(cases) or len(cases) * tile < extent or starts[0]:
                raise KernelError(f"verify: a switch of {extent} by {tile} has {len(cases)} cases")
            for case in cases:
                if case.extent != tile:
                    raise KernelError(f"verify: a case of {case.extent} in a switch by {tile}")
                check_tree(case)


def check_pair_tree(tree: PairTree) -> None:
    """Invariant 1 for the digits common to both sides."""
    match tree:
        case PairLeaf(extent, _, _) | PairTable(extent, _, _):
            if extent < 1:
                raise KernelError(f"verify: a common digit of extent {extent}")
        case PairSplit(extent, tile, high, low):
            if tile < 1 or high.extent != ceil_div(extent, tile) or low.extent != tile:
                raise KernelError(
                    f"verify: common digits {high.extent} and {low.extent} for {extent} cut by {tile}"
                )
            check_pair_tree(high)
            check_pair_tree(low)
        case PairSwitch(extent, tile, starts, cases):
            if len(starts) != len(cases) or len(cases) * tile < extent:
                raise KernelError(f"verify: a common switch of {extent} by {tile} has {len(cases)} cases")
            for case in cases:
                check_pair_tree(case)


def check_volumes(copy: BoxedCopy) -> None:
    """Invariant 2: the boxes hold every element once, and together with the padding every slot once."""
    elements = sum(b.volume for b in copy.boxes)
    if elements != copy.src.elements:
        raise KernelError(f"verify: the boxes hold {elements} elements of {copy.src.elements}")
    if copy.dst.slots is not None and not copy.fill_first:
        padding = sum(p.volume for p in copy.pads)
        if elements + padding != copy.dst.slots:
            raise KernelError(
                f"verify: {elements} elements and {padding} slots of padding, but {copy.dst.slots} slots"
            )


def check_box_bounds(box: Box, copy: BoxedCopy) -> None:
    """Invariant 3: a box reads and writes only within the storage of each side."""
    for side, (access, base) in enumerate(((copy.src, box.src_base), (copy.dst, box.dst_base))):
        low, high = affine_range(base, [(d[0], d[1 + side]) for d in box.digits])
        if not box.tables:
            check_range("source" if side == 0 else "destination", low, high + access.width, access.bounds)


def check_lanes(
    lanes: LaneReads,
    rows: Loop,
    block: int,
    others: list[tuple[int, int]],
    start: int,
    reach: tuple[int, int, int, int],
) -> None:
    """Invariant 3 for blocks that read a full lane of each shorter row: no lane leaves the nest's reach.

    lanes   which blocks may
    rows    the loop over rows
    block   rows of a block
    others  (extent, source stride) of the digits that are neither rows nor columns
    start   the nest's first source offset, in bytes
    reach   of the nest, as `reach_of` returns it
    """
    count = int_size(rows.extent)
    blocks = np.arange(0, count, block)
    starts = np.minimum(blocks, count - block)
    if rows.src_table:
        highest = rows.src_table.offsets[starts[:, None] + np.arange(block)].max(axis=1)
    else:
        stride = int_size(rows.src)
        highest = (starts + (block - 1 if stride > 0 else 0)) * stride
    low, last = affine_range(start, others)
    is_open = (blocks < int_size(lanes.closed_start)) | (blocks >= int_size(lanes.closed_stop))
    if is_open.any():
        check_range("source", reach[0], last + int(highest[is_open].max()) + LANE_BYTES, reach[:2])
    if low < start + int_size(lanes.open_offset):
        last = min(last, start + int_size(lanes.open_offset) - 1)
        check_range("source", reach[0], last + int(highest.max()) + LANE_BYTES, reach[:2])


def check_stage(nest: CopyNest, starts: tuple[int, int], reach: tuple[int, int, int, int]) -> None:
    """Invariant 3 for tiles that go through scratch with complete result rows.

    Registers may have more rows than the box: no element leaves the source or scratch, no run leaves scratch
    or the destination, and each column is in a run. Full lanes of short source rows are for `check_lanes`.

    nest    the transpose; sizes are still numbers
    starts  the nest's first source offset and its first destination offset, in bytes
    reach   of the nest, as `reach_of` returns it
    """
    row, column, block, width = *map(nest.axis, ("row", "column")), nest.staged_block, nest.target.bits // 8
    rows, columns = int_size(row.extent), int_size(column.extent)
    written, tile = max(rows, nest.lanes["row"]), int_size(nest.tiles("column")[0].size)
    if block is None or row.src_table is None or len(row.src_table.offsets) < written:
        raise KernelError(f"verify: registers read {written} rows, which no table has")
    offsets = row.src_table.offsets
    low, high = affine_range(starts[0], [(int_size(x.extent), int_size(x.src)) for x in nest.others])
    stop = high + int(offsets.max()) + columns * int_size(column.src)
    check_range("source", low + int(offsets.min()), stop, reach[:2])
    low, high = affine_range(starts[1], [(int_size(x.extent), int_size(x.dst)) for x in nest.others])
    layers, last = prod(int_size(x.size) for x in nest.tiles("layer")), (columns - 1) // tile * tile
    last = last if nest.short else min(last, columns - nest.lanes["column"])
    for first, count in ((0, min(tile, columns)), (last, columns - last)):
        together = min(int_size(block.run_columns), count)
        size, numbers = together * rows * width, np.arange(count)
        to, at = _along(column.dst_table or column.dst, first + numbers), _along(block.pitch, numbers)
        runs, held = to[::together], at[::together]
        if block.runs is not None and block.staged_runs is not None:
            runs, held = block.runs.offsets, block.staged_runs.offsets
        check_range("destination", low + int(runs.min()), high + int(runs.max()) + size, reach[2:])
        stop = max(int(held.max()) + layers * size, int(at.max()) + (layers - 1) * size + written * width)
        bounds = 0, int_size(block.size_bytes) - LINE_BYTES
        check_range("scratch", min(int(held.min()), int(at.min())), stop, bounds)
        order = np.argsort(held)
        run = order[np.searchsorted(held[order], at, side="right") - 1]
        within = at - held[run]
        moved = (within == to - runs[run]) & (within >= 0) & (within < size)
        if len(runs) * together != count or not moved.all():
            raise KernelError(f"verify: {len(runs)} runs of {together} columns for {count} columns")


def _along(step: Size | OffsetTable, indices: Table) -> Table:
    """The offsets of indices along a loop."""
    offsets: Table = step.offsets[indices] if isinstance(step, OffsetTable) else indices * int_size(step)
    return offsets


def check_injective(box: Box, width: int = 1) -> None:
    """Invariant 4: no unit of the destination is written twice; `width` is that of an element, in units.

    Each |stride| must exceed the combined reach of all smaller ones. Tables are compared value by value, up
    to a million entries.
    """
    if box.tables:
        offsets = _table_values(box)
        values, counts = np.unique(offsets, return_counts=True)
        if len(values) != len(offsets):
            raise KernelError(f"verify: destination offset {int(values[counts > 1][0])} is written twice")
    reach = width - 1
    for extent, stride in sorted(((d[0], abs(d[2])) for d in box.digits if d[0] > 1), key=lambda d: d[1]):
        if stride <= reach:
            raise KernelError(f"verify: a destination stride of {stride} overlaps a reach of {reach}")
        reach += (extent - 1) * stride


def _table_values(box: Box, side: int = 1) -> Offsets:
    """The combined offsets of a box's tables on one side, up to a million; further tables are ignored."""
    offsets = np.zeros(1, np.int64)
    for table in box.tables:
        if table.extent * len(offsets) > 1 << 20:
            break
        own = (table.dst if side else table.src)(np.arange(table.extent))
        offsets = (offsets[:, None] + own[None, :]).ravel()
    return offsets


def check_regrouping(before: StridedBox, after: StridedBox) -> None:
    """Invariant 5: the loops that coalescing made are products of the loops before it.

    A loop may replace several loops only if the strides of each, on both sides, equal those of the next inner
    one times its extent. A digit that a bound cuts cannot pass, because the box holds it cut. Loops that run
    backward count as reversed.
    """
    forward = [x.reversed() if x.runs_backward else x for x in before.axes]
    digits = [(x.extent, x.src, x.dst) for x in forward if x.extent != 1]
    loops = [(x.extent, x.src, x.dst) for x in after.axes if x.extent != 1]
    if prod(n for n, _, _ in loops) != prod(n for n, _, _ in digits):
        raise KernelError(
            f"verify: loops of {[n for n, _, _ in loops]} for digits of {[n for n, _, _ in digits]}"
        )
    rest = list(digits)
    for extent, src, dst in loops:
        while extent > 1:
            match_ = next((d for d in rest if d[1] == src and d[2] == dst and extent % d[0] == 0), None)
            if match_ is None:
                raise KernelError(
                    f"verify: a loop of {extent} with strides {src} and {dst} stands for no digits of the box"
                )
            rest.remove(match_)
            extent, src, dst = extent // match_[0], src * match_[0], dst * match_[0]


def check_probes(copy: BoxedCopy) -> None:
    """Invariant 7: boxes and access maps agree at the first, last, middle and random indices."""
    rng = np.random.default_rng(0)
    dims = copy.src.dims
    if 0 in dims:
        return
    wanted = set()
    for corner in range(PROBES):
        index = tuple(int(rng.integers(n)) if corner > 3 else (0, n - 1, n // 2, n - 1)[corner] for n in dims)
        wanted.add((int(map_offset(copy.src, index)), int(map_offset(copy.dst, index))))
    for src, dst in wanted:
        if not any(_holds(box, src, dst) for box in copy.boxes):
            raise KernelError(f"verify: no box moves source offset {src} to destination offset {dst}")


def _holds(box: Box, src: int, dst: int) -> bool:
    """Whether the box moves that pair; tables of more than 1024 entries are trusted."""
    digits = sorted((d for d in box.digits if d[0] > 1), key=lambda d: -abs(d[2]))
    entries = prod(t.extent for t in box.tables)
    if entries > 1 << 10:
        return True
    offsets = zip(_table_values(box, 0), _table_values(box, 1), strict=True)
    return any(_reaches(digits, src - box.src_base - int(s), dst - box.dst_base - int(d)) for s, d in offsets)


def _reaches(digits: list[tuple[int, int, int]], src: int, dst: int) -> bool:
    """Whether some choice of digits gives both offsets; the destination leaves few candidates."""
    if not digits:
        return src == 0 and dst == 0
    (extent, src_stride, dst_stride), rest = digits[0], digits[1:]
    low, high = affine_range(0, [(n, d) for n, _, d in rest])
    near = dst // dst_stride if dst_stride else 0
    return any(
        _reaches(rest, src - k * src_stride, dst - k * dst_stride)
        for k in (near - 1, near, near + 1)
        if 0 <= k < extent and low <= dst - k * dst_stride <= high
    )


def verify_box(before: StridedBox, after: StridedBox) -> None:
    """Check the invariants of a normalized box: names of axes are unique, and axes match those before.

    Raises:
        KernelError: an invariant does not hold.
    """
    names = [axis.name for axis in after.axes]
    if len(set(names)) != len(names):
        raise KernelError(f"verify: an axis is looped over twice: {names}")
    check_regrouping(before, after)
