"""copyto against numpy.copyto: the same bytes, exceptions and warnings, for any arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.tools.extent import examples
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.strategies import Pick, chance, extents, one_of, strides
from tilejit.arrays.strided import overlaps_itself

pytestmark = pytest.mark.usefixtures("kernels_for_all_sizes")

Array = np.ndarray[Any, Any]

SAME = (
    *("?", "u1", "i2", "f2", "u4", "f4", "i8", "f8", "c8", "c16", "g", "G", ">i2", ">f8", ">c16"),
    *("S3", "S8", "U2", ">U3", "V5", "V24", "M8[us]", ">m8[s]", "i4,f4", "u1,(3,)u2,V1"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.float4_e2m1fn),
    np.dtype({"names": ["a", "b"], "formats": ["u1", "u4"], "offsets": [0, 4], "itemsize": 8}),
    np.dtype({"names": ["a", "b"], "formats": ["u4", "u2"], "offsets": [0, 2], "itemsize": 4}),
)
TO_BF16 = (np.dtype("f4"), np.dtype(ml_dtypes.bfloat16))
PAIRS = (
    *((np.dtype(t), np.dtype(t)) for t in SAME),
    *(
        (np.dtype(t), np.dtype(t).newbyteorder("S"))
        for t in ("i2", "f4", "u8", "c8", "c16", "U2", "M8[s]", "g")
    ),
    *(
        (np.dtype(a), np.dtype(b))
        for a in ("i1", "u2", "i4", "u8")
        for b in ("u1", "i2", "u4", "i8", "f4", "f8")
    ),
    *((np.dtype(a), np.dtype(b)) for a, b in (("f4", "f8"), ("f8", "f4"), ("f2", "f4"), ("?", "i4"))),
    *(
        (np.dtype(a), np.dtype(b))
        for a, b in (("f4", ">f8"), ("f8", "i4"), ("M8[s]", "M8[ms]"), ("S3", "S5"))
    ),
    TO_BF16,
    (np.dtype(ml_dtypes.bfloat16), np.dtype("f4")),
)


def content(rng: np.random.Generator, size: int, pair: tuple[Any, Any]) -> Array:
    """Random bytes, without signaling NaNs if NumPy warns about those and kernels cannot detect them."""
    made = rng.integers(0, 256, size, np.uint8)
    return made & 0xFB if pair == TO_BF16 else made


def outcome(copy: Callable[..., None], *arguments: Any, **keywords: Any) -> tuple[Any, list[str]]:
    """The type of exception that a copy ends with, or None, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            copy(*arguments, **keywords)
        except Exception as error:
            return type(error), [str(w.message) for w in seen]
    return None, [str(w.message) for w in seen]


class Case:
    """Two arrays in one block of memory or in two, which can be made again for each copy."""

    def __init__(self, pick: Pick) -> None:
        self.pair = one_of(pick, PAIRS)
        self.casting = one_of(pick, ("same_kind", "same_kind", "unsafe", "no", "safe"))
        self.threads = one_of(pick, (None, 1, 2))
        dims = extents(pick, 300)
        src_dims = list(dims)
        if chance(pick, 4):
            src_dims = [1 if chance(pick, 3) else n for n in dims][pick(0, len(dims)) :]
        elif chance(pick, 10):
            src_dims = [1, *dims]
        elif dims and chance(pick, 20):
            src_dims[0] += 1
        self.dims = tuple(dims), tuple(src_dims)
        odd = chance(pick, 10)
        self.strides = tuple(
            strides(pick, d, t.itemsize, broadcast=side == 1 or odd)
            for side, (d, t) in enumerate(zip(self.dims, self.pair[::-1], strict=True))
        )
        if self.pair[0] == self.pair[1] and self.dims[0] == self.dims[1] and chance(pick, 6):
            self.strides = self.strides[0], self.strides[0]
        spans = [
            span_bytes(t.itemsize, d, s)
            for t, d, s in zip(self.pair[::-1], self.dims, self.strides, strict=True)
        ]
        self.spans = spans
        self.together = chance(pick, 2)
        step = one_of(pick, (1, self.pair[1].itemsize, 64))
        self.at = pick(0, spans[1] // step) * step, pick(0, spans[0] // step) * step
        self.seed = pick(0, 1000)

    def arrays(self) -> tuple[Array, Array, list[Array]]:
        """The destination, the source, and their blocks of memory."""
        size = sum(self.spans) + max(self.at) + 64
        room = content(np.random.default_rng(self.seed), 2 * size, self.pair)
        rooms = [room] if self.together else [room[:size].copy(), room[size:].copy()]
        made = []
        for side, (dims, steps, dtype) in enumerate(
            zip(self.dims, self.strides, self.pair[::-1], strict=True)
        ):
            room = rooms[side % len(rooms)][self.at[side] :]
            made.append(strided_view(room[: max(1, self.spans[side])], dtype, dims, steps))
        return made[0], made[1], rooms

    def __repr__(self) -> str:
        return f"Case({vars(self)})"


@st.composite
def cases(draw: Any) -> Case:
    return Case(lambda low, high: draw(st.integers(low, high)))


@settings(max_examples=examples(66, full=300))
@given(cases())
def test_the_same_bytes_as_numpy(case: Case) -> None:
    dst, src, rooms = case.arrays()
    wanted_dst, wanted_src, wanted = case.arrays()
    if overlaps_itself(wanted_dst.shape, wanted_dst.strides, wanted_dst.itemsize):
        assume(not case.together)
    # A source copied first: with two strides in one dimension NumPy reads what it has written.
    expected = outcome(np.copyto, wanted_dst, wanted_src.copy(), case.casting)
    assert outcome(tj.copyto, dst, src, case.casting, threads=case.threads) == expected
    assert [r.tobytes() for r in rooms] == [r.tobytes() for r in wanted]


@pytest.mark.full
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p[0]} to {p[1]}")
def test_every_pair_of_dtypes(pair: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
    """A plain transpose of each pair, in addition to the random ones."""
    rng = np.random.default_rng(3)
    src = content(rng, 40 * 30 * pair[0].itemsize, pair).view(pair[0]).reshape(40, 30).T
    got, wanted = (np.zeros((30, 40), pair[1]) for _ in range(2))
    expected = outcome(np.copyto, wanted, src, "unsafe")
    assert outcome(tj.copyto, got, src, "unsafe") == expected
    assert got.tobytes() == wanted.tobytes()


N = 96
OVERLAPS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "itself": lambda a: (a, a),
    "a view of itself": lambda a: (a, a[:]),
    "transposed": lambda a: (a, a.T),
    "backwards": lambda a: (a, a[::-1, ::-1]),
    "one row on": lambda a: (a[1:], a[:-1]),
    "one row back": lambda a: (a[:-1], a[1:]),
    "one row of itself": lambda a: (a, a[5]),
    "left and right": lambda a: (a[:, : N // 2], a[:, N // 2 :]),
    "left and right, transposed": lambda a: (a[: N // 2, : N // 2], a[: N // 2, N // 2 :].T),
    "even and odd": lambda a: (a.ravel()[::2], a.ravel()[1::2]),
    "odd and even columns, backwards": lambda a: (a[:, 1::2], a[::-1, ::2]),
    "bytes of one another": lambda a: (a.view(np.uint8)[:, 1:N], a.view(np.uint8)[:, : N - 1]),
    "misaligned": lambda a: (a.ravel()[:-1], a.view(np.uint8).ravel()[2:-2].view(np.uint32)),
    "real and imaginary": lambda a: (a.view(np.complex64).real, a.view(np.complex64).imag),
    "every second": lambda a: (a.ravel()[1:99], a.ravel()[:196:2]),
    "the first half to every second": lambda a: (a.ravel()[::2], a.ravel()[: N * N // 2]),
    "a number of itself": lambda a: (a.ravel(), a[5, 5:6]),
    "narrower": lambda a: (a, a.view(np.uint16)[:, :N]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", OVERLAPS)
def test_overlap(name: str, threads: int) -> None:
    """As if src had been copied first."""
    base = np.random.default_rng(1).integers(0, 1 << 30, (N, N), np.uint32)
    wanted = base.copy()
    dst, src = OVERLAPS[name](wanted)
    np.copyto(dst, src.copy())
    got = base.copy()
    tj.copyto(*OVERLAPS[name](got), threads=threads)
    assert got.tobytes() == wanted.tobytes()


def read_only(dtype: Any = float) -> Array:
    a = np.zeros((4, 5), dtype)
    a.flags.writeable = False
    return a


def every_trouble() -> Array:
    a = np.ones((9, 9))
    a[0, :3] = 1e-300, np.array(0x7FF0000000000001).view("f8"), 1e300
    return a


class Foreign:
    """Another library's array, with its own functions."""

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> str:
        raise KeyError(function.__name__)


CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "no array": lambda: ([1, 2], [3, 4]),
    "other shape": lambda: (np.zeros((4, 5)), np.zeros((5, 4))),
    "more dimensions": lambda: (np.zeros(5), np.zeros((2, 5))),
    "leading ones": lambda: (np.zeros(5), np.ones((1, 1, 5))),
    "into nothing": lambda: (np.zeros((0, 5)), np.ones((1, 5))),
    "nothing into something": lambda: (np.zeros((3, 5)), np.ones((0, 5))),
    "0-d": lambda: (np.zeros(()), np.array(5.0)),
    "0-d from one": lambda: (np.zeros(()), np.array([[5.0]])),
    "casting": lambda: (np.zeros(5, int), np.zeros(5)),
    "casting no": lambda: (np.zeros(5, ">i4"), np.zeros(5, "<i4"), "no"),
    "casting equiv": lambda: (np.zeros(5, ">i4"), np.arange(5, dtype="<i4"), "equiv"),
    "no such casting": lambda: (np.zeros(5), np.zeros(5), "sometimes"),
    "casting of no type": lambda: (np.zeros(5), np.zeros(5), 3),
    "read-only": lambda: (read_only(), np.zeros((4, 5))),
    "read-only and casting": lambda: (read_only(int), np.zeros((4, 5))),
    "where": lambda: (np.zeros((4, 5)), np.ones(5), "same_kind", np.arange(5) % 2 == 0),
    "where of another shape": lambda: (np.zeros((4, 5)), np.ones(5), "same_kind", np.ones(3, bool)),
    "where False": lambda: (np.zeros(5), np.ones(5), "same_kind", False),
    "where of integers": lambda: (np.zeros(5), np.ones(5), "same_kind", [1, 0, 1, 0, 1]),
    "a number": lambda: (np.zeros((4, 5), "f4"), 7),
    "a number too large": lambda: (np.zeros(5, "i1"), 300),
    "a scalar": lambda: (np.zeros((4, 5), "f4"), np.float64(7)),
    "lists": lambda: (np.zeros((2, 3)), [[1, 2, 3], [4, 5, 6]]),
    "ragged lists": lambda: (np.zeros((2, 3)), [[1, 2, 3], [4, 5]]),
    "text": lambda: (np.zeros(3, "U2"), "ab"),
    "longer text": lambda: (np.zeros(3, "U2"), np.array(["abc", "d", "efgh"]), "same_kind"),
    "objects": lambda: (np.zeros(3, object), np.array([1, "a", None], object)),
    "objects inside": lambda: (np.zeros(2, "i4,O"), np.array([(1, "a"), (2, None)], "i4,O")),
    "variable strings": lambda: (
        np.zeros(2, np.dtypes.StringDType()),
        np.array(["a", "a long one, not within"], np.dtypes.StringDType()),
    ),
    "nothing wide": lambda: (np.zeros(3, "V0"), np.zeros(3, "V0")),
    "another order of fields": lambda: (np.zeros(3, "i4,f4"), np.zeros(3, [("f1", "f4"), ("f0", "i4")])),
    "masked": lambda: (np.ma.zeros(3), np.ma.array([1, 2, 3], mask=[0, 1, 0])),
    "matrix": lambda: (np.asmatrix(np.zeros((2, 3))), np.asmatrix(np.ones((2, 3)))),
    "records": lambda: (np.zeros(3, "i4,f4").view(np.recarray), np.ones(3, "i4,f4").view(np.recarray)),
    "a foreign source": lambda: (np.zeros(3), Foreign()),
    "a foreign destination": lambda: (Foreign(), np.zeros(3)),
    "itself, read-only": lambda: (lambda a: (a, a))(read_only()),
    "sharing elements": lambda: (
        np.lib.stride_tricks.as_strided(np.zeros(8), (4, 5), (8, 8)),
        np.arange(20.0).reshape(4, 5),
    ),
    "complex to real": lambda: (np.zeros(3), np.ones(3, complex), "unsafe"),
    "overflow": lambda: (np.zeros((9, 9), "f4"), np.full((9, 9), 1e300)),
    "a NaN that signals": lambda: (np.zeros(9), np.full(9, 0x7F800001, np.uint32).view("f4")),
    "all at once": lambda: (np.zeros((9, 9), "f4"), every_trouble()),
    "underflow": lambda: (np.zeros((9, 9), "f4"), np.full((9, 9), 1e-300)),
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("errors", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_exceptions_and_warnings(name: str, errors: Any) -> None:
    wanted, got = CALLS[name](), CALLS[name]()
    with np.errstate(all=errors):
        expected = outcome(np.copyto, *wanted)
        assert outcome(tj.copyto, *got) == expected
    if isinstance(wanted[0], np.ndarray):
        assert str(got[0].tolist()) == str(wanted[0].tolist())


def test_floating_point_flags_of_all_threads_count() -> None:
    src = np.ones((2000, 1000))
    src[-1, -1] = 1e300
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        tj.copyto(np.zeros(src.shape, np.float32), src, threads=2)


def test_a_memory_mapped_file(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "file", np.float32, "w+", shape=(30, 40))
    tj.copyto(mapped, np.arange(1200, dtype=np.float32).reshape(40, 30).T)
    assert mapped[3, 7] == 7 * 30 + 3


def test_objects_that_convert_to_an_array() -> None:
    class Exporter:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            return np.arange(6.0).reshape(2, 3)

    out = np.zeros((2, 3))
    tj.copyto(out, Exporter())
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]
    tj.copyto(out.ravel().view(np.uint8), memoryview(b"\0" * 48))
    assert not out.any()


def test_many_dimensions() -> None:
    src = (
        np.arange(1 << 12, dtype=np.uint16)
        .reshape((2,) * 12 + (1,) * 12)
        .transpose(*range(0, 24, 2), *range(1, 24, 2))
    )
    out = np.zeros(src.shape, np.uint16).transpose(*reversed(range(24)))
    out = np.zeros(out.shape, np.uint16)
    tj.copyto(out, src.reshape(src.shape).transpose(*reversed(range(24))))
    assert (out == src.transpose(*reversed(range(24)))).all()


def test_pairs_in_more_loops_than_a_kernel_has() -> None:
    """The outer loops become a table. The two elements that move as one stay together."""
    src = np.arange(3**8 * 2, dtype=np.float32).reshape(*(3,) * 8, 2)
    order = *reversed(range(8)), 8
    got = np.zeros_like(src)
    tj.copyto(got, src.transpose(order))
    assert np.array_equal(got, src.transpose(order))


def test_large_elements() -> None:
    src = np.random.default_rng(0).integers(0, 256, (7, 100_000), np.uint8).view("V100000")
    out = np.zeros((7, 2), "V100000")
    tj.copyto(out[::-1, 1:], src)
    assert out[::-1, 1].tobytes() == src.tobytes()
    assert set(out[:, 0].tobytes()) == {0}


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16", "V3", "V12"])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_outside_is_touched(dtype: str, at_end: bool) -> None:
    kind = np.dtype(dtype)
    rng = np.random.default_rng(7)
    guarded = [Guarded(1 << 17) for _ in range(2)]
    pick: Pick = lambda low, high: int(rng.integers(low, high + 1))  # noqa: E731
    for _ in range(60):
        dims = extents(pick, 1500)
        steps = [strides(pick, dims, kind.itemsize, broadcast=side == 1, reach=1 << 13) for side in range(2)]
        sizes = [span_bytes(kind.itemsize, dims, s) for s in steps]
        if overlaps_itself(dims, steps[0], kind.itemsize) or max(sizes) > 1 << 16:
            continue
        gap = pick(0, 63) if chance(pick, 2) else 0
        places = [g.place(max(1, n), at_end=at_end, gap=gap) for g, n in zip(guarded, sizes, strict=True)]
        dst, src = (strided_view(p, kind, dims, s) for p, s in zip(places, steps, strict=True))
        places[1][:] = rng.integers(0, 256, len(places[1]), np.uint8)
        before = places[0].copy()
        tj.copyto(dst, src, threads=one_of(pick, (1, 2)))
        assert all(g.untouched() for g in guarded)
        wanted = strided_view(before, kind, dims, steps[0])
        np.copyto(wanted, src)
        assert places[0].tobytes() == before.tobytes()


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"virtual_vector_size": "wide"}, tj.LayoutError, '"auto"'),
        ({"virtual_vector_size": 0}, tj.LayoutError, "at least one"),
        ({"virtual_vector_size": (4, -1)}, tj.LayoutError, "at least one"),
        ({"virtual_vector_size": (4, 4, 4)}, tj.LayoutError, "3 numbers"),
        ({"virtual_vector_size": 4.0}, TypeError, "float"),
        ({"virtual_vector_size": True}, TypeError, "bool"),
        ({"virtual_vector_size": None}, TypeError, "NoneType"),
        ({"virtual_vector_size": (4, 4.0)}, TypeError, "float"),
        ({"specialize": "shape"}, tj.LayoutError, '"sizes"'),
        ({"specialize": 1}, TypeError, "int"),
        ({"tune": 1}, TypeError, "int"),
        ({"threads": 0}, tj.KernelError, "at least one"),
        ({"threads": "2"}, TypeError, "str"),
    ],
)
@pytest.mark.parametrize("call", [tj.copyto, tj.plan_copy], ids=["copyto", "plan_copy"])
def test_keywords_refused(call: Any, keywords: dict[str, Any], error: type[Exception], text: str) -> None:
    dst = np.zeros((30, 40))
    with pytest.raises(error, match=text):
        call(dst, np.ones((40, 30)).T, **keywords)
    assert not dst.any()


@pytest.mark.full
@pytest.mark.parametrize("size", [1, 3, 64, (1, 1), (2, 8), (16, 16), (5, 3), (64, 64)], ids=str)
@pytest.mark.parametrize("specialize", ["structure", "sizes"])
def test_tuned_copies_give_the_same_bytes(size: Any, specialize: str) -> None:
    src = np.arange(90 * 70, dtype=np.uint16).reshape(90, 70)
    for view in (src, src.T, src[::-2, 3:50]):
        out = np.zeros(view.shape, np.uint16)
        tj.copyto(out, view, virtual_vector_size=size, specialize=specialize)
        assert (out == view).all()


@pytest.mark.parametrize("window", [False, True], ids=["repeated", "overlapping"])
@pytest.mark.parametrize("rows", [2, 3, 8])
def test_rows_that_share_bytes_at_constant_strides(rows: int, window: bool) -> None:
    line = np.arange(130 + rows, dtype=np.uint16)
    whole = (
        np.lib.stride_tricks.sliding_window_view(line, 130)
        if window
        else np.broadcast_to(line, (9, 130 + rows))
    )
    for view in (whole[:rows].T, whole[rows - 1 :: -1].T, whole[:rows, ::-1].T):
        out = np.zeros(view.shape, np.uint16)
        tj.copyto(out, view, specialize="sizes")
        assert (out == view).all()


OFTEN = 1100
"""Calls of a kind after which native code answers it."""


def test_frequent_copies() -> None:
    dst, src = np.zeros((70, 90), np.float32), np.arange(6300, dtype=np.float32).reshape(90, 70).T
    for k in range(OFTEN):
        dst[...], src[...] = 0, src[::-1] if k % 2 else src + 1
        tj.copyto(dst, src)
        assert (dst == src).all(), k
    room = np.arange(8100, dtype=np.float32).reshape(90, 90)
    wanted = room[:70].T.copy()
    for _ in range(OFTEN):
        room[...] = np.arange(8100, dtype=np.float32).reshape(90, 90)
        tj.copyto(room[:, :70], room[:70].T)
        assert (room[:, :70] == wanted).all()
    dst.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tj.copyto(dst, src)
    with pytest.raises(TypeError, match="'no'"):
        tj.copyto(np.zeros((70, 90)), src, casting="no")


def test_frequent_copies_warn_each_time() -> None:
    dst, src = np.zeros((70, 90), np.float32), np.full((70, 90), 1e300)
    for _ in range(OFTEN):
        with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
            tj.copyto(dst, src)
