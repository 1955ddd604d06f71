"""Expressions and sums that the bench `elementwise` has, and ways to compute them: ours and the peers'."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilejit as tj
from bench.arrays import Array

MOST_ULP = 16
MOST_OF_SUM = 1e-4
Way = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """One case: the function of arrays, as numexpr writes it, and how many arrays it has.

    reduces   whether the result is one number
    views     what is made of the arrays first: strided or broadcast
    numpy     what NumPy has for it, where that is no expression
    """

    name: str
    function: Callable[..., Any]
    text: str
    arrays: int
    reduces: bool = False
    views: Callable[..., tuple[Array, ...]] | None = None
    numpy: Callable[..., Any] | None = None


def _rows(x: Array, y: Array) -> tuple[Array, Array]:
    """A matrix of 1000 columns, and one number a row."""
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


def ways(
    case: Expression, arrays: tuple[Array, ...], given: tuple[Array, ...], threads: int
) -> dict[str, Way]:
    """Ours and every peer that is installed, each writing where it can; `given` are the views of `arrays`.

    jax and NumPy take as many threads as the process has processors.
    """
    shape = np.broadcast_shapes(*(x.shape for x in given))
    outs = {name: np.empty(shape, given[0].dtype) for name in ("ours", "numexpr", "numba")}
    kernel = tj.elementwise(case.function, parallel=None if threads > 1 else False)
    found: dict[str, Way] = {
        "ours": (lambda: kernel(*given)) if case.reduces else (lambda: kernel(*given, out=outs["ours"])),
        "numpy": lambda: (case.numpy or case.function)(*given),
    }
    _add_numexpr(found, case, given, threads, outs["numexpr"])
    _add_torch(found, case, given, threads)
    _add_jax(found, case, arrays)
    _add_numba(found, case, given, threads, outs["numba"])
    return found


def _add_numexpr(
    found: dict[str, Way], case: Expression, given: tuple[Array, ...], threads: int, out: Array
) -> None:
    try:
        import numexpr
    except ImportError:
        return
    numexpr.set_num_threads(threads)
    names = dict(zip("ab", given, strict=False))
    if case.reduces:
        found["numexpr"] = lambda: numexpr.evaluate(case.text, names)
    else:
        found["numexpr"] = lambda: numexpr.evaluate(case.text, names, out=out, casting="same_kind")


def _add_torch(found: dict[str, Way], case: Expression, given: tuple[Array, ...], threads: int) -> None:
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(x) for x in given]
    functions: dict[str, Callable[..., Any]] = {
        "exp(-x*x)": lambda a: torch.exp(-a * a),
        "sqrt(x*x+y*y)": lambda a, b: torch.sqrt(a * a + b * b),
        "sum(cos(x))": lambda a: torch.cos(a).sum(),
        "dot": torch.dot,
    }
    function = functions.get(case.name, case.function)
    found["torch"] = lambda: function(*tensors)


def _add_jax(found: dict[str, Way], case: Expression, arrays: tuple[Array, ...]) -> None:
    """Views are taken in the function: jax has none, and would be given dense copies."""
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    functions: dict[str, Callable[..., Any]] = {
        "exp(-x*x)": lambda a: jnp.exp(-a * a),
        "sqrt(x*x+y*y)": lambda a, b: jnp.sqrt(a * a + b * b),
        "sum(cos(x))": lambda a: jnp.sum(jnp.cos(a)),
        "dot": jnp.dot,
    }
    plain, views = functions.get(case.name, case.function), case.views
    function = jax.jit(plain if views is None else lambda *x: plain(*views(*x)))
    arguments = [jax.device_put(x) for x in arrays]
    found["jax"] = lambda: function(*arguments).block_until_ready()


def _add_numba(
    found: dict[str, Way], case: Expression, given: tuple[Array, ...], threads: int, out: Array
) -> None:
    import numba

    lines = _loops(case, given)
    namespace: dict[str, Any] = {name: getattr(math, name) for name in ("exp", "sqrt", "cos")}
    namespace["prange"] = numba.prange
    exec("\n".join(lines), namespace)
    run = numba.njit(fastmath=True, parallel=threads > 1)(namespace["run"])
    if threads > 1:
        numba.set_num_threads(threads)
    found["numba"] = (lambda: run(*given, out)) if case.reduces else (lambda: (run(*given, out), out)[1])


def _loops(case: Expression, given: tuple[Array, ...]) -> list[str]:
    """The case as loops over elements, the outer one for threads."""
    flat = given[0].ndim == 1
    names, places = "ab"[: len(given)], "[k]" if flat else "[k, j]"
    text = case.text.removeprefix("sum(").removesuffix(")") if case.reduces else case.text
    for name, x in zip(names, given, strict=True):
        text = _indexed(text, name, "[k, 0]" if x.ndim == 2 and x.shape[1] == 1 else places)
    lines = [f"def run({', '.join(names)}, out):", "    total = 0.0", "    for k in prange(len(a)):"]
    lines += [] if flat else ["        for j in range(a.shape[1]):"]
    inner = "        " if flat else "            "
    lines += [f"{inner}total += {text}" if case.reduces else f"{inner}out{places} = {text}"]
    return [*lines, "    return total"]


def _indexed(text: str, name: str, places: str) -> str:
    """The text with subscripts behind a name; functions' names have more letters."""
    from re import sub

    return sub(rf"\b{name}\b", name + places, text)


def wrong(case: Expression, given: tuple[Array, ...], found: dict[str, Way]) -> list[str]:
    """Whose answers are off, by NumPy's in twice the precision; ours never may be.

    Raises:
        AssertionError: ours is.
    """
    with np.errstate(all="ignore"):
        wide = [x.astype(np.longdouble if x.dtype == np.float64 else np.float64) for x in given]
        want = np.asarray(case.function(*wide))
        room = MOST_OF_SUM * float(np.sum(np.abs(wide[0])))
    out = []
    for name, way in found.items():
        got = np.asarray(way(), want.dtype)
        if case.reduces:
            right = abs(float(got - want)) <= room
        else:
            allowed = MOST_ULP * np.spacing(np.maximum(np.abs(want), 1).astype(given[0].dtype))
            right = bool((np.abs(got - want) <= allowed).all())
        if not right:
            out.append(name)
    assert "ours" not in out, f"{case.name} is off"
    return out
