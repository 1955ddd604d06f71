"""Versions of packages, found without importing them."""

from __future__ import annotations

import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from codegen.support import versions


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_the_version_file_agrees_with_the_metadata(package: str) -> None:
    assert versions.package_version(package) == version(package)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("version_json = '''\n{\n \"dirty\": false,\n \"version\": \"0.68.1\"\n}\n'''", "0.68.1"),
        ("version_version = '0.50.0'\nversion_full = 'de6d'", "0.50.0"),
        ("version = '1'\nversion = '2'", ""),
        ("def get_versions():\n    return {}\n", ""),
        ("", ""),
    ],
)
def test_which_version_files_are_read(
    text: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything but one version is left to the metadata."""
    package = tmp_path / "some_package_of_ours"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_version.py").write_text(text)
    metadata = tmp_path / "some_package_of_ours-7.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: some_package_of_ours\nVersion: 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions.package_version.__wrapped__("some_package_of_ours") == (wanted or "7")


def test_a_missing_package() -> None:
    assert versions.package_version("no_such_package_of_ours") == "none"


def test_whether_python_runs_without_the_gil() -> None:
    assert versions.is_free_threaded() == bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
