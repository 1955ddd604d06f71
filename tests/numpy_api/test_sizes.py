"""Around the sizes that decide between NumPy and TileJIT, both give the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.support.errors import KernelError
from tests.numpy_api.drawn import assert_same, outcome

Array = np.ndarray[Any, Any]

SHAPES = ((16, 16), (5,), (0, 70), (1, 1), (128, 128), (128, 63), (9000,), (8192, 1), (1, 9000), (3, 40, 90))
"""Fewer than 8192 elements, and at least as many; rows of 256 bytes, and shorter ones."""

VIEWS: dict[str, Callable[[Array], Array]] = {
    "itself": lambda x: x,
    "transposed": lambda x: x.T,
    "rows backwards": lambda x: x[::-1],
    "columns backwards": lambda x: x[..., ::-1],
    "every second row": lambda x: x[::2],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}

CALLS: dict[str, Callable[[Any, Array], Any]] = {
    "array": lambda m, x: m.array(x),
    "array F": lambda m, x: m.array(x, order="F"),
    "array of f64": lambda m, x: m.array(x, np.float64),
    "array, order None": lambda m, x: m.array(x, order=None),
    "array, four dimensions": lambda m, x: m.array(x, ndmin=4),
    "array without a copy": lambda m, x: m.array(x, copy=False, order="C"),
    "copy": lambda m, x: m.copy(x, "A"),
    "asarray": lambda m, x: m.asarray(x),
    "asarray C": lambda m, x: m.asarray(x, order="C"),
    "asarray, copied": lambda m, x: m.asarray(x, copy=True),
    "asarray of f8": lambda m, x: m.asarray(x, "f8"),
    "asarray, wrong device": lambda m, x: m.asarray(x, device="gpu"),
    "ascontiguousarray": lambda m, x: m.ascontiguousarray(x),
    "ascontiguousarray of i2": lambda m, x: m.ascontiguousarray(x, np.int16),
    "asfortranarray": lambda m, x: m.asfortranarray(x),
    "require": lambda m, x: m.require(x, np.float32, ["C", "A"]),
    "require, writeable": lambda m, x: m.require(x, None, "W"),
    "concatenate": lambda m, x: m.concatenate([x, x]),
    "concatenate, last axis": lambda m, x: m.concatenate((x, x[..., :1]), axis=-1),
    "concatenate, no such axis": lambda m, x: m.concatenate([x, x], 7),
    "concatenate, another rank": lambda m, x: m.concatenate([x, x[0]], 0),
    "concatenate, shorter shape": lambda m, x: m.concatenate([x[..., None], x], -1),
    "concatenate to f64": lambda m, x: m.concatenate([x, x], dtype="f8"),
    "concatenate, forbidden": lambda m, x: m.concatenate([x, x.astype("c16")], dtype="i1", casting="safe"),
    "concatenate, two dtypes": lambda m, x: m.concatenate([x, x.astype("i8")]),
    "stack": lambda m, x: m.stack([x, x]),
    "stack, last axis": lambda m, x: m.stack([x, x[::-1], x], -1),
    "stack of different ones": lambda m, x: m.stack([x, x[1:]]),
    "pad": lambda m, x: m.pad(x, 2),
    "take": lambda m, x: m.take(x, [0, 0], 0),
}

METHODS: dict[str, tuple[Callable[[Array], Any], Callable[[Array], Any]]] = {
    "astype f64": (lambda x: tj.astype(x, np.float64), lambda x: x.astype(np.float64)),
    "astype f64 F": (lambda x: tj.astype(x, np.float64, "F"), lambda x: x.astype(np.float64, "F")),
    "astype itself": (
        lambda x: tj.astype(x, x.dtype, copy=False),
        lambda x: x.astype(x.dtype, copy=False),
    ),
    "astype bf16": (lambda x: tj.astype(x, ml_dtypes.bfloat16), lambda x: x.astype(ml_dtypes.bfloat16)),
    "astype bool": (lambda x: tj.astype(x, bool), lambda x: x.astype(bool)),
    "astype safe": (
        lambda x: tj.astype(x, np.int8, casting="safe"),
        lambda x: x.astype(np.int8, casting="safe"),
    ),
    "astype, no such rule": (
        lambda x: tj.astype(x, np.int8, casting="what"),
        lambda x: x.astype(np.int8, casting="what"),
    ),
    "astype of nothing": (lambda x: tj.astype(x, ["f4"]), lambda x: x.astype(["f4"])),
    "byteswap": (tj.byteswap, lambda x: x.byteswap()),
    "tobytes": (tj.tobytes, lambda x: x.tobytes()),
    "tobytes F": (lambda x: tj.tobytes(x, "F"), lambda x: x.tobytes("F")),
    "tobytes A": (lambda x: tj.tobytes(x, "A"), lambda x: x.tobytes("A")),
    "tobytes, no such order": (lambda x: tj.tobytes(x, "Z"), lambda x: x.tobytes("Z")),
}


def arrays(dtype: Any) -> dict[str, Array]:
    found = {}
    for shape in SHAPES:
        x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
        found |= {f"{name} {shape}": view(x) for name, view in VIEWS.items()}
    return found


def check(case: str, ours: Any, theirs: Any) -> None:
    try:
        assert_same(ours, theirs)
    except AssertionError as error:
        raise AssertionError(case) from error


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f4", "u1", ml_dtypes.bfloat16], ids=["f4", "u1", "bf16"])
@pytest.mark.parametrize("name", [*CALLS])
def test_routines(name: str, dtype: Any) -> None:
    for case, x in arrays(dtype).items():
        ours, theirs = (outcome(CALLS[name], module, x) for module in (tj, np))
        check(case, ours, theirs)
        if isinstance(theirs[0], np.ndarray):
            assert (ours[0] is x) == (theirs[0] is x), case


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f4", "i2"])
@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str, dtype: str) -> None:
    mine, numpys = METHODS[name]
    for case, x in arrays(dtype).items():
        check(case, outcome(mine, x), outcome(numpys, x))


SWAPPED = ("ascontiguousarray", "asfortranarray", "concatenate", "stack", "pad", "take")


@pytest.mark.full
@pytest.mark.parametrize("name", [n for n in CALLS if n.split(",")[0].split()[0] in SWAPPED])
def test_swapped_routines(name: str) -> None:
    for case, x in arrays("f4").items():
        theirs = outcome(CALLS[name], np, x)
        with tj.accelerate():
            ours = outcome(CALLS[name], np, x)
        check(case, ours, theirs)


def test_swapped_routines_accept_threads() -> None:
    x = np.eye(3)
    with tj.accelerate():
        assert (np.concatenate([x, x], threads=1) == [*x, *x]).all()
        assert np.ascontiguousarray(a=x.T, threads=1).flags.c_contiguous
        assert np.pad(array=x, pad_width=1).shape == (5, 5)
        with pytest.raises(TypeError):
            np.concatenate()


EQUAL = (
    ("l", "q"),
    (np.dtype("f4", metadata={"a": 1}), np.dtype("f4", metadata={"a": 2})),
    (np.dtype("f4", metadata={"a": 1}), np.dtype("f4")),
    (np.dtype("i4,i4", align=True), np.dtype("i4,i4")),
    ("M8[s]", "M8[1000ms]"),
)

OF_DTYPES: dict[str, Callable[[Any, Array, Array], Any]] = {
    "array": lambda m, x, y: m.array(x, y.dtype),
    "array C": lambda m, x, y: m.array(x, y.dtype, order="C"),
    "copy": lambda m, x, y: m.copy(x, order="C"),
    "asarray C": lambda m, x, y: m.asarray(x, y.dtype, order="C"),
    "asarray": lambda m, x, y: m.asarray(x, y.dtype),
    "ascontiguousarray": lambda m, x, y: m.ascontiguousarray(x, y.dtype),
    "asfortranarray": lambda m, x, y: m.asfortranarray(x[::2], y.dtype),
    "require": lambda m, x, y: m.require(x, y.dtype, "C"),
    "concatenate one": lambda m, x, y: m.concatenate([x]),
    "concatenate": lambda m, x, y: m.concatenate([x, y, x]),
    "concatenate the same": lambda m, x, y: m.concatenate([x, x]),
    "stack": lambda m, x, y: m.stack([x, y]),
    "stack, interleaved": lambda m, x, y: m.stack([x.T, y.T], -1),
    "stack the same, interleaved": lambda m, x, y: m.stack([x.T, x.T], -1),
}


@pytest.mark.parametrize("dtypes", EQUAL, ids=str)
@pytest.mark.parametrize("name", OF_DTYPES)
def test_equal_dtypes_keep_their_identity(name: str, dtypes: Any) -> None:
    """They differ by "l" and "q", the metadata, the alignment or the text."""
    x, y = (np.zeros((300, 400), dtype).T for dtype in dtypes)
    for pair in ((x, y), (y, x)):
        told = [
            (made.dtype.char, made.dtype.metadata, made.dtype.isalignedstruct, str(made.dtype))
            for made in (OF_DTYPES[name](module, *pair) for module in (tj, np))
        ]
        assert told[0] == told[1]


@pytest.mark.full
@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_small_results_own_their_memory(order: Any) -> None:
    """In any order of axes, they can be resized in place, like NumPy's."""
    x = np.arange(20 * 60 * 10, dtype=np.float32).reshape(20, 60, 10)
    for view in (x, x[:, ::2], x.T, x.transpose(1, 0, 2), x.swapaxes(1, 2)[::-1], x.reshape(-1)[::-1]):
        ours, theirs = tj.astype(view, np.float64, order), view.astype(np.float64, order)
        assert_same((ours, []), (theirs, []))
        assert ours.flags.owndata


WITH_THREADS = {
    "copyto": lambda x, n: tj.copyto(x, 1, threads=n),
    "concatenate": lambda x, n: tj.concatenate([x], threads=n),
    "stack": lambda x, n: tj.stack([x], threads=n),
    "pad": lambda x, n: tj.pad(x, 1, threads=n),
    "take": lambda x, n: tj.take(x, [0], threads=n),
    "astype": lambda x, n: tj.astype(x, np.float64, threads=n),
    "roll": lambda x, n: tj.roll(x, 1, threads=n),
    "moveaxis": lambda x, n: tj.moveaxis(x, 0, 1, threads=n),
    "array": lambda x, n: tj.array(x.tolist(), threads=n),
    "copy": lambda x, n: tj.copy(x, threads=n),
    "asarray": lambda x, n: tj.asarray(x, threads=n),
    "ascontiguousarray": lambda x, n: tj.ascontiguousarray(x, threads=n),
    "asfortranarray": lambda x, n: tj.asfortranarray(x, threads=n),
    "require": lambda x, n: tj.require(x, threads=n),
    "byteswap": lambda x, n: tj.byteswap(x, threads=n),
    "tobytes": lambda x, n: tj.tobytes(x, threads=n),
    "flip": lambda x, n: tj.flip(x, threads=n),
}


@pytest.mark.parametrize("name", WITH_THREADS)
def test_threads_are_checked_even_if_numpy_copies(name: str) -> None:
    """A wrong number of threads is an error at any size."""
    call, x = WITH_THREADS[name], np.ones((3, 4), np.float32)
    with pytest.raises(KernelError, match="at least one thread"):
        call(x, 0)
    with pytest.raises(TypeError, match=r"threads: expected a number of threads or None, got float"):
        call(x, 2.5)
    assert np.array_equal(x, np.ones((3, 4)))
