"""Every routine gives NumPy's result, for arrays of every dtype and stride pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.numpy_api.drawn as drawn
import tilejit as tj
from tests.numpy_api.drawn import assert_same, outcome
from tests.tools.extent import examples

pytestmark = pytest.mark.usefixtures("kernels_for_all_sizes")

EXAMPLES = settings(max_examples=examples(8, full=150), deadline=None)


@EXAMPLES
@given(drawn.arrays(), st.sampled_from("CFAK"), st.booleans())
def test_copy(x: Any, order: str, subok: bool) -> None:
    assert_same(outcome(tj.copy, x, order, subok), outcome(np.copy, x, order, subok))


@EXAMPLES
@given(drawn.arrays(), st.sampled_from(("C", "F", "A", "K", None)), st.sampled_from((True, False, None)))
def test_array_and_asarray(x: Any, order: Any, copy: bool | None) -> None:
    for mine, theirs in ((tj.array, np.array), (tj.asarray, np.asarray)):
        ours, expected = (outcome(f, x, order=order, copy=copy) for f in (mine, theirs))
        assert_same(ours, expected)
        assert np.may_share_memory(ours[0], x) == np.may_share_memory(expected[0], x) or x.size == 0


@pytest.mark.full
@pytest.mark.parametrize("name", ["array", "asarray"])
def test_order_a_of_conversions(name: str) -> None:
    """NumPy keeps the order of axes in a conversion. Without one, the result is in C order."""
    x = np.arange(680, dtype=np.float32).reshape(17, 40)[:, ::10].T
    for y in (x, x.T, np.asfortranarray(x), x[:, :, None]):
        for dtype in (np.float64, np.float32):
            ours, theirs = (getattr(m, name)(y, dtype, order="A", copy=True) for m in (tj, np))
            assert ours.strides == theirs.strides
            assert np.array_equal(ours, theirs)


@pytest.mark.full
@EXAMPLES
@given(drawn.arrays(), st.integers(0, 6))
def test_ndmin(x: Any, ndmin: int) -> None:
    assert_same(outcome(tj.array, x, ndmin=ndmin), outcome(np.array, x, ndmin=ndmin))


@pytest.mark.full
@EXAMPLES
@given(drawn.arrays(), st.sampled_from((None, "f4", np.float64, "i2")))
def test_contiguous(x: Any, dtype: Any) -> None:
    for name in ("ascontiguousarray", "asfortranarray"):
        ours, theirs = (outcome(getattr(m, name), x, dtype) for m in (tj, np))
        assert_same(ours, theirs)
        if isinstance(theirs[0], np.ndarray):
            assert (ours[0] is x) == (theirs[0] is x)


@EXAMPLES
@given(
    drawn.arrays(),
    st.sampled_from((None, np.float32)),
    st.lists(st.sampled_from(["C", "F", "A", "W", "O", "E", "C_CONTIGUOUS", "FORTRAN", "X"]), max_size=3),
)
def test_require(x: Any, dtype: Any, requirements: list[str]) -> None:
    assert_same(outcome(tj.require, x, dtype, requirements), outcome(np.require, x, dtype, requirements))


NUMBERS = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i2")


@pytest.mark.full
@EXAMPLES
@given(
    st.sampled_from(NUMBERS).flatmap(lambda name: drawn.arrays(np.dtype(name))),
    st.sampled_from((*map(np.dtype, NUMBERS), *drawn.NARROW)),
    st.sampled_from("CFAK"),
    st.sampled_from(("no", "equiv", "safe", "same_kind", "unsafe")),
    st.booleans(),
)
def test_astype(x: Any, dtype: Any, order: str, casting: str, copy: bool) -> None:
    ours = outcome(tj.astype, x, dtype, order, casting, True, copy)
    theirs = outcome(x.astype, dtype, order, casting, True, copy)
    assert_same(ours, theirs)


@EXAMPLES
@given(drawn.arrays(), st.booleans())
def test_byteswap(x: Any, inplace: bool) -> None:
    ours, theirs = x.copy(), x.copy()
    assert_same(outcome(tj.byteswap, ours, inplace), outcome(theirs.byteswap, inplace))
    assert_same((ours, []), (theirs, []))


@pytest.mark.full
@EXAMPLES
@given(drawn.arrays(), st.sampled_from("CFAK"))
def test_tobytes(x: Any, order: str) -> None:
    if not x.dtype.hasobject:
        assert outcome(tj.tobytes, x, order) == outcome(x.tobytes, order)


@pytest.mark.full
@EXAMPLES
@given(drawn.arrays(), st.data())
def test_views_are_copied(x: Any, data: Any) -> None:
    rank = max(x.ndim, 1)
    axis = st.integers(-rank, rank - 1)
    calls = {
        "transpose": (data.draw(st.one_of(st.none(), st.permutations(range(x.ndim)))),),
        "moveaxis": (data.draw(axis), data.draw(axis)),
        "swapaxes": (data.draw(axis), data.draw(axis)),
        "rollaxis": (data.draw(axis), data.draw(axis)),
        "flip": (data.draw(st.one_of(st.none(), axis)),),
        "rot90": (data.draw(st.integers(-5, 5)), (0, 1)),
        "broadcast_to": ((2, *x.shape),),
    }
    for name, arguments in calls.items():
        theirs, warned = outcome(getattr(np, name), x, *arguments)
        if isinstance(theirs, np.ndarray):
            theirs = theirs.copy(order="C")
        ours = outcome(getattr(tj, name), x, *arguments)
        assert_same(ours, (theirs, warned))
        if isinstance(theirs, np.ndarray):
            out = np.empty_like(theirs)
            assert getattr(tj, name)(x, *arguments, out=out) is out
            assert_same((out, []), (theirs, []))


@EXAMPLES
@given(drawn.arrays(), st.data())
def test_roll(x: Any, data: Any) -> None:
    axis = data.draw(st.one_of(st.none(), st.integers(-5, 4), st.lists(st.integers(-3, 3), max_size=3)))
    shift = data.draw(st.one_of(st.integers(-20, 20), st.lists(st.integers(-9, 9), min_size=1, max_size=3)))
    assert_same(outcome(tj.roll, x, shift, axis), outcome(np.roll, x, shift, axis))


@pytest.mark.full
@EXAMPLES
@given(drawn.dtypes().flatmap(lambda d: drawn.arrays(d, 1)), st.integers(1, 4), st.data())
def test_concatenate_and_stack(x: Any, count: int, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    parts = []
    for _ in range(count):
        order = data.draw(st.permutations(range(x.ndim)))
        made = np.empty([x.shape[k] for k in order], x.dtype).transpose(np.argsort(order))
        made[...] = x
        if data.draw(st.integers(0, 6)) == 0:
            made = made[..., : made.shape[-1] // 2]
        parts.append(made)
    for mine, theirs in ((tj.concatenate, np.concatenate), (tj.stack, np.stack)):
        assert_same(outcome(mine, parts, axis), outcome(theirs, parts, axis))


@pytest.mark.full
@EXAMPLES
@given(
    st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3),
    st.sampled_from((None, "f4", "i2", "c16")),
    st.sampled_from(("no", "safe", "same_kind", "unsafe")),
    st.booleans(),
)
def test_concatenate_of_types(names: list[str], dtype: Any, casting: str, given_out: bool) -> None:
    parts = [drawn.content(np.dtype(name), (5, 3), k) for k, name in enumerate(names)]
    keywords: dict[str, Any] = {"casting": casting}
    results = []
    for routine in (tj.concatenate, np.concatenate):
        out = np.zeros((5 * len(parts), 3), dtype or "f8").T.copy().T
        keywords |= {"out": out} if given_out else {"dtype": dtype}
        results.append(outcome(routine, parts, 0, **keywords))
    assert_same(*results)


@EXAMPLES
@given(
    drawn.arrays(),
    st.one_of(
        st.integers(-1, 4),
        st.tuples(st.integers(0, 4), st.integers(0, 4)),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
        st.just([[1], [2]]),
    ),
    st.sampled_from(("constant", "edge", "wrap", "reflect", "nonsense")),
    st.sampled_from(({}, {"constant_values": 3}, {"constant_values": (1, 300)}, {"constant_values": -1.5})),
)
def test_pad(x: Any, widths: Any, mode: str, keywords: dict[str, Any]) -> None:
    ours, theirs = (outcome(m.pad, x, widths, mode, **keywords) for m in (tj, np))
    assert_same(ours, theirs)


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_pads_on_every_side(mode: Any) -> None:
    """Both modes that have kernels, with margins on either side alone."""
    x = np.arange(1.0, 300 * 200 + 1, dtype=np.float32).reshape(300, 200).T
    for widths in (1, ((2, 0), (0, 3)), ((0, 2), (3, 0))):
        np.testing.assert_array_equal(tj.pad(x, widths, mode), np.pad(x, widths, mode))


@EXAMPLES
@given(drawn.arrays(), st.data())
def test_take(x: Any, data: Any) -> None:
    axis = data.draw(st.one_of(st.none(), st.integers(-3, 3)))
    index = data.draw(st.lists(st.integers(-12, 12), max_size=6))
    mode = data.draw(st.sampled_from(("raise", "wrap", "clip")))
    assert_same(outcome(tj.take, x, index, axis, None, mode), outcome(np.take, x, index, axis, None, mode))


class Own(np.ndarray):
    """A user's subclass."""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transpose", ()),
        ("moveaxis", (0, 1)),
        ("swapaxes", (0, 1)),
        ("rollaxis", (1,)),
        ("flip", (0,)),
        ("rot90", ()),
        ("broadcast_to", ((5, 3, 4),)),
    ],
)
def test_docstrings_say_where_copies_replace_views(name: str, arguments: tuple[Any, ...]) -> None:
    x, ours = np.zeros((3, 4)), getattr(tj, name)
    assert np.shares_memory(getattr(np, name)(x, *arguments), x)
    assert not np.shares_memory(ours(x, *arguments), x)
    assert f"returns a copy in C order where numpy.{name} returns a view" in ours.__doc__.splitlines()[0]


def test_subclasses_are_numpys() -> None:
    x = np.arange(60000.0).reshape(200, 300)
    for given_array in (x.view(Own), np.ma.masked_array(x, x > 5), np.asmatrix(x)):
        for name in ("copy", "ascontiguousarray", "asfortranarray", "array", "asarray"):
            ours, theirs = (getattr(m, name)(given_array.T) for m in (tj, np))
            assert type(ours) is type(theirs)
            np.testing.assert_array_equal(ours, theirs)
        assert type(tj.concatenate([given_array, given_array])) is type(np.concatenate([given_array] * 2))


def test_no_kernel_runs_if_numpy_warns() -> None:
    """300 in uint8 gives NumPy's answer in any case."""
    x = np.zeros((100, 200), np.uint8)
    for value in (300, -1, 2.7, np.int64(300)):
        ours, theirs = (outcome(m.pad, x, 2, constant_values=value) for m in (tj, np))
        assert_same(ours, theirs)
