"""Schedules of copies as text: every one that is accepted copies the same bytes, between guard pages."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.instructions import BYTE_SHUFFLES
from codegen.schedule.machine import described, machine
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded, strided_view
from tests.tools.schedules import changed, directives_of, loops_of, transposed

U4 = np.arange(300 * 200, dtype=np.uint32).reshape(300, 200)
TRANSPOSE = (
    'Tile("row", 64), Tile("column", 32), Reorder("row_tile", "column_tile", "row", "column"), '
    'Vectorize(row=16, column=16), Tail("row", "clamp"), Tail("column", "clamp")'
)
STAGED = TRANSPOSE.replace('"row_tile", "column_tile"', '"column_tile", "row_tile"') + (
    ', Stage(), Stream("headed"), Prefetch("tile", 1)'
)
CARRIED = STAGED.replace('"row", "column")', '"column", "row")').replace(
    'Stage(), Stream("headed")', 'Stream("carried")'
)
SHAPES = (
    *((300, 200), (130, 67), (256, 512), (33, 500), (500, 33), (12, 400), (400, 12), (5, 1000), (192, 320)),
    *((7, 60, 40), (40, 7, 60), (3, 64, 128), (2, 128, 300), (64, 3, 200)),
)


def copied(schedule: str) -> Any:
    z = np.zeros((200, 300), np.uint32)
    tj.copyto(z, U4.T, schedule=schedule)
    np.testing.assert_array_equal(z, U4.T)
    return tj.explain(z, U4.T, schedule=schedule)


@pytest.mark.parametrize("schedule", [TRANSPOSE, STAGED, CARRIED])
def test_a_copy_runs_as_the_schedule_says(schedule: str) -> None:
    explained = copied(schedule)
    assert directives_of(str(explained.steps[0].nest)).startswith(f"{schedule}, Parallel(")
    assert "range(0, row_extent, 64)" in explained.source or "64 * begin" in explained.source


@pytest.mark.parametrize(
    ("schedule", "order"),
    [
        ('Tile("row", 64)', "row_tile"),
        ('Tile("row", 64), Tile("column", 32)', "row_tile column_tile"),
        (
            'Tile("column", 64), Tile("row", 64), Tile("row", 16, level="strip")',
            "column_tile row_tile row_strip",
        ),
        (
            'Tile("row", 64), Tile("row", 16, level="strip"), Tile("column", 64)',
            "row_tile column_tile row_strip",
        ),
    ],
)
def test_orders_and_tails_may_be_left_out(schedule: str, order: str) -> None:
    """Loops over tiles are in the order of the text, the outermost tiles first."""
    loops = ", ".join(f'"{name}"' for name in (*order.split(), "row", "column"))
    explained = copied(f"{schedule}, Vectorize(row=16, column=16)")
    assert f"Reorder({loops})" in explained.directives
    assert 'Tail("row", "clamp"), Tail("column", "clamp")' in explained.directives
    assert explained.source == copied(explained.directives).source


@pytest.mark.parametrize("loop", ["row_tile", "column_tile"])
def test_threads_share_the_named_loop(loop: str) -> None:
    explained = copied(f'{TRANSPOSE}, Parallel("{loop}")')
    assert f"for {loop} in range({64 if loop == 'row_tile' else 32} * begin, " in explained.source
    assert explained.source.count("begin") == 2
    for threads in (1, 2, 5):
        z = np.zeros((200, 300), np.uint32)
        tj.copyto(z, U4.T, schedule=explained.directives, threads=threads)
        np.testing.assert_array_equal(z, U4.T)


@pytest.mark.parametrize("loop", ["i", "j"])
def test_threads_share_any_loop_around_runs(loop: str) -> None:
    x = np.arange(40 * 30 * 64, dtype=np.uint8).reshape(40, 30, 64)[:, ::2, :50]
    explained = tj.explain(np.zeros((15, 40, 50), np.uint8), x.transpose(1, 0, 2))
    schedule = explained.directives.rpartition(", ")[0] + f', Parallel("{loop}")'
    for threads in (1, 3):
        z = np.zeros((15, 40, 50), np.uint8)
        tj.copyto(z, x.transpose(1, 0, 2), schedule=schedule, threads=threads)
        np.testing.assert_array_equal(z, x.transpose(1, 0, 2))


@pytest.mark.parametrize(
    ("dst", "src"),
    [
        ("u32[300,200]{0,1}", None),
        ("u16[4000,12]{0,1}", None),
        ("u8[12000,13]{0,1}", None),
        ("u8[64,1000,3]{1,2,0}", None),
        ("f32[100,300]{1,0:T(8,128)}", None),
        ("bf16[100,300]{1,0:T(8,128)(2,1)}", None),
        (None, "bf16[100,300]{1,0:T(8,128)(2,1)}"),
        ("pred[64,256]{1,0:T(32,128)(32,1)E(1)}", None),
        ("f32[4096,4096]{0,1}", "f32[4096,4096]{1,0}"),
    ],
)
def test_a_printed_schedule_is_read_again(dst: Any, src: Any) -> None:
    first = tj.explain(dst, src)
    sources = [x.kernel.source for x in first.steps]
    largest = max(first.steps, key=lambda x: x.box.size_bytes)
    text = directives_of(str(largest.nest))
    assert [x.kernel.source for x in tj.explain(dst, src, schedule=text).steps] == sources


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            'Vectorize(x=64), Tail("x", "shift", sizes=("rest",)), CopyBlock(64), Stream("full")',
            "without tiles",
        ),
        (
            'Vectorize(x=8), Tail("x", "shift", sizes=("rest",)), Stream("headed")',
            "lanes of at least 16 bytes",
        ),
        ('Vectorize(x=64), Tail("x", "shift", sizes=("rest",)), Prefetch("x", 0)', "a distance of 1 or more"),
    ],
)
def test_runs_refuse_what_streams_cannot_obey(schedule: str, message: str) -> None:
    z = np.zeros(1000, np.uint8)
    with pytest.raises(tj.ScheduleError, match=message):
        tj.copyto(z, np.ones(1000, np.uint8), schedule=schedule)
    assert not z.any()


def test_ends_of_streamed_runs_have_narrower_super_vectors() -> None:
    schedule = 'Vectorize(x=128), Tail("x", "shift", sizes=(64, "rest")), Stream("headed")'
    for count in (2, 63, 64, 127, 128, 129, 1000):
        for shift in (0, 1, 60):
            z, x = np.zeros(count + shift, np.uint8)[shift:], np.arange(count).astype(np.uint8)
            tj.copyto(z, x, schedule=schedule)
            np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_a_printed_schedule_of_reversed_rows_is_read_again(columns: int) -> None:
    # Three columns: a lane holds one row, so the tail has as many rows as a super-vector.
    x, z = (
        np.arange(300 * columns, dtype=np.uint32).reshape(300, columns),
        np.zeros((300, columns), np.uint32),
    )
    tj.copyto(z, x[:, ::-1], schedule=tj.explain(z, x[:, ::-1]).directives)
    np.testing.assert_array_equal(z, x[:, ::-1])


@pytest.mark.parametrize("case", ["relayout", "joined"])
@pytest.mark.parametrize("threads", [1, 4])
def test_directives_of_a_large_copy_are_taken(case: str, threads: int) -> None:
    """Those of two stages are of the copy in one pass; joined boxes have none."""
    bf16 = "bf16[2048,2048]{1,0:T(8,128)(2,1)}", "bf16[2048,2048]{0,1:T(8,128)(2,1)}"
    of: dict[str, tuple[Any, Any]] = {
        "relayout": bf16,
        "joined": ("u8[8192,4096]{1,0:T(8,32)}", None),
    }
    first = tj.explain(*of[case], threads=threads)
    once = getattr(first.program, "direct", first.program)
    assert bool(first.directives) != any(x.is_joined for x in once.steps)
    again = tj.explain(*of[case], threads=threads, schedule=first.directives or None)
    assert again.directives == first.directives
    assert not first.directives or not again.schedule.startswith("blocks ")


def test_pack_unpack_relayout_and_plans_take_schedules() -> None:
    schedule = STAGED.replace('Tile("row", 64)', 'Tile("row", 32)')
    t = tj.pack(U4, "{0,1}", schedule=schedule)
    np.testing.assert_array_equal(t.buffer.reshape(200, 300), U4.T)
    np.testing.assert_array_equal(
        tj.unpack(
            t,
            schedule=schedule.replace("Stage(), ", "").replace(
                'Stream("headed"), Prefetch("tile", 1)', 'Prefetch("column", 128)'
            ),
        ),
        U4,
    )
    np.testing.assert_array_equal(tj.relayout(t, "{1,0}", schedule=TRANSPOSE).buffer.reshape(300, 200), U4)
    z = np.zeros((200, 300), np.uint32)
    tj.plan_copy(z, U4.T, schedule=TRANSPOSE)(z, U4.T)
    np.testing.assert_array_equal(z, U4.T)


def test_destinations_inside_a_line_are_not_streamed_in_place() -> None:
    """`Stream("given")` needs destinations that begin lines; others run by the schedule of the compiler."""
    schedule = TRANSPOSE + ', Stream("given"), Prefetch("tile", 1)'
    x, room = np.arange(256 * 320, dtype=np.uint32).reshape(256, 320), np.zeros(320 * 256 + 16, np.uint32)
    begin = -room.ctypes.data % 64 // 4
    for shift in (0, 1, 4):
        z = room[(begin + shift) % 16 :][: 320 * 256].reshape(320, 256)
        tj.copyto(z, x.T, schedule=schedule)
        np.testing.assert_array_equal(z, x.T)


@pytest.mark.parametrize(
    "tail", ['"narrow", sizes=(16, 8, 1)', '"shift", sizes=(8, 1)', '"narrow", sizes=(1,)']
)
@pytest.mark.parametrize("count", [5, 31, 70, 128])
def test_interleaves_have_other_tails(tail: str, count: int) -> None:
    x = np.arange(4 * count, dtype=np.uint16).reshape(2, 2 * count)[:, :count]
    z = np.zeros((count, 2), np.uint16)
    schedule = f'Vectorize(column=32, row=2), Tail("column", {tail})'
    tj.copyto(z, x.T, schedule=schedule)
    np.testing.assert_array_equal(z, x.T)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("Tile(", "expected directives, separated by commas"),
        ("Tile(3, 4)", "expected text for axis of Tile, got 3"),
        ("Shuffle()", "expected Tile, Reorder"),
        (TRANSPOSE.replace("row=16", "row=15"), "expected a multiple of 15 lanes"),
        (
            TRANSPOSE.replace("column=16", "column=2"),
            "expected 4x16, 16x4, 16x16, got blocks of 16x2 elements of 4 bytes",
        ),
        (
            TRANSPOSE.replace('"row_tile", "column_tile"', '"row_tile"'),
            "expected an order of the perfectly nested loops row_tile, column_tile, row, column, got",
        ),
        (TRANSPOSE + ", Stage()", 'Stage needs Stream("headed")'),
        (TRANSPOSE + ', Stream("given")', "needs result rows at multiples of 64 bytes"),
        (
            TRANSPOSE + ', Prefetch("tile", 1)',
            'expected requests for column in this copy, got Prefetch("tile", 1)',
        ),
        (STAGED.replace("1)", "2)"), "expected a distance of 1 tile, got"),
        (TRANSPOSE + ', Prefetch("row", 128)', "expected requests for column in this copy, got"),
        (TRANSPOSE + ', Prefetch("column", "prefetch_distance")', "expected a distance of 1 or more, got"),
        (TRANSPOSE + ', Prefetch("entry", 1)', "expected requests for column in this copy, got"),
        (TRANSPOSE + ", LanesBeyond()", "this copy does not take LanesBeyond()"),
        (TRANSPOSE + ', Table("src")', "expected Table as `explain` prints it"),
        (TRANSPOSE + ", Stage(run_columns=3)", "Stage takes separate"),
        (
            STAGED.replace('"column_tile", "row_tile"', '"row_tile", "column_tile"'),
            "Stage needs row_tile as the",
        ),
        (STAGED.replace('Tile("column", 32)', f'Tile("column", {1 << 20})'), "tiles of at most"),
        (
            TRANSPOSE + ', Tile("row", 16)',
            'expected one directive of a kind for each loop, got Tile("row", 16) again',
        ),
        (TRANSPOSE + ", CopyBlock(64)", "a transpose does not take CopyBlock(64)"),
        (TRANSPOSE + ', Registers("row", 8)', "a copy does not take Registers"),
        (TRANSPOSE + ", Relax()", "a copy does not take Relax(), which kernels have"),
        (TRANSPOSE.replace("64", '"64"'), "expected tiles of 1 to"),
        (TRANSPOSE.replace("64", "64, count=1"), "Tile takes axis, size, level"),
        (
            TRANSPOSE + ', Tail("row", "clamp")',
            'expected one directive of a kind for each loop, got Tail("row", "clamp") again',
        ),
        (
            TRANSPOSE.replace("clamp", "clamp", 1).replace('"clamp")', '"clamp", sizes=(1,))', 1),
            'expected a tail of row or column by "clamp", got',
        ),
        (STAGED.replace('"headed"', '"headed", least=64'), 'expected Stream("headed") for a transpose, got'),
        (TRANSPOSE + ', Parallel("row")', "expected threads to share row_tile, column_tile, got"),
        (STAGED + ', Parallel("row_tile")', "expected threads to share column_tile, got"),
        (STAGED.replace("Stage()", "Stage(separate=True)"), "expected Stage() for tiles of rows, got"),
        (CARRIED.replace("column=16", "column=4").replace("row=16", "row=4"), "got blocks of 4x4 elements"),
        (
            CARRIED.replace("row=16", "row=4"),
            'Stream("carried") needs blocks of 16 rows, which do not convert',
        ),
        (
            CARRIED.replace('"column_tile", "row_tile"', '"row_tile", "column_tile"'),
            "needs row_tile as the last",
        ),
        (
            CARRIED.replace('"column", "row")', '"row", "column")'),
            "as the last outer loop, then column and row",
        ),
        (CARRIED + ", Diagonal()", "needs one level of tiles of rows and columns, and no Diagonal"),
        (CARRIED + ', Stream("headed")', 'Stream("carried") needs blocks of 16 rows, which do not convert'),
        (CARRIED + ', Parallel("row_tile")', "expected threads to share column_tile, got"),
        (CARRIED.replace('Tile("column", 32)', f'Tile("column", {1 << 20})'), "tiles of at most"),
        ("Stage()) + (Stage()", "expected directives, separated by commas"),
        ("a" + ".a" * 400, "expected the call of a directive"),
        ("Vectorize(x=64)", "this copy needs lanes such as Vectorize(row="),
        ('Tile("x", 64), Vectorize(row=16, column=16)', "expected a loop over row, column, got x"),
        ('Tile("row", 64)', "this copy needs lanes such as Vectorize(row="),
        ("Vectorize(row=16, column=16)", 'expected tiles of rows, such as Tile("row", 64)'),
    ],
)
def test_a_schedule_that_passes_cannot_obey_is_refused(schedule: str, message: str) -> None:
    z = np.zeros((200, 300), np.uint32)
    with pytest.raises(tj.ScheduleError) as caught:
        tj.copyto(z, U4.T, schedule=schedule)
    assert message in str(caught.value)
    assert not z.any()


@pytest.mark.parametrize(
    ("schedule", "under"),
    [
        (STAGED.replace('Tile("row", 64)', 'Tile("row", 24)').replace("row=16", "row=4"), 'Tile("row", 24)'),
        (
            TRANSPOSE.replace('"row_tile", "column_tile"', '"column_tile", "row_tile"') + ", Stage()",
            "Stage()",
        ),
        (TRANSPOSE.replace("row=16", "row=7"), 'Tile("row", 64)'),
        (TRANSPOSE + ', Tile("layer", 2)', 'Tile("layer", 2)'),
        ("Vectorize(row=16, column=16)", ""),
        ("Vectorize(x=64)", "Vectorize(x=64)"),
    ],
)
def test_a_caret_is_under_the_directive_that_is_refused(schedule: str, under: str) -> None:
    """It is after the text if a directive is missing."""
    with pytest.raises(tj.ScheduleError) as caught:
        tj.copyto(np.zeros((200, 300), np.uint32), U4.T, schedule=schedule)
    _, line, caret, fix = str(caught.value).splitlines()
    assert line[caret.index("^") :].startswith(under)
    assert under or caret.index("^") == len(line)
    assert "`explain` prints" in fix


@pytest.mark.parametrize(
    ("schedule", "under"),
    [
        ('Tail("ééé", "clamp"), Tale()', "Tale()"),
        ('\n\n  Tail("column", "clamp"),\r\n Tale()', "Tale()"),
        (TRANSPOSE + ",\n\nTile(3)", "Tile(3)"),
        ('Tile("row", "a\\d")', '\\d")'),
        ('Tile("row", 64]', "]"),
        (TRANSPOSE.replace("Reorder(", 'Reorder("a"), Reorder('), 'Reorder("a")'),
        (
            TRANSPOSE.replace('"row_tile", "column_tile", ', '"row_tile", "column_tile"), Reorder('),
            'Reorder("row", "column")',
        ),
        (TRANSPOSE + ', Parallel("")', 'Parallel("")'),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_caret_is_under_the_mistake(schedule: str, under: str) -> None:
    """Whatever letters and lines are before it."""
    with pytest.raises(tj.ScheduleError) as caught:
        tj.copyto(np.zeros((200, 300), np.uint32), U4.T, schedule=schedule)
    _, line, caret, _ = str(caught.value).splitlines()
    assert line[caret.index("^") :].startswith(under)


def test_a_schedule_may_end_with_a_comma_and_have_comments() -> None:
    z = np.zeros((200, 300), np.uint32)
    tj.copyto(z, U4.T, schedule=TRANSPOSE + ",  # blocks of 16 x 16\n")
    assert np.array_equal(z, U4.T)


RUN = 'Vectorize(x=64), Tail("x", "shift", sizes=("rest",))'


@pytest.mark.parametrize("lanes", [2, 16, 32, 128, 1024])
@pytest.mark.parametrize("columns", [63, 64, 100, 200, 5000])
def test_runs_take_any_power_of_two(lanes: int, columns: int) -> None:
    x = np.arange(7 * 5001, dtype=np.uint8).reshape(7, 5001)[:, :columns]
    sizes = f'Vectorize(x={lanes}), Tail("x", "shift", sizes=({"64, " * (lanes > 64)}"rest",))'
    source, target = (Guarded(x.size + 6 * 3) for _ in range(2))
    for at_end in (False, True):
        raw = (side.place(x.size + 6 * 3, at_end=at_end) for side in (source, target))
        src, z = (strided_view(each, x.dtype, x.shape, (columns + 3, 1)) for each in raw)
        src[...] = x
        tj.copyto(z, src, schedule=sizes)
        np.testing.assert_array_equal(z, src)


@pytest.mark.parametrize(
    ("index", "schedule"),
    [
        (np.s_[:, :700], RUN + ', Prefetch("x", 512)'),
        (np.s_[:, 1:700], RUN + ', Stream("headed", least=64), Prefetch("x", 64)'),
        (np.s_[:, ::7], 'Prefetch("x", 4096)'),
        (np.s_[:, ::-1], 'Vectorize(x=16), Tail("x", "shift", sizes=(4, 1)), Prefetch("x", -256)'),
    ],
)
def test_copies_without_blocks_take_requests(index: Any, schedule: str) -> None:
    """Super-vectors request the source some bytes further on, and so do runs of single elements."""
    x = np.arange(9 * 800, dtype=np.float32).reshape(9, 800)[index]
    z = np.zeros((9, 801), np.float32)[:, : x.shape[1]]
    assert "prefetch_" in tj.explain(z, x, schedule=schedule).source.partition('"""\n')[2]
    tj.copyto(z, x, schedule=schedule)
    np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize(
    ("shape", "axes", "loop"),
    [
        ((3_000_001, 2), (1, 0), "tile"),
        ((5001, 3001), (1, 0), "tile"),
        ((5001, 3001), (1, 0), "column"),
        ((3000, 300, 80), (1, 0, 2), "x"),
    ],
)
def test_large_copies_need_no_requests(shape: tuple[int, ...], axes: tuple[int, ...], loop: str) -> None:
    """A text without the requests of the compiler is obeyed."""
    src = np.empty(shape, np.uint32).transpose(axes)
    dst = np.empty(src.shape, np.uint32)
    with described(replace(machine(), stream_bytes=1 << 20, joins_bytes=loop == "column")):
        own = tj.explain(dst, src)
        text = re.sub(rf', Prefetch\("{loop}", \d+\)', "", own.directives)
        assert text != own.directives
        assert "prefetch_" in own.source.partition('"""\n')[2]
        assert "prefetch_" not in tj.explain(dst, src, schedule=text).source.partition('"""\n')[2]


@pytest.mark.parametrize("columns", [63, 64, 100, 200])
def test_the_rest_of_a_run_is_less_than_a_line(columns: int) -> None:
    x, z = (np.zeros((7, 300), np.uint8)[:, :columns] for _ in range(2))
    with pytest.raises(tj.ScheduleError, match="expected a size of at most 64"):
        tj.copyto(z, x, schedule=RUN.replace("64", "128"))


def test_a_run_of_full_super_vectors_needs_no_tail() -> None:
    x = np.arange(24 * 512, dtype=np.float32).reshape(24, 512)
    source = tj.explain("f32[24,512]{1,0:T(8,128)}", x, schedule="Vectorize(x=256)").source
    assert re.search(r"store_u8x256\(dst_\w+ \+ x, load_u8x256\(src_\w+ \+ x\)\)", source)
    packed = tj.pack(x, "f32[24,512]{1,0:T(8,128)}", schedule="Vectorize(x=256)")
    np.testing.assert_array_equal(tj.unpack(packed), x)
    with pytest.raises(tj.ScheduleError, match="lanes of 1024 need a Tail"):
        tj.pack(x, "f32[24,512]{1,0:T(8,128)}", schedule="Vectorize(x=1024)")


@pytest.mark.parametrize(
    ("dtype", "index", "schedule", "taken"),
    [
        ("f8", np.s_[:], 'Vectorize(x=32), Tail("x", "shift", sizes=(16, 8, 1))', True),
        ("f8", np.s_[:], 'Vectorize(x=64), Tail("x", "shift", sizes=(8, 1))', False),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=16), Tail("x", "shift", sizes=(1,))', True),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=8), Tail("x", "shift", sizes=(4, 1))', True),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=64), Tail("x", "shift", sizes=(4, 1))', False),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=12), Tail("x", "shift", sizes=(4, 1))', False),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=2), Tail("x", "shift", sizes=(1,))', False),
        ("f4", np.s_[:, ::-1], 'Vectorize(x=8), Tail("x", "narrow", sizes=(2, 1))', False),
    ],
)
def test_other_copies_take_lanes_that_have_instructions(
    dtype: str, index: Any, schedule: str, taken: bool
) -> None:
    x = np.arange(99 * 800, dtype=np.float32).reshape(99, 800)[:, :777][index]
    z = np.zeros((99, 800), dtype)[:, :777]
    if taken:
        tj.copyto(z, x, schedule=schedule)
        np.testing.assert_array_equal(z, x)
    else:
        with pytest.raises(tj.ScheduleError, match=r"instruction|does not take"):
            tj.copyto(z, x, schedule=schedule)
        assert not z.any()


@pytest.mark.parametrize(
    ("arrays", "schedule"),
    [
        ("rows", RUN.replace('"shift", sizes=("rest",)', '"clamp"') + ', Stream("full")'),
        ("rows", RUN + ', Stream("given")'),
        ("rows", RUN + ', Tile("x", 2)'),
        ("rows", RUN + ', Prefetch("x", 256, chunks=1000000)'),
        ("rows", RUN + ', Prefetch("x", -5)'),
        ("rows", RUN + ', Prefetch("x", 0)'),
        ("rows", RUN + ', Stream("full", least=64)'),
        ("rows", RUN + ', Stream("headed", least=-5)'),
        (
            "pairs",
            'Vectorize(row=64, column=2), Tail("row", "shift", sizes=(1,)), Stream("headed"), Stage()',
        ),
        ("short rows", 'Prefetch("tile", 1000000000)'),
        ("shuffle", 'Tile("step", 1)'),
        ("elements", 'Tile("x", 8), Tile("x", 8)'),
    ],
)
def test_texts_that_ran_for_ever_or_lost_bytes_are_refused(arrays: str, schedule: str) -> None:
    """Found by a reader: each of them was accepted once."""
    made = {
        "rows": lambda: (np.zeros((100, 300), "u1")[:, :200], np.ones((100, 300), "u1")[:, :200]),
        "pairs": lambda: (np.zeros((4000, 2, 40), "u1"), np.ones((4000, 40, 2), "u1").transpose(0, 2, 1)),
        "short rows": lambda: (np.zeros((4000, 12), "u2"), np.ones((12, 4000), "u2").T),
        "shuffle": lambda: (np.zeros((20000, 3), "u1"), np.ones((20000, 4), "u1")[:, :3]),
        "elements": lambda: (np.zeros(500000, "u4"), np.ones(1000000, "u4")[::2]),
    }
    z, x = made[arrays]()
    own = tj.explain(z, x).directives
    for text in (schedule, f"{own}, {schedule}"):
        with pytest.raises(tj.ScheduleError):
            tj.copyto(z, x, schedule=text)
        assert not z.any()


def test_threads_share_no_loop_of_packed_elements() -> None:
    """Iterations may share bytes, so one thread runs all of them."""
    dst, src = "s4[6,10,14]{0,1,2:E(4)}", "s4[6,10,14]{2,1,0:E(4)}"
    explained = tj.explain(dst, src)
    assert [x.nest.unit_bits for x in explained.steps] == [1]
    assert "Parallel" not in explained.directives
    assert "begin" not in explained.source.split("\n", 2)[2]
    with pytest.raises(tj.ScheduleError, match="expected threads to share no loop"):
        tj.explain(dst, src, schedule='Parallel("k")')


def test_complete_rows_are_staged_with_either_addressing() -> None:
    x = np.arange(12 * 4000, dtype=np.uint16).reshape(12, 4000)
    own = tj.explain(np.zeros((4000, 12), np.uint16), x.T).directives
    stage = next(each for each in ("Stage(separate=True)", "Stage()") if each in own)
    for addressing in ("Stage()", "Stage(separate=True)"):
        z = np.zeros((4000, 12), np.uint16)
        tj.copyto(z, x.T, schedule=own.replace(stage, addressing))
        np.testing.assert_array_equal(z, x.T)
    with pytest.raises(tj.ScheduleError, match="expected tiles of rows"):
        tj.copyto(z, x.T, schedule=own.replace(f"{stage}, ", "").replace(', Stream("headed")', ""))


SHORT_ROWS = np.arange(12 * 4000, dtype=np.uint16).reshape(12, 4000)


@pytest.mark.parametrize("size", [32, 96, 320, 3968, 4000, 5000])
@pytest.mark.parametrize("at_end", [False, True])
def test_staged_tiles_of_any_size_copy_the_same_bytes(size: int, at_end: bool) -> None:
    src, dst = (Guarded(1 << 17).place(SHORT_ROWS.nbytes, at_end=at_end) for _ in range(2))
    x, z = src.view(np.uint16).reshape(12, 4000), dst.view(np.uint16).reshape(4000, 12)
    x[:] = SHORT_ROWS
    for threads in (1, 3):
        z[:] = 0
        tj.copyto(z, x.T, schedule=staged(size), threads=threads)
        np.testing.assert_array_equal(z, SHORT_ROWS.T)


def test_tiles_have_any_number_of_layers() -> None:
    x = np.arange(8 * 60 * 7 * 9, dtype=np.uint8).reshape(8, 60, 7, 9).transpose(3, 0, 2, 1)
    z = np.zeros(x.shape, np.uint8)
    own = tj.explain(z, x).directives
    for layers in (1, 3, 60):
        z[:] = 0
        tj.copyto(z, x, schedule=re.sub(r'Tile\("layer", \d+', f'Tile("layer", {layers}', own))
        np.testing.assert_array_equal(z, x)


def test_staged_parts_of_rows_have_a_line() -> None:
    own = tj.explain(np.zeros((4000, 12), np.uint16), SHORT_ROWS.T).directives
    lanes = re.search(r"Vectorize\([^)]*\)", own)
    assert lanes is not None
    for rows in (12, 32, 40):
        x = np.arange(rows * 4000, dtype=np.uint16).reshape(rows, 4000)
        out = np.zeros((4000, rows + 9), np.uint16)
        tiles = 'Tile("row", 32), Tile("column", 64), Reorder("column_tile", "row_tile", "column", "row")'
        schedule = f'{tiles}, {lanes[0]}, Stage(), Stream("headed")'
        if rows < 32:
            with pytest.raises(tj.ScheduleError, match="rows that are shorter than a line"):
                tj.copyto(out[:, :rows], x.T, schedule=schedule)
            continue
        tj.copyto(out[:, :rows], x.T, schedule=schedule)
        np.testing.assert_array_equal(out[:, :rows], x.T)
        assert not out[:, rows:].any()


@pytest.mark.parametrize("offset", [0, 4])
def test_outer_loops_inside_the_tiles_of_a_stage_fill_one_block(offset: int) -> None:
    x = np.arange(3 * 90 * 70, dtype=np.uint32).reshape(3, 90, 70).transpose(0, 2, 1)
    z = np.zeros(x.size + 1, np.uint32)[offset // 4 :][: x.size].reshape(x.shape)
    order = 'Reorder("column_tile", "row_tile", "i", "column", "row")'
    tiles = f'Tile("row", 32), Tile("column", 32), {order}'
    text = f'{tiles}, Stage(), Stream("headed"), Vectorize(row=16, column=16)'
    tj.copyto(z, x, schedule=text)
    np.testing.assert_array_equal(z, x)
    with pytest.raises(tj.ScheduleError, match="expected requests for column in this copy"):
        tj.copyto(z, x, schedule=f'{text}, Prefetch("tile", 1)')


@pytest.mark.parametrize("size", [64, 192, 1024])
@pytest.mark.parametrize("order", ['"i", "row_tile"', '"row_tile", "i"'])
@pytest.mark.parametrize("columns", [100, 128, 500])
def test_packed_rows_are_staged_in_tiles_of_any_size(size: int, order: str, columns: int) -> None:
    """Tiles of rows are full lines, and super-vectors begin at most a line before one."""
    x = np.arange(5 * columns * 2, dtype=np.uint8).reshape(5, columns, 2).transpose(0, 2, 1)
    z = np.zeros((5, 2, columns + 3), np.uint8)
    how = 'Stage(), Stream("headed"), Vectorize(row=64, column=2), Tail("row", "clamp")'
    for threads in (1, 2):
        z[:] = 0
        text = f'Tile("row", {size}), Reorder({order}, "row", "column"), {how}'
        tj.copyto(z[..., :columns], x, schedule=text, threads=threads)
        np.testing.assert_array_equal(z[..., :columns], x)
        assert not z[..., columns:].any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'Stream("headed"), Tail("row", "clamp"), Stage()',
            'Stage needs tiles of row, such as Tile("row", 256)',
        ),
        ('Tile("row", 64), Stream("begun"), Tail("row", "clamp"), Stage()', 'Stage needs Stream("headed")'),
        ('Tile("row", 64), Stream("headed"), Stage()', 'Stage needs Tail("row", "clamp")'),
        (
            'Tile("row", 64), Tile("i", 2), Reorder("row_tile", "i_tile", "i", "row", "column"), '
            'Stream("headed"), Tail("row", "clamp"), Stage()',
            "Stage needs row_tile as the last of the loops over tiles",
        ),
    ],
)
def test_stages_of_packed_rows_that_passes_cannot_obey_are_refused(text: str, message: str) -> None:
    x = np.ones((5, 500, 2), np.uint8).transpose(0, 2, 1)
    z = np.zeros((5, 2, 503), np.uint8)[..., :500]
    for lanes in ("Vectorize(row=64, column=2)", "Vectorize(row=32, column=2)"):
        with pytest.raises(tj.ScheduleError) as caught:
            tj.copyto(z, x, schedule=f"{text}, {lanes}")
        assert message in str(caught.value)
    wide = 'Tile("row", 128), Stage(), Stream("headed"), Vectorize(row=128, column=2), Tail("row", "clamp")'
    with pytest.raises(tj.ScheduleError, match="Stage needs lanes of at most 64 rows"):
        tj.copyto(z, x, schedule=wide)
    assert not z.any()


def test_layers_are_around_strips() -> None:
    x = np.arange(8 * 60 * 7 * 9, dtype=np.uint8).reshape(8, 60, 7, 9).transpose(3, 0, 2, 1)
    z = np.zeros(x.shape, np.uint8)
    own = re.sub(r"Reorder\([^)]*\), |, Parallel\([^)]*\)", "", tj.explain(z, x).directives)
    lanes = re.search(r"column=(\d+)", own)
    assert lanes is not None
    strips = f'{own}, Tile("column", {lanes[1]}, level="strip")'
    tj.copyto(z, x, schedule=strips)
    np.testing.assert_array_equal(z, x)
    order = 'Reorder("layer_tile", "column_tile", "column_strip", "layer", "column", "row")'
    with pytest.raises(tj.ScheduleError, match="expected the outermost tiles and layer first"):
        tj.copyto(z, x, schedule=f"{strips}, {order}")


@pytest.mark.parametrize("size", [96, 320])
@pytest.mark.parametrize("how", ['"headed"), Prefetch("tile", 1)', '"headed")', '"aligned")'])
def test_complete_rows_of_any_transpose_are_staged(size: int, how: str) -> None:
    z = np.zeros((200, 300), np.uint32)
    lanes = re.search(r"Vectorize\([^)]*\)", tj.explain(z, U4.T).directives)
    assert lanes is not None
    for threads in (1, 3):
        z[:] = 0
        schedule = f'Tile("column", {size}), Stage(), {lanes[0]}, Stream({how}'
        tj.copyto(z, U4.T, schedule=schedule, threads=threads)
        np.testing.assert_array_equal(z, U4.T)


def test_layers_run_in_an_order_of_their_own() -> None:
    x = np.arange(8 * 60 * 7 * 9, dtype=np.uint8).reshape(8, 60, 7, 9).transpose(3, 0, 2, 1)
    z = np.zeros(x.shape, np.uint8)
    own = tj.explain(z, x).directives
    assert "layer_tile" in own
    tj.copyto(z, x, schedule=re.sub(r"Reorder\([^)]*\), |, Parallel\([^)]*\)", "", own))
    np.testing.assert_array_equal(z, x)


def test_a_schedule_for_one_thread_runs_on_several() -> None:
    z = np.zeros((4000, 12), np.uint16)
    schedules = {tj.explain(z, SHORT_ROWS.T, threads=threads).directives for threads in (1, 8)}
    for schedule in schedules:
        for threads in (1, 8):
            z[:] = 0
            tj.copyto(z, SHORT_ROWS.T, schedule=schedule, threads=threads)
            np.testing.assert_array_equal(z, SHORT_ROWS.T)


@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        (r'Tile\("column", \d+', 'Tile("column", 100', "expected a multiple of"),
        (r'Tile\("column", \d+', 'Tile("column", 0', "expected tiles of 1 to"),
        (r"Vectorize\(row=\d+", "Vectorize(row=7", "got blocks of 7x"),
        (r"Prefetch\([^)]*\)", 'Prefetch("tile", 2)', "expected a distance of 1 tile"),
    ],
)
def test_a_caret_is_under_what_is_refused(own: str, given: str, message: str) -> None:
    schedule = re.sub(own, given, staged(320))
    with pytest.raises(tj.ScheduleError) as caught:
        tj.explain(np.zeros((4000, 12), np.uint16), SHORT_ROWS.T, schedule=schedule)
    problem, line, caret, _ = str(caught.value).splitlines()
    assert message in problem
    assert line[caret.index("^") :].startswith(given[:8])


def staged(columns: int) -> str:
    """A schedule of the copy of `SHORT_ROWS` with tiles of that many columns."""
    own = tj.explain(np.zeros((4000, 12), np.uint16), SHORT_ROWS.T).directives
    return re.sub(r'Tile\("column", \d+', f'Tile("column", {columns}', own)


def test_the_largest_part_of_a_copy_has_the_schedule() -> None:
    x = np.arange(12 * 80000, dtype=np.uint32).reshape(12, 80000)
    z = np.zeros((80000, 12), np.uint32)
    tj.copyto(z, x.T, schedule=tj.explain(z, x.T).directives)
    np.testing.assert_array_equal(z, x.T)


@pytest.mark.parametrize("dims", [(0, 5), (3, 4)])
def test_a_text_is_read_even_if_numpy_copies(dims: tuple[int, ...]) -> None:
    x, z = np.ones(dims, object), np.zeros(dims, object)
    with pytest.raises(tj.ScheduleError, match="separated by commas"):
        tj.copyto(z, x, schedule="garbage(")


def test_other_keywords_choose_no_part_of_a_schedule() -> None:
    z = np.zeros((200, 300), np.uint32)
    with pytest.raises(tj.LayoutError, match="virtual_vector_size chooses a part"):
        tj.copyto(z, U4.T, schedule=TRANSPOSE, virtual_vector_size=64)
    with pytest.raises(tj.LayoutError, match="tune chooses a part"):
        tj.copyto(z, U4.T, schedule=TRANSPOSE, tune=True)
    with pytest.raises(TypeError, match="expected directives as a str, got int"):
        tj.copyto(z, U4.T, schedule=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", few_by_default(range(20), 2))
def test_random_schedules_copy_the_same_bytes(seed: int) -> None:
    random, guards = Random(seed), (Guarded(1 << 21), Guarded(1 << 21))
    refused = 0
    for _ in range(16):
        kind = np.dtype(random.choice(["u1", "u2", "u4", "u8", "c16"]))
        dims = random.choice(SHAPES)
        size, order = int(np.prod(dims)) * kind.itemsize, [*range(len(dims))]
        random.shuffle(order)
        data, room = guards[0].place(size, at_end=True), guards[1].place(size, at_end=random.random() < 0.5)
        data[:], room[:] = np.frombuffer(random.randbytes(size), np.uint8), 0
        src = data.view(kind).reshape(dims).transpose(order)
        dst = room.view(kind).reshape(src.shape)
        nest = str(tj.explain(dst, src).steps[-1].nest)
        others = [name for name in loops_of(nest) if name not in ("row", "column")]
        if "row" in loops_of(nest) and random.random() < 0.6:
            schedule = transposed(others, kind.itemsize, random)
        else:
            schedule = changed(directives_of(nest), random)
        try:
            tj.copyto(dst, src, schedule=schedule, threads=random.choice([1, 2]))
        except tj.ScheduleError:
            refused += 1
            assert not any(room.tobytes()), schedule
            continue
        assert dst.tobytes() == src.tobytes(), (kind, dims, order, schedule)
        assert guards[1].untouched(), (kind, dims, order, schedule)
    assert refused < 16


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_a_copy_that_shuffles_bytes_takes_the_schedules_of_other_methods(dtype: str) -> None:
    x = np.arange(20_000).astype(dtype).reshape(5, 4000).T
    z = np.zeros(x.shape, dtype)
    shuffled, sized = (str(tj.explain(z, x, virtual_vector_size=n).directives) for n in ("auto", 16))
    assert ("Assemble" in shuffled) == (machine().level in BYTE_SHUFFLES)
    assert "Assemble" not in sized
    for text in (shuffled, sized):
        z[:] = 0
        tj.copyto(z, x, schedule=text)
        np.testing.assert_array_equal(z, x)
        assert str(tj.explain(z, x, schedule=text).directives) == text
