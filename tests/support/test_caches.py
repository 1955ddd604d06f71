"""Every cache of a process is bounded: by a number of entries, or by what there is to remember."""

from __future__ import annotations

import ast
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.support.caching import MOST_BOUND, Cache, cached
from tilejit.copies.plan import cached_plan
from tilejit.kernels.program import LoopProgram

ROOT = Path(__file__).parents[2]

ONE = (
    *(
        "_ir_generator",
        "cpu_level",
        "supported",
        "_head",
        "machine",
        "settings",
        "routines",
    ),
    *(
        "_versions",
        "default_store",
        "default_threads",
        "_same",
        "pattern",
    ),
    *("_of_ml_dtypes", "cpu_name", "_system", "_llvm_engine"),
)
FINITE = {
    **dict.fromkeys(ONE, "one in all"),
    **dict.fromkeys(("_natives", "_loaded", "_in_use"), "a kernel, whose machine code stays in memory"),
    **dict.fromkeys(("_BY_NUMPY", "_BY_NUMPY_NAME"), "a dtype"),
    "conversion": "two dtypes",
    "_declared": "a dtype and a number of lanes that a kernel names",
    **dict.fromkeys(("_without_entries", "_definitions"), "a class"),
    **dict.fromkeys(("address_of", "_routine", "vector_routine"), "a function that a kernel calls"),
    "_open": "a block that is open",
    "_INSTRUCTIONS": "an instruction that is declared",
    "_library": "a library of functions",
    "package_version": "a package",
    "_FORMATS": "a format that was registered",
}
"""Caches without a limit, and what they have an entry for."""


def sources() -> list[Path]:
    return sorted([*(ROOT / "codegen").rglob("*.py"), *(ROOT / "tilejit").rglob("*.py")])


def is_cache(node: ast.expr) -> bool:
    """Whether a decorator is functools.cache, with or without a call."""
    return ast.unparse(node).split("(")[0] in ("cache", "functools.cache")


@pytest.mark.full
def test_every_cached_function_has_a_limit() -> None:
    count = 0
    for path in sources():
        text = path.read_text()
        if path.name != "caching.py":
            assert "lru_cache" not in text, f"{path}: use `cached`, which clear_caches empties"
        calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        limits = [ast.literal_eval(n.args[0]) for n in calls if ast.unparse(n.func) == "cached"]
        assert all(type(n) is int and 0 < n <= 4096 for n in limits), path
        count += len(limits)
    assert count > 20


def test_a_cache_never_exceeds_its_limit() -> None:
    held: Cache[int, int] = Cache()
    for k in range(3 * MOST_BOUND):
        assert held.keep(k, -k) == -k
        assert held.get(k) == -k
        assert len(held) <= MOST_BOUND
    held.keep(3 * MOST_BOUND - 1, 5)
    assert held.get(3 * MOST_BOUND - 1) == 5
    few: Cache[str, int | None] = Cache(2)
    for name in "abc":
        few.keep(name, None)
    assert (len(few), few.get("a", 7), few.get("c", 7)) == (1, 7, None)


def test_clear_caches_empties_mappings_and_functions() -> None:
    held: Cache[str, int] = Cache()
    squared = cached(8)(lambda x: x * x)
    held.keep("a", 1)
    assert squared(3) == 9
    tj.clear_caches()
    assert not len(held)
    assert squared.cache_info().currsize == 0
    assert squared(3) == 9


def test_clear_caches_keeps_no_cache_alive() -> None:
    held: Cache[str, int] = Cache()
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None


def entries(thing: Any) -> dict[str, int]:
    """The number of entries in each cache of an object."""
    return {name: len(value) for name, value in vars(thing).items() if isinstance(value, Cache)}


@pytest.mark.full
def test_kernels_and_expressions_forget_shapes() -> None:
    scale, twice = tj.kernel(_scale), tj.elementwise(lambda a, k: a * k)
    total = tj.elementwise(lambda a: a.sum(axis=0))
    x = np.ones((40, 60), np.float32)
    for k in range(MOST_BOUND + 200):
        part = x[: 1 + k % 40, : 1 + k // 40]
        scale(part, k)
        twice(part, k)
        total(part)
    for thing in (scale, twice, total):
        found = entries(thing)
        assert found
        assert max(found.values()) <= MOST_BOUND, found
    assert max(entries(scale).values()) > 1
    assert (x[0, :3] > 0).all()


def _scale(a: Any, k: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 1.0 + k


def test_threads_share_the_cache_of_cute_layouts() -> None:
    """There are more layouts than entries, so threads remove each other's entries."""

    def sizes(first: int) -> list[int]:
        layouts = [tj.cute.Layout((4, 8), (1, 4 + (first + k) % 1500)) for k in range(1500)]
        return [tj.cute.CuteShape("u8", (4, 8), layout).physical_size for layout in layouts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(sizes, range(0, 1500, 375)))
    for first, own in zip(range(0, 1500, 375), found, strict=True):
        assert own == [4 + 7 * (4 + (first + k) % 1500) for k in range(1500)]


def test_results_stay_right_after_clear_caches() -> None:
    x = np.arange(40 * 60, dtype=np.float32).reshape(40, 60)
    scale, twice = tj.kernel(_scale), tj.elementwise(lambda a: a * 2 + a.sum())
    plan = tj.plan_copy(np.empty((60, 40), np.float32), x.T)
    for _ in range(40):  # often enough for native code to answer some calls
        t, y, held = tj.pack(x, "{1,0:T(8,128)}"), np.empty((60, 40), np.float32), x.copy()
        tj.copyto(y, x.T)
        assert (y == x.T).all()
        assert (np.asarray(t) == x).all()
        assert np.array_equal(twice(x), x * 2 + x.sum())
        scale(held, 3)
        assert np.array_equal(held, x + 3)
        plan(y, x.T)
        tj.clear_caches()
        assert scale.report()
        assert twice.report()
        assert (np.asarray(t) == x).all()


def test_clear_caches_releases_plans_and_programs() -> None:
    x = np.ones((300, 500), np.float32)
    twice, scale = tj.elementwise(lambda a: a * 2), tj.kernel(_scale)
    for _ in range(3):
        twice(x)
        twice(x.T)
        scale(x, 1)
        scale(x.T, 1)
    plan = cached_plan(*_layout(x.T.copy()), *_layout(x.T), 1)
    assert plan is not None
    refs = {weakref.ref(x) for x in (plan._program, *_programs(twice), *_programs(scale))}
    assert len(refs) == 4
    del plan
    tj.clear_caches()
    gc.collect()
    left = {ref() for ref in refs} - {None}
    assert len(left) == 2, "the last one of the expression and of the kernel, which report() shows"


def _layout(x: Any) -> tuple[Any, ...]:
    return x.shape, x.strides, x.dtype


def _programs(thing: Any) -> list[Any]:
    caches = [value for value in vars(thing).values() if isinstance(value, Cache)]
    values = [value for cache in caches for value in cache._held.values()]
    return [value for value in values if isinstance(value, LoopProgram)]


@pytest.mark.full
def test_calls_stay_right_while_another_thread_clears_caches() -> None:
    """8 threads pack, copy and compute. Every result is right, whatever is removed between two lookups."""
    twice = tj.elementwise(lambda a: a * 2)
    total = tj.elementwise(lambda a: a - a.sum(axis=0))
    stop = threading.Event()

    def work(seed: int) -> int:
        rng, calls = np.random.default_rng(seed), 0
        while not stop.is_set():
            rows, columns = (int(n) for n in rng.integers(1, 60, 2))
            x = rng.integers(0, 100, (rows, columns)).astype(np.float32)
            t = tj.pack(x, "{1,0:T(8,128)}")
            y = np.empty((columns, rows), np.float32)
            tj.copyto(y, x.T)
            assert (y == x.T).all()
            assert (np.asarray(t) == x).all()
            assert (twice(x) == 2 * x).all()
            assert np.asarray(twice(t)).tobytes() == (2 * x).tobytes()
            assert (total(x) == x - x.sum(axis=0)).all()
            layout = tj.cute.Layout((rows, columns), (1, rows + 3))
            assert tj.cute.cosize(layout) == (columns - 1) * (rows + 3) + rows
            calls += 1
        return calls

    large = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
    packed = tj.pack(large, "{1,0:T(8,128)}")

    def block_by_block() -> int:
        calls = 0
        while not stop.is_set():
            assert (np.asarray(twice(packed, layout="{0,1:T(8,128)}")) == 2 * large).all()
            calls += 1
        return calls

    with ThreadPoolExecutor(8) as pool:
        running = [*(pool.submit(work, seed) for seed in range(7)), pool.submit(block_by_block)]
        for _ in range(300):
            tj.clear_caches()
            time.sleep(0.002)
        stop.set()
        assert all(each.result() > 0 for each in running)
