"""Fixed seeds, a kernel store for tests, and the options `--full`, `--soak` and `--cold`."""

from __future__ import annotations

import gc
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, core, is_hypothesis_test, settings

from codegen.backend import store as store_module
from codegen.backend.store import default_store
from codegen.support.settings import settings as read_settings
from tests.tools.extent import EXTENT, SOAK_FACTOR, covering, extent, is_full, lower_levels
from tests.tools.kernel_store import OWN_STORE, close_store, open_store
from tests.tools.sizes import kernels_for_all_sizes as for_all_sizes
from tilejit.layout.formats import formats, unregister_format

SEED = 20_250_801
"""The seed of every test with random draws, except in a soak."""

settings.register_profile(
    "full",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("plain", parent=settings.get_profile("full"), max_examples=20)
settings.register_profile(
    "soak", parent=settings.get_profile("full"), derandomize=False, max_examples=100 * SOAK_FACTOR
)

SOAK_SEED = "TILEJIT_TEST_SEED"
"""The variable with the seed of a soak."""

_own_store: list[Path | None] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="write the golden files")
    parser.addoption("--full", action="store_true", help="run every test, every case, every CPU level")
    parser.addoption("--soak", action="store_true", help="run only tests with random draws, from a new seed")
    parser.addoption("--seed", type=int, help="the seed of --soak, to repeat one")
    parser.addoption("--cold", action="store_true", help="start without the kernels of earlier runs")


def pytest_configure(config: pytest.Config) -> None:
    """Set up the environment before any test is imported. xdist's workers and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells ignore it in background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("soak"):
        os.environ[EXTENT] = "soak"
        given = config.getoption("seed")
        os.environ.setdefault(SOAK_SEED, str(secrets.randbelow(2**32) if given is None else given))
        core.global_force_seed = soak_seed()
    elif config.getoption("seed") is not None:
        raise pytest.UsageError("--seed belongs to --soak; other runs have a fixed seed")
    elif config.getoption("full"):
        os.environ[EXTENT] = "full"
    elif not os.environ.get(EXTENT):
        os.environ[EXTENT] = "plain"
    os.environ.setdefault("TILEJIT_VERIFY_PASSES", "1")
    settings.load_profile(extent())
    _own_store.append(open_store(cold=config.getoption("cold")))


def pytest_unconfigure() -> None:
    if _own_store:
        close_store(_own_store.pop())


def soak_seed() -> int:
    """The seed of this soak."""
    return int(os.environ[SOAK_SEED])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what this run omits. Tests selected by name, with `-k` or with `--lf` always run.

    Tests of minutes run first, so that no worker runs one at the end while the other has nothing left to do.
    """
    items.sort(key=lambda item: not _takes_minutes(item))
    chosen = any(config.getoption(name, None) for name in ("keyword", "lf", "failedfirst"))
    if extent() == "soak":
        kept = [item for item in items if _draws(item)]
    elif is_full() or chosen:
        return
    else:
        cases: dict[str, list[pytest.Item]] = {}
        for item in items:
            if not item.get_closest_marker("full"):
                cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        covered = {
            same[position]
            for same in cases.values()
            for position in covering([_parameters(item) for item in same])
        }
        named = tuple(argument.rpartition("/")[2] for argument in config.args if "::" in argument)
        kept = [item for item in items if item in covered or item.nodeid.rpartition("/")[2].startswith(named)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=list(set(items).difference(kept)))
        items[:] = kept


def _parameters(item: pytest.Item) -> dict[str, object]:
    """The parameters of a case; a test without parameters is its own only value."""
    return item.callspec.params if hasattr(item, "callspec") else {"": item.nodeid}


def _takes_minutes(item: pytest.Item) -> bool:
    """Whether a test may take longer than others may."""
    mark = item.get_closest_marker("timeout")
    return mark is not None and mark.args[0] > float(item.config.getini("timeout"))


def _draws(item: pytest.Item) -> bool:
    """Whether a test draws random cases."""
    return "seed" in getattr(item, "fixturenames", ()) or is_hypothesis_test(getattr(item, "obj", None))


def pytest_collection_finish() -> None:
    """Raise if importing a test file compiles kernels, because every process of a run would repeat it."""
    store = default_store()
    if store.hits or store.misses:
        raise pytest.UsageError("a test file compiles kernels while it is imported")
    gc.collect()
    gc.freeze()  # tests that collect garbage search only their own objects, not those of all files


def pytest_report_header() -> list[str]:
    covers = {
        "plain": "a fixed set without long tests, one case for each value of a parameter; --full runs all",
        "full": "every test and case",
        "soak": f"only tests with random draws, random seed {os.environ.get(SOAK_SEED)}",
    }
    levels = ", ".join(lower_levels()) or "none"
    return [
        f"tilejit: {covers[extent()]}",
        f"lower CPU levels: {levels}; kernels in {os.environ[OWN_STORE]}",
    ]


@pytest.fixture(autouse=True)
def _no_formats_registered() -> Iterator[None]:
    """Remove the formats that a test or a page of the documentation registers."""
    known = formats()
    yield
    for name in set(formats()).difference(known):
        unregister_format(name)


@pytest.fixture
def seed() -> int:
    """The seed of tests with random draws."""
    return soak_seed() if extent() == "soak" else SEED


@pytest.fixture(scope="module")
def kernels_for_all_sizes() -> Iterator[None]:
    """Kernels make all copies that they can, also of small arrays."""
    with for_all_sizes():
        yield


@pytest.fixture
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the store's settings at each call; a process otherwise reads them once."""
    monkeypatch.setattr(store_module, "settings", read_settings.__wrapped__)
