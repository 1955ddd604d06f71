"""One random case of the soak: a copy of any kind, or a kernel of loops, between guard pages."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tests.tools.strategies as random_of
from codegen.frontend import box_copy
from codegen.ir.element_types import can_convert
from codegen.maps import padding
from codegen.pipeline import staged_copy
from codegen.runtime import copy_calls as calls
from codegen.runtime.copy_calls import SegmentCalls
from codegen.schedule import (
    call_limits,
    choose_cuts,
    choose_digits,
    choose_grid,
    choose_joined,
    choose_shuffle,
    choose_stages,
    choose_tables,
    choose_transpose,
    transpose_blocks,
)
from codegen.schedule import segments as segments
from codegen.schedule.choose_segments import SegmentLimits
from codegen.schedule.machine import described, machine
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.oracle import (
    packed_by_definition,
    random_elements,
    same_elements,
    slots_of,
    unpacked_by_definition,
    value_mask,
)
from tests.tools.replay import (
    INTERPRETED_BYTES,
    Watched,
    interpreted,
    interpreted_after_passes,
    interpreted_when_lowered,
    watching,
)
from tests.tools.soak.by_index import by_index
from tests.tools.soak.copies import copy_arrays, keywords
from tests.tools.soak.indexed import indexed
from tests.tools.soak.layouts import gather, relay, view
from tests.tools.soak.loops import expression, loops
from tests.tools.soak.mixed import mixed_dtypes
from tests.tools.soak.sample import Sample
from tests.tools.soak.scans import scan
from tilejit.copies.convert import pack, unpack
from tilejit.copies.sizes import SIZES
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.shape import Shape
from tilejit.tiled import conversions
from tilejit.tiled.tiled_array import TiledArray

Array = NDArray[Any]
ARENA_BYTES = 24 << 20
KERNEL_ARENA_BYTES = 1 << 20
COPIES = (
    *("pack", "pack", "pack", "cast", "unpack", "unpack", "read", "write", "copy", "copy", "copy", "copy"),
    *("cute", "cute", "swizzle", "swizzle", "relayout", "relayout", "gather", "view"),
)
KINDS = (*COPIES, *COPIES, "loops", "mixed", "indexed", "by_index", "expression", "scan")
"""The kinds of cases. Kernels of loops take a second each to compile."""

CAST_TYPES = (
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "pred",
    "s4",
    "c64",
)


WIDTHS = (1, 2, 4, 8, 16, 32, 64)
EAGER = SegmentLimits(least_move=1, most_waste=1e9, least_of_page=0, short_run=1 << 20)
SEGMENT_LIMITS = (
    *(replace(EAGER, least_bytes=least) for least in (1, 64, 300, 2048)),
    SegmentLimits(least_bytes=64),
    SegmentLimits(least_move=1),
    SegmentLimits(most_waste=1e9, least_of_page=0),
)
THRESHOLDS: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    (choose_transpose, "LONG_ROW_BYTES", (0, 300)),
    (choose_transpose, "SHORT_SOURCE_BYTES", (0,)),
    (choose_transpose, "STAGED_BYTES", (1, 1000)),
    (transpose_blocks, "MOST_JOINED", (1, 8, 100)),
    (choose_transpose, "TILE_LINES", (2, 3)),
    (choose_transpose, "STAGED_COLUMNS", (16, 128)),
    (choose_transpose, "STAGED_LINES", (1, 2)),
    (choose_transpose, "NARROW_LINES", (1, 2)),
    (choose_transpose, "LINE_ROWS_ACROSS", (1, 2)),
    (choose_transpose, "ALIAS_BYTES", (1,)),
    (choose_transpose, "SHARED_SETS", (dict.fromkeys(WIDTHS, (1, 1)), dict.fromkeys(WIDTHS, (1, 3)))),
    (choose_joined, "SEGMENT_LIMITS", SEGMENT_LIMITS),
    (segments, "MOST_ENTRIES", (0, 3)),
    (box_copy, "MAX_BOXES", (1, 2)),
    (padding, "MAX_PAD_BOXES", (0, 1, 3)),
    (calls, "TABLE_CHUNK", (1, 7, 64)),
    (calls, "SMALL_TABLE", (0, 5)),
    (choose_tables, "MOST_LOOPS", (2, 3)),
    (choose_cuts, "RUN_BLOCK_BYTES", (32, 160)),
    (conversions, "PIECE_BYTES", (64, 1000)),
    (choose_grid, "BLOCK_BYTES", (300, 3000)),
    (choose_grid, "MOST_KINDS", (1,)),
    (choose_stages, "moves_little", (lambda largest: True, lambda largest: False)),
    (staged_copy, "outgrows_caches", (lambda footprint: True,)),
    (choose_digits, "goes_in_digits", (lambda *given: True,)),
    (choose_digits, "BLOCK_RUN_BYTES", ((512, 128, 32), (100,), (7,))),
    (choose_digits, "PITCH_BYTES", (0, 64)),
)
"""Limits of sizes and numbers, and the values to try instead."""

FACTS: dict[str, tuple[Any, ...]] = {
    "first_cache_ways": (8, 12),
    "first_cache_bytes": (600, 4000, 32 << 10, 48 << 10),
    "second_cache_bytes": (256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20),
    "last_cache_bytes": (0, 32 << 20, 300 << 20),
    "stream_bytes": (0, 1000, 2 << 20, None),
    "joins_bytes": (False, True),
}
"""The properties in which machines differ. The CPU level stays, because kernels are compiled for it."""

REPEATS = 4
"""Repetitions after the first call. Native code answers the last ones."""

FOR_LARGE = (
    *((SIZES, "small_elements"), (SIZES, "small_run_bytes")),
    *(
        (call_limits, "LEAST_STAGED_BYTES"),
        (choose_shuffle, "LEAST_SHUFFLED_BYTES"),
    ),
    *((call_limits, "STRIDED_BYTES"), (choose_digits, "SLOW_CYCLES"), (choose_digits, "SLOWEST_CYCLES")),
)
"""Sizes below which NumPy copies, or a copy is not split into blocks. Here there are none."""


class SoakError(AssertionError):
    """A case went wrong."""


@dataclass
class Bench:
    """State that all cases of a process share: guarded memory, and counts of what occurred."""

    source: Guarded = field(default_factory=lambda: Guarded(ARENA_BYTES))
    target: Guarded = field(default_factory=lambda: Guarded(ARENA_BYTES))
    counts: Counter[str] = field(default_factory=Counter)
    kernels: set[str] = field(default_factory=set)
    arenas: dict[int, Guarded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sample = Sample(self.counts)

    def arena(self, number: int) -> Guarded:
        """Guarded memory for an operand of a kernel."""
        if number not in self.arenas:
            self.arenas[number] = Guarded(KERNEL_ARENA_BYTES)
        return self.arenas[number]


@dataclass
class Case:
    """A running case. `facts` describe it, in words that reproduce it."""

    bench: Bench
    rng: np.random.Generator
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pick = random_of.picker(self.rng)

    def note(self, **facts: Any) -> None:
        self.facts |= facts

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            raise SoakError(what)

    def repeat(
        self, call: Callable[[], object], memory: NDArray[np.uint8], before: NDArray[np.uint8]
    ) -> None:
        """Sometimes repeat a call until native code answers it, and check that it writes the same bytes."""
        if not self.chance(3):
            return
        self.bench.counts["repeated"] += 1
        first = memory.copy()
        for _ in range(REPEATS):
            memory[:] = before
            with warnings.catch_warnings(action="ignore"):
                call()
            self.check(bool((memory == first).all()), "a repeated call wrote other bytes")
        untouched = self.bench.target.untouched() and self.bench.source.untouched()
        self.check(untouched, "a repeated call wrote beside the arrays")

    def chance(self, one_in: int) -> bool:
        return random_of.chance(self.pick, one_in)

    def one_of(self, *options: Any) -> Any:
        return random_of.one_of(self.pick, options)

    def random_bytes(self, size: int) -> NDArray[np.uint8]:
        return np.frombuffer(self.rng.bytes(size), np.uint8)


def run_case(bench: Bench, seed: int, number: int, kinds: tuple[str, ...] = KINDS) -> None:
    """Case `number` of a seed, of one of these kinds.

    Raises:
        SoakError: a byte is wrong; the text holds what reproduces it.
    """
    case = Case(bench, np.random.default_rng((seed, number)))
    kind = case.one_of(*kinds)
    bench.sample.begin(seed, number)
    try:
        if kind in KERNELS:
            case.note(kind=kind)
            KERNELS[kind](case)
        elif kind == "copy":
            case.note(kind=kind)
            with _thresholds(case), watching() as seen:
                copy_arrays(case)
            _judge(case, seen, sampled=True)
        else:
            _run_shaped(case, kind)
    except Exception as error:
        text = ", ".join(f"{k}={v}" for k, v in case.facts.items())
        again = f"python -m tests.tools.soak --seed {seed} --first {number} --cases 1"
        again += f" --kinds {','.join(kinds)}" if kinds != KINDS else ""
        raise SoakError(
            f"case {number} of seed {seed}: {type(error).__name__}: {error}\n  {text}\n  {again}"
        ) from error
    bench.counts[kind] += 1


def _run_shaped(case: Case, kind: str) -> None:
    """A case of a tiled array with a random shape."""
    shape = _shape(case, kind)
    case.note(kind=kind, shape=name_of(shape))
    if kind in ("cute", "swizzle"):
        kind = case.one_of("pack", "unpack", "read", "write")
        case.note(does=kind)
    sampled = shape.size_in_bytes <= INTERPRETED_BYTES and case.chance(3)
    with _thresholds(case), watching(snapshots=sampled) as seen:
        DOES[kind](case, shape)
    _judge(case, seen, sampled)


@contextmanager
def _thresholds(case: Case) -> Iterator[None]:
    """Sometimes another machine or lower thresholds, so that small arrays take the paths of large ones.

    `described` empties all caches, so no plan outlives the thresholds that it was made with.
    """
    one_in = case.one_of(2, 4, 4, 20)
    changed = [(*knob, case.one_of(*values)) for *knob, values in THRESHOLDS if case.chance(one_in)]
    case.note(thresholds=[f"{name}={value}" for _, name, value in changed])
    changed += [(*knob, 0) for knob in FOR_LARGE]
    facts = {name: case.one_of(*values) for name, values in FACTS.items() if case.chance(one_in)}
    case.note(machine=facts)
    before = [(module, name, getattr(module, name)) for module, name, _ in changed]
    for module, name, value in changed:
        setattr(module, name, value)
    try:
        with described(replace(machine(), **facts)):
            yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def name_of(shape: Any) -> str:
    """The shape's XLA or CuTe text, or its repr if the text cannot express its padding."""
    if isinstance(shape, CuteShape):
        return str(shape)
    plain = shape.padded_dimensions is None and shape.padding_value is None
    return str(shape) if plain else repr(shape)


def _judge(case: Case, seen: list[Watched], sampled: bool) -> None:
    """Count what ran. For a sample, check that the nests themselves give the same bytes."""
    for watched in seen:
        program = watched.program
        case.bench.kernels |= {kernel.name for kernel in program.kernels}
        case.bench.counts["boxes"] += len(program.steps)
        case.bench.counts["gathers"] += any(isinstance(x.calls, SegmentCalls) for x in program.launches)
        case.bench.counts["tables"] += any(launch.tables for launch in program.launches)
        if not sampled:
            continue
        out = interpreted(watched)
        if out is not None:
            case.bench.counts["interpreted"] += 1
            case.check(bool((out == watched.after).all()), "kernels and the boxes disagree")
        if not case.bench.sample.interprets(program.kernels):
            continue
        case.bench.counts["kernels interpreted"] += 1
        out = interpreted_when_lowered(watched)
        case.check(bool((out == watched.after).all()), "kernels and the functions that they print disagree")
        if case.bench.sample.interprets_passes(program.kernels):
            for name, out in interpreted_after_passes(watched):
                case.bench.counts["passes interpreted"] += 1
                case.check(
                    bool((out == watched.after).all()), f"kernels and their functions after {name} disagree"
                )


def _shape(case: Case, kind: str) -> Any:
    big = case.chance(400)
    most = 400_000 if big else case.one_of(30, 200, 600, 2000)
    name = case.one_of(*CAST_TYPES) if kind == "cast" else None
    if kind in ("cute", "swizzle"):
        return random_of.cute_shape(case.pick, swizzled=kind == "swizzle", most=most)
    shape = random_of.shape(case.pick, dtype=name, most=most)
    while shape.size_in_bytes > ARENA_BYTES - 64:  # drawn again if padding makes it too large
        shape = random_of.shape(case.pick, dtype=name, most=most)
    return shape


def _source(case: Case, dtype: np.dtype[Any], values: Array, dims: tuple[int, ...]) -> Array:
    """An array of those values (or some of them, if it broadcasts) in guarded memory, with any strides."""
    if dtype.itemsize > 1 and dtype.kind != "V" and case.chance(6):
        dtype = dtype.newbyteorder(">")
    steps = random_of.strides(case.pick, dims, dtype.itemsize, broadcast=case.chance(2))
    size = span_bytes(dtype.itemsize, dims, steps)
    if size > ARENA_BYTES - 64:
        steps = np.empty(dims, dtype).strides if 0 not in dims else steps
        size = span_bytes(dtype.itemsize, dims, steps)
    gap = case.one_of(1, 2, 3, 8) if case.chance(5) else 0
    at_end = case.chance(2)
    data = case.bench.source.place(size, at_end=at_end, gap=gap)
    array = strided_view(data, dtype, dims, steps)
    array[...] = values.reshape(dims)
    if case.chance(6):
        array.flags.writeable = False
    case.note(array=f"{array.dtype.str} {array.dtype.name} strides {steps} gap {gap} at_end {at_end}")
    return array


def _buffer(case: Case, shape: Shape) -> NDArray[np.uint8]:
    """Guarded memory for a tiled buffer, full of noise."""
    gap = case.one_of(1, 2, 3, 8) if case.chance(5) else 0
    data = case.bench.target.place(shape.size_in_bytes, at_end=case.chance(2), gap=gap)
    data[:] = case.random_bytes(len(data))
    if shape.primitive_type == "pred" and not shape.packed:
        data &= 1
    if not shape.packed:
        own = PRIMITIVE_TYPES[shape.primitive_type]
        if own.bits < 8:
            data &= (1 << own.bits) - 1
    case.note(buffer_gap=gap)
    return data


def _typed(case: Case, data: NDArray[np.uint8], shape: Shape) -> Array:
    """The same memory as a flat array of elements, or as bytes."""
    if shape.packed or case.chance(3):
        return data
    return np.ndarray((len(data) // shape.dtype.itemsize,), shape.dtype, data.data)


def _pack(case: Case, shape: Shape) -> None:
    array, casting = _array_to_pack(case, shape)
    data = _buffer(case, shape)
    before = data.copy()
    out = _typed(case, data, shape) if not case.chance(8) else None
    if out is not None and case.chance(4):
        out = TiledArray.from_buffer(out, shape)
    value, fill = _padding(case, shape, keep=out is not None)
    how = keywords(case)
    case.note(out=type(out).__name__, padding=value, casting=casting)
    kept = array.copy()
    with warnings.catch_warnings(action="ignore"):
        tiled = pack(array, shape, out=out, padding=value, casting=casting, **how)
    got = tiled.buffer.view(np.uint8)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        elements = kept.astype(shape.dtype)
    want = packed_by_definition(elements, shape, fill, before)
    got, want = _comparable(case, got, shape), _comparable(case, want, shape)
    case.check(bool((got == want).all()), _difference(got, want, shape))
    if out is not None:
        case.check(np.may_share_memory(data, tiled.buffer) or not len(data), "the result is not in out")
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the arrays changed"
    )
    case.check(kept.tobytes() == array.tobytes(), "the source changed")
    if out is not None:
        again = partial(pack, array, shape, out=out, padding=value, casting=casting, **how)
        case.repeat(again, data, before)


def _comparable(case: Case, data: NDArray[np.uint8], shape: Shape) -> NDArray[np.uint8]:
    """The bytes that the definition determines, without bits above narrow elements and cast NaN payloads."""
    data = data & value_mask(shape)
    if case.facts.get("casts", "").startswith("f16 to") and shape.primitive_type in ("f32", "f64"):
        numbers = data.view(shape.dtype).copy()
        numbers[np.isnan(numbers)] = np.nan
        data = numbers.view(np.uint8)
    return data


def _array_to_pack(case: Case, shape: Shape) -> tuple[Array, str]:
    dtype, name, casting = shape.dtype, shape.primitive_type, "no"
    count = int(np.prod(shape.dimensions))
    values = random_elements(case.rng, dtype, count)
    if name in ("s2", "s4", "u2", "u4", "s1", "u1") and case.chance(2):
        dtype = np.dtype(np.int8 if name[0] == "s" else np.uint8)
        values = values.astype(dtype)
    if case.facts["kind"] == "cast":
        source = case.one_of(*(t for t in CAST_TYPES if t != name))
        dtype, casting = PRIMITIVE_TYPES[source].numpy, "unsafe"
        assert dtype is not None
        if can_convert(source, name):
            values = random_elements(case.rng, dtype, count)
        else:
            low = 0 if "u" in (source[0], name[0]) or "pred" in (source, name) else -2
            values = case.rng.integers(low, 2, count).astype(dtype)
        case.note(casts=f"{source} to {name}")
    return _source(case, dtype, values, shape.dimensions), casting


def _padding(case: Case, shape: Shape, *, keep: bool) -> tuple[Any, Array | None]:
    """The padding argument, and the element expected in padding slots; None if padding stays."""
    choice = case.one_of("none", "value", "keep") if keep else case.one_of("none", "value")
    if choice == "keep":
        return "keep", None
    if choice == "none":
        value = shape.padding_value
        if value is None:
            return None, np.zeros(shape.dtype.itemsize, np.uint8).view(shape.dtype)
        return None, np.asarray(value).astype(shape.dtype).reshape(1)
    element = random_elements(case.rng, shape.dtype, 1)
    return element[0], element


def _unpack(case: Case, shape: Shape) -> None:
    data = _buffer(case, shape)
    typed = _typed(case, data, shape)
    before = data.copy()
    want = unpacked_by_definition(before, shape)
    out = holes = None
    if not case.chance(6):
        steps = random_of.strides(case.pick, shape.dimensions, shape.dtype.itemsize, broadcast=False)
        size = span_bytes(shape.dtype.itemsize, shape.dimensions, steps)
        if size <= ARENA_BYTES - 64:
            room = case.bench.source.place(size, at_end=case.chance(2), gap=case.one_of(0, 0, 0, 1, 3))
            room[:] = case.random_bytes(len(room))
            holes, before_unpacking = room.copy(), room.copy()
            out = strided_view(room, shape.dtype, shape.dimensions, steps)
            case.note(out_strides=steps)
    how = keywords(case)
    if case.chance(2):
        got = unpack(TiledArray.from_buffer(typed, shape), out=out, **how)
    else:
        got = unpack(bytes(data) if case.chance(4) else typed, shape, out=out, **how)
    case.check(same_elements(got, want, shape), "unpack gives other elements than the definition")
    case.check(bool((data == before).all()), "the buffer changed")
    if out is not None and holes is not None:
        case.check(got is out, "the result is not out")
        expected = strided_view(holes, shape.dtype, shape.dimensions, out.strides)
        expected[...] = out
        case.check(bool((holes == room).all()), "bytes between the elements of out changed")
        t = TiledArray.from_buffer(typed, shape)
        case.repeat(partial(unpack, t, out=out, **how), room, before_unpacking)
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the arrays changed"
    )


def _key(case: Case, shape: Shape) -> Any:
    """A basic index: integers, slices of any step, an ellipsis, new axes."""
    parts: list[Any] = []
    for n in shape.dimensions:
        if n and case.chance(4):
            parts.append(case.pick(-n, n - 1))
        elif case.chance(3):
            parts.append(slice(None))
        else:
            ends = [None if case.chance(3) else case.pick(-n - 1, n + 1) for _ in range(2)]
            parts.append(slice(ends[0], ends[1], case.one_of(None, 1, 2, 3, 7, -1, -2)))
    if case.chance(3):
        k = case.pick(0, len(parts))
        parts[k : k + case.pick(0, 2)] = [Ellipsis]
    if case.chance(6):
        parts.insert(case.pick(0, len(parts)), None)
    key = parts[0] if len(parts) == 1 and case.chance(2) else tuple(parts)
    case.note(key=key)
    return key


def _read(case: Case, shape: Shape) -> None:
    data = _buffer(case, shape)
    before = data.copy()
    whole = unpacked_by_definition(before, shape)
    tiled = TiledArray.from_buffer(_typed(case, data, shape), shape)
    key = _key(case, shape)
    got, want = tiled[key], whole[key]
    case.check(
        isinstance(got, np.ndarray) == isinstance(want, np.ndarray),
        "a scalar where NumPy gives an array, or back",
    )
    case.check(
        same_elements(np.asarray(got), np.asarray(want), shape), "a slice differs from the definition's"
    )
    case.check(bool((data == before).all()) and case.bench.target.untouched(), "reading changed bytes")


def _write(case: Case, shape: Shape) -> None:
    data = _buffer(case, shape)
    before = data.copy()
    whole = unpacked_by_definition(before, shape)
    tiled = TiledArray.from_buffer(_typed(case, data, shape), shape)
    key = _key(case, shape)
    target = np.asarray(whole[key])
    drop = case.pick(0, target.ndim)
    dims = tuple(1 if case.chance(8) else n for n in target.shape[drop:])
    values = _source(case, shape.dtype, random_elements(case.rng, shape.dtype, int(np.prod(dims))), dims)
    whole[key] = values
    tiled[key] = values
    want = packed_by_definition(whole, shape, None, before)
    got = data
    case.check(bool((got == want).all()), _difference(got, want, shape))
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the arrays changed"
    )


def _difference(got: Array, want: Array, shape: Shape) -> str:
    at = int(np.flatnonzero(got != want)[0]) if got.shape == want.shape and (got != want).any() else -1
    slots = slots_of(shape)
    slot = at * 8 // shape.bits
    what = "padding" if at >= 0 and slots[slot] < 0 else "an element"
    return f"{int((got != want).sum())} wrong bytes, the first at {at}, slot {slot}, {what}"


KERNELS = {
    "loops": loops,
    "mixed": mixed_dtypes,
    "indexed": indexed,
    "by_index": by_index,
    "expression": expression,
    "scan": scan,
}

DOES = {
    "pack": _pack,
    "cast": _pack,
    "unpack": _unpack,
    "read": _read,
    "write": _write,
    "relayout": relay,
    "gather": gather,
    "view": view,
}
"""The function that runs each kind."""
