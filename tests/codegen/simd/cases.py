"""Small copies of every kind, in cache and past it, and their expected results.

The results come from NumPy and the definition of the layouts. The caller decides where a kernel's code runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from codegen import AccessMap, CopyOptions, CopyRequest, Element, Leaf, Opaque, Root
from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.element_types import CONVERSIONS, INTEGER_TYPES
from codegen.ir.instructions import REVERSED_GROUPS, instruction
from codegen.ir.packed_bits import COLUMN_BYTES
from codegen.pipeline.copies import compile_copy
from codegen.runtime.kernel import Kernel
from codegen.schedule.machine import REGISTERS, described, machine
from codegen.support.cpu import LEVELS
from tests.codegen.simd.case import Bytes, Case
from tests.conftest import SEED
from tests.tools.extent import spread
from tests.tools.guard import span_bytes, strided_view
from tests.tools.oracle import packed_by_definition, random_elements, unpacked_by_definition
from tilejit.arrays.memory import bytes_map
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape
from tilejit.programs.compiled import buffer_element

Dims = tuple[int, ...]
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
LINE_BYTES, LANE_BYTES = 64, 16
LONG_ROW_BYTES, ALIAS_BYTES = 2048, 2048
"""Long result rows; a distance of source rows that share sets of a cache."""


GROUPS = ("plain", "stream")
"""The cases in two parts, so that two processes can share the work."""
STREAM = "stream "
NUMEROUS = tuple(f"{STREAM}{kind}" for kind in ("transpose, ", "interleave of ", "deinterleave of "))


@cache
def cases(group: str = "", level: str = "") -> tuple[Case, ...]:
    """All cases or those of a group, as this CPU or a CPU of that level schedules them."""
    here = machine()
    size, count = REGISTERS[level or here.level]
    with described(replace(here, level=level or here.level, register_bytes=size, registers=count)):
        made = _every_case()
    return tuple(case for case in made if not group or case.name.startswith(STREAM) == (group == "stream"))


def _every_case() -> tuple[Case, ...]:
    rng = np.random.default_rng(SEED)
    made = [*_runs(rng), *_elements(rng), *_conversions(rng), *_shuffles(rng), *_packs(rng, PACKED)]
    made += _unpacks(rng, PACKED)
    for kind in ("", STREAM):
        made += [*_transposes(rng, kind), *_pieces(rng, kind), *_reversals(rng, kind)]
        made += [*_converted_transposes(rng, kind), *_interleaves(rng, kind)]
    made += [*_runs(rng, STREAM), *_joined_interleaves(rng, STREAM), *through_tables(rng, STREAM)]
    made += [*_packs(rng, (*BITS, *SHORT_RUNS), STREAM), *_unpacks(rng, (*BITS, *SHORT_RUNS), STREAM)]
    return tuple(made)


def kernels_of(some: tuple[Case, ...]) -> tuple[Kernel, ...]:
    """The kernels of some cases, each once."""
    return tuple({kernel.name: kernel for case in some for kernel in case.program.kernels}.values())


def chosen_cases(group: str, level: str) -> tuple[Case, ...]:
    """The cases at a level of 12 kernels, or with `--full` of all.

    Lower levels of x86 take turns. Copies past the cache differ from others by their stores, so a third of
    them runs at each level. Lower levels take half as many of the three largest kinds, which are repeated for
    each width of elements.
    """
    of_kernels: dict[str, list[Case]] = {}
    for case in cases(group, level):
        of_kernels.setdefault(case.program.kernels[0].name, []).append(case)
    some = list(of_kernels.values())
    turns = 3 if group == "stream" else 2 if level in ("avx2", "sse2") else 1
    some = some[LEVELS.index(level) % turns :: turns]
    if turns == 3 and level in ("avx2", "sse2"):
        many = [same for same in some if same[0].name.startswith(NUMEROUS)]
        some = many[1::2] + [same for same in some if not same[0].name.startswith(NUMEROUS)]
    return tuple(case for same in spread(some, 12) for case in same)


def _case(name: str, request: CopyRequest, src: Bytes, before: Bytes, after: Bytes) -> Case:
    """A copy that is stored past the cache if its name says so."""
    stream_bytes = 0 if name.startswith(STREAM) else 1 << 62
    request = replace(request, options=CopyOptions(stream_bytes=stream_bytes))
    return Case(name, request, compile_copy(request), src, before, after)


def _transposes(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for width in WIDTHS:
        moved = np.dtype(f"V{width}")
        yield from _transposed(rng, f"{kind}transpose, {width} bytes", moved, moved, _shapes(width))


def _shapes(width: int) -> tuple[Dims, ...]:
    """Rows and columns: short and long result rows; source rows of partial lanes, of lanes, of lines."""
    side, long = LINE_BYTES // width, LONG_ROW_BYTES // width
    some, few = 2 * side + 5, max(32 // width, 2)
    shapes = ((2 * side + 3, 3 * side + 5), (side, 2 * side), (3, some), (3, few), (some, few), (some, 3))
    shapes += ((long + 5, some), (long + 3, few), (2 * side, 6 * side + 3))
    shapes += tuple((max(size // width, 2), some) for size in (16, 24))
    part = 16 // width - 1
    if part > 1:
        shapes += (2 * side, part), (2 * side + 3, part), (long + 3, part), (3, part)
    return tuple(dict.fromkeys(shapes))


def _transposed(
    rng: np.random.Generator,
    name: str,
    source: np.dtype[Any],
    target: np.dtype[Any],
    shapes: tuple[Dims, ...],
    *,
    swap: bool = False,
) -> Iterator[Case]:
    """At even and odd pitches, and with source rows that share sets of the cache."""
    width, source_width = target.itemsize, source.itemsize
    for rows, columns in shapes:
        for extra in (0, 1):
            src, dst = (columns + extra) * source_width, _whole_lines(rows * width) + extra * min(width, 16)
            of = f"{name}: {rows}x{columns}, pitches {src} and {dst}"
            steps = (dst, width), (source_width, src)
            yield _strided(rng, of, source, target, (columns, rows), *steps, swap=swap)
    side = LINE_BYTES // width
    steps = (2 * LINE_BYTES, width), (source_width, 4 * source_width)
    yield _strided(rng, f"{name}: a gap behind 3 columns", source, target, (3, 2 * side), *steps, swap=swap)
    steps = (2 * LINE_BYTES, width), (source_width, ALIAS_BYTES)
    alias = f"{name}: pitch {ALIAS_BYTES}"
    yield _strided(rng, alias, source, target, (6 * side + 3, 2 * side), *steps, swap=swap)


CONVERTED = (
    ("f32", "bf16"),
    ("swap u32", "u32"),
    ("f32", "f16"),
    ("f32", "f8e4m3fn"),
    ("f64", "s32"),
    ("f16", "pred"),
    ("bf16", "f32"),
    ("f16", "f32"),
    ("f64", "f32"),
    ("s8", "f32"),
    ("u32", "f64"),
    ("s16", "s64"),
    ("s64", "u8"),
)
"""Conversions fused with transposes: every method of converting lanes."""
IN_EVERY_WAY = CONVERTED[:2]
"""Those that are also staged and streamed. What they add to a transpose is the same in all its variants."""


def _converted_transposes(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for pair in IN_EVERY_WAY if kind else CONVERTED:
        source, target, swap = _conversion(*pair)
        shapes = _shapes(target.itemsize)
        name = f"{kind}transpose, {pair[0]} to {pair[1]}"
        yield from _transposed(
            rng, name, source, target, shapes if pair in IN_EVERY_WAY else shapes[:1], swap=swap
        )


def _interleaves(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for width in (w for w in WIDTHS if w < 16):
        side = LINE_BYTES // width
        for count in INTERLEAVED_ROWS:
            for columns in (2 * side + 5, 2 * side, 3):
                pitch = _whole_lines(columns * width)
                packed, apart = (count * width, width), (width, pitch)
                of = f"{count} rows of {columns} elements of {width} bytes"
                yield _moved(rng, f"{kind}interleave of {of}", width, (columns, count), packed, apart)
                yield _moved(rng, f"{kind}deinterleave of {of}", width, (columns, count), apart, packed)
            wide = 600 // width
            of = f"{count} rows of {wide} elements of {width} bytes, inside lines"
            packed, apart = (count * width, width), (width, wide * width + width)
            yield _moved(rng, f"{kind}deinterleave of {of}", width, (wide, count), apart, packed)


def _joined_interleaves(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Rows of half a line or a line, joined. Packed lines of three groups of rows are side by side."""
    for width in (w for w in WIDTHS if w < 16):
        for count in INTERLEAVED_ROWS:
            first = max(LINE_BYTES // width // (1 if count == 3 else 2), 2)
            dims, row, together = (3, 5, first, count), 5 * first * width, first * count * width
            apart = count * _whole_lines(row), first * width, width, _whole_lines(row)
            packed = together, 3 * together, count * width, width
            of = f"{count} rows of 5 times {first} elements of {width} bytes"
            yield _moved(rng, f"{kind}interleave of {of}", width, dims, packed, apart)
            yield _moved(rng, f"{kind}deinterleave of {of}", width, dims, apart, packed)
            row = 21 * first * width + width
            dims, apart = (3, 21, first, count), (count * row, first * width, width, row)
            of = f"{count} rows of 21 times {first} elements of {width} bytes, inside lines"
            yield _moved(rng, f"{kind}deinterleave of {of}", width, dims, apart, packed)


def _shuffles(rng: np.random.Generator) -> Iterator[Case]:
    """Periods of one digit and of several, with each number of parts, alone and four at a time."""
    for step in (2, 3, 4, 6, 7, 9, -2, -5):
        for count in (70, 9000):
            yield _moved(rng, f"one byte in {step} of {count}", 1, (count,), (1,), (step,))
            steps = (count + 50, 1), (7, step)
            yield _moved(rng, f"{count} bytes, each in {step}, twice", 1, (2, count), *steps)
    for rows, columns in ((3, 5), (5, 3), (7, 7), (9, 2), (4, 24)):
        for count in (3, 33, 9000 // (rows * columns)):
            block = rows * columns
            for width in (w for w in (1, 2, 4) if w * block >= LANE_BYTES):
                dst, src = (tuple(width * n for n in (block, *steps)) for steps in ((rows, 1), (1, columns)))
                name = f"{count} transposes of {rows}x{columns} elements of {width} bytes"
                yield _moved(rng, name, width, (count, columns, rows), dst, src)
    for count, run in ((5, 6), (70, 10), (700, 12), (9, 20), (50, 24)):
        dst, src = (run * count, run, 1), (run, 5 * run, 1)
        yield _moved(rng, f"{count} runs of {run} bytes, five times", 1, (5, count, run), dst, src)


def _runs(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    for count in (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 300, 2047, 2048, 4133):
        for pitch in (count + 3, _whole_lines(count + 1)):
            name = f"{kind}runs of {count} bytes, pitch {pitch}"
            yield _moved(rng, name, 1, (3, count), (pitch, 1), (pitch + 1, 1))
    backwards = (-200, 1), (-130, 1)
    yield _moved(rng, f"{kind}runs from the last to the first", 1, (5, 130), *backwards)
    yield _moved(rng, f"{kind}one run repeated", 1, (4, 100), (100, 1), (0, 1))


def _reversals(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Runs read from the last to the first: partial lanes, partial lines, lines; short ones side by side."""
    for width in (bits // 8 for bits in instruction("reversed_elements").shapes):
        whole = {max(size // width, 2) for size in (16, 48, 64, 96, 320, 640)}
        for count in sorted(whole | {count + 1 for count in whole}):
            pitch = _whole_lines((count + 1) * width)
            of = f"{count} elements of {width} bytes"
            for extra in (0, width):
                name = f"{kind}reverse {of}, pitch {pitch + extra}"
                yield _moved(rng, name, width, (3, count), (pitch + extra, width), (pitch, -width))
        if kind:
            continue
        for length in (n for n in REVERSED_GROUPS if n * width <= LANE_BYTES):
            for count in (2, 3, 37):
                steps, back = (length * width, width), (length * width, -width)
                name = f"reverse {count} groups of {length} elements of {width} bytes"
                yield _moved(rng, name, width, (count, length), steps, back)


def through_tables(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Entries in an order that only a table has, read or written: runs, rows transposed and interleaved.

    Runs are also read backward. Kernels request lines that a later entry reads: part of it, all of it, and
    several entries.
    """
    pitch = _whole_lines(5000) + 3
    forward, mixed = np.arange(7) * pitch, rng.permutation(7) * pitch
    moves: tuple[tuple[str, int, Dims, Dims, Dims], ...] = (
        *((f"runs of {n} bytes", 1, (n,), (1,), (1,)) for n in (2, 7, 64, 200, 4096, 4999)),
        *((f"reversed runs of {n} bytes", 1, (n,), (1,), (-1,)) for n in (7, 200, 4999)),
        ("rows of a transpose", 4, (37, 19), (19 * 4, 4), (4, 37 * 4)),
        ("rows of an interleave", 2, (130, 2), (4, 2), (2, 260)),
        ("rows of a deinterleave", 2, (130, 2), (2, 320), (4, 2)),
    )
    for what, width, dims, dst, src in moves:
        first = sum((n - 1) * -step for n, step in zip(dims, src, strict=True) if step < 0)
        read, in_order = (mixed + first, src), (forward + first, src)
        yield by_table(rng, f"{kind}{what}, read by table", width, dims, (forward, dst), read)
        yield by_table(rng, f"{kind}{what}, written by table", width, dims, (mixed, dst), in_order)


Side = tuple[NDArray[np.int64], Dims]
"""The places of entries, and the strides inside one."""


def by_table(rng: np.random.Generator, name: str, width: int, dims: Dims, dst: Side, src: Side) -> Case:
    """A copy of entries with `dims` elements; all numbers are in bytes. NumPy's indexing gives the result."""
    places = [_places(side, width, dims) for side in (dst, src)]
    data, before = (_noise(rng, int(p.max()) + 1) for p in reversed(places))
    after = before.copy()
    after[places[0]] = data[places[1]]
    maps = (_table_map(side, width, dims, size) for side, size in ((src, len(data)), (dst, len(before))))
    element = _element(np.dtype(f"V{width}"))
    return _case(name, CopyRequest(*maps, element, element), data, before, after)


def _places(side: Side, width: int, dims: Dims) -> NDArray[np.int64]:
    """The place of every byte."""
    places, strides = side
    for n, stride in zip((*dims, width), (*strides, 1), strict=True):
        places = places[..., None] + np.arange(n) * stride
    return places


def _table_map(side: Side, width: int, dims: Dims, size: int) -> AccessMap:
    entries = side[0] - side[0][0]
    table = Opaque(len(entries), lambda m: entries[m], int(entries.min()), int(entries.max()))
    leaves = (Root((d,), Leaf(n, s)) for d, (n, s) in enumerate(zip(dims, side[1], strict=True), 1))
    base = int(side[0][0])
    return AccessMap((len(entries), *dims), (Root((0,), table), *leaves), base, 8, 8 * width, (0, size))


def _elements(rng: np.random.Generator) -> Iterator[Case]:
    """Elements one by one: steps of all sizes and signs, on more loops than one kernel has."""
    for width in WIDTHS:
        for dst, src in ((2, 3), (-2, 3), (3, -2), (5, 0)):
            steps = (dst * width,), (src * width,)
            yield _moved(rng, f"elements of {width} bytes, steps {dst} and {src}", width, (77,), *steps)
    dims = (2,) * 9
    steps = tuple(3**k for k in range(1, 10))
    yield _moved(rng, "elements in nine loops", 1, dims, steps[::-1], steps)


SCATTERED = (*IN_EVERY_WAY, ("f16", "f32"), ("f32", "f16"), ("f32", "s8"), ("f32", "f64"))
OF_THE_BYTE_FLOATS = ("f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz")
"""One of each kind: with one NaN per sign, as in IEEE 754, and with the NaN in place of minus zero."""
SELECTED = (
    ("f16", "f64"),
    ("f64", "f16"),
    ("bf16", "f16"),
    ("f64", "s32"),
    ("f64", "u64"),
    ("f64", "pred"),
    ("f16", "pred"),
    ("pred", "bf16"),
    ("s64", "f16"),
)
"""Pairs without f32 that convert directly. The other pairs convert through f32."""


def _is_tried(source: str, target: str) -> bool:
    if source.startswith("f8") or target.startswith("f8"):
        return "f32" in (source, target) and bool({source, target} & set(OF_THE_BYTE_FLOATS))
    floats = [name for name in (source, target) if "f" in name or name == "pred"]
    return not floats or "f32" in (source, target) or (source, target) in SELECTED


def _conversions(rng: np.random.Generator) -> Iterator[Case]:
    """Contiguous elements, the last few one by one; some kinds also scattered.

    Of the pairs of integers that are extended or truncated alike, only one is included.
    """
    seen: set[tuple[str, int, int]] = set()
    for kind, name in CONVERSIONS:
        if not _is_tried(kind, name):
            continue
        source, target, swap = _conversion(kind, name)
        steps = _times((90, 1), target.itemsize), _times((100, 1), source.itemsize)
        case = _strided(rng, f"{kind} to {name}", source, target, (3, 77), *steps, swap=swap)
        resized = kind[0], source.itemsize, target.itemsize
        if not {kind, name} <= set(INTEGER_TYPES) or resized not in seen:
            yield case
        seen.add(resized)
        if (kind, name) in SCATTERED:
            steps = _times((1, 7), target.itemsize), _times((13, 2), source.itemsize)
            yield _strided(rng, f"{kind} to {name}, scattered", source, target, (5, 6), *steps, swap=swap)


def _packs(rng: np.random.Generator, layouts: Layouts, kind: str = "") -> Iterator[Case]:
    for text, steps, fill in layouts:
        spec = Shape.parse(text)
        dims, itemsize = spec.dimensions, spec.dtype.itemsize
        values = random_elements(rng, spec.dtype, int(np.prod(dims))).reshape(dims)
        source = np.zeros(span_bytes(itemsize, dims, steps), np.uint8)
        strided_view(source, spec.dtype, dims, steps)[...] = values
        before = _noise(rng, spec.size_in_bytes)
        element, name = np.frombuffer(fill, spec.dtype), f"{kind}pack {text} of strides {steps}"
        request = CopyRequest(
            bytes_map(dims, steps, itemsize),
            access_map(spec),
            Element(spec.primitive_type, 8 * itemsize),
            buffer_element(spec),
            padding=fill,
        )
        yield _case(name, request, source, before, packed_by_definition(values, spec, element, before))


def _unpacks(rng: np.random.Generator, layouts: Layouts, kind: str = "") -> Iterator[Case]:
    for text, steps, _ in layouts:
        spec = Shape.parse(text)
        dims, itemsize = spec.dimensions, spec.dtype.itemsize
        source = _noise(rng, spec.size_in_bytes)
        before = _noise(rng, span_bytes(itemsize, dims, steps))
        after, name = before.copy(), f"{kind}unpack {text} of strides {steps}"
        strided_view(after, spec.dtype, dims, steps)[...] = unpacked_by_definition(source, spec)
        request = CopyRequest(
            access_map(spec),
            bytes_map(dims, steps, itemsize),
            buffer_element(spec),
            Element(spec.primitive_type, 8 * itemsize),
        )
        yield _case(name, request, source, before, after)


Layouts = tuple[tuple[str, Dims, bytes], ...]
"""Layouts, the strides of the array in bytes, and one element of padding."""

PACKED: Layouts = (
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


SHORT_RUNS: Layouts = (
    ("u8[17,301]{1,0:T(8,32)}", (301, 1), b"\7"),
    ("u16[19,165]{1,0:T(8,8)(4,4)}", (330, 2), b"\5\6"),
)
"""Runs that are gathered past the cache."""


def _bits() -> Iterator[tuple[str, Dims, bytes]]:
    """Packed elements along the array's rows, in runs of many lengths, and across them, in columns."""
    for name, bits in (("pred", 1), ("u2", 2), ("s4", 4)):
        for count in (1, 7, 8, 13, 31, 32, 100, 333, 700):
            yield f"{name}[{count * 8 // bits}]{{0:E({bits})}}", (1,), b"\1"
        for column in COLUMN_BYTES:
            high = column * 8 // bits
            for wide, pitch in ((300, 320), (259, 301), (90, 97)):
                layout = f"{{1,0:T({high},128)({high},1)E({bits})}}"
                yield f"{name}[{2 * high},{wide}]{layout}", (pitch, 1), b"\1"


BITS: Layouts = tuple(_bits())


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
    if target.kind in "iu" and source.kind == "f":
        values[...] = rng.uniform(-1000, 1000, values.shape)  # hardware decides how the others convert
    if source == np.float16:
        values[np.isnan(values)] = np.nan  # hardware decides how payloads convert
    with np.errstate(all="ignore"):
        strided_view(after, target, dims, dst)[...] = values.astype(target)
    maps = bytes_map(dims, src, source.itemsize), bytes_map(dims, dst, target.itemsize)
    request = CopyRequest(*maps, _element(source), _element(target), swap=swap)
    return _case(name, request, data, before, after)


def _pieces(rng: np.random.Generator, kind: str = "") -> Iterator[Case]:
    """Pieces of a line in reverse order in the source: few and many, and also not full lines."""
    for width in (bits // 8 for bits in instruction("joined").shapes):
        for rows, short in ((2, 4), (40, 8), (3, 3)):
            dims, dst = (3, rows, short), _times((rows * short, short, 1), width)
            src = _times((2 * rows * short, -short - 1, -1), width)
            yield _moved(rng, f"{kind}pieces of {width} bytes, {rows} x {short}", width, dims, dst, src)


OTHERS = {
    "pred": np.dtype(np.bool_),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
}


def _conversion(source: str, target: str) -> tuple[np.dtype[Any], np.dtype[Any], bool]:
    """The dtypes of a conversion, and whether it reverses bytes."""
    swap = source.startswith("swap ")
    dtype = _dtype(source.removeprefix("swap "))
    return dtype.newbyteorder(">") if swap else dtype, _dtype(target), swap


def _dtype(name: str) -> np.dtype[Any]:
    if name in OTHERS:
        return OTHERS[name]
    kind = {"s": "i", "u": "u", "f": "f"}[name[0]]
    return np.dtype(f"{kind}{int(name[1:]) // 8}")


def _element(dtype: np.dtype[Any]) -> Element:
    """As in the IR; elements that are only moved are unsigned integers of their width."""
    bits = 8 * dtype.itemsize
    for name, other in OTHERS.items():
        if dtype == other:
            return Element(name, bits)
    return Element({"i": "s", "f": "f"}.get(dtype.kind, "u") + str(bits), bits)


def _noise(rng: np.random.Generator, size: int) -> Bytes:
    return np.frombuffer(rng.bytes(size), np.uint8).copy()


def _times(steps: Dims, itemsize: int) -> Dims:
    return tuple(step * itemsize for step in steps)


def _whole_lines(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES
