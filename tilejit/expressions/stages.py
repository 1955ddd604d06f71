"""Expressions with reductions: run the reductions first, then the results that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from codegen import KernelError
from tilejit.arrays.memory import Array
from tilejit.expressions.engine import Engine
from tilejit.expressions.outputs import outputs
from tilejit.expressions.recorded import Recorded, broadcast_shape
from tilejit.expressions.reductions import Plan, reduce_all
from tilejit.kernels.direct_loops import elementwise_entry


def compute_in_stages(
    e: Engine[..., Any],
    recorded: Recorded,
    given: list[Any],
    numbers: list[Any],
    out: Any,
    mask: Array | None,
) -> Any:
    """Run the reductions first, then the results that depend on them: one kernel for each shape."""
    arrays = recorded.arrays(given)
    if mask is not None and any(recorded.bare):
        raise KernelError(
            "where= is not supported with a reduction\n  write np.where(mask, x, 0) in the expression"
        )
    plan_of = partial(e.plan, recorded)
    found = reduce_all(recorded.stages, arrays, numbers, plan_of)
    e.answered()
    if out is None and all(recorded.bare):
        if not recorded.several:
            _answer_reduction(e, recorded, given, numbers, plan_of)
        results = tuple([found[bare] for bare in recorded.bare])
        return results if recorded.several else results[0]
    shapes = _shapes(recorded, arrays, mask)
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, bare in enumerate(recorded.bare):
        if not bare:
            groups.setdefault(shapes[k], []).append(k)
    orders = e.orders(recorded, arrays, mask) if out is None else ()
    outs = outputs(recorded.dtypes, out, shapes, mask, orders)
    direct = out is None or (len(groups) == 1 and not any(recorded.bare))
    own = outs if direct else outputs(recorded.dtypes, None, shapes, mask)
    if not direct and mask is not None:
        for to, held in zip(own, outs, strict=True):
            np.copyto(to, held, casting="unsafe")
    for shape, which in groups.items():
        e.run(recorded, given, numbers, [own[k] for k in which], mask, shape, arrays, tuple(which))
    made: list[Any] = []
    for k, bare in enumerate(recorded.bare):
        value = found[bare] if bare else own[k]
        if out is not None and value is not outs[k]:
            np.copyto(outs[k], value, casting="same_kind")
        single = isinstance(value, np.ndarray) and not value.ndim
        made.append(outs[k] if out is not None else value[()] if single else value)
    return tuple(made) if recorded.several else made[0]


def _shapes(recorded: Recorded, arrays: Mapping[str, Array], mask: Array | None) -> list[tuple[int, ...]]:
    """The shape of each result; `arrays` includes the reductions."""
    masks = [] if mask is None else [mask]
    return [
        arrays[bare].shape if bare else broadcast_shape([*(arrays[n] for n in names), *masks])
        for bare, names in zip(recorded.bare, recorded.names, strict=True)
    ]


def _answer_reduction(
    e: Engine[..., Any],
    recorded: Recorded,
    given: list[Any],
    numbers: list[Any],
    plan_of: Callable[..., Plan],
) -> None:
    """Let native code answer the next calls like this one, if a kernel returns the result directly."""
    arrays = recorded.arrays(given)
    (first, *more) = recorded.stages
    if more or first.names != arrays.keys():
        return
    bound = plan_of(recorded.stages, arrays).only_call
    if bound is not None and bound.is_due:
        operands = [*arrays.values(), *numbers]
        e.answered(elementwise_entry(bound, operands, given, recorded.numbers, None, fresh=False))
