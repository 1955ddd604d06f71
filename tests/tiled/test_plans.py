"""Plans of packs, unpacks and relayouts, and repeated calls, give the results and errors of first calls."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.runtime.direct_calls import supported
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded
from tests.tools.oracle import run_python
from tilejit.arrays.values import elements
from tilejit.programs.direct_policy import PLANS_UNTIL

REPEATS = PLANS_UNTIL + 2

LAYOUTS = [
    ("f32", (3, 5), "{1,0:T(2,2)}"),
    ("f32", (64, 256), "{1,0:T(8,128)}"),
    ("f64", (9, 33), "{0,1:T(8,128)}"),
    ("bf16", (33, 300), "{1,0:T(8,128)(2,1)}"),
    ("s8", (40, 130), "{1,0:T(8,128)(4,1)}"),
    ("s4", (64, 256), "{1,0:T(64,128)(8,1)E(4)}"),
    ("pred", (20, 130), "{1,0:E(1)}"),
    ("c64", (7, 9), "{0,1}"),
    ("u16", (4, 8), "(4,8):(8,1)"),
    ("f32", (0, 5), "{1,0:T(2,2)}"),
    ("f32", (), "{}"),
    ("u8", (512, 640), "{1,0:T(8,128)(4,1)}"),
    ("f32", (2, 20, 5, 7), "nChw16c"),
    ("f32", (33, 40), "blis-a, mr=8"),
]
IDS = [f"{dtype}{list(dims)} {layout}" for dtype, dims, layout in LAYOUTS]


def values(dtype: str, dims: tuple[int, ...], seed: int = 0) -> Any:
    kind = tj.Shape.parse(f"{dtype}[2]").dtype
    numbers = np.random.default_rng(seed).integers(-8, 8, dims)
    if dtype == "pred":
        return np.asarray(numbers > 0)
    return np.asarray(np.abs(numbers) if dtype.startswith("u") else numbers).astype(kind)


def spoil(array: Any) -> None:
    """Overwrite every element, so that the next call must write it."""
    array[...] = np.full(array.itemsize, 0xA5, np.uint8).view(array.dtype)[0]


def in_turns(*calls: Any) -> Iterator[list[Any]]:
    """The results of each call, in turn, until native code may answer them."""
    for _ in range(REPEATS):
        yield [call() for call in calls]


@pytest.mark.full
@pytest.mark.parametrize(("dtype", "dims", "layout"), LAYOUTS, ids=IDS)
@pytest.mark.parametrize("order", ["C", "F", "reversed"])
def test_repeated_calls_equal_the_first(dtype: str, dims: tuple[int, ...], layout: str, order: str) -> None:
    x = np.asarray(values(dtype, dims), order="F" if order == "F" else "C")
    x = x[tuple(slice(None, None, -1) for _ in dims)] if order == "reversed" and dims else x
    t = tj.pack(x, layout)
    out, flat, loose = tj.pack(x, layout), np.empty_like(t.buffer), np.empty_like(x)
    back = np.asarray(t)
    assert back.tobytes() == x.tobytes()
    for made in in_turns(
        lambda: tj.pack(x, layout),
        lambda: tj.pack(x, layout, out=out),
        lambda: tj.pack(x, layout, out=flat),
        lambda: tj.unpack(t),
        lambda: t.unpack(out=loose),
        lambda: tj.relayout(t, t.layout),
        lambda: t.relayout(layout, out=out),
    ):
        packed, into, wrapped, array, given, moved, again = made
        assert into is out is again
        assert wrapped.buffer is flat
        assert given is loose
        assert packed.layout == wrapped.layout == moved.layout == t.layout
        assert len({each.buffer.ctypes.data for each in (packed, out, wrapped, moved, t) if x.size}) in (0, 5)
        for each in (packed, into, wrapped, moved):
            assert each.buffer.tobytes() == t.buffer.tobytes()
        assert array.tobytes() == given.tobytes() == back.tobytes()
        assert array.dtype == x.dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        for each in (out.buffer, flat, loose):
            spoil(each)


@pytest.mark.parametrize(("dtype", "dims", "layout"), LAYOUTS, ids=IDS)
def test_plans_equal_the_calls(dtype: str, dims: tuple[int, ...], layout: str) -> None:
    x = values(dtype, dims)
    t = tj.pack(x, layout)
    packs = tj.plan_pack(layout, dims, t.layout.element)
    unpacks = tj.plan_unpack(layout, dims, t.layout.element)
    moves = tj.plan_relayout(t.layout, t.layout)
    out, loose = tj.TiledArray(np.empty_like(t.buffer), t.layout), np.empty_like(x)
    for packed, into, array, given, moved in in_turns(
        lambda: packs(x),
        lambda: packs(x, out),
        lambda: unpacks(t),
        lambda: unpacks(t, out=loose),
        lambda: moves(t),
    ):
        assert into is out
        assert given is loose
        assert packed.buffer.tobytes() == out.buffer.tobytes() == moved.buffer.tobytes() == t.buffer.tobytes()
        assert array.tobytes() == loose.tobytes() == x.tobytes()
        spoil(loose)
        spoil(out.buffer)


@pytest.mark.full
def test_conversions_byte_orders_and_strides() -> None:
    x = np.arange(60, dtype=">f4").reshape(6, 10)
    pack = tj.plan_pack("{1,0:T(2,2)}", x.shape, x.dtype)
    narrow = tj.plan_pack("bf16[6,10]{0,1}", x.shape, np.float32, casting="unsafe")
    wide = tj.plan_unpack("f32[6,10]{1,0:T(2,2)}", result_dtype=">f8", casting="safe", strides=(-80, 8))
    out = np.zeros((6, 10), ">f8")[::-1]
    for _ in range(REPEATS):
        t = pack(x)
        assert np.asarray(t).tobytes() == x.astype("f4").tobytes()
        assert np.asarray(narrow(x.astype("f4"))).tobytes() == x.astype(ml_dtypes.bfloat16).tobytes()
        assert wide(t, out) is out
        assert np.array_equal(out, x)


def test_ranges_are_checked_at_every_call() -> None:
    layout, good = "s4[8,8]{1,0:E(4)}", np.full((8, 8), 7, np.int8)
    bad = good + np.int8(1)
    plan = tj.plan_pack(layout, (8, 8), np.int8)
    out = tj.pack(good, layout)
    before = out.buffer.copy()
    for _ in range(REPEATS):
        assert np.array_equal(plan(good).buffer, before)
        for call in (plan, lambda x, t: tj.pack(x, layout, out=t)):
            with pytest.raises(tj.LayoutError, match="8"):
                call(bad, out)
        assert np.array_equal(out.buffer, before)


def test_padding_is_kept_only_in_out() -> None:
    x = values("f32", (3, 5))
    plan = tj.plan_pack("{1,0:T(2,2)}", (3, 5), "f32", padding="keep")
    out = np.full(24, 9, np.float32)
    for _ in range(REPEATS):
        with pytest.raises(tj.LayoutError, match="keep"):
            plan(x)
        assert (plan(x, out).buffer == 9).sum() == 9
        assert np.array_equal(np.asarray(plan(x, out)), x)


REFUSED: list[tuple[str, type[Exception], Any]] = [
    ("a list", TypeError, lambda x, t, flat: ([[1.0]], None)),
    ("another shape", tj.LayoutError, lambda x, t, flat: (np.ones((5, 3), np.float32), flat)),
    ("another dtype", tj.LayoutError, lambda x, t, flat: (x.astype(np.float64), flat)),
    ("other strides", tj.LayoutError, lambda x, t, flat: (np.asfortranarray(x), flat)),
    ("a short buffer", tj.LayoutError, lambda x, t, flat: (x, flat[:-1])),
    ("a strided buffer", tj.LayoutError, lambda x, t, flat: (x, np.zeros(48, np.float32)[::2])),
    ("another dtype of out", tj.LayoutError, lambda x, t, flat: (x, flat.view(np.int32))),
    ("another layout", tj.LayoutError, lambda x, t, flat: (x, tj.pack(x, "{1,0}"))),
    ("text", TypeError, lambda x, t, flat: (x, "out")),
]


@pytest.mark.parametrize(("error", "arguments"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused_calls_write_nothing(error: type[Exception], arguments: Any) -> None:
    """Also after native code answered similar calls."""
    x = values("f32", (3, 5))
    plan = tj.plan_pack("{1,0:T(2,2)}", (3, 5), "f32")
    t, flat = tj.pack(x, "{1,0:T(2,2)}"), np.full(24, 7, np.float32)
    source, out = arguments(x, t, flat)
    for _ in range(REPEATS):
        plan(x), plan(x, t), plan(x, np.empty_like(flat))
        before = [np.array(each).tobytes() for each in (flat, out) if isinstance(each, np.ndarray)]
        with pytest.raises(error):
            plan(source, out)
        assert before == [np.array(each).tobytes() for each in (flat, out) if isinstance(each, np.ndarray)]


def test_read_only_overlapping_and_resized_memory_is_refused() -> None:
    memory = np.zeros(64, np.float32)
    x, out = memory[:15].reshape(3, 5), memory[8:32]
    fixed = np.zeros(24, np.float32)
    fixed.flags.writeable = False
    for _ in range(REPEATS):
        tj.pack(x, "{1,0:T(2,2)}", out=memory[40:64])
        for bad in (out, fixed):
            with pytest.raises(tj.LayoutError):
                tj.pack(x, "{1,0:T(2,2)}", out=bad)
    t = tj.pack(x, "{1,0:T(2,2)}", out=np.zeros(24, np.float32))
    for _ in range(REPEATS):
        t.unpack()
    t.buffer.resize(12, refcheck=False)
    for _ in range(REPEATS):
        with pytest.raises(tj.LayoutError):
            t.unpack()
        with pytest.raises(tj.LayoutError):
            tj.pack(x, "{1,0:T(2,2)}", out=t)


def test_equal_keys_are_different_arguments() -> None:
    """True equals 1 and 1.0 as a key, but a call that has seen 1 still refuses them."""
    x = values("f32", (16, 16))
    for _ in range(REPEATS):
        tj.pack(x, "{1,0}", threads=1)
        tj.pack(x, "blis-a", mr=8)
        for wrong in ({"threads": True}, {"threads": 1.0}):
            with pytest.raises(TypeError):
                tj.pack(x, "{1,0}", **wrong)
        with pytest.raises((TypeError, tj.LayoutError)):
            tj.pack(x, "blis-a", mr=8.0)
        negative = tj.pack(np.zeros((3, 3), np.float32), "{1,0:T(2,2)}", padding=-0.0)
        assert np.signbit(negative.buffer).sum() == 7
        assert not np.signbit(tj.pack(np.zeros((3, 3), np.float32), "{1,0:T(2,2)}", padding=0.0).buffer).any()


def test_uninitialized_objects_and_subclasses() -> None:
    """They go through Python."""

    class Mine(tj.TiledArray):
        __slots__ = ("more",)

    x = values("f32", (3, 5))
    t = tj.pack(x, "{1,0:T(2,2)}")
    plan = tj.plan_unpack(t.layout)
    for _ in range(REPEATS):
        plan(t)
    bare = object.__new__(tj.TiledArray)
    with pytest.raises(AttributeError):
        plan(bare)
    assert np.array_equal(plan(Mine(t.buffer, t.layout)), x)
    assert isinstance(tj.pack(x, t.layout, out=Mine(t.buffer.copy(), t.layout)), Mine)


@pytest.mark.full
def test_reference_counts_stay() -> None:
    """Reference counts of arguments and layouts stay, and unused results are freed."""
    x = values("f32", (3, 5))
    t = tj.pack(x, "{1,0:T(2,2)}")
    plan, unpack = tj.plan_pack(t.layout, x.shape, x.dtype), tj.plan_unpack(t.layout)
    out, flat = tj.pack(x, t.layout), np.empty(24, np.float32)
    calls = [(plan, (x,)), (plan, (x, out)), (plan, (x, flat)), (unpack, (t,)), (unpack, (t, x.copy()))]
    for call, arguments in calls:
        for _ in range(REPEATS):
            call(*arguments)
        things = [x, t, out, flat, t.layout, tj.TiledArray, t.buffer.dtype]
        gc.collect()
        before = [sys.getrefcount(thing) for thing in things]
        results = [call(*arguments) for _ in range(50)]
        del results
        gc.collect()
        after = [sys.getrefcount(thing) for thing in things]
        assert all(abs(a - b) <= 2 for a, b in zip(after, before, strict=True)), (before, after)


def test_plans_are_pickled_copied_and_shown() -> None:
    x = values("f32", (3, 5))
    t = tj.pack(x, "{1,0:T(2,2)}")
    for plan, given in (
        (tj.plan_pack("{1,0:T(2,2)}", x.shape, x.dtype), x),
        (tj.plan_unpack(t.layout), t),
        (tj.plan_relayout(t.layout, "{0,1}"), t),
    ):
        plan(given), plan(given)
        other = pickle.loads(pickle.dumps(plan))
        assert np.asarray(other(given)).tobytes() == np.asarray(plan(given)).tobytes()
        assert "f32[3,5]{1,0:T(2,2)}" in repr(plan)


def test_between_guard_pages() -> None:
    source, target, flat = (Guarded(1 << 17) for _ in range(3))
    for dtype, dims, layout in LAYOUTS[:9]:
        x = values(dtype, dims)
        t = tj.pack(x, layout)
        for at_end in (False, True):
            room = source.place(x.nbytes, at_end=at_end).view(x.dtype).reshape(dims)
            room[...] = x
            memory = target.place(t.nbytes, at_end=at_end).view(t.buffer.dtype)
            back = flat.place(x.nbytes, at_end=at_end).view(x.dtype).reshape(dims)
            for _ in range(4):
                memory.view(np.uint8)[...] = back.view(np.uint8)[...] = 0
                packed = tj.pack(room, layout, out=memory)
                assert memory.tobytes() == t.buffer.tobytes()
                assert packed.unpack(out=back).tobytes() == x.tobytes()
            assert target.untouched()
            assert flat.untouched()


def test_threads_share_plans_while_caches_are_cleared() -> None:
    arrays = [values("f32", (8 * k, 128), k) for k in range(1, 5)]

    def work(seed: int) -> bool:
        rng, fine = np.random.default_rng(seed), True
        for k in range(300):
            x = arrays[rng.integers(len(arrays))]
            t = tj.pack(x, "{1,0:T(8,128)}")
            fine &= np.array_equal(t.unpack(), x)
            fine &= np.array_equal(np.asarray(t.relayout("{0,1}")), x)
            if k % 97 == 0:
                tj.clear_caches()
        return fine

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


@pytest.mark.full
def test_direct_calls_can_be_disabled() -> None:
    code = (
        "import numpy as np, tilejit as tj\n"
        "x = np.arange(15, dtype=np.float32).reshape(3, 5)\n"
        "for _ in range(40):\n"
        "    t = tj.pack(x, '{1,0:T(2,2)}')\n"
        "    assert np.array_equal(t.unpack(out=np.empty_like(x)), x)\n"
        "print(type(type(tj.plan_unpack(t.layout)).__call__).__name__)"
    )
    for switch, kind in (("0", "function"), ("1", "method_descriptor" if supported() else "function")):
        done = run_python(code, TILEJIT_DIRECT_CALLS=switch)
        assert (done.stdout.strip(), done.stderr) == (kind, "")


SCALARS = [
    0,
    1,
    -1,
    2**24 + 1,
    2**40,
    3.5,
    1e-40,
    1e-30,
    6e4,
    1e300,
    float("nan"),
    True,
    np.float32(2.5),
    "x",
]


@pytest.mark.full
@pytest.mark.parametrize(
    "layout",
    [
        *(
            f"{x}[6,9]{{1,0:T(4,2)}}"
            for x in ("f16", "f32", "f64", "s8", "u16", "s64", "pred", "bf16", "c64")
        ),
        *(f"{x}[6,9]{{1,0:T(4,2)}}" for x in ("s4", "u2", "f8e4m3fn", "f4e2m1fn")),
        "s4[6,9]{1,0:T(4,2)E(4)}",
        "u2[6,9]{0,1:T(4,4)(2,1)E(2)}",
        "pred[6,9]{1,0:E(1)}",
        "f4e2m1fn[6,9]{1,0:T(4,2)E(4)}",
    ],
)
def test_elements_are_read_and_written_like_boxes(layout: str) -> None:
    """The fast path for plain keys and numbers gives what a slice of one element gives."""
    dtype = layout.partition("[")[0]
    t = tj.pack(values(dtype, (6, 9)), layout)
    other = t.copy()
    every = np.arange(1 << min(t.layout.element.bits, 8), dtype=np.uint8)
    own = list(every.view(t.dtype)) if t.dtype.itemsize == 1 else list(values(dtype, (4,)))
    for key in ((0, 0), (5, 8), (-1, -9), (np.int64(3), 4), (2, 2)):
        assert (
            t[key] == t[key[0] : key[0] + 1 or None, key[1] : key[1] + 1 or None].reshape(())
            or dtype == "c64"
        )
        assert type(t[key]) is t.dtype.type
        for value in (*SCALARS, *own):
            box = tuple(slice(k % n, k % n + 1) for k, n in zip(key, t.shape, strict=True))
            with np.errstate(all="raise"):
                answers = [assigned(t, key, value), assigned(other, box, value)]
            assert answers[0] == answers[1], (key, value)
            assert t.buffer.tobytes() == other.buffer.tobytes(), (key, value)
    for wrong in ((6, 0), (0, -10), (True, 0), (0.0, 0), (0,) * 3):
        with pytest.raises((IndexError, TypeError)):
            t[wrong]


def assigned(t: tj.TiledArray, key: Any, value: Any) -> str:
    try:
        t[key] = value
    except Exception as error:
        return type(error).__name__
    return ""


KEYS: list[Any] = [
    np.s_[2:5, ::2],
    np.s_[::-1, 3],
    np.s_[..., None, 1:2],
    np.s_[-3:, -4:-1],
    np.s_[4],
    np.s_[:],
    np.s_[None, 2, ...],
    np.s_[3:3],
    np.s_[0:100:7, 8::-3],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s4", "pred"])
def test_boxes_are_read_and_written_repeatedly(dtype: str, key: Any) -> None:
    x = values(dtype, (9, 10))
    t = tj.pack(x, f"{dtype}[9,10]{{1,0:T(4,2)}}")
    padded = t.buffer.copy()
    for number in range(REPEATS):
        found = t[key]
        assert found.dtype == x.dtype
        assert np.array_equal(found, x[key])
        assert not found.flags.writeable
        new = np.asarray(values(dtype, found.shape, number), order="F")
        t[key] = new
        x[key] = new
        assert np.asarray(t).tobytes() == x.tobytes()
        t[key] = t[key]
        assert np.asarray(t).tobytes() == x.tobytes()
    assert tj.pack(x, t.layout, out=padded, padding="keep").buffer.tobytes() == t.buffer.tobytes()


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "u16", "s4", "pred"])
def test_values_are_broadcast_to_boxes_repeatedly(dtype: str, key: Any) -> None:
    x = values(dtype, (9, 10))
    t = tj.pack(x, f"{dtype}[9,10]{{1,0:T(4,2)}}")
    shape = x[key].shape
    for number in range(REPEATS):
        for dims in ((), shape[-1:], (1, *shape), tuple(min(n, 1) for n in shape), (*shape[:-1], 1)):
            value = values(dtype, dims, number)
            t[key] = value
            x[key] = value
            assert np.asarray(t).tobytes() == x.tobytes()
        scalar = number if dtype != "pred" else number % 2 == 0
        for value in (scalar % 8, x.dtype.type(scalar % 8)):
            t[key] = value
            x[key] = value
            assert np.asarray(t).tobytes() == x.tobytes()
        with pytest.raises(tj.LayoutError, match="broadcast"):
            t[key] = values(dtype, (2, 11))
    assert np.asarray(t).tobytes() == x.tobytes()


CONVERTED: list[tuple[str, Any]] = [
    ("f32", np.float64),
    ("f32", np.int64),
    ("f32", np.bool_),
    ("f32", ml_dtypes.bfloat16),
    ("f32", ">f4"),
    ("f32", np.longdouble),
    ("bf16", np.float32),
    ("f16", np.float64),
    ("f8e4m3fn", np.float32),
    ("f4e2m1fn", np.float32),
    ("s32", np.int64),
    ("u8", np.int32),
    ("s32", np.float32),
    ("pred", np.int32),
    ("c64", np.float32),
    ("f32", np.complex64),
]
NARROW = [
    f"{name}{packed}"
    for bits in (1, 2, 4)
    for name in (f"s{bits}", f"u{bits}", *(["f4e2m1fn"] if bits == 4 else []))
    for packed in ("", f" E({bits})")
]
"""Elements of less than a byte, one per byte and packed."""
CONVERTED += [(name, dtype) for name in NARROW for dtype in (np.int8, np.uint8, np.int16)]


def layout_of(name: str) -> Any:
    """A layout of [9,10] for an element type, optionally with E(bits)."""
    element, _, packed = name.partition(" ")
    return tj.as_layout(f"{element}[9,10]{{1,0:T(4,2){packed}}}")


def narrow_integers(layout: Any, dims: tuple[int, ...]) -> Any:
    """-8 to 7 repeatedly, clipped to the range of an integer type."""
    return np.clip(np.arange(np.prod(dims)).reshape(dims) % 16 - 8, *layout.element.integer_range or (-8, 7))


@pytest.mark.parametrize("kind", ["", "narrow", "wild"])
@pytest.mark.parametrize(
    ("name", "dtype"), few_by_default(CONVERTED, 6), ids=lambda x: x if isinstance(x, str) else x.__name__
)
def test_values_of_other_dtypes_convert_like_elements(name: str, dtype: Any, kind: str) -> None:
    """Bytes and messages are those of `elements`, at every call. A refused value writes nothing."""
    layout, key = layout_of(name), np.s_[2:8, 1:9:2]
    rng = np.random.default_rng(7)
    numbers = np.eye(6, 4)
    if kind == "narrow":
        numbers = narrow_integers(layout, (6, 4)).astype(np.int64)
    if kind == "wild":
        numbers = rng.standard_normal((6, 4)) * 10.0 ** rng.integers(-9, 9, (6, 4))
        if np.dtype(dtype).kind in "fcV":
            numbers[0] = np.nan, np.inf, -np.inf, -0.0
    with np.errstate(all="ignore"):
        value = numbers.astype(dtype)
    t = tj.pack(np.zeros((9, 10), layout.dtype), layout)
    before, want, refused = t.buffer.tobytes(), np.asarray(t), ""
    try:
        with np.errstate(all="ignore"):
            want[key] = elements(value, layout.element)
    except (TypeError, tj.LayoutError) as error:
        refused = str(error)
    for _ in range(REPEATS):
        if refused:
            with pytest.raises((TypeError, tj.LayoutError)) as caught:
                t[key] = value
            assert (str(caught.value), t.buffer.tobytes()) == (refused, before)
        else:
            with np.errstate(all="ignore"):
                t[key] = value
            assert np.asarray(t).tobytes() == want.tobytes()
            spoil(t.buffer)
            t[:] = np.zeros((), layout.dtype)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in NARROW if not name.startswith("f")])
def test_byte_arrays_pack_as_converted_elements(name: str) -> None:
    """A pack stores the bytes of ml_dtypes' conversion: -7 as s4 is 0x09, as int8 0xF9."""
    layout = layout_of(name)
    x = narrow_integers(layout, (9, 10)).astype(layout.element.byte_dtype)
    want = tj.pack(x.astype(layout.dtype), layout).buffer.tobytes()
    t = tj.pack(np.zeros_like(x), layout)
    for _ in range(REPEATS):
        spoil(t.buffer)
        assert tj.pack(x, layout).buffer.tobytes() == tj.pack(x, layout, out=t).buffer.tobytes() == want
        spoil(t.buffer)
        keep = tj.pack(x.astype(layout.dtype), layout, out=t.buffer.copy(), padding="keep").buffer.tobytes()
        assert tj.pack(x, layout, out=t, padding="keep").buffer.tobytes() == keep
        t[1:] = 0
        t[:] = x
        assert np.array_equal(np.asarray(t), x)
        assert np.asarray(t).tobytes() == x.astype(layout.dtype).tobytes()


def test_scalars_of_other_dtypes_are_checked_at_every_call() -> None:
    t = tj.pack(np.zeros((9, 10), np.int8), "{1,0:T(4,2)}")
    for _ in range(REPEATS):
        for value in (np.float64(2.75), np.bool_(True), np.int64(3)):
            t[1:4] = value
            assert (np.asarray(t)[1:4] == np.int8(value)).all()
        before = t.buffer.tobytes()
        for wrong in (np.float64(200), np.float32("nan"), np.int64(200)):
            with pytest.raises(tj.LayoutError, match="s8"):
                t[1:4] = wrong
        assert t.buffer.tobytes() == before


def test_boxes_that_overlap_their_value() -> None:
    """As if the value had been copied first, at every call."""
    memory = np.zeros(8 * 128, np.float32)
    t = tj.TiledArray(memory, tj.as_layout("f32[8,128]{1,0:T(8,128)}"))
    for _ in range(REPEATS):
        t[:] = values("f32", (8, 128))
        want = np.asarray(t)
        value = memory.reshape(8, 128)[::-1]
        want[...] = want[::-1].copy()
        t[:] = value
        assert np.array_equal(np.asarray(t), want)
    memory.flags.writeable = False
    for _ in range(REPEATS):
        with pytest.raises(tj.LayoutError, match="read-only"):
            t[:] = np.zeros((8, 128), np.float32)


def test_messages_name_the_buffer_that_is_written() -> None:
    """An assignment to a slice has no `out`, whether a plan writes it or not."""
    t = tj.pack(values("f32", (8, 128)), "{1,0:T(8,128)}")
    t.buffer.flags.writeable = False
    for _ in range(REPEATS):
        for value in (np.zeros(128, np.float32), 1.0):
            with pytest.raises(tj.LayoutError, match="the buffer of this tiled array is read-only"):
                t[0] = value


def test_copies_have_separate_buffers() -> None:
    t = tj.pack(values("f32", (3, 5)), "{1,0:T(2,2)}")
    for other in (copy.copy(t), copy.deepcopy(t), t.copy()):
        other[0, 0] = 99
        assert t[0, 0] != 99


def test_plans_accept_parameters_of_formats() -> None:
    x = values("f32", (16, 20))
    t = tj.plan_pack("blis-a", x.shape, x.dtype, mr=4)(x)
    assert t.layout == tj.pack(x, "blis-a", mr=4).layout
    moved = tj.plan_relayout(t.layout, "blis-a", mr=8)(t)
    assert moved.buffer.tobytes() == tj.pack(x, "blis-a", mr=8).buffer.tobytes()
    assert np.array_equal(tj.plan_unpack("blis-a", x.shape, x.dtype, mr=4)(t), x)
