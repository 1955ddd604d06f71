"""`virtual_vector_size`, `specialize`, `tune`: other kernels, the same bytes, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.strided_box import Element
from codegen.maps.access import strided_map
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.runtime.copy_calls import OFFSET_ARGUMENTS
from codegen.schedule.schedule import TransposeSchedule
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transfers import CopyRun, Elementwise, PackBits
from codegen.schedule.transposes import TransposeRuns
from tests.tools.extent import lower_levels
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.oracle import run_python
from tilejit.copies.plan import CopyPlan, plan_copy
from tilejit.layout.padding import padding_bytes
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import single_pass_pack, single_pass_unpack
from tilejit.programs.tuning import Tuning

Array = np.ndarray[Any, Any]

LAYOUTS = (
    "f32[20,300]{1,0:T(8,128)}",
    "bf16[33,300]{1,0:T(8,128)(2,1)}",
    "u8[70,130]{0,1:T(8,128)(4,1)}",
    "s4[70,260]{1,0:T(64,128)(8,1)E(4)}",
    "s4[8,260]{1,0:T(128)E(4)}",
    "pred[33,300]{1,0:T(32,128)(32,1)E(1)}",
    "f32[10,24,6]{2,0,1:T(*,7,2)}",
)
COPIES: tuple[tuple[str, str, tuple[int, ...], Callable[[Array], Array], Callable[[Array], Array]], ...] = (
    ("u4", "u4", (9, 90), lambda a: a[:, :77], lambda a: a[:, 3:80]),
    ("u1", "u1", (3, 1000), lambda a: a[:, 1:990], lambda a: a[:, :989]),
    ("u2", "u2", (5, 300), lambda a: a[:, ::3], lambda a: a[:, 100:200]),
    ("f4", "f8", (4, 131), lambda a: a, lambda a: a),
    (">u4", "<u4", (4, 131), lambda a: a[::-1], lambda a: a),
    ("c16", "c16", (4, 67), lambda a: a, lambda a: a[::-1, ::-1]),
    ("u1", "u1", (65, 67), lambda a: a, lambda a: a.reshape(67, 65).T),
    ("u4", "u4", (40, 35), lambda a: a, lambda a: a.reshape(35, 40).T),
)


def check_guarded_copies(size: Any, specialize: str) -> None:
    """Each copy in COPIES between guard pages, flush with either end."""
    rng = np.random.default_rng(3)
    guarded = [Guarded(1 << 14) for _ in range(2)]
    for from_type, to_type, dims, of_dst, of_src in COPIES:
        for at_end in (False, True):
            sides = []
            for guard, dtype in zip(guarded, (to_type, from_type), strict=True):
                kind = np.dtype(dtype)
                strides = np.empty(dims, kind).strides
                room = guard.place(span_bytes(kind.itemsize, dims, strides), at_end=at_end)
                room[:] = rng.integers(0, 0x3F, len(room), np.uint8)
                sides.append(strided_view(room, kind, dims, strides))
            dst, src = of_dst(sides[0]), of_src(sides[1])
            whole = sides[0].copy()
            wanted = of_dst(whole)
            np.copyto(wanted, src)
            tuning = {"virtual_vector_size": size, "specialize": specialize}
            plan_copy(dst, src, threads=1 + at_end, **tuning)(dst, src)  # type: ignore[arg-type]
            assert sides[0].tobytes() == whole.tobytes(), (from_type, to_type, dims)
            assert all(guard.untouched() for guard in guarded)


GUARDED = [
    *((1, "structure"), (64, "structure"), ("auto", "sizes"), ((5, 7), "sizes")),
    *(((3, 40), "structure"), ("2*hw", "structure"), (("2", "hw/2"), "structure")),
]


@pytest.mark.full
@pytest.mark.parametrize(("size", "specialize"), GUARDED)
def test_nothing_outside_is_touched(size: Any, specialize: str) -> None:
    check_guarded_copies(size, specialize)


@pytest.mark.full
@pytest.mark.parametrize("level", lower_levels())
def test_nothing_outside_is_touched_at_lower_levels(level: str) -> None:
    code = "from tests.copies.test_tuning import check_guarded_copies\ncheck_guarded_copies(10, 'sizes')\n"
    done = run_python(code, TILEJIT_CPU=level)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize(("size", "specialize"), [(6, "structure"), ((3, 30), "sizes")])
def test_packs_give_the_same_bytes(text: str, size: Any, specialize: str) -> None:
    shape = tj.Shape.parse(text)
    x = np.arange(np.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    wanted = tj.pack(x, shape)
    out = np.full_like(wanted.buffer, 0x55)
    keywords = {"virtual_vector_size": size, "specialize": specialize, "threads": 2}
    packed = tj.pack(x, shape, out=out, **keywords)
    assert packed.buffer.tobytes() == wanted.buffer.tobytes()
    assert tj.unpack(packed, **keywords).tobytes() == x.tobytes()


def plan_of(shape: tuple[int, ...], dtype: str = "u4", **keywords: Any) -> CopyPlan:
    """The plan of a transpose."""
    return plan_copy(np.empty(shape[::-1], dtype), np.empty(shape, dtype).T, threads=1, **keywords)


def plan_of_runs(shape: tuple[int, int], dtype: str = "u4", **keywords: Any) -> CopyPlan:
    """The plan of a copy of rows that are followed by gaps on both sides."""
    rows, columns = shape
    wide, wider = np.empty((rows, columns + 1), dtype), np.empty((rows, columns + 2), dtype)
    return plan_copy(wide[:, :columns], wider[:, :columns], threads=1, **keywords)


def test_specialized_sources_contain_sizes() -> None:
    (kernel,) = plan_of_runs((123, 77), specialize="sizes").kernels
    assert "int64_at" not in kernel.source
    assert f"{77 * 4})" in kernel.source
    assert f"{78 * 4} * " in kernel.source
    assert f"{79 * 4} * " in kernel.source
    assert kernel.arguments == ()


def test_specialized_transposes_contain_sizes() -> None:
    (kernel,) = plan_of((123, 77), specialize="sizes").kernels
    assert kernel.arguments == ()
    assert f"min(i_tile + 96, {123})" in kernel.source
    assert (kernel,) != plan_of((124, 99), specialize="sizes").kernels
    assert plan_of((124, 99)).kernels == plan_of((123, 77)).kernels


def test_only_kernels_without_sizes_are_shared() -> None:
    def kernels(specialize: str) -> set[str]:
        shapes = ((123, 77), (124, 77), (123, 99))
        return {k.name for shape in shapes for k in plan_of_runs(shape, specialize=specialize).kernels}

    assert len(kernels("sizes")) == 3
    assert len(kernels("structure")) == 1
    assert not kernels("sizes") & kernels("structure")


def test_float_and_integer_copies_share_specialized_kernels() -> None:
    of_floats = plan_of_runs((90, 70), "f4", specialize="sizes")
    assert of_floats.kernels == plan_of_runs((90, 70), specialize="sizes").kernels


def test_tables_and_padding_stay_arguments() -> None:
    shape = tj.Shape.parse("f32[10,24,6]{2,0,1:T(*,7,2)}")
    tuning = Tuning(specialize="sizes")
    x = np.arange(1440, dtype=np.float32).reshape(shape.dimensions)
    fill = padding_bytes(0, shape.element)
    source = shape.element
    element = tj.explain(shape, x).program.steps[0].box.target
    program = single_pass_pack(shape, x.strides, type(element)(source.name, 32), fill, False, 1, tuning)
    tabled = [launch.step.kernel for launch in program.launches if launch.tables]
    padded = [launch.step.kernel for launch in program.launches if launch.fill is not None]
    assert tabled
    assert padded
    for kernel in tabled:
        assert kernel.arguments[:2] == ("src_offsets", "dst_offsets")
    for kernel in {*tabled, *padded}:
        assert set(kernel.arguments) <= {*OFFSET_ARGUMENTS, "fill_low", "fill_high"}


@pytest.mark.parametrize(
    ("dst", "src", "node"),
    [
        (np.zeros((30, 200), "u4")[:, :150], np.zeros((30, 150), "u4"), CopyRun),
        (np.zeros((30, 200), "f8")[:, :150], np.zeros((30, 150), "f4"), Elementwise),
    ],
    ids=["runs", "elements"],
)
@pytest.mark.parametrize("size", [40, (30, 40)], ids=str)
def test_a_strip_is_a_literal_and_the_tail_is_not(dst: Array, src: Array, node: type, size: Any) -> None:
    program = plan_copy(dst, src, virtual_vector_size=size, threads=1)._program
    assert program is not None
    whole, tail = program.steps
    assert {type(step.nest.transfer) for step in program.steps} == {node}
    per_element = 4 if node is CopyRun else 1
    assert (whole.nest.transfer.count, tail.nest.transfer.count) == (  # type: ignore[union-attr]
        40 * per_element,
        30 * per_element,
    )
    assert "count" not in whole.kernel.arguments
    assert "count" in tail.kernel.arguments
    in_rows = isinstance(size, tuple)
    assert [loop.extent for loop in whole.nest.loops[-1 - in_rows :]] == ([3, 30] if in_rows else [3])
    other = plan_copy(dst[:9], src[:9], virtual_vector_size=size, threads=1)
    assert (other.kernels[0] is whole.kernel) != in_rows


KINDS = {
    "runs": lambda: (np.zeros((70, 210), "u4")[:, :200], counted((70, 200))),
    "runs of one loop": lambda: (np.zeros(9000, "u4"), counted((9000,))),
    "reversed": lambda: (np.zeros((70, 200), "u4"), counted((70, 200))[:, ::-1]),
    "elements": lambda: (np.zeros((70, 100), "u4"), counted((70, 200))[:, ::2]),
    "conversions": lambda: (np.zeros((70, 200), "f4"), counted((70, 200)).astype("f8")),
    "chunks": lambda: (np.zeros((70, 40, 8), "u8"), counted((70, 80, 8)).astype("u8")[:, ::-2, ::-1]),
    "interleaves": lambda: (np.zeros((70, 200, 2), "u4").transpose(0, 2, 1), counted((70, 2, 200))),
    "deinterleaves": lambda: (np.zeros((70, 2, 200), "u4").transpose(0, 2, 1), counted((70, 200, 2))),
    "transposes": lambda: (np.zeros((200, 300), "u4"), counted((300, 200)).T),
    "short rows": lambda: (np.zeros((5000, 5), "u4"), counted((5, 5000)).T),
}
"""A copy of each kind: destination and source."""


def counted(shape: tuple[int, ...]) -> Array:
    return np.arange(np.prod(shape), dtype="u4").reshape(shape)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_copy_runs_in_strips(kind: str) -> None:
    """In one dimension and in two, which also split the loop around a transfer. The bytes are the same."""
    sources = []
    for size in (20, 64, 100, (5, 48), ("4", "80/2")):
        dst, src = KINDS[kind]()
        plan = plan_copy(dst, src, virtual_vector_size=size, threads=1)
        plan(dst, src)
        assert np.array_equal(dst, src), size
        sources.append(tuple(kernel.source.partition('"""')[2] for kernel in plan.kernels))
    assert len(set(sources[:3])) == 3
    assert sources[3] not in sources[:3]


def test_rows_of_a_super_vector_are_strips_of_the_loop_around_runs() -> None:
    dst, src = KINDS["runs"]()
    text = tj.explain(dst, src, virtual_vector_size=(8, 48)).schedule
    assert "outer row_strip column_strip d0 | inner d1" in text
    assert "strips of 48 | strips of 8 of d0" in text
    kernels = plan_copy(dst, src, virtual_vector_size=(8, 48), threads=1).kernels
    assert "for row_strip in range(row_strip_extent):" in kernels[0].source
    assert "for column_strip in range(column_strip_extent):" in kernels[0].source
    assert "for b in range(8):" in kernels[0].source


def test_a_strip_of_packed_elements_is_a_number_of_bytes() -> None:
    shape = tj.Shape.parse("s4[8,260]{1,0:T(128)E(4)}")
    program = single_pass_unpack(
        shape, (260, 1), array_element(shape), False, 1, Tuning(virtual_vector_size=(3,))
    )
    strips = {step.schedule.strip for step in program.steps}
    assert strips == {4}
    assert not any(isinstance(step.nest.transfer, PackBits) for step in program.steps)


@pytest.mark.full
def test_the_source_of_a_transpose_contains_its_super_vector() -> None:
    """In blocks of 16 x 4 elements, inside tiles of a multiple or around tiles, as literals of the kernel."""
    sizes: tuple[tuple[Any, tuple[int, int] | None, tuple[int, int]], ...] = (
        (16, (16, 16), (96, 96)),
        ((32, 64), (32, 64), (96, 128)),
        ((8, 65), (16, 68), (96, 136)),
        ((200, 8), (208, 8), (96, 8)),
        ((200, 300), (208, 300), (96, 96)),
        (96, (96, 96), (96, 96)),
        ("auto", None, (96, 96)),
    )
    sources = set()
    for size, strips, tile in sizes:
        program = plan_of((123, 77), virtual_vector_size=size)._program
        assert program is not None
        (cut,) = {step.schedule.transpose for step in program.steps}
        assert cut is not None
        assert (cut.strips, cut.tile) == (strips, tile)
        (kernel,) = program.kernels
        levels = {"tile": tile, "strip": strips}
        if strips == tile:
            del levels["tile"]
        outer, *inner = sorted(filter(levels.get, levels), key=lambda name: levels[name], reverse=True)
        for side, each, count in zip("ij", levels[outer] or (), ("rows", "columns"), strict=True):
            assert f"for {side}_{outer} in range(0, {count}, {each}):" in kernel.source
            assert f"min({side}_{outer} + {each}, {count})" in kernel.source
        for side, each in zip("ij", levels[inner[0]] or (), strict=True) if inner else ():
            assert f"for {side}_{inner[0]} in range({side}_{outer}, {side}_stop, {each}):" in kernel.source
            assert f"min({side}_{inner[0]} + {each}, {side}_stop)" in kernel.source
        sources.add(kernel.source)
    assert len(sources) == len(sizes)


@pytest.mark.full
@pytest.mark.parametrize(
    ("rows", "size", "columns", "panel"),
    [(10, 64, 64, 192), (10, (3, 40), 48, 192), (9, 16, 16, 224), (10, 10_000, 3264, 3264)],
)
def test_panels_of_short_rows_hold_super_vectors(rows: int, size: Any, columns: int, panel: int) -> None:
    """In full blocks of 16 columns: a literal of the kernel, even if the array has fewer columns.

    The panel of the last size would not stay in cache, so it has the largest size of the others.
    """
    kernels = set()
    for count in (5000, 333, 20):
        src, dst = np.arange(rows * count, dtype="u4").reshape(rows, count), np.zeros((count, rows), "u4")
        plan = plan_copy(dst.T, src, virtual_vector_size=size, threads=1)
        program = plan._program
        assert program is not None
        (step,) = program.steps
        inner, cut = step.nest.transfer, step.schedule.transpose
        assert isinstance(inner, TransposeRuns)
        assert cut is not None
        assert cut.strips == (rows, columns)
        assert inner.tile == panel or count < 5000
        kernels.add(step.kernel)
        plan(dst.T, src)
        assert np.array_equal(dst.T, src)
    (kernel,) = kernels
    assert f"super-vectors of {columns} columns" in " ".join(kernel.source.split())
    assert f"for j_strip in range(j_first, j_stop, {columns}):" in kernel.source
    assert f"min(j_strip + {columns}, j_stop)" in kernel.source


@pytest.mark.full
def test_super_vectors_are_inside_panels_of_joined_columns_and_layers() -> None:
    for size, strip in ((16, 16), (64, 64), (2000, 1200)):
        src = np.arange(5 * 30 * 40, dtype="u4").reshape(5, 30, 40)
        dst = np.zeros((30, 41, 5), "u4")[:, :40].transpose(2, 0, 1)
        (cut,) = cuts_of(dst, src, size)
        assert len(cut.columns) == 2
        assert cut.strips == (5, strip)
    for size, strip in ((16, 16), (64, 48)):
        src = np.arange(5 * 30 * 36, dtype="u4").reshape(30, 5, 36)
        dst = np.zeros((30, 36, 5), "u4").transpose(0, 2, 1)
        (cut,) = cuts_of(dst, src, size)
        assert (cut.together, cut.strips) == (2, (5, strip))


def cuts_of(dst: Array, src: Array, size: Any) -> set[TransposeSchedule]:
    """The transposes of a copy, after it ran and was checked."""
    plan = plan_copy(dst, src, virtual_vector_size=size, threads=1)
    plan(dst, src)
    assert np.array_equal(dst, src)
    program = plan._program
    assert program is not None
    cuts = {step.schedule.transpose for step in program.steps}
    return {cut for cut in cuts if cut is not None}


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("size", "strip"), [(64, 32), ((9, 40), 24), (1, 8)], ids=str)
def test_the_source_of_an_interleave_contains_its_strip(packs: bool, size: Any, strip: int) -> None:
    """Elements of both rows together, in full registers: a literal of the kernel, except in the tail."""

    def copied(rows: int, count: int) -> CopyProgram:
        apart = np.arange(rows * 2 * count, dtype="u2").reshape(rows, 2, count)
        packed = np.zeros((rows, count, 2), "u2")
        dst, src = (packed.transpose(0, 2, 1), apart) if packs else (apart.transpose(0, 2, 1), packed)
        src = src + np.arange(src.size, dtype="u2").reshape(src.shape)
        plan = plan_copy(dst, src, virtual_vector_size=size, threads=1)
        plan(dst, src)
        assert np.array_equal(dst, src)
        program = plan._program
        assert isinstance(program, CopyProgram)
        return program

    whole, tail = copied(7, 101).steps
    name = "columns" if packs else "rows"
    lengths = [getattr(step.nest.transfer, name) for step in (whole, tail)]
    assert lengths == [strip, 101 % strip]
    assert f"strips of {strip}" in str(whole.schedule)
    assert name not in whole.kernel.arguments
    assert name in tail.kernel.arguments
    assert f"{name[:-1]} < {strip}" in " ".join(whole.kernel.source.split())
    assert copied(5, 333).kernels[0] is whole.kernel


def test_the_source_of_joined_rows_contains_their_strip() -> None:
    """Complete iterations of the last joined digit, and never a rest of less than a line."""
    shape = tj.Shape.parse("bf16[64,1056]{1,0:T(32,16)(2,1)}")
    x = np.arange(64 * 1056, dtype="u2").reshape(64, 1056).view(shape.dtype)
    for size, strip in (("auto", 16), (64, 2), (300, 10), (10**6, None)):
        packed = tj.pack(x, shape, virtual_vector_size=size)
        assert packed.buffer.tobytes() == tj.pack(x, shape).buffer.tobytes()
        assert (tj.unpack(packed, virtual_vector_size=size).view("u2") == x.view("u2")).all()
        program = tj.explain(shape, x, virtual_vector_size=size).program
        strips = {step.schedule.strip for step in program.steps}
        assert strips == {strip}, size


@pytest.mark.parametrize("rows", [128, 1024])
@pytest.mark.parametrize("size", [None, (16, 32), (48, 16)], ids=str)
def test_a_transpose_that_begins_inside_a_line_also_uses_the_requested_tile(
    size: tuple[int, int] | None, rows: int
) -> None:
    """Past the cache that is another kernel if result rows are short; it stages them."""
    element, columns = Element("u32", 32), 160
    ends = 0, 4 * rows * columns
    src = strided_map((columns, rows), (4, 4 * columns), ends, element_bits=32)
    dst = strided_map((columns, rows), (4 * rows, 4), ends, element_bits=32)
    made = compile_copy(
        CopyRequest(
            src,
            dst,
            element,
            element,
            apart=True,
            options=CopyOptions(virtual_vector_size=size, thresholds=Thresholds(0)),
        )
    )
    (launch,) = made.launches
    tiles = [x.step.schedule.transpose for x in (launch, launch.misaligned) if x]
    assert [cut and cut.stage for cut in tiles] == (["", "dense"] if rows == 128 else [""])
    if size is not None:
        for cut in tiles:
            assert cut is not None
            wanted = (rows, size[1]) if cut.stage else size
            assert (cut.strips or cut.tile) == wanted
            assert all(whole % part == 0 for whole, part in zip(cut.tile, wanted, strict=True))
    x, room = np.arange(rows * columns, dtype="u4"), np.zeros(rows * columns + 32, "u4")
    first = -room.ctypes.data % 64 // 4 + 1
    made.run(x.ctypes.data, room[first:].ctypes.data)
    assert (room[first : first + x.size] == x.reshape(rows, columns).T.ravel()).all()
    assert not room[:first].any()
    assert not room[first + x.size :].any()


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"virtual_vector_size": 0}, tj.LayoutError, "at least one"),
        ({"virtual_vector_size": np.array([8, 8])}, TypeError, "got ndarray"),
        ({"specialize": "shape"}, tj.LayoutError, '"sizes"'),
        ({"tune": 1}, TypeError, "int"),
    ],
)
def test_keywords_refused_by_pack_and_unpack(keywords: Any, error: type[Exception], text: str) -> None:
    x, out = np.ones((3, 5), np.float32), np.zeros(24, np.float32)
    tiled = tj.pack(x, "{1,0:T(2,2)}")
    with pytest.raises(error, match=text):
        tj.pack(x, "{1,0:T(2,2)}", out=out, **keywords)
    back = np.zeros((3, 5), np.float32)
    with pytest.raises(error, match=text):
        tj.unpack(tiled, out=back, **keywords)
    assert not out.any()
    assert not back.any()
