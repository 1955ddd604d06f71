"""A one-line summary of a function's loads and stores, for readers."""

from __future__ import annotations

from codegen.ir.index import Index
from codegen.ir.nodes import For, Function
from codegen.ir.values import Local
from codegen.ir.visit import accesses_of, loops_of

MOST_SHOWN = 4
"""The most accesses, or loops, that a summary lists."""


def summary_of(function: Function) -> str:
    """The stores and results of a function, their operands, and the ranges of the loops.

    "c[i, j] from a[i, j + 1], b[j]; i < a.shape[0], 1 <= j < a.shape[1] - 1 step 64"
    """
    loops = loops_of(function.body)
    accesses = accesses_of(function.body, loops)
    made = [str(x) for x in accesses if x.stores]
    made += [value.name if isinstance(value, Local) else "a value" for value in function.results]
    read = [str(x) for x in accesses if not x.stores and str(x) not in made]
    ranges = [_range(loop.node) for outer in loops for loop in outer.all()]
    what = f"{_listed(made)} from {_listed(read)}" if read else _listed(made)
    return f"{what}; {_listed(ranges)}" if ranges else what


def _listed(texts: list[str]) -> str:
    different = list(dict.fromkeys(texts))
    return ", ".join([*different[:MOST_SHOWN], *["…"] * (len(different) > MOST_SHOWN)]) or "nothing"


def _range(loop: For) -> str:
    lower = "" if [str(x) for x in loop.lower] == ["0"] else f"{_bound('max', loop.lower)} <= "
    step = f" step {loop.step}" if loop.step != 1 else ""
    return f"{lower}{loop.index} < {_bound('min', loop.upper)}{step}"


def _bound(name: str, bounds: tuple[Index, ...]) -> str:
    texts = list(map(str, bounds))
    return texts[0] if len(texts) == 1 else f"{name}({', '.join(texts)})"
