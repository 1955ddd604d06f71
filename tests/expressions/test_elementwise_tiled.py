"""Expressions over tiled arrays: slot by slot, block by block, and packed from a plain array."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.copies.test_tiles import filled
from tests.tools.guard import Guarded

RNG = np.random.default_rng(8)
LAYOUTS = ("{1,0:T(8,128)(2,1)}", "{0,1:T(8,128)}", "{1,0:T(32,32)(16,16)}", "{0,1}")
SCALE = tj.elementwise(lambda a, b, s: a * s + b)
SMALL, LARGE = (21, 30), (1003, 517)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dims", [SMALL, LARGE])
def test_computed_and_packed_at_once(dims: Any, layout: str, dtype: Any) -> None:
    """Padding is as pack writes it, from plain and tiled arrays. With a mask, padding stays."""
    x, y = RNG.random(dims).astype(dtype), RNG.random(dims[1:]).astype(dtype)
    want = (x * dtype(1.5) + y).astype(dtype)
    packed = tj.pack(want, layout)
    made = SCALE(x, y, 1.5, layout=layout)
    assert made.layout == packed.layout
    assert made.buffer.tobytes() == packed.buffer.tobytes()
    out = tj.pack(np.ones_like(x), layout, padding=3)
    mask = RNG.random(dims) < 0.5
    assert SCALE(tj.pack(x, "{1,0:T(8,128)}"), y, 1.5, out=out, where=mask) is out
    chosen = tj.pack(np.where(mask, want, dtype(1)).astype(dtype), layout, padding=3)
    assert out.buffer.tobytes() == chosen.buffer.tobytes()
    SCALE(x, y, 1.5, out=out)
    assert out.buffer.tobytes() == packed.buffer.tobytes()


@pytest.mark.full
def test_a_tiled_mask_and_two_results() -> None:
    x = RNG.random(LARGE, np.float32)
    mask = tj.pack(x > 0.5, "{1,0:T(8,128)(4,1)}")
    new = tj.elementwise(lambda a: a + 1)(tj.pack(x, LAYOUTS[1]), where=mask, layout=LAYOUTS[0])
    assert np.array_equal(new.unpack(), np.where(x > 0.5, x + 1, 0))
    double, plain = tj.pack(np.zeros_like(x), LAYOUTS[2]), np.zeros(LARGE, bool)
    tj.elementwise(lambda a: (a * 2, a > 0.5))(tj.pack(x, LAYOUTS[3]), out=(double, plain))
    assert np.array_equal(double.unpack(), x * 2)
    assert np.array_equal(plain, x > 0.5)


@pytest.mark.full
@pytest.mark.parametrize("dims", [SMALL, LARGE])
def test_in_place_and_over_its_own_input(dims: Any) -> None:
    x = RNG.random(dims, np.float32)
    t = tj.pack(x, LAYOUTS[0])
    tj.elementwise(lambda a, b: a + b)(t, x, out=t)
    assert np.array_equal(t.unpack(), x + x)
    other = tj.TiledArray(t.buffer[: x.size], tj.pack(x, "{0,1}").layout)
    want = t.unpack() * 2
    tj.elementwise(lambda a: a * 2)(t, out=other)
    assert np.array_equal(other.unpack(), want)


def test_a_buffer_of_bytes_is_computed_by_its_elements() -> None:
    """The result of `pack` in a uint8 array, also at an odd address: as an argument, and as `out`."""
    x = RNG.random(SMALL, np.float32)
    plain = tj.pack(x, LAYOUTS[1])
    of_bytes = tj.pack(x, LAYOUTS[1], out=np.zeros(plain.nbytes + 1, np.uint8)[1:])
    double = tj.elementwise(lambda a, b: a + b)
    made = double(of_bytes, plain)
    assert made.layout == plain.layout
    assert np.array_equal(made.unpack(), x + x)
    out = tj.TiledArray(np.zeros(plain.nbytes, np.uint8), plain.layout)
    assert double(plain, of_bytes, out=out) is out
    assert np.array_equal(out.unpack(), x + x)


@pytest.mark.full
@pytest.mark.parametrize("threads", [False, 2])
def test_threads_and_reductions(threads: Any) -> None:
    x = RNG.random(LARGE, np.float32)
    function = tj.elementwise(lambda a: a - a.max(axis=1, keepdims=True), parallel=threads)
    made = function(tj.pack(x, LAYOUTS[1]), layout=LAYOUTS[0])
    assert np.array_equal(made.unpack(), x - x.max(axis=1, keepdims=True))
    assert np.isclose(tj.elementwise(np.sum)(tj.pack(x, LAYOUTS[0], padding=9)), x.sum())


@pytest.mark.full
def test_reductions_along_dimensions_of_a_tiled_array() -> None:
    """Not of its slots, which have one dimension and padding."""
    x = RNG.random(SMALL, np.float32)
    t = tj.pack(x, LAYOUTS[1], padding=9)
    assert np.allclose(tj.elementwise(lambda a: a.sum(axis=1))(t), x.sum(axis=1))
    got = tj.elementwise(lambda a: a - a.max(axis=0, keepdims=True))(t)
    assert np.array_equal(got, x - x.max(axis=0, keepdims=True))


def test_one_layout_and_several_results() -> None:
    x = tj.pack(RNG.random(SMALL, np.float32), LAYOUTS[1])
    up, down = tj.elementwise(lambda a: (a + 1, a - 1))(x)
    assert up.layout == down.layout == x.layout
    assert np.array_equal(up.unpack(), x.unpack() + 1)
    assert np.array_equal(down.unpack(), x.unpack() - 1)


@pytest.mark.full
@pytest.mark.parametrize("dims", [SMALL, LARGE])
def test_integers_of_blocks(dims: Any) -> None:
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    run = tj.elementwise(lambda a, n, s: a * n + s)
    for n in (2, 2, -7, np.int16(4)):
        want = x * n + 0.5
        assert np.array_equal(run(x, n, 0.5, layout=LAYOUTS[1]).unpack(), want)
        assert np.array_equal(run(tj.pack(x, LAYOUTS[1]), n, 0.5).unpack(), want)


@pytest.mark.full
def test_narrow_elements() -> None:
    """Dtypes that kernels do not compute in are converted on the way."""
    x = RNG.integers(0, 7, (64, 64)).astype(np.int8)
    out = tj.pack(np.zeros((64, 64), ml_dtypes.int4), "{1,0:T(8,128)E(4)}")
    tj.elementwise(lambda a: a - 1)(x, out=out)
    assert np.array_equal(out.unpack().astype(np.int8), x - 1)


@pytest.mark.parametrize(
    ("keywords", "error", "match"),
    [
        ({"layout": LAYOUTS[0], "out": np.zeros(SMALL)}, tj.LayoutError, "already has a layout"),
        (
            {"out": filled(tj.as_layout(LAYOUTS[1], dims=LARGE, dtype="f64"))},
            tj.LayoutError,
            "the result has the shape",
        ),
        ({"out": filled(tj.as_layout(LAYOUTS[1], dims=SMALL, dtype="s32"))}, TypeError, "same_kind"),
        ({"layout": LAYOUTS[0], "where": np.zeros(SMALL)}, TypeError, "array of bool"),
        ({"layout": "{3,1}"}, tj.LayoutError, "minor_to_major"),
    ],
)
def test_wrong_arguments_are_refused(keywords: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        tj.elementwise(lambda a: a + 1)(np.zeros(SMALL), **keywords)


@pytest.mark.parametrize("kind", ["matrix", "masked"])
def test_array_subclasses_with_their_own_rules_are_refused(kind: str) -> None:
    """Beside tiled arrays too: as an argument, as the mask, and as a result. Nothing is written."""
    x = np.zeros(SMALL)
    other = np.asmatrix(x) if kind == "matrix" else np.ma.array(x, mask=True)
    tiled = tj.pack(x, LAYOUTS[1])
    run, both = tj.elementwise(lambda a: a + 1), tj.elementwise(lambda a, b: (a + b, a - b))
    with pytest.raises(TypeError, match=r"argument 0: expected a plain NumPy array"):
        run(other, layout=LAYOUTS[1])
    with pytest.raises(TypeError, match=r"argument 1: expected a plain NumPy array"):
        both(tiled, other)
    with pytest.raises(TypeError, match=r"where: expected a plain NumPy array"):
        run(tiled, out=tiled, where=other.astype(bool))
    with pytest.raises(TypeError, match="plain or tiled"):
        both(x, x + 1, out=(tiled, other))
    assert not tiled.unpack().any()


@pytest.mark.full
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_outside_the_arrays_is_touched(layout: str, at_end: bool) -> None:
    x = RNG.random(LARGE, np.float32)
    packed = tj.pack(x * 2, layout)
    source, target = Guarded(x.nbytes), Guarded(packed.nbytes)
    plain = source.place(x.nbytes, at_end=at_end).view(np.float32).reshape(LARGE)
    plain[...] = x
    out = tj.TiledArray(target.place(packed.nbytes, at_end=at_end).view(np.float32), packed.layout)
    tj.elementwise(lambda a: a * 2)(plain, out=out)
    assert out.buffer.tobytes() == packed.buffer.tobytes()
    assert target.untouched()
    tj.elementwise(lambda a: a * 2)(plain, out=out, where=x > 0.5)
    assert np.array_equal(out.unpack(), x * 2)


def test_the_source_shows_the_packing() -> None:
    """Block by block: padding, reads, the kernel and writes, in the order in which they run."""
    run = tj.elementwise(lambda a, b: a * 2 + b)
    x = RNG.random((1003, 517), np.float32)
    run(tj.pack(x, "{0,1:T(8,128)}"), x, layout="{1,0:T(8,128)}")
    titles = [line[2:] for line in run.source.splitlines() if re.match("# (The|Each|All)", line)]
    assert titles[:2] == ["The padding of out", "Each block of a, into the cache"]
    assert re.fullmatch(r"Each block of \d+x\d+ elements", titles[2])
    assert titles[3:] == ["Each block of out, from the cache"]
    parts = re.split("(?m)^# (?:The|Each|All)[^\n]*\n", run.source)[1:]
    assert all("def " in part for part in parts)
    assert "def expression_" in parts[2]
    assert "transposed(" in parts[1]
    assert run.schedule.count("# ") == 4
    for kernel in re.findall(r"def (\w+)\(", run.source):
        assert kernel in run.llvm
    assert "fill" in parts[0]
    assert run.asm


def test_the_source_of_small_results_shows_their_pack() -> None:
    """It is that of `plan_pack`; plain calls that follow show none, also where native code answers them."""
    run = tj.elementwise(lambda a, b: (a + b, a > b))
    x = RNG.random(SMALL, np.float32)
    run(x, x)
    plain = run.source
    run(x, x, layout="{1,0:T(8,128)}")
    packs = [tj.plan_pack("{1,0:T(8,128)}", SMALL, dtype).source for dtype in (np.float32, bool)]
    titles = ("# All elements", "# Result 0 is packed", "# Result 1 is packed")
    expected = [f"{title}\n{text}" for title, text in zip(titles, (plain, *packs), strict=True)]
    assert run.source == "\n".join(expected)
    for _ in range(100):
        run(x, x)
        assert run.source == plain
