"""A parametrized copy nest as readable Python source that Numba compiles.

A kernel is `kernel(src, dst, sizes, begin, end)`: two addresses, the address of a table of 64-bit
arguments, and the range [begin, end) of its first loop. Addresses of a packed side are in bits.
"""

from __future__ import annotations

from hashlib import sha256
from re import findall

from codegen.emit.writer import Writer
from codegen.ir.copies.nodes import (
    CopyChunks,
    CopyRun,
    Elementwise,
    FillRun,
    For,
    ForEach,
    Gather,
    Interleave,
    LoopNest,
    PackBits,
    Reverse,
    Size,
    Stmt,
    Transfer,
    Transpose,
    TransposeTiles,
    UnpackBits,
    refs,
)
from codegen.ir.copies.printer import format_transfer
from codegen.ir.copies.tiles import (
    COLUMN,
    COLUMNS,
    DST,
    FIELDS,
    LAYER_SRC,
    LAYERS,
    NEXT_ROW,
    NEXT_SRC,
    OPEN_ROWS,
    ROW,
    ROWS,
    SRC,
)


def kernel_name(nest: LoopNest, arguments: tuple[str, ...]) -> str:
    """A descriptive name that is unique to the kernel."""
    digest = sha256(repr((nest, arguments)).encode()).hexdigest()[:12]
    inner = nest.innermost
    if isinstance(inner, Interleave):
        return f"{_interleave_name(inner)}_{digest}"
    kind = {
        CopyRun: "copy_runs",
        CopyChunks: "copy_chunks",
        Reverse: "reverse_runs",
        FillRun: "fill_runs",
        Transpose: "transpose",
        TransposeTiles: "transpose",
        Gather: "gather",
        Elementwise: "copy_elements",
        PackBits: "pack_bits",
        UnpackBits: "unpack_bits",
    }[type(inner)]
    return f"{kind}_{digest}"


def emit(nest: LoopNest, arguments: tuple[str, ...]) -> str:
    """The kernel's source; `arguments` are the names in the table of sizes, in order."""
    out = Writer()
    name = kernel_name(nest, arguments)
    out.line(f'"""{name}')
    out.line()
    loops = " ".join(loop.axis for loop in nest.loops)
    each = "for each table entry, " if nest.table_loop else ""
    what = "tiles" if isinstance(nest.innermost, Transpose) else f"loops {loops}"
    out.line(f"{each}{what}, the first over [begin, end), around:")
    out.line(format_transfer(nest.innermost))
    out.line('"""')
    out.line()
    body = Writer()
    _statement(nest.body, body, nest, ("src", "dst"), first=True)
    if _streams(nest.innermost):
        body.line("stream_fence()")
    # Search the text: a call's arguments depend on its routine, and `end` replaces the first extent.
    used = set(findall(r"\w+", body.text()))
    with out.block(f"def {name}(src, dst, sizes, begin, end):"):
        for k, argument in enumerate(arguments):
            if argument in used:
                out.line(f"{argument} = int64_at(sizes, {k})")
        out.lines(body)
    return out.text()


def _statement(stmt: Stmt, out: Writer, nest: LoopNest, at: tuple[str, str], *, first: bool) -> None:
    match stmt:
        case For(axis, extent, body):
            head = "begin, end" if first else _text(extent)
            with out.block(f"for {axis} in range({head}):"):
                _statement(body, out, nest, _advanced(axis, nest, out, at), first=False)
        case ForEach(axis, _, body):
            with out.block(f"for {axis} in range(begin, end):"):
                out.line(f"src_{axis} = {at[0]} + int64_at(src_offsets, {axis})")
                out.line(f"dst_{axis} = {at[1]} + int64_at(dst_offsets, {axis})")
                _prefetch(axis, nest, out, at[0])
                _statement(body, out, nest, (f"src_{axis}", f"dst_{axis}"), first=False)
        case _:
            _transfer(stmt, out, nest, at)


def _prefetch(axis: str, nest: LoopNest, out: Writer, src: str) -> None:
    """Prefetch the source of a later table entry: hardware prefetchers cannot predict entries."""
    inner = nest.innermost
    if not _streams(inner):
        return
    following = f"int64_at(src_offsets, min({axis} + prefetch_entries, end - 1))"
    start = f"{src} + {following} + prefetch_low"
    start = f"({start}) >> 3" if nest.buffer("src").unit_bits == 1 else start
    out.line(f"prefetch_span({start}, prefetch_bytes)")


def _advanced(axis: str, nest: LoopNest, out: Writer, at: tuple[str, str]) -> tuple[str, str]:
    """Write the lines that advance both addresses along an axis; return the names of the new addresses."""
    src, dst = at
    src_ref, dst_ref = refs(nest.innermost)
    last = axis == nest.loops[-1].axis
    step = "{} + {} * {}" if last else "opaque({} + {} * {})"
    out.line(f"dst_{axis} = {step.format(dst, axis, _text(dst_ref.stride(axis)))}")
    if src_ref is None:
        return src, f"dst_{axis}"
    out.line(f"src_{axis} = {step.format(src, axis, _text(src_ref.stride(axis)))}")
    return f"src_{axis}", f"dst_{axis}"


def _transfer(stmt: Stmt, out: Writer, nest: LoopNest, at: tuple[str, str]) -> None:
    src, dst = at
    match stmt:
        case Transpose():
            _tiles(stmt, out, src, dst, first=nest.table_loop is None)
        case _:
            raise AssertionError(f"emit: no rule for {type(stmt).__name__}")


def _streams(stmt: Transfer) -> bool:
    """Whether lines bypass the cache, so that the kernel needs a fence before other threads read them."""
    return isinstance(stmt, Transpose) and stmt.stream


def _interleave_name(stmt: Interleave) -> str:
    name = {"dst": "interleave", "src": "deinterleave", "": "transpose_small"}[stmt.side]
    if stmt.groups:
        return f"{name}_groups"
    return f"{name}_lines" if stmt.lines else name


def _tiles(stmt: Transpose, out: Writer, src: str, dst: str, *, first: bool) -> None:
    """Write the loop over tiles; `tiles.py` defines the fields of an entry."""
    element = stmt.convert or f"u{8 * stmt.width}"
    kind = f"by_{stmt.block}s_{element}"
    stream = "stream_" if stmt.stream else ""
    with out.block(f"for k in range({'begin, end' if first else 'tile_count'}):"):
        out.line(f"tile = tiles + {8 * FIELDS} * k")
        out.line(f"src_tile = {src} + int64_at(tile, {SRC})")
        out.line(f"dst_tile = {dst} + int64_at(tile, {DST})")
        out.line(f"rows = row_offsets + 8 * int64_at(tile, {ROW})")
        out.line(f"columns = column_offsets + 8 * int64_at(tile, {COLUMN})")
        shape = [
            "dst_tile",
            "src_tile",
            "rows",
            f"int64_at(tile, {ROWS})",
            "columns",
            f"int64_at(tile, {COLUMNS})",
            f"int64_at(tile, {OPEN_ROWS})",
        ]
        following = [f"{src} + int64_at(tile, {NEXT_SRC})", f"row_offsets + 8 * int64_at(tile, {NEXT_ROW})"]
        layers = [f"int64_at(tile, {LAYERS})", f"int64_at(tile, {LAYER_SRC})"]
        panel = ["scratch", "places", "segments", "segment_columns", *layers]
        arguments = ", ".join([*shape, *panel, *following])
        out.line(f"{stream}staged_{stmt.stage}_{kind}({arguments})")


def _text(size: Size) -> str:
    return str(size) if isinstance(size, int) else size.name
