"""The sdist and the wheel contain every file that they need, and no other."""

from __future__ import annotations

import shutil
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

import pytest

import tilejit as tj

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("tilejit", "codegen")
FOLDERS = (*PACKAGES, "tests", "docs", "bench")
FILES = (
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "README.md"),
    *("mkdocs.yml", "pyproject.toml"),
)
RUBBISH = (
    ".hypothesis/constants.py",
    ".venv/lib/module.py",
    "build/lib/tilejit/old.py",
    "codegen/__pycache__/module.cpython-311.pyc",
    "site/index.html",
    "tests/.pytest_cache/README.md",
    "tests/__pycache__/module.cpython-311.pyc",
    "tilejit/notes.txt",
    "worktree/tilejit/module.py",
)
"""Files in a checkout that a build must not include."""
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def sources(*folders: str) -> set[str]:
    """The files in folders, without caches."""
    found = (path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*"))
    return {
        path.as_posix()
        for path in found
        if (ROOT / path).is_file()
        and not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    }


SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""How archives are unpacked. Python 3.11 has filters from 3.11.4 on, and 3.14 requires them."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of a tree with unrelated files, and a wheel of that sdist, as `python -m build` makes them."""
    pytest.importorskip("setuptools", minversion="77")
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)
    for name in RUBBISH:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    build(tree, "build_sdist", out)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tree / "sdist", **SAFELY)
    (unpacked,) = (tree / "sdist").iterdir()
    build(unpacked, "build_wheel", out)
    return out


def build(tree: Path, step: str, out: Path) -> None:
    done = run(
        [executable, "-c", BUILD, step, str(out)], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_the_sdist_has_sources_tests_and_docs(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    top = f"tilejit-{tj.__version__}"
    assert path.name == f"{top}.tar.gz"
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix(f"{top}/") for member in archive if member.isfile()}
    made = {name for name in names if name.startswith("tilejit.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert names - made == sources(*FOLDERS) | set(FILES)


@pytest.mark.full
def test_the_wheel_has_only_the_packages(dist: Path) -> None:
    (path,) = dist.glob("*.whl")
    info = f"tilejit-{tj.__version__}.dist-info"
    assert path.name == f"tilejit-{tj.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        metadata = message_from_bytes(archive.read(f"{info}/METADATA"))
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    made = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt")
    assert names == sources(*PACKAGES) | {f"{info}/{name}" for name in made}
    assert metadata["Version"] == tj.__version__ == PROJECT["version"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata.get_all("Classifier") == PROJECT["classifiers"]
    assert metadata["Keywords"] == ",".join(PROJECT["keywords"])
    assert "tilejit = tilejit.cli:main" in scripts
    assert "tilejit.tile = tilejit.interop.zarr:TileCodec" in scripts


def test_the_wheel_has_every_package_and_data_file() -> None:
    """Every folder of modules is a package, and pyproject.toml names the other files."""
    for package in PACKAGES:
        folders = {Path(name).parent for name in sources(package) if name.endswith(".py")}
        assert all((ROOT / folder / "__init__.py").is_file() for folder in folders)
        assert (ROOT / package / "py.typed").is_file()
