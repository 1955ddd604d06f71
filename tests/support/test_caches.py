"""Caches are shared by threads, and calls give the same results while and after they are cleared."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilejit as tj


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


@pytest.mark.full
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
