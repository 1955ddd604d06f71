"""A headless Chromium for all tests of a run.

Without chromium, chromedriver and selenium, the tests are skipped unless TILEJIT_REQUIRE_CHROMIUM is set, as
in CI.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tilejit.view.page import page

PACKAGES = "chromium chromium-driver"
OPTIONS = ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,960")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in the browser run with `--full`."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, which is closed at the end of the run."""
    missing = [tool for tool in ("chromium", "chromedriver") if which(tool) is None]
    try:
        from selenium import webdriver
    except ImportError:
        missing.append("selenium")
    if missing:
        reason = f"no {' and no '.join(missing)}: apt-get install {PACKAGES}, pip install selenium"
        if os.environ.get("TILEJIT_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = str(which("chromium"))
    for option in OPTIONS:
        options.add_argument(option)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's sandbox does not work for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Any:
    """A function that opens the page of a layout: opened(layout) -> the browser, with its pictures drawn."""

    def opened(layout: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page(layout), "ascii")
        chromium.get(path.as_uri())
        chromium.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        return chromium

    yield opened
    errors = [entry["message"] for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
