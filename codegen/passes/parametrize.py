"""Turn sizes into arguments of the kernel, so that one kernel serves many shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.ir.copies.nodes import (
    Convert,
    CopyChunks,
    CopyRun,
    Element,
    Elementwise,
    Expr,
    Fill,
    FillRun,
    For,
    Gather,
    Interleave,
    LaneReads,
    Load,
    LoopNest,
    PackBits,
    Param,
    Ref,
    Reverse,
    Size,
    TileLoop,
    Transfer,
    Transpose,
    TransposeTiles,
    UnpackBits,
    wrap,
)
from codegen.ir.copies.tiles import PackedLines, RowGroups

NAMES = "abcdefgh"


def parametrize_sizes(nest: LoopNest) -> tuple[LoopNest, tuple[tuple[str, int], ...]]:
    """Replace the sizes of a nest by parameters; return the nest and their values in argument order.

    before:  for i in 9:          copy_run dst[512*i] <- src[1200*i], 512 bytes
    after:   for a in a_extent:   copy_run dst[a_dst*a] <- src[a_src*a], count bytes
    """
    rewrite = _Parametrize({loop.axis: NAMES[k] for k, loop in enumerate(nest.loops)})
    inner = rewrite.transfer(nest.innermost)
    loops = tuple(
        For(rewrite.axes[loop.axis], rewrite.size(f"{rewrite.axes[loop.axis]}_extent", loop.extent), inner)
        for loop in nest.loops
    )
    table = nest.table_loop
    if table:
        table = replace(table, count=rewrite.size("entries", table.count))
    buffers = tuple(replace(b, element=_canonical_element(b.element, inner)) for b in nest.buffers)
    parametrized = LoopNest(buffers, wrap(loops, table, inner))
    return parametrized, tuple(rewrite.values.items())


def _canonical_element(element: Element, inner: Transfer) -> Element:
    """One element type for all that the transfer moves alike, so that they share one kernel."""
    match inner:
        case CopyRun() | FillRun() | Gather():
            return Element("u8", 8)
        case CopyChunks() | Reverse() | Interleave() | PackBits() | UnpackBits():
            return Element(f"u{element.bits}", element.bits)
        case Transpose() | TransposeTiles():
            return Element(f"u{element.bits}", element.bits)
        case Elementwise(_, value) if not isinstance(value, Convert):
            return Element(f"u{element.bits}", element.bits)
        case _:
            return element


class _Parametrize:
    """Collects the arguments in a single traversal of the nest."""

    def __init__(self, axes: dict[str, str]) -> None:
        self.axes = axes
        self.values: dict[str, int] = {}

    def size(self, name: str, value: Size) -> Param:
        if not isinstance(value, int):
            raise AssertionError(f"{name} is already parametrized")
        self.values[name] = value
        return Param(name)

    def ref(self, ref: Ref) -> Ref:
        """Give every loop a stride on both sides, so that gaps do not need another kernel."""
        terms = tuple(
            (new, self.size(f"{new}_{ref.buffer}", ref.stride(old))) for old, new in self.axes.items()
        )
        return Ref(ref.buffer, 0, terms, ref.tables)

    def value(self, value: Expr) -> Expr:
        match value:
            case Load(ref):
                return Load(self.ref(ref))
            case Convert(Load(ref), source, target):
                return Convert(Load(self.ref(ref)), source, target)
            case Fill():
                return value

    def transfer(self, stmt: Transfer) -> Transfer:
        match stmt:
            case CopyRun(dst, src, count, stream):
                return CopyRun(self.ref(dst), self.ref(src), self.size("count", count), stream)
            case CopyChunks():
                parametrized = self.with_params(stmt, stmt.dst, stmt.src, count=stmt.count)
                return replace(parametrized, places=PackedLines())  # type: ignore[no-any-return]
            case Reverse(count=1):
                return self.with_params(stmt, stmt.dst, stmt.src, length=stmt.length)  # type: ignore[no-any-return]
            case Reverse():
                return self.with_params(stmt, stmt.dst, stmt.src, count=stmt.count)  # type: ignore[no-any-return]
            case FillRun(dst, count):
                return FillRun(self.ref(dst), self.size("count", count))
            case Interleave():
                return self.interleave(stmt)
            case Transpose():
                return replace(stmt, dst=self.ref(stmt.dst), src=self.ref(stmt.src), grid=None)
            case TransposeTiles():
                return self.tiles(stmt)
            case Gather():
                return replace(stmt, dst=self.ref(stmt.dst), src=self.ref(stmt.src), segments=None)
            case Elementwise():
                return self.elementwise(stmt)
            case PackBits(_, _, _, _, step):
                return self.bits(stmt, "src_step", step)
            case UnpackBits(_, _, _, _, step):
                return self.bits(stmt, "dst_step", step)
            case _:
                raise AssertionError(f"parametrize: no rule for {type(stmt).__name__}")

    def tiles(self, stmt: TransposeTiles) -> TransposeTiles:
        """Tiles and blocks remain literals; tables come as arguments."""
        names = iter(NAMES)
        loops = tuple(
            loop if loop.axis in ("rows", "columns") else self.tile_loop(next(names), loop)
            for loop in stmt.loops
        )
        return replace(
            stmt,
            dst=self.ref(stmt.dst),
            src=self.ref(stmt.src),
            rows=self.size("rows", stmt.rows),
            columns=self.size("columns", stmt.columns),
            row_step=self.step("src_pitch", stmt.row_step),
            column_step=self.step("dst_pitch", stmt.column_step),
            loops=loops,
            lanes=self.lanes(stmt.lanes) if stmt.lanes else None,
        )

    def lanes(self, reads: LaneReads) -> LaneReads:
        names = "closed_start", "closed_stop", "open_offset"
        return LaneReads(*(self.size(name, getattr(reads, name)) for name in names))

    def tile_loop(self, name: str, loop: TileLoop) -> TileLoop:
        sizes = {"extent": loop.extent, "src": loop.src, "dst": loop.dst}
        return TileLoop(name, *(self.size(f"{name}_{what}", value) for what, value in sizes.items()))

    def step(self, name: str, step: Size | PackedLines) -> Size | PackedLines:
        """A pitch, or a table whose offsets come at run time."""
        return PackedLines() if isinstance(step, PackedLines) else self.size(name, step)

    def interleave(self, stmt: Interleave) -> Interleave:
        rows, columns = stmt.rows, stmt.columns
        stmt = replace(
            stmt,
            lines=PackedLines() if stmt.lines else None,
            groups=RowGroups() if stmt.groups else None,
        )
        parametrized: Interleave = self.with_params(
            stmt, stmt.dst, stmt.src, row_step=stmt.row_step, column_step=stmt.column_step
        )
        if stmt.side == "dst":
            return replace(parametrized, rows=rows, columns=self.size("columns", columns))
        if stmt.side == "src":
            return replace(parametrized, rows=self.size("rows", rows), columns=columns)
        return replace(parametrized, rows=self.size("rows", rows), columns=self.size("columns", columns))

    def bits(self, stmt: PackBits | UnpackBits, step_name: str, step: Size) -> Transfer:
        """The bytes of a column remain a literal in the code, and so does a step of 1."""
        parametrized: Transfer
        if stmt.columns != 1:
            sizes = {"columns": stmt.columns, step_name: step}
            parametrized = self.with_params(stmt, stmt.dst, stmt.src, **sizes)
        elif step == 1:
            parametrized = self.with_params(stmt, stmt.dst, stmt.src, count=stmt.count)
        else:
            parametrized = self.with_params(stmt, stmt.dst, stmt.src, count=stmt.count, **{step_name: step})
        return parametrized

    def elementwise(self, stmt: Elementwise) -> Elementwise:
        value = self.value(stmt.value)
        plain = not isinstance(value, Convert)
        dst, src = stmt.dst_element, stmt.src_element
        unit = stmt.dst_step == dst.bits // 8 and stmt.src_step == src.bits // 8 and not plain
        return replace(
            stmt,
            dst=self.ref(stmt.dst),
            value=value,
            count=self.size("count", stmt.count),
            dst_step=stmt.dst_step if unit else self.size("dst_step", stmt.dst_step),
            src_step=stmt.src_step if unit else self.size("src_step", stmt.src_step),
            dst_element=Element(f"u{dst.bits}", dst.bits)
            if plain and dst.bits >= 8 and src.bits >= 8
            else dst,
            src_element=Element(f"u{src.bits}", src.bits)
            if plain and dst.bits >= 8 and src.bits >= 8
            else src,
        )

    def with_params(self, stmt: Any, dst: Ref, src: Ref, **sizes: Size) -> Any:
        parametrized = {name: self.size(name, value) for name, value in sizes.items()}
        return replace(stmt, dst=self.ref(dst), src=self.ref(src), **parametrized)
