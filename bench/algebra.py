"""`python -m bench.algebra`: CuTe's algebra on fresh layouts, in microseconds, beside installed peers.

The other suites compare bandwidth with memcpy. This one copies nothing, so it is separate. pycute comes with
the package nvidia-cutlass, installed without its dependencies.
"""

from __future__ import annotations

import importlib
import timeit
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tilejit import cute

CALLS, ROUNDS = 1000, 9
PEERS = {"pycute": "pycute", "tensor-layouts": "tensor_layouts"}

COMPOSITIONS = (
    "(6,2):(8,2) o (4,3):(3,1)",
    "(8,(4,8)):(4,(32,128)) o (16,8):(2,32)",
    "(128,64):(64,1) o (32,4,8):(4,1,128)",
)
COMPLEMENTS = (("(2,2):(1,6)", 24), ("4:2", 24), ("(2,4,8):(1,4,64)", 4096))
DIVIDES: tuple[tuple[str, Any], ...] = (
    ("16:1", "4:2"),
    ("(4,2,3):(2,1,8)", "4:2"),
    ("(9,(4,8)):(59,(13,1))", ("3:3", "(2,4):(1,8)")),
)


def main(rounds: int = ROUNDS) -> None:
    """Check each answer, then print the least time per call over the rounds."""
    peers = {name: _module(name) for name in PEERS}
    table = Table("case", "answer", "tilejit us", *(f"{name} us" for name in peers))
    for name, calls in _cases(peers).items():
        answer, *calls_of_libraries = calls
        times = [f"{_least(call, rounds):.1f}" if call else "-" for call in calls_of_libraries]
        table.add_row(name, str(answer), *times)
    Console(width=140).print(table)


def _cases(peers: dict[str, Any]) -> dict[str, list[Any]]:
    """Every case: its answer, TileJIT's call, and a call of each peer, or None if it is not installed."""
    out: dict[str, list[Any]] = {}
    modules = [cute, *peers.values()]
    for text in COMPOSITIONS:
        a, b = (cute.Layout.parse(part) for part in text.split(" o "))
        out[text] = [cute.composition(a, b), *(_composing(m, a, b) for m in modules)]
    for text, bound in COMPLEMENTS:
        a = cute.Layout.parse(text)
        out[f"complement({text}, {bound})"] = [
            cute.complement(a, bound),
            *(m and _calling(m.complement, _like(m, a), bound) for m in modules),
        ]
    for text, tiler in DIVIDES:
        a = cute.Layout.parse(text)
        tile = _tiler(cute, tiler)
        by = tiler if isinstance(tiler, str) else f"<{', '.join(tiler)}>"
        out[f"{text} / {by}"] = [
            cute.logical_divide(a, tile),
            *(m and _calling(m.logical_divide, _like(m, a), _tiler(m, tiler)) for m in modules),
        ]
    return out


def _composing(module: Any, a: cute.Layout, b: cute.Layout) -> Callable[[], Any] | None:
    """Compose layouts that each call creates again."""
    if module is None:
        return None
    compose = module.composition if hasattr(module, "composition") else module.compose
    make = module.Layout
    return lambda: compose(make(a.shape, a.stride), make(b.shape, b.stride))


def _calling(operation: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: operation(*arguments)


def _like(module: Any, layout: cute.Layout) -> Any:
    return module.Layout(layout.shape, layout.stride)


def _tiler(module: Any, tiler: Any) -> Any:
    if isinstance(tiler, tuple):
        return tuple(_tiler(module, part) for part in tiler)
    return _like(module, cute.Layout.parse(tiler))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(PEERS[name])
    except ImportError:
        return None


def _least(call: Callable[[], Any], rounds: int) -> float:
    """The least time per call, in microseconds."""
    return min(timeit.repeat(call, number=CALLS, repeat=rounds)) / CALLS * 1e6


if __name__ == "__main__":
    typer.run(main)
