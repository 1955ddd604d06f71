"""`python -m bench.elementwise`: expressions and sums, against numpy, numexpr, torch, jax and numba.

Answers are checked before the clock, within 16 units in the last place; sums within 1e-4 of the sum of
magnitudes. Ours and the peers take turns; figures are medians, and how many times as fast as each peer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import typer

import tilejit as tj
from bench.arrays import Array
from bench.timing import interleaved, machine

SIZES = (1_000, 100_000, 10_000_000)
DTYPES = (np.float32, np.float64)
SEED = 7
MOST_ULP = 16
MOST_OF_SUM = 1e-4
Way = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """One case: the function of arrays, as numexpr writes it, and how many arrays it has.

    reduces   whether the result is one number
    views     what is made of the arrays first: strided or broadcast
    """

    name: str
    function: Callable[..., Any]
    text: str
    arrays: int
    reduces: bool = False
    views: Callable[..., tuple[Array, ...]] | None = None


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
    Expression("dot", lambda a, b: np.sum(a * b), "sum(a*b)", 2, reduces=True),
    Expression("strided", lambda a, b: a * 2 + b, "a*2+b", 2, views=lambda x, y: (x[::2], y[::2])),
    Expression("broadcast", lambda a, b: a * b, "a*b", 2, views=_rows),
)


def ways(
    case: Expression, arrays: tuple[Array, ...], given: tuple[Array, ...], threads: int
) -> dict[str, Way]:
    """Ours and every peer that is installed, each writing where it can; `given` are the views of `arrays`."""
    shape = np.broadcast_shapes(*(x.shape for x in given))
    outs = {name: np.empty(shape, given[0].dtype) for name in ("ours", "numexpr", "numba")}
    kernel = tj.elementwise(case.function, parallel=threads if threads > 1 else False)
    found: dict[str, Way] = {
        "ours": (lambda: kernel(*given)) if case.reduces else (lambda: kernel(*given, out=outs["ours"])),
        "numpy": lambda: case.function(*given),
    }
    _add_numexpr(found, case, given, threads, outs["numexpr"])
    _add_torch(found, case, given, threads)
    _add_jax(found, case, arrays)
    _add_numba(found, case, given, outs["numba"])
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


def _add_numba(found: dict[str, Way], case: Expression, given: tuple[Array, ...], out: Array) -> None:
    from numba import njit

    names = "ab"[: len(given)]
    walk = "for k in range(a.size)" if given[0].ndim == 1 else "for k in range(len(a))"
    places = "[k]" if given[0].ndim == 1 else "[k, j]"
    text = case.text.removeprefix("sum(").removesuffix(")") if case.reduces else case.text
    for name, x in zip(names, given, strict=True):
        text = _indexed(text, name, "[k, 0]" if x.ndim == 2 and x.shape[1] == 1 else places)
    inner = "    " if given[0].ndim == 1 else "        "
    lines = [f"def run({', '.join(names)}, out):", "    total = 0.0", f"    {walk}:"]
    lines += [] if given[0].ndim == 1 else ["        for j in range(a.shape[1]):"]
    lines += [f"    {inner}total += {text}" if case.reduces else f"    {inner}out{places} = {text}"]
    lines += ["    return total"]
    namespace: dict[str, Any] = {name: getattr(math, name) for name in ("exp", "sqrt", "cos")}
    exec("\n".join(lines), namespace)
    run = njit(fastmath=True)(namespace["run"])
    found["numba"] = (lambda: run(*given, out)) if case.reduces else (lambda: (run(*given, out), out)[1])


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


def measured(case: Expression, size: int, dtype: Any, threads: int, rounds: int) -> dict[str, float]:
    """Median seconds of a call, by name."""
    rng = np.random.default_rng(SEED)
    arrays = tuple(rng.random(size).astype(dtype) for _ in range(case.arrays))
    given = case.views(*arrays) if case.views else arrays
    found = ways(case, arrays, given, threads)
    for name in wrong(case, given, found):
        print(f"{case.name}, {np.dtype(dtype).name}, {size}: the answer of {name} is off; left out")
        del found[name]
    calls = max(1, 100_000 // size)
    times = interleaved({name: partial(_several, way, calls) for name, way in found.items()}, rounds)
    return {name: timing.median / calls for name, timing in times.items()}


FUSED = "scale to bf16, T(8,128)(2,1)"
FUSED_SHAPES = {1_000: (8, 128), 100_000: (96, 1024), 10_000_000: (1024, 9728)}
"""About as many elements as the other cases have, in whole tiles."""


def fused(size: int, threads: int, rounds: int) -> dict[str, float]:
    """Median seconds of a multiplication whose result is packed as bf16, by name; all answers bit for bit."""
    shape = FUSED_SHAPES[size]
    x = np.random.default_rng(SEED).random(shape).astype(np.float32)
    short, rows, columns = np.dtype(ml_dtypes.bfloat16), shape[0] // 8, shape[1] // 128
    tiles, order = (rows, 4, 2, columns, 128), (0, 3, 1, 4, 2)
    kernel = tj.elementwise(lambda x: (x * 0.7).astype(short), parallel=threads if threads > 1 else False)
    out = tj.pack(x.astype(short), "{1,0:T(8,128)(2,1)}")
    found: dict[str, Way] = {
        "ours": lambda: kernel(x, out=out).buffer,
        "numpy": lambda: np.ascontiguousarray(
            (x * np.float32(0.7)).astype(short).reshape(tiles).transpose(order)
        ),
    }
    try:
        import torch

        torch.set_num_threads(threads)
        tensor = torch.from_numpy(x)
        found["torch"] = lambda: (tensor * 0.7).to(torch.bfloat16).reshape(tiles).permute(order).contiguous()
    except ImportError:
        pass
    try:
        import jax

        jnp = jax.numpy
        packed = jax.jit(lambda a: (a * jnp.float32(0.7)).astype(short).reshape(tiles).transpose(order))
        argument = jax.device_put(x)
        found["jax"] = lambda: packed(argument).block_until_ready()
    except ImportError:
        pass
    want = found["numpy"]().tobytes()
    for name, way in list(found.items()):
        got = way()
        made = got.view(torch.int16).numpy() if name == "torch" else np.asarray(got)
        if made.tobytes() != want:
            assert name != "ours", f"{FUSED} is off"
            print(f"{FUSED}, {size}: the answer of {name} is off; left out")
            del found[name]
    calls = max(1, 100_000 // size)
    times = interleaved({name: partial(_several, way, calls) for name, way in found.items()}, rounds)
    return {name: timing.median / calls for name, timing in times.items()}


def _several(way: Way, calls: int) -> None:
    for _ in range(calls):
        way()


def sweep(dtype: Any, rounds: int) -> list[tuple[str, float]]:
    """(virtual_vector_size, GB/s) of a+b+1+2 over a matrix of a million elements."""
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.random((1000, 1000)).astype(dtype) for _ in range(3))

    def add(a: Array, b: Array, c: Array) -> None:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                c[i, j] = a[i, j] + b[i, j] + 1 + 2

    out = []
    for size in (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, (4, 64), (8, 128), (32, 256)):
        kernel = tj.kernel(virtual_vector_size=size)(add)
        kernel(a, b, c)
        seconds = interleaved({"ours": lambda kernel=kernel: kernel(a, b, c)}, rounds)["ours"].median
        out.append((str(size), 3 * a.nbytes / seconds / 1e9))
    return out


def main(
    rounds: Annotated[int, typer.Option(min=1)] = 9,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    only: Annotated[str, typer.Option(help="cases with this text")] = "",
    markdown: Annotated[Path | None, typer.Option(help="a file for the table")] = None,
    plot: Annotated[Path | None, typer.Option(help="an SVG of the sweep of virtual_vector_size")] = None,
) -> None:
    """Measure and print."""
    names = ("numpy", "numexpr", "torch", "jax", "numba")
    lines = [
        ", ".join(f"{k} {v}" for k, v in machine().items()) + f", threads {threads}, rounds {rounds}",
        "",
    ]
    lines += [
        "| case | dtype | size | us | best peer / ours | " + " | ".join(f"times {n}" for n in names) + " |"
    ]
    lines += ["|" + "---|" * (5 + len(names))]
    best: dict[int, list[float]] = {size: [] for size in SIZES}
    over: dict[tuple[str, int], list[float]] = {}

    def row(name: str, dtype: str, size: int, seconds: dict[str, float]) -> None:
        peers = {n: seconds[n] / seconds["ours"] for n in names if n in seconds}
        best[size].append(min(peers.values()))
        for n, ratio in peers.items():
            over.setdefault((n, size), []).append(ratio)
        cells = [f"{peers[n]:.2f}" if n in peers else "" for n in names]
        head = [name, dtype, str(size), f"{seconds['ours'] * 1e6:.1f}", f"{best[size][-1]:.2f}"]
        lines.append("| " + " | ".join([*head, *cells]) + " |")
        print(lines[-1], flush=True)

    for dtype in DTYPES:
        for size in SIZES:
            for case in [c for c in CASES if only in c.name]:
                row(case.name, np.dtype(dtype).name, size, measured(case, size, dtype, threads, rounds))
    for size in SIZES:
        if only in FUSED:
            row(FUSED, "float32", size, fused(size, threads, rounds))
    for size, found in best.items():
        if found:
            each = [f"{n} {statistics.geometric_mean(over[n, size]):.2f}" for n in names if (n, size) in over]
            mean = statistics.geometric_mean(found)
            lines.append(
                f"\n{size} elements, geometric means: {mean:.2f} times the best peer; {', '.join(each)}"
            )
            print(lines[-1])
    if markdown:
        markdown.write_text("\n".join(lines) + "\n")
    if plot:
        _plot(sweep(np.float32, rounds), plot)


def _plot(points: list[tuple[str, float]], file: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4))
    axes.bar([name for name, _ in points], [rate for _, rate in points])
    axes.set_xlabel("virtual_vector_size")
    axes.set_ylabel("GB/s, read and written")
    axes.tick_params(axis="x", rotation=45)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    typer.run(main)
