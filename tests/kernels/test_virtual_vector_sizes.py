"""Super-vectors of any size: the bytes of the scalar function, separate loops, and accesses in bounds."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded

SIZES_1D = (1, 3, 7, 16, 64, 100, 256, 1000, 1024, 1 << 20, "2*hw", "l1/4", "2*cores*hw")
SIZES_2D = ((1, 1), (2, 3), (5, 100), (16, 16), (32, 256), (1024, 1024), ("4", "2*hw"))
EXTENTS = (1, 2, 63, 64, 65, 255, 256, 257, 1111)


def triad(a, b, c):
    for i in range(a.shape[0]):
        c[i] = a[i] * 2 + b[i]


def backwards(a, b, c):
    for i in range(a.shape[0] - 1, -1, -1):
        c[i] = a[i] + b[a.shape[0] - 1 - i]


def every_third(a, b, c):
    for i in range(1, a.shape[0], 3):
        c[i] = a[i] - b[i]


def branched(a, b, c):
    for i in range(a.shape[0]):
        if a[i] > b[i]:
            c[i] = a[i]


def scaled(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + 2 * b[i, j]


def turned(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = b[i, j] + a[j, i]


def uneven(a, b, c):
    for i in range(a.shape[0]):
        b[i, 0] = a[i, 0] + 1
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 3


def total(a, b, c):
    s = np.int64(0)
    for i in range(a.shape[0]):
        s += a[i]
    c[0] = s


def scanned(a, b, c):
    s = np.int64(3)
    for i in range(a.shape[0]):
        s += a[i]
        c[i] = s
    b[0] = s


def arrays(shape: tuple[int, ...], dtype: str = "f4") -> list[Any]:
    count = int(np.prod(shape))
    return [(np.arange(count) * k % 97).reshape(shape).astype(dtype) for k in (1, 5, 7)]


@lru_cache(2)
def kernel_of(python: Callable[..., None], **options: Any) -> Any:
    """The kernel of a function, made once for all shapes of a test."""
    return tj.kernel(**options)(python)


def check(python: Callable[..., None], shape: tuple[int, ...], dtype: str = "f4", **options: Any) -> None:
    """A kernel leaves the same in its arrays as the function."""
    given, wanted = arrays(shape, dtype), arrays(shape, dtype)
    kernel_of(python, **options)(*given)
    python(*wanted)
    for got, want in zip(given, wanted, strict=True):
        assert got.tobytes() == want.tobytes(), (python.__name__, shape, options)


@pytest.mark.full
@pytest.mark.parametrize(
    ("python", "size"),
    [
        (python, size)
        for n, size in enumerate(SIZES_1D)
        for python in ((triad, every_third) if n % 2 else (backwards, branched))
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_one_dimension(python: Callable[..., None], size: Any) -> None:
    kernel = tj.kernel(virtual_vector_size=size)(python)
    for count in EXTENTS:
        given, wanted = arrays((count,)), arrays((count,))
        kernel(*given)
        python(*wanted)
        assert given[2].tobytes() == wanted[2].tobytes(), (count, size)


@pytest.mark.full
@pytest.mark.parametrize("size", [*SIZES_2D, 64, 1000], ids=str)
@pytest.mark.parametrize("python", [scaled, turned, uneven])
def test_two_dimensions(python: Callable[..., None], size: Any) -> None:
    for shape in ((1, 1), (33, 33), (70, 70)):
        check(python, shape, virtual_vector_size=size)


def four_loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                for m in range(a.shape[3]):
                    c[i, j, k, m] = a[i, j, k, m] * 2 + b[m, k, j, i]


def eight_loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                for m in range(a.shape[3]):
                    for n in range(a.shape[4]):
                        for o in range(a.shape[5]):
                            for p in range(a.shape[6]):
                                for q in range(a.shape[7]):
                                    c[i, j, k, m, n, o, p, q] = a[i, j, k, m, n, o, p, q] + 1


@pytest.mark.full
@pytest.mark.parametrize(
    "size", [(32, 4, 4, 4), ("warp", 4, 4, 4), (2, 3, 5, 7), (2, 2, 2, 64), (5, 2, 8)], ids=str
)
def test_four_loops(size: Any) -> None:
    for shape in ((1, 1, 1, 1), (5, 5, 5, 5), (9, 9, 9, 9)):
        check(four_loops, shape, virtual_vector_size=size)


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_eight_loops_are_the_maximum(tail: str) -> None:
    size = (2, 1, 3, 2, 2, 2, 2, 8)
    kernel = tj.kernel(virtual_vector_size=size, tail=tail)(eight_loops)
    for shape in ((2, 1, 3, 2, 2, 2, 2, 9), (3, 2, 1, 3, 3, 1, 3, 3)):
        given, wanted = arrays(shape), arrays(shape)
        kernel(*given)
        eight_loops(*wanted)
        assert given[2].tobytes() == wanted[2].tobytes()
    assert "vectorized by 2x3x2x2x2x2x8" in str(kernel.report())


@pytest.mark.full
def test_the_deepest_nests_have_no_strips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python allows 20 nested loops, and strips would exceed that."""
    names = [f"i{k}" for k in range(20)]
    loops = [f"{'  ' * (k + 1)}for {name} in range(a.shape[{k}]):" for k, name in enumerate(names)]
    where = ", ".join(names)
    lines = ["def deep(a, b, c):", *loops, f"{'  ' * 21}c[{where}] = a[{where}] + 1"]
    (tmp_path / "deep_nest.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    deep = importlib.import_module("deep_nest").deep
    check(deep, (1,) * 16 + (3, 1, 2, 5), virtual_vector_size=(2,) * 8)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1"])
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_transposes(dtype: str, tail: str) -> None:
    """If arrays are walked along different dimensions: the same values for all extents."""
    for shape in ((1, 1), (3, 3), (64, 64), (70, 70)):
        check(turned, shape, dtype, tail=tail)


@pytest.mark.full
@pytest.mark.parametrize("size", [3, 64, 100, 1000, 1 << 20, "2*hw"], ids=str)
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_reductions(size: Any, tail: str) -> None:
    for count in (1, 64, 100, 999, 4321):
        check(total, (count,), "i8", virtual_vector_size=size, vectorize_reductions=True, tail=tail)


@pytest.mark.full
@pytest.mark.parametrize("size", [3, 64, 100, 1000, "2*hw"], ids=str)
@pytest.mark.parametrize("tail", ["mask", "scalar"])
def test_scans(size: Any, tail: str) -> None:
    for count in (1, 64, 100, 999, 4321):
        check(scanned, (count,), "i8", virtual_vector_size=size, vectorize_scans=True, tail=tail)


@pytest.mark.full
@pytest.mark.parametrize("size", [3, 64, 100, 256])
def test_sizes_that_divide_leave_no_tail_but_blocks_may(size: int) -> None:
    check(triad, (3 * size,), virtual_vector_size=size, tail="assume_divisible")
    with pytest.raises(tj.KernelError, match="not a multiple"):
        tj.kernel(virtual_vector_size=size, tail="assume_divisible")(triad)(*arrays((3 * size + 1,)))


@pytest.mark.full
@pytest.mark.parametrize("size", [5, 64, 100, 1024, (3, 100), (16, 64), (3, 2, 4, 8)], ids=str)
def test_nothing_outside_is_touched(size: Any) -> None:
    python, shape = {
        1: (triad, (2479,)),
        2: (scaled, (37, 67)),
        4: (four_loops, (7, 7, 7, 7)),
    }[len(size) if isinstance(size, tuple) else 1]
    count = int(np.prod(shape))
    rooms = [Guarded(4 * count) for _ in range(3)]
    kernel = tj.kernel(virtual_vector_size=size)(python)
    for at_end in (False, True):
        given = [room.place(4 * count, at_end=at_end).view("f4").reshape(shape) for room in rooms]
        wanted = arrays(shape)
        for x, own in zip(given, wanted, strict=True):
            x[...] = own
        kernel(*given)
        python(*wanted)
        assert given[2].tobytes() == wanted[2].tobytes()
        assert all(room.untouched() for room in rooms)


def source_of(python: Callable[..., None], size: Any, shape: tuple[int, ...] = (1000,)) -> str:
    return tj.kernel(virtual_vector_size=size)(python).specialize(*arrays(shape)).source


@pytest.mark.full
def test_each_size_has_its_own_loops() -> None:
    sources = {size: source_of(triad, size) for size in (64, 128, 256, 1024)}
    assert len({source.partition('"""')[2] for source in sources.values()}) == 4


@pytest.mark.full
@pytest.mark.parametrize(
    "size", [3, 100, 1024, (5, 48), (32, 256), (2, 4, 4, 8), "2*hw", ("2", "hw")], ids=str
)
def test_expressions(size: Any) -> None:
    run = tj.elementwise(lambda x, y: x * 2 + y, virtual_vector_size=size)
    sums = tj.elementwise(lambda x: x.sum(axis=0), virtual_vector_size=size)
    for shape in ((), (7,), (257,), (33, 65), (3, 17, 40), (3, 5, 7, 9)):
        a, b = arrays(shape)[:2]
        assert run(a, b).tobytes() == (a * 2 + b).tobytes()
        assert run(a.T, b.T).tobytes() == (a.T * 2 + b.T).tobytes()
        if shape:
            assert np.array_equal(sums(a), a.sum(axis=0))
    assert np.array_equal(
        run(arrays((40, 60))[0][:, ::2], np.float32(3)), arrays((40, 60))[0][:, ::2] * 2 + 3
    )


@pytest.mark.full
def test_tiled_operands() -> None:
    a, b = arrays((300, 500))[:2]
    for size in (100, (5, 48), "2*hw"):
        run = tj.elementwise(lambda x, y: x * 2 + y, virtual_vector_size=size)
        packed = tj.pack(a, "{1,0:T(8,128)}")
        assert np.array_equal(np.asarray(run(packed, b, layout="{1,0:T(8,128)}")), a * 2 + b)


def test_sizes_for_more_loops_than_there_are() -> None:
    """The inner sizes are used, and the report says so; a scalar loop would be slower in silence."""
    for given, used in (((32, 256), 256), ((4, 1, 100), 100), ((2, 3, 5, 64), 64), ((256, 1), 256)):
        kernel = tj.kernel(virtual_vector_size=given)(triad).specialize(*arrays((1000,)))
        alone = source_of(triad, used)
        assert kernel.source == alone
        assert f"vectorized by {used}:" in kernel.report()
        size = "x".join(map(str, given))
        assert (f"not {size} as no nest has so many loops" in kernel.schedule) == (given != (256, 1))
    square = tj.kernel(virtual_vector_size=(2, 4, 64))(scaled).specialize(*arrays((20, 100)))
    assert "Vectorize(i=4, j=64)" in square.schedule
    assert "not 2x4x64 as no nest has so many loops" in square.schedule


def row_sums(a, b, c):
    for i in range(a.shape[0]):
        s = np.int64(0)
        for j in range(a.shape[1]):
            s += a[i, j]
        c[i, 0] = s


@pytest.mark.parametrize("size", [5, 16, 64, 4096])
def test_one_size_is_that_of_both_loops_of_a_transpose(size: int) -> None:
    """A row of it would be strided, which is as slow as scalar code."""
    side = min(size, 1024)
    schedule = tj.kernel(virtual_vector_size=size)(turned).specialize(*arrays((70, 70))).schedule
    assert f"Vectorize(i={side}, j={side})" in schedule
    assert f"{side}x{side} as arrays are contiguous along different loops" in schedule
    assert (
        f"Vectorize(j={size})"
        in tj.kernel(virtual_vector_size=size)(scaled).specialize(*arrays((9, 9))).schedule
    )
    for shape in ((1, 1), (9, 9), (70, 70)):
        check(turned, shape, virtual_vector_size=size)


def test_the_last_of_several_sizes_is_that_of_reductions() -> None:
    """They run in lanes of one dimension; the scalar loop would be ten times as slow."""
    options: dict[str, Any] = {"virtual_vector_size": (4, 100), "vectorize_reductions": True}
    schedule = tj.kernel(**options)(row_sums).specialize(*arrays((20, 100), "i8")).schedule
    assert "Vectorize(j=100)" in schedule
    assert "not 4x100 as reductions have one dimension" in schedule
    for shape in ((1, 1), (5, 99), (5, 201)):
        check(row_sums, shape, "i8", **options)


def test_the_report_says_which_rows_are_short() -> None:
    for size, is_short in (((8, 8), True), ((4, 256), False), (8, False)):
        schedule = tj.kernel(virtual_vector_size=size)(scaled).specialize(*arrays((9, 9))).schedule
        assert ("or more are faster" in schedule) == is_short


@pytest.mark.parametrize("python", [scaled, turned])
@pytest.mark.parametrize("size", [7, 100, 1001, (3, 7), (20, 36), (32, 256)], ids=str)
def test_the_report_names_partial_registers(python: Callable[..., None], size: Any) -> None:
    """They may cost more than scalar code; the size that it proposes has none."""
    pattern = r", each ends in a partial register \(([\dx]+) would not\)"
    schedule = tj.kernel(virtual_vector_size=size)(python).specialize(*arrays((70, 70))).schedule
    found = re.search(pattern, schedule)
    assert (found is None) == (size == (32, 256))
    if found is not None:
        proposed = tuple(map(int, found[1].split("x")))
        sizes = size if isinstance(size, tuple) else (size,) * len(proposed)
        assert all(n >= given for n, given in zip(proposed, sizes, strict=True))
        other = tj.kernel(virtual_vector_size=proposed)(python).specialize(*arrays((70, 70)))
        assert "partial register" not in other.report()


def test_what_is_left_of_one_register_is_no_loop() -> None:
    """Fewer iterations than lanes are left, so a test is enough; the last square blocks overlap others."""
    kernel = tj.kernel(virtual_vector_size="hw", tail="mask")(triad)
    source = kernel.specialize(*arrays((1000,))).source
    assert re.findall(r"for \w+ in .*|if .*:", source) == [
        f"for i in range(i_lower, i_whole, {hardware_lanes()}):",
        "if i_whole < i_upper:",
    ]
    blocks, _, rest = source_of(turned, "auto", (70, 70)).partition("else:")
    assert re.findall(r"for (\w+) in", blocks) == ["i_block", "j_block"]
    assert re.findall(r"(\w) = min\(\1_block, ", blocks) == ["i", "j"]
    assert "strided_load" in rest
    for size in ("hw", "auto"):
        for extent in (1, 15, 16, 17, 40):
            check(triad, (extent,), virtual_vector_size=size)
            check(turned, (extent, extent), virtual_vector_size=size)


def hardware_lanes() -> int:
    """The f32 lanes of a register."""
    (lanes,) = {int(x) for x in re.findall(r"store_f32x(\d+)\(", source_of(triad, "hw"))}
    return lanes
