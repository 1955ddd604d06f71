"""A lifted nest as Python source that Numba compiles and a person can read.

A kernel is `kernel(src, dst, sizes, begin, end)`: two addresses, the address of a table of 64-bit
arguments, and the part [begin, end) of its first loop. Addresses of a packed side count bits.
"""

from __future__ import annotations

from hashlib import sha256
from re import findall

from codegen.emit.expressions import CONVERSIONS, load_call, store_call
from codegen.emit.writer import Writer
from codegen.ir import (
    Convert,
    CopyRun,
    Elementwise,
    Fill,
    FillRun,
    For,
    ForEach,
    Load,
    LoopNest,
    PackBits,
    Size,
    Stmt,
    Transpose,
    UnpackBits,
    refs,
)
from codegen.printer import format_transfer


def kernel_name(nest: LoopNest, arguments: tuple[str, ...]) -> str:
    """A name that says what the kernel does and tells it from all others."""
    digest = sha256(repr((nest, arguments)).encode()).hexdigest()[:12]
    inner = nest.innermost
    if isinstance(inner, Transpose) and inner.interleave:
        return f"{'interleave' if inner.interleave == 'dst' else 'deinterleave'}_{digest}"
    kind = {
        CopyRun: "copy_runs",
        FillRun: "fill_runs",
        Transpose: "transpose",
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
    out.line(f"{each}loops {loops}, the first over [begin, end), around:")
    out.line(format_transfer(nest.innermost))
    out.line('"""')
    out.line()
    body = Writer()
    _statement(nest.body, body, nest, ("src", "dst"), first=True)
    if getattr(nest.innermost, "stream", False):
        body.line("stream_fence()")
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
                _statement(body, out, nest, (f"src_{axis}", f"dst_{axis}"), first=False)
        case _:
            _transfer(stmt, out, nest, at)


def _advanced(axis: str, nest: LoopNest, out: Writer, at: tuple[str, str]) -> tuple[str, str]:
    """Lines that step both addresses along an axis; the names to go on with."""
    src, dst = at
    src_ref, dst_ref = refs(nest.innermost)
    last = axis == nest.loops[-1].axis
    step = "{} + {} * {}" if last else "settled({} + {} * {})"
    out.line(f"dst_{axis} = {step.format(dst, axis, _text(dst_ref.stride(axis)))}")
    if src_ref is None:
        return src, f"dst_{axis}"
    out.line(f"src_{axis} = {step.format(src, axis, _text(src_ref.stride(axis)))}")
    return f"src_{axis}", f"dst_{axis}"


def _transfer(stmt: Stmt, out: Writer, nest: LoopNest, at: tuple[str, str]) -> None:
    src, dst = at
    match stmt:
        case CopyRun(_, _, count, stream):
            out.line(f"{'stream' if stream else 'copy'}_run({dst}, {src}, {_text(count)})")
        case FillRun(_, count):
            out.line(f"fill_run({dst}, {_text(count)}, fill_low, fill_high)")
        case Transpose():
            out.line(_transpose_call(stmt, src, dst))
        case PackBits(_, _, bits, count, step):
            out.line(f"pack_bits_{bits}({dst}, {src}, {_text(count)}, {_text(step)})")
        case UnpackBits(_, _, bits, count, step):
            out.line(f"unpack_bits_{bits}({dst}, {src}, {_text(count)}, {_text(step)})")
        case Elementwise():
            _elementwise(stmt, out, nest, src, dst)
        case _:
            raise AssertionError(f"emit: no rule for {type(stmt).__name__}")


def _transpose_call(stmt: Transpose, src: str, dst: str) -> str:
    kind = f"u{8 * stmt.width}"
    rows, columns = _text(stmt.rows), _text(stmt.columns)
    stream = "stream_" if stmt.stream else ""
    if stmt.interleave == "dst":
        return f"{stream}interleave_{rows}_{kind}({dst}, {src}, {columns}, {_text(stmt.row_step)})"
    if stmt.interleave == "src":
        return f"{stream}deinterleave_{columns}_{kind}({dst}, {src}, {rows}, {_text(stmt.column_step)})"
    steps = f"{_text(stmt.row_step)}, {_text(stmt.column_step)}"
    return f"{stream}transpose_{kind}({dst}, {src}, {rows}, {columns}, {steps})"


def _elementwise(stmt: Elementwise, out: Writer, nest: LoopNest, src: str, dst: str) -> None:
    in_bits = nest.buffer("dst").unit_bits == 1
    with out.block(f"for k in range({_text(stmt.count)}):"):
        out.line(_bit_element(stmt, src, dst) if in_bits else _byte_element(stmt, src, dst))


def _byte_element(stmt: Elementwise, src: str, dst: str) -> str:
    """One element between addresses that count bytes."""
    source, target = stmt.src_element, stmt.dst_element
    to, at = f"k * {_text(stmt.dst_step)}", f"k * {_text(stmt.src_step)}"
    match stmt.value:
        case Fill():
            return f"fill_run({dst} + {to}, {target.bits // 8}, fill_low, fill_high)"
        case Convert(_, kind, result):
            value = CONVERSIONS[kind, result].format(load_call(source, src, at=at))
            return store_call(target, dst, value, at=to)
        case Load():
            return f"move_u{source.bits}_at({dst}, {to}, {src}, {at})"


def _bit_element(stmt: Elementwise, src: str, dst: str) -> str:
    """One element between addresses that count bits, where one side is packed."""
    source, target = stmt.src_element, stmt.dst_element
    to = f"{dst} + k * {_text(stmt.dst_step)}"
    at = f"{src} + k * {_text(stmt.src_step)}"
    to = f"({to}) >> 3" if target.bits >= 8 else to
    at = f"({at}) >> 3" if source.bits >= 8 else at
    match stmt.value:
        case Fill() if target.bits >= 8:
            return f"fill_run({to}, {target.bits // 8}, fill_low, fill_high)"
        case Fill():
            return store_call(target, to, "fill_low")
        case Convert():
            raise AssertionError("emit: packed elements are not converted")
        case Load():
            return store_call(target, to, load_call(source, at))


def _text(size: Size) -> str:
    return str(size) if isinstance(size, int) else size.name
