"""Fixed seeds, a store of kernels of the tests' own, and the option that rewrites goldens."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from codegen import store as store_module
from codegen.calibrate import remember
from codegen.cpu import LEVELS
from codegen.schedule import DEFAULT_THRESHOLDS
from codegen.settings import settings as read_settings
from codegen.store import Store, default_store
from tests.tools.numbas_ir import OWN_STORE, share
from tilejit.copies import known_copy
from tilejit.routines.known import known_cast, known_in_c_order, known_in_f_order

SEED = 20_250_801
"""The seed of every test that draws at random."""

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("fixed")

# xdist's workers inherit the environment: they and the children of tests share one store.
_made = None
if OWN_STORE not in os.environ:
    _made = tempfile.mkdtemp(prefix="tilejit-tests-")
    os.environ[OWN_STORE] = _made
os.environ["TILEJIT_CACHE_DIR"] = os.environ[OWN_STORE]
os.environ.pop("TILEJIT_NO_CACHE", None)
share()


def _note_default_thresholds(directory: Path) -> None:
    """Thresholds that no test need measure: schedules must not hang on how busy the machine is."""
    for level in LEVELS:
        remember(Store(directory), DEFAULT_THRESHOLDS, level)


if _made:
    _note_default_thresholds(Path(_made))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-goldens", action="store_true", help="write tests/golden anew instead of comparing"
    )


def pytest_collection_finish() -> None:
    """Files compile nothing as they are imported: each process of a run would, before its first test."""
    store = default_store()
    if store.hits or store.misses:
        raise pytest.UsageError("a file of tests compiles kernels while it is imported")


def pytest_report_header() -> list[str]:
    return [f"tilejit: seed {SEED}, Hypothesis derandomised, kernels in {os.environ[OWN_STORE]}"]


def pytest_unconfigure() -> None:
    if _made:
        shutil.rmtree(_made, ignore_errors=True)
        os.environ.pop(OWN_STORE, None)


@pytest.fixture(autouse=True)
def _nothing_learnt() -> None:
    """What came often in other tests must not decide which kernels this one calls."""
    for shortcut in (known_copy, known_in_c_order, known_in_f_order, known_cast):
        shortcut.forget()


@pytest.fixture
def seed() -> int:
    """The seed of tests that draw at random."""
    return SEED


@pytest.fixture
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store asks the environment anew at each call: settings are read once in a process."""
    monkeypatch.setattr(store_module, "settings", read_settings.__wrapped__)
