"""The expressions and sums of the bench `elementwise`, and how TileJIT and its peers compute them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import Array, short_name
from bench.jobs import Case, Job
from bench.peers import Call

TABLE = "elementwise"
SIZES, QUICK_SIZES = (1_000, 100_000, 10_000_000), (1_000, 100_000)
DTYPES = (np.float32, np.float64)
SEED = 7
MOST_ULP = 16
MOST_OF_SUM = 1e-4


@dataclass(frozen=True, slots=True)
class Expression:
    """One case: a function of arrays, in numexpr's syntax.

    Attributes:
        name: the case's name.
        text: the function, in numexpr's syntax.
        arrays: the number of arrays.
        reduces: whether the result is one number.
        views: the views of the arrays to take first: strided or broadcast.
        numpy: NumPy's function for it, if it is not an expression.
    """

    name: str
    function: Callable[..., Any]
    text: str
    arrays: int
    reduces: bool = False
    views: Callable[..., tuple[Array, ...]] | None = None
    numpy: Callable[..., Any] | None = None


def _rows(x: Array, y: Array) -> tuple[Array, Array]:
    """A matrix with 1000 columns, and one number per row."""
    matrix = x[: x.size // 1000 * 1000].reshape(-1, 1000)
    return matrix, y[: len(matrix), None]


CASES = (
    Expression("a+b+1+2", lambda a, b: a + b + 1 + 2, "a+b+1+2", 2),
    Expression(
        "polynomial",
        lambda a: ((((a * 2 + 1) * a - 3) * a + 0.5) * a - 1) * a + 2,
        "((((a*2+1)*a-3)*a+0.5)*a-1)*a+2",
        1,
    ),
    Expression("exp(-x*x)", lambda a: np.exp(-a * a), "exp(-a*a)", 1),
    Expression("sqrt(x*x+y*y)", lambda a, b: np.sqrt(a * a + b * b), "sqrt(a*a+b*b)", 2),
    Expression("sum(cos(x))", lambda a: np.sum(np.cos(a)), "sum(cos(a))", 1, reduces=True),
    Expression("dot", lambda a, b: np.sum(a * b), "sum(a*b)", 2, reduces=True, numpy=np.dot),
    Expression("strided", lambda a, b: a * 2 + b, "a*2+b", 2, views=lambda x, y: (x[::2], y[::2])),
    Expression("broadcast", lambda a, b: a * b, "a*b", 2, views=_rows),
)


@dataclass(frozen=True, slots=True)
class Given:
    """A case's arrays, the views of them that it takes, and the number of threads.

    jax and NumPy use as many threads as the process has processors.
    """

    case: Expression
    arrays: tuple[Array, ...]
    views: tuple[Array, ...]
    threads: int

    def result(self) -> Array:
        """Memory for the result of an expression. Sums need none."""
        return np.empty(np.broadcast_shapes(*(x.shape for x in self.views)), self.views[0].dtype)


def given(case: Expression, size: int, dtype: Any, threads: int) -> Given:
    """Arrays with `size` random elements each."""
    rng = np.random.default_rng(SEED)
    arrays = tuple(rng.random(size).astype(dtype) for _ in range(case.arrays))
    return Given(case, arrays, case.views(*arrays) if case.views else arrays, threads)


def _ours(x: Given) -> Call:
    kernel = tj.elementwise(x.case.function, parallel=None if x.threads > 1 else False)
    views, out = x.views, x.result()
    return (lambda: kernel(*views)) if x.case.reduces else (lambda: kernel(*views, out=out))


def _numpy(x: Given) -> Call:
    function, views = x.case.numpy or x.case.function, x.views
    return lambda: function(*views)


def _numexpr(x: Given) -> Call:
    import numexpr

    numexpr.set_num_threads(x.threads)
    text, names, out = x.case.text, dict(zip("ab", x.views, strict=False)), x.result()
    if x.case.reduces:
        return lambda: numexpr.evaluate(text, names)
    return lambda: numexpr.evaluate(text, names, out=out, casting="same_kind")


def _torch(x: Given) -> Call:
    import torch

    torch.set_num_threads(x.threads)
    tensors = [torch.from_numpy(view) for view in x.views]
    functions: dict[str, Callable[..., Any]] = {
        "exp(-x*x)": lambda a: torch.exp(-a * a),
        "sqrt(x*x+y*y)": lambda a, b: torch.sqrt(a * a + b * b),
        "sum(cos(x))": lambda a: torch.cos(a).sum(),
        "dot": torch.dot,
    }
    function = functions.get(x.case.name, x.case.function)
    return lambda: function(*tensors)


def _jax(x: Given) -> Call:
    """Take the views inside the function: jax has no views, and would be given dense copies."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    functions: dict[str, Callable[..., Any]] = {
        "exp(-x*x)": lambda a: jnp.exp(-a * a),
        "sqrt(x*x+y*y)": lambda a, b: jnp.sqrt(a * a + b * b),
        "sum(cos(x))": lambda a: jnp.sum(jnp.cos(a)),
        "dot": jnp.dot,
    }
    plain, views = functions.get(x.case.name, x.case.function), x.case.views
    function = jax.jit(plain if views is None else lambda *arrays: plain(*views(*arrays)))
    arguments = [jax.device_put(array) for array in x.arrays]
    return lambda: function(*arguments).block_until_ready()


def _numba(x: Given) -> Call:
    import numba

    namespace: dict[str, Any] = {name: getattr(math, name) for name in ("exp", "sqrt", "cos")}
    namespace["prange"] = numba.prange
    exec("\n".join(_loops(x.case, x.views)), namespace)
    run = numba.njit(fastmath=True, parallel=x.threads > 1)(namespace["run"])
    if x.threads > 1:
        numba.set_num_threads(x.threads)
    views, out = x.views, x.result()
    return (lambda: run(*views, out)) if x.case.reduces else (lambda: (run(*views, out), out)[1])


PEERS: dict[str, Callable[[Given], Call]] = {
    "numpy": _numpy,
    "numexpr": _numexpr,
    "torch": _torch,
    "jax": _jax,
    "numba": _numba,
}
"""How each peer computes a case, into given memory if it can. Raises ImportError if it is not installed."""


def _loops(case: Expression, views: tuple[Array, ...]) -> list[str]:
    """The case as loops over elements; the outer loop runs on threads."""
    flat = views[0].ndim == 1
    names, places = "ab"[: len(views)], "[k]" if flat else "[k, j]"
    text = case.text.removeprefix("sum(").removesuffix(")") if case.reduces else case.text
    for name, x in zip(names, views, strict=True):
        text = _indexed(text, name, "[k, 0]" if x.ndim == 2 and x.shape[1] == 1 else places)
    lines = [f"def run({', '.join(names)}, out):", "    total = 0.0", "    for k in prange(len(a)):"]
    lines += [] if flat else ["        for j in range(a.shape[1]):"]
    inner = "        " if flat else "            "
    lines += [f"{inner}total += {text}" if case.reduces else f"{inner}out{places} = {text}"]
    return [*lines, "    return total"]


def _indexed(text: str, name: str, places: str) -> str:
    """The text with subscripts after each array's name. Only arrays have names of one letter."""
    from re import sub

    return sub(rf"\b{name}\b", name + places, text)


def cases(quick: bool) -> list[Case]:
    """Each expression in both precisions and at each size."""
    return [
        Case(
            TABLE,
            "reductions" if case.reduces else "elementwise",
            f"{case.name} {short_name(dtype)} {size}",
            partial(job, case, size, dtype),
        )
        for dtype in DTYPES
        for case in CASES
        for size in (QUICK_SIZES if quick else SIZES)
    ]


def job(case: Expression, size: int, dtype: Any, threads: int) -> Job:
    """Arrays of random elements, and a function that judges answers."""
    x = given(case, size, dtype, threads)
    result = 0 if case.reduces else x.result().nbytes
    return Job(
        moved_bytes=sum(view.nbytes for view in x.views) + result,
        out=np.empty(0, np.uint8),
        expected=np.empty(0, np.uint8),
        ours=lambda: _ours(x),
        peers={name: partial(make, x) for name, make in PEERS.items()},
        agrees=judge(x),
    )


def judge(x: Given) -> Callable[[Any], bool]:
    """Whether an answer agrees with NumPy's in twice the precision."""
    reduces, dtype = x.case.reduces, x.views[0].dtype
    with np.errstate(all="ignore"):
        wide = [view.astype(np.longdouble if dtype == np.float64 else np.float64) for view in x.views]
        want = np.asarray(x.case.function(*wide))
        room = MOST_OF_SUM * float(np.sum(np.abs(wide[0])))
        allowed = MOST_ULP * np.spacing(np.maximum(np.abs(want), 1).astype(dtype))

    def agrees(answer: Any) -> bool:
        got = np.asarray(answer, want.dtype)
        if reduces:
            return abs(float(got - want)) <= room
        return bool((np.abs(got - want) <= allowed).all())

    return agrees
