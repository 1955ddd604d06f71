"""Small copies that between them call every routine a kernel may call, and what each must give.

NumPy and the definition of the layouts say what that is; where a kernel's code runs, its caller says.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from codegen import choose, choose_transpose
from codegen.build import NumbaIr, numba_ir
from codegen.choose import INTERLEAVES
from codegen.choose_transpose import ALIAS_BYTES, LONG_ROW_BYTES
from codegen.emit.expressions import CONVERSIONS
from codegen.ir import Element, Interleave
from codegen.kernel import Kernel
from codegen.launch import GRID_ARGUMENTS, OFFSET_ARGUMENTS, Launch
from codegen.pipeline import CopyProgram, compile_copy
from codegen.tiles import FIELDS, LINE_TABLE
from tests.conftest import SEED
from tests.guard import Guarded, span_bytes, strided_view
from tests.oracle import packed_by_definition, random_elements, unpacked_by_definition
from tilejit.convert import buffer_element
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape
from tilejit.memory import bytes_map

Bytes = NDArray[np.uint8]
Dims = tuple[int, ...]
WIDTHS = (1, 2, 4, 8, 16)
LINE_BYTES = 64
PARTS = 2
"""Parts that each launch is cut in, as among threads."""


@dataclass(frozen=True)
class Case:
    """A copy, and the bytes of its storages: the source, the destination before and after."""

    name: str
    program: CopyProgram
    src: Bytes
    before: Bytes
    after: Bytes

    def __str__(self) -> str:
        return self.name

    @property
    def lows(self) -> tuple[int, int]:
        """The lowest byte of the source and of the destination, counted from their base addresses."""
        src, dst = self.program.lowered.src, self.program.lowered.dst
        return src.bounds[0] * src.unit_bits // 8, dst.bounds[0] * dst.unit_bits // 8

    def run(self, src: Guarded, dst: Guarded) -> None:
        """Run it here, in every placement between the guards of two stretches of memory."""
        for at_end, gap in ((False, 0), (True, 0), (False, 16), (True, 3)):
            source = src.place(len(self.src), at_end=at_end, gap=gap)
            target = dst.place(len(self.before), at_end=at_end, gap=gap)
            source[:], target[:] = self.src, self.before
            low, dst_low = self.lows
            self.program.run(source.ctypes.data - low, target.ctypes.data - dst_low)
            assert np.array_equal(target, self.after), f"{self}: wrong bytes, at end {at_end}, gap {gap}"
            assert np.array_equal(source, self.src), f"{self}: the source changed"
            assert src.untouched(), f"{self}: bytes beside the source changed"
            assert dst.untouched(), f"{self}: bytes beside the destination changed"


@dataclass(frozen=True)
class Call:
    """One call of a kernel; `src` and `dst` are places in units from the base addresses of the storages.

    tables     what the arguments of those numbers point to
    scratch    the number of the argument that points to a buffer, and the buffer's bytes
    """

    kernel: Kernel
    src: int
    dst: int
    sizes: tuple[int, ...]
    begin: int
    end: int
    tables: dict[int, tuple[int, ...]]
    scratch: tuple[int, int] | None


def calls_of(program: CopyProgram, dst_base: int) -> list[Call]:
    """What a program calls for a destination with that base address, in order, without running any of it."""
    calls: list[Call] = []
    running: list[Launch] = []

    def record(kernel: Kernel, src: int, dst: int, sizes: int, begin: int, end: int) -> None:
        numbers = _int64s(sizes, len(kernel.arguments))
        dst -= dst_base * 8 // kernel.nest.buffer("dst").unit_bits
        tables, scratch = {}, None
        for k, (name, number) in enumerate(zip(kernel.arguments, numbers, strict=True)):
            count = _table_length(running[-1], kernel, name, numbers, end)
            if name == "scratch" and number:
                scratch = k, count
            elif count and number:
                tables[k] = _int64s(number, count)
        calls.append(Call(kernel, src, dst, numbers, begin, end, tables, scratch))

    def run(launch: Launch, *given: int) -> None:
        running.append(launch)
        launch_run(launch, *given)
        running.pop()

    native, launch_run = Kernel.call, Launch.run
    Kernel.call = property(lambda kernel: lambda *given: record(kernel, *given))  # type: ignore[assignment]
    Launch.run = run  # type: ignore[method-assign, assignment]
    try:
        for launches in (program.first, program.launches):
            for part in range(PARTS):
                for launch in launches:
                    launch.run(0, dst_base, part, PARTS)
    finally:
        Kernel.call, Launch.run = native, launch_run  # type: ignore[method-assign]
    return calls


def _table_length(launch: Launch, kernel: Kernel, name: str, numbers: tuple[int, ...], end: int) -> int:
    """The numbers behind an argument that is an address, or the bytes of the buffer; 0 for any other."""
    if name in OFFSET_ARGUMENTS:
        return end
    inner = launch.step.vectorised.innermost
    if name == LINE_TABLE and isinstance(inner, Interleave) and inner.lines:
        return int(inner.lines.offsets.size)
    if name not in GRID_ARGUMENTS or launch.grid is None:
        return 0
    grid, panel = launch.grid, launch._panel
    tiles = numbers[kernel.arguments.index("tile_count")] if kernel.nest.table_loop else end
    return {
        "tiles": tiles * FIELDS,
        "row_offsets": grid.row_offsets.size,
        "column_offsets": grid.column_offsets.size,
        "places": panel.places.size if panel else 0,
        "segments": panel.segments.size if panel else 0,
        "scratch": panel.size_bytes if panel else 0,
    }.get(name, 0)


def _int64s(address: int, count: int) -> tuple[int, ...]:
    return tuple(np.frombuffer(ctypes.string_at(address, 8 * count), np.int64).tolist())


def called_names(source: str) -> set[str]:
    """The names that a kernel's source calls."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} - {"range"}


GROUPS = ("plain", "stream")
"""The cases in two parts, so that two processes may share the work."""


@cache
def cases(group: str = "") -> tuple[Case, ...]:
    """All cases, or those of a group; the same ones each time."""
    if group:
        return tuple(case for case in cases() if case.name.startswith("stream ") == (group == "stream"))
    rng = np.random.default_rng(SEED)
    made = [*_transposes(rng), *_interleaves(rng), *_runs(rng), *_elements(rng), *_conversions(rng)]
    made += [*_packs(rng), *_unpacks(rng)]
    with _streaming():
        made += [*_transposes(rng, "stream "), *_interleaves(rng, "stream "), *_runs(rng, "stream ")]
        made += _joined_interleaves(rng, "stream ")
    return tuple(made)


@cache
def kernels(group: str = "") -> tuple[Kernel, ...]:
    """The kernels of all cases or of a group, each once."""
    programs = [case.program for case in cases(group)]
    return tuple({kernel.name: kernel for program in programs for kernel in program.kernels}.values())


@cache
def in_numbas_ir(kernel: Kernel) -> NumbaIr:
    """The kernel before anything is done to it for one level."""
    return numba_ir(kernel.name, kernel.source)


@contextmanager
def _streaming() -> Iterator[None]:
    """Copies of any size are stored past the cache where their schedule can be, and staged row by row."""
    knobs = (choose, "STREAM_BYTES"), (choose_transpose, "SHORT_SOURCE_BYTES")
    before = [getattr(module, name) for module, name in knobs]
    for module, name in knobs:
        setattr(module, name, 0)
    try:
        yield
    finally:
        for (module, name), value in zip(knobs, before, strict=True):
            setattr(module, name, value)


def _transposes(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Result rows short and long, source rows of a few bytes and of lines, at even pitches and odd ones."""
    for width in WIDTHS:
        side = LINE_BYTES // width
        long = LONG_ROW_BYTES // width
        some, few = 2 * side + 5, 32 // width
        shapes = ((2 * side + 3, 3 * side + 5), (side, 2 * side), (3, some), (3, few), (some, few), (some, 3))
        for rows, columns in (*shapes, (long + 5, some), (long + 3, few), (2 * side, 6 * side + 3)):
            for extra in (0, width):
                src = columns * width + extra
                dst = _whole_lines(rows * width) + extra
                name = (
                    f"{kind}transpose of {rows}x{columns} elements of {width} bytes, pitches {src} and {dst}"
                )
                yield _moved(rng, name, width, (columns, rows), (dst, width), (width, src))
        alias = f"{kind}transpose of elements of {width} bytes, rows that share sets of the cache"
        yield _moved(
            rng, alias, width, (6 * side + 3, 2 * side), (2 * LINE_BYTES, width), (width, ALIAS_BYTES)
        )


def _interleaves(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for width in (w for w in WIDTHS if w < 16):
        side = LINE_BYTES // width
        for count in INTERLEAVES:
            for columns in (2 * side + 5, 2 * side, 3):
                pitch = _whole_lines(columns * width)
                packed, apart = (count * width, width), (width, pitch)
                of = f"{count} rows of {columns} elements of {width} bytes"
                yield _moved(rng, f"{kind}interleave of {of}", width, (columns, count), packed, apart)
                yield _moved(rng, f"{kind}deinterleave of {of}", width, (columns, count), apart, packed)


def _joined_interleaves(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Rows of half a line or a line, joined; packed lines of three groups of rows lie side by side."""
    for width in (w for w in WIDTHS if w < 16):
        for count in INTERLEAVES:
            first = max(LINE_BYTES // width // (1 if count == 3 else 2), 2)
            dims, row, together = (3, 5, first, count), 5 * first * width, first * count * width
            apart = count * _whole_lines(row), first * width, width, _whole_lines(row)
            packed = together, 3 * together, count * width, width
            of = f"{count} rows of 5 times {first} elements of {width} bytes"
            yield _moved(rng, f"{kind}interleave of {of}", width, dims, packed, apart)
            yield _moved(rng, f"{kind}deinterleave of {of}", width, dims, apart, packed)


def _runs(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for count in (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 300, 2047, 2048, 4133):
        for pitch in (count + 3, _whole_lines(count + 1)):
            name = f"{kind}runs of {count} bytes, pitch {pitch}"
            yield _moved(rng, name, 1, (3, count), (pitch, 1), (pitch + 1, 1))
    backwards = (-200, 1), (-130, 1)
    yield _moved(rng, f"{kind}runs from the last to the first", 1, (5, 130), *backwards)
    yield _moved(rng, f"{kind}one run repeated", 1, (4, 100), (100, 1), (0, 1))


def _elements(rng: np.random.Generator) -> Iterator[Case]:
    """Elements one by one: steps of all sizes and signs, on more loops than one kernel has."""
    for width in WIDTHS:
        for dst, src in ((2, 3), (-2, 3), (3, -2), (5, 0)):
            steps = (dst * width,), (src * width,)
            yield _moved(rng, f"elements of {width} bytes, steps {dst} and {src}", width, (77,), *steps)
    dims = (2,) * 9
    steps = tuple(3**k for k in range(1, 10))
    yield _moved(rng, "elements in nine loops", 1, dims, steps[::-1], steps)


def _conversions(rng: np.random.Generator) -> Iterator[Case]:
    """Contiguous elements, and scattered ones too where more than the width changes.

    All pairs of integers would be the same few loads and stores again: those that add none are left out.
    """
    seen: set[str] = set()
    for kind, name in CONVERSIONS:
        swap = kind.startswith("swap ")
        source, target = _dtype(kind.removeprefix("swap ")), _dtype(name)
        source = source.newbyteorder(">") if swap else source
        steps = _times((90, 1), target.itemsize), _times((100, 1), source.itemsize)
        case = _strided(rng, f"{kind} to {name}", source, target, (3, 77), *steps, swap=swap)
        names = {name for kernel in case.program.kernels for name in called_names(kernel.source)}
        if not names <= seen or "f" in kind or name == "f32":
            yield case
        seen |= names
        if swap or "f" in kind:
            steps = _times((1, 7), target.itemsize), _times((13, 2), source.itemsize)
            yield _strided(rng, f"{kind} to {name}, scattered", source, target, (5, 6), *steps, swap=swap)


def _packs(rng: np.random.Generator) -> Iterator[Case]:
    for text, steps, fill in PACKED:
        spec = Shape.parse(text)
        dims, itemsize = spec.dimensions, spec.dtype.itemsize
        values = random_elements(rng, spec.dtype, int(np.prod(dims))).reshape(dims)
        source = np.zeros(span_bytes(itemsize, dims, steps), np.uint8)
        strided_view(source, spec.dtype, dims, steps)[...] = values
        before = _noise(rng, spec.size_in_bytes)
        element = np.frombuffer(fill, spec.dtype)
        program = compile_copy(
            bytes_map(dims, steps, itemsize),
            access_map(spec),
            Element(spec.primitive_type, 8 * itemsize),
            buffer_element(spec),
            padding=fill,
        )
        yield Case(
            f"pack {text}", program, source, before, packed_by_definition(values, spec, element, before)
        )


def _unpacks(rng: np.random.Generator) -> Iterator[Case]:
    for text, steps, _ in PACKED:
        spec = Shape.parse(text)
        dims, itemsize = spec.dimensions, spec.dtype.itemsize
        source = _noise(rng, spec.size_in_bytes)
        before = _noise(rng, span_bytes(itemsize, dims, steps))
        after = before.copy()
        strided_view(after, spec.dtype, dims, steps)[...] = unpacked_by_definition(source, spec)
        program = compile_copy(
            access_map(spec),
            bytes_map(dims, steps, itemsize),
            buffer_element(spec),
            Element(spec.primitive_type, 8 * itemsize),
        )
        yield Case(f"unpack {text}", program, source, before, after)


PACKED: tuple[tuple[str, Dims, bytes], ...] = (
    ("f32[20,300]{1,0:T(8,128)}", (1300, 4), b"\1\2\3\4"),
    ("bf16[33,300]{1,0:T(8,128)(2,1)}", (602, 2), b"\5\6"),
    ("c128[5,3]{0,1:T(2,4)}", (50, 16 * 17), bytes(range(16))),
    ("f32[10,24,6]{2,0,1:T(*,7,2)}", (600, 24, 4), b"\1\2\3\4"),
    ("u8[45]{0:T(7)(3)}", (-2,), b"\7"),
    ("pred[40,200]{1,0:T(32,128)(32,1)E(1)}", (200, 1), b"\1"),
    ("u2[40,200]{1,0:T(16,128)E(2)}", (200, 1), b"\2"),
    ("s4[70,260]{1,0:T(64,128)(8,1)E(4)}", (270, 1), b"\5"),
    ("pred[7,13]{1,0:T(3,5)E(1)}", (20, 1), b"\1"),
    ("s2[7,13]{0,1:T(3,5)E(2)}", (1, 9), b"\3"),
    ("u4[7,13]{1,0:T(3,5)E(4)}", (39, 3), b"\6"),
)
"""Layouts, the strides of the array in bytes, and one element of padding."""


def _moved(rng: np.random.Generator, name: str, width: int, dims: Dims, dst: Dims, src: Dims) -> Case:
    return _strided(rng, name, np.dtype(f"V{width}"), np.dtype(f"V{width}"), dims, dst, src)


def _strided(
    rng: np.random.Generator,
    name: str,
    source: np.dtype[Any],
    target: np.dtype[Any],
    dims: Dims,
    dst: Dims,
    src: Dims,
    *,
    swap: bool = False,
) -> Case:
    """A copy between two arrays of those dtypes and strides."""
    data = _noise(rng, span_bytes(source.itemsize, dims, src))
    before = _noise(rng, span_bytes(target.itemsize, dims, dst))
    after = before.copy()
    values = strided_view(data, source, dims, src)
    if source == np.float16:
        values[np.isnan(values)] = np.nan  # what becomes of a payload, hardware decides
    with np.errstate(all="ignore"):
        strided_view(after, target, dims, dst)[...] = values.astype(target)
    program = compile_copy(
        bytes_map(dims, src, source.itemsize),
        bytes_map(dims, dst, target.itemsize),
        _element(source),
        _element(target),
        swap=swap,
    )
    return Case(name, program, data, before, after)


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    kind = {"s": "i", "u": "u", "f": "f"}[name[0]]
    return np.dtype(f"{kind}{int(name[1:]) // 8}")


def _element(dtype: np.dtype[Any]) -> Element:
    """As in the IR; elements that are only moved are unsigned numbers of their width."""
    bits = 8 * dtype.itemsize
    if dtype == ml_dtypes.bfloat16:
        return Element("bf16", bits)
    return Element({"i": "s", "f": "f"}.get(dtype.kind, "u") + str(bits), bits)


def _noise(rng: np.random.Generator, size: int) -> Bytes:
    return np.frombuffer(rng.bytes(size), np.uint8).copy()


def _times(steps: Dims, itemsize: int) -> Dims:
    return tuple(step * itemsize for step in steps)


def _whole_lines(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES
