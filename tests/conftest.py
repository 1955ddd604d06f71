"""Fixed seeds, a kernel store for tests, and the options `--stress`, `--turn`, `--cold`."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from codegen.backend import store as store_module
from codegen.backend.store import KernelStore, default_store
from codegen.pipeline import stored_programs
from codegen.support.settings import settings as read_settings
from tests.tools.kernel_store import OWN_STORE, close_store, open_store
from tests.tools.stress import STRESS, TURN, in_turn, is_stress, lower_levels, today, turn
from tilejit.layout.formats import registry
from tilejit.numpy_api.copyto import known_copy, known_on_one_thread
from tilejit.numpy_api.known import known_cast, known_in_c_order, known_in_f_order

SEED = 20_250_801
"""The seed of every test with random draws."""

ROTATION = 3
"""One in this many of the tests marked `rotated` runs each day."""

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("share", parent=settings.get_profile("fixed"), max_examples=35)

_own_store: list[Path | None] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="write the golden files")
    parser.addoption("--stress", action="store_true", help="run every test, every case, every CPU level")
    parser.addoption("--cold", action="store_true", help="start without the kernels of earlier runs")
    parser.addoption("--turn", type=int, help="the share of the cases to run; by default that of the day")


def pytest_configure(config: pytest.Config) -> None:
    """Set up the environment before any test is imported. xdist's workers and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells ignore it in background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("turn") is not None and config.getoption("stress"):
        raise pytest.UsageError("--stress runs everything; omit --turn")
    if config.getoption("stress"):
        os.environ[STRESS] = "1"
    if config.getoption("turn") is not None:
        os.environ[TURN] = str(config.getoption("turn"))
    os.environ.setdefault(TURN, str(today()))
    try:
        turn()
    except ValueError as error:
        raise pytest.UsageError(f"{TURN}: expected an integer, got {os.environ[TURN][:40]!r}") from error
    settings.load_profile("fixed" if is_stress() else "share")
    _own_store.append(open_store(cold=config.getoption("cold")))
    nowhere = KernelStore(None, "tests patch decisions, which launch plans must not keep")
    stored_programs.default_store = lambda: nowhere  # type: ignore[assignment]


def pytest_unconfigure() -> None:
    if _own_store:
        close_store(_own_store.pop())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked `stress`, and tests and cases of `rotated` and `share` outside this run's turn.

    Tests that are selected by name, by `-k` or because they failed before always run. `-m stress` runs the
    tests marked `stress`, with shares of their cases.
    """
    chosen = any(config.getoption(name, None) for name in ("keyword", "lf", "failedfirst"))
    named = tuple(argument.rpartition("/")[2] for argument in config.args if "::" in argument)
    if is_stress() or chosen or len(named) == len(config.args):
        return
    left_out = set()
    if "stress" not in config.getoption("markexpr"):  # "not stress" needs nothing here: pytest deselects them
        left_out = {item for item in items if item.get_closest_marker("stress")}
    shared, rotated = _cases_of(items, "share"), _cases_of(items, "rotated")
    for cases in shared.values():
        (part,) = cases[0].get_closest_marker("share").args
        left_out.update(set(cases).difference(in_turn(cases, part)))
    for test in set(rotated).difference(in_turn(list(rotated), ROTATION)):
        left_out.update(rotated[test])
    left_out = {item for item in left_out if not item.nodeid.rpartition("/")[2].startswith(named)}
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _cases_of(items: list[pytest.Item], mark: str) -> dict[str, list[pytest.Item]]:
    """The cases of each test that has the mark."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(mark):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return cases


def pytest_collection_finish() -> None:
    """Raise if importing a test file compiles kernels, because every process of a run would repeat it."""
    store = default_store()
    if store.hits or store.misses:
        raise pytest.UsageError("a test file compiles kernels while it is imported")
    gc.collect()
    gc.freeze()  # tests that collect garbage search only their own objects, not those of all files


def pytest_report_header() -> list[str]:
    levels = ", ".join(lower_levels()) or "none"
    amount = "every case" if is_stress() else f"a share of the cases (--turn {turn()}; --stress runs all)"
    return [
        f"tilejit: seed {SEED}, {amount}",
        f"lower CPU levels: {levels}; kernels in {os.environ[OWN_STORE]}",
    ]


@pytest.fixture(autouse=True)
def _nothing_learned() -> None:
    """Forget learned layouts, so that tests don't affect each other."""
    for shortcut in (known_copy, known_on_one_thread, known_in_c_order, known_in_f_order, known_cast):
        shortcut.forget()


@pytest.fixture(autouse=True)
def _no_formats_registered() -> Iterator[None]:
    """Remove the formats that a test or a page of the documentation registers."""
    known = dict(registry._FORMATS)
    yield
    registry._FORMATS.clear()
    registry._FORMATS.update(known)


@pytest.fixture
def seed() -> int:
    """The seed of tests with random draws."""
    return SEED


@pytest.fixture
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the store's settings at each call; a process otherwise reads them once."""
    monkeypatch.setattr(store_module, "settings", read_settings.__wrapped__)
