"""Results of expressions have NumPy's memory order, whatever the orders of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.extent import examples
from tilejit.expressions.memory_orders import order_of_result
from tilejit.expressions.outputs import laid
from tilejit.expressions.recorded import Recordings, plain

EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "one argument": lambda x, y, z: x * 2.0,
    "the second": lambda x, y, z: np.sqrt(abs(y)),
    "two of three": lambda x, y, z: x - z,
    "a square and": lambda x, y, z: x * x + y,
    "three": lambda x, y, z: x + y * z,
    "a choice": lambda x, y, z: np.where(x > 0, y, z),
    "a choice of numbers": lambda x, y, z: np.where(x + y > 0, 1.5, z),
    "clipped": lambda x, y, z: np.clip(x, y, z),
    "clipped once": lambda x, y, z: x.clip(max=y) * z,
    "converted": lambda x, y, z: x.astype(np.float32),
    "converted and more": lambda x, y, z: x.astype(np.float32) + y,
    "converted last": lambda x, y, z: (y + z).astype(np.float32),
    "a sum of nothing": lambda x, y, z: np.sum(x, axis=()) + y,
    "several": lambda x, y, z: (x + y, -z, y * 2 - x),
    "often": lambda x, y, z: ((x + 1) * (y + 1) - x) / (z * z + 1) + np.maximum(x, y),
}
COMPILED = {name: tj.elementwise(function) for name, function in EXPRESSIONS.items()}


def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """An array that broadcasts to the shape, in any order, with any steps, perhaps repeated."""
    shape = shape[int(rng.integers(0, len(shape) + 1)) :] if rng.random() < 0.3 else shape
    held = tuple(1 if rng.random() < 0.2 else n for n in shape)
    order = rng.permutation(len(held)) if rng.random() < 0.7 else np.arange(len(held))
    wide = tuple(held[d] * int(rng.integers(1, 3)) for d in order)
    x = rng.standard_normal(wide).astype(rng.choice(["<f8", ">f8", "<f4", ">f4"]))
    x = x.transpose(np.argsort(order))
    for d, n in enumerate(held):
        ways = slice(n), slice(None, None, x.shape[d] // n), slice(n - 1, None, -1)
        x = x[(slice(None),) * d + (ways[int(rng.choice(3, p=[0.6, 0.2, 0.2]))],)]
    return np.broadcast_to(x, shape) if rng.random() < 0.4 else x


def steps(x: Any) -> list[int]:
    """The strides along dimensions with several elements. Other strides have no meaning."""
    return [step for n, step in zip(x.shape, x.strides, strict=True) if n > 1]


def cases(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = str(rng.choice(list(EXPRESSIONS)))
        shape = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(1, 5))))
        yield name, [drawn(rng, shape) for _ in range(3)]


@pytest.mark.full
def test_predicted_orders_are_numpys() -> None:
    """The order that is derived from the recording, against NumPy's."""
    for name, given in cases(examples(5, full=4000), 1):
        function = EXPRESSIONS[name]
        made, wanted = Recordings(function).of([plain(x, "x") for x in given])[0], function(*given)
        arrays = made.inputs([plain(x, "x") for x in given], None, ())
        for form, want in zip(
            made.output_forms, wanted if isinstance(wanted, tuple) else (wanted,), strict=True
        ):
            order = order_of_result(made.forms, form, arrays)
            assert len(order) == want.ndim
            assert steps(laid(np.empty, want.shape, want.dtype, order)) == steps(want), (
                name,
                [(x.shape, x.strides, x.dtype) for x in given],
            )


@pytest.mark.full
def test_results_have_numpys_order() -> None:
    for name, given in cases(examples(5, full=30), 2):
        got, want = COMPILED[name](*given), EXPRESSIONS[name](*given)
        for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_allclose(one, two, rtol=1e-6)
            assert steps(one) == steps(two), (name, [(x.shape, x.strides) for x in given])


X = np.arange(24.0).reshape(2, 3, 4)
FOUR = np.arange(120.0).reshape(2, 3, 4, 5).transpose(1, 3, 0, 2)
REDUCED: dict[str, Callable[..., Any]] = {
    "a sum": lambda x: np.sum(x, axis=1),
    "kept": lambda x: np.max(x, axis=1, keepdims=True),
    "a mean": lambda x: np.mean(x, axis=0),
    "of a product": lambda x: np.sum(x * 2 + x, axis=2),
    "two": lambda x: (np.sum(x, axis=1), np.min(x.astype(np.float32), axis=1)),
    "and elements": lambda x: x - np.sum(x, axis=1, keepdims=True),
    "a sum of a sum": lambda x: np.sum(x, axis=1) * 2,
    "rows": lambda x: np.vecdot(x, x * 2),
    "with a vector": lambda x: np.dot(x, np.sum(x, axis=tuple(range(x.ndim - 1)))),
    "with a vector by matmul": lambda x: x @ np.sum(x, axis=tuple(range(x.ndim - 1))),
}


@pytest.mark.full
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_have_numpys_order(name: str) -> None:
    run = tj.elementwise(REDUCED[name])
    repeated = np.broadcast_to(X.T[:, :1], (4, 3, 2))
    for x in (X.T, X[:, ::-1].transpose(1, 0, 2), repeated, X.astype(">f8").swapaxes(1, 2), FOUR):
        got, want = run(x), REDUCED[name](x)
        for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
            np.testing.assert_allclose(one, two)
            assert steps(one) == steps(two)


@pytest.mark.full
def test_a_mask_counts_as_an_argument() -> None:
    """As in NumPy's elementwise functions."""
    x, mask = np.asfortranarray(X), np.ones(X.shape, bool)
    double = tj.elementwise(lambda x: x * 2)
    for where in (mask, np.asfortranarray(mask), mask[0]):
        assert steps(double(x, where=where)) == steps(np.multiply(x, 2, out=None, where=where))
