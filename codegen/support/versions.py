"""Versions of Python and the compiler, found without importing the usual slow modules."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder

from codegen.support.caching import lazy_pattern

_WRITTEN = lazy_pattern(r"""^\s*"?version(?:_version)?"?\s*[:=]\s*["']([^"']+)["']""", re.MULTILINE)
"""A version as versioneer writes it into a release: `"version": "0.68.1"` or `version_version = '0.50.0'`."""


@cache
def package_version(package: str) -> str:
    """The version of an installed package; "none" if it is not installed.

    "numba" -> "0.68.1"

    Imports neither the package nor, for releases of Numba and llvmlite, `importlib.metadata` (15 ms).
    """
    return _in_version_file(package) or _in_metadata(package)


def library_stamp(package: str, names: tuple[str, ...]) -> str:
    """Path, size and modification time of a library in a package's folder; "" if no file has these names.

    The stamp changes when the library does.

    ("llvmlite", ("binding/libllvmlite.so",)) -> "…/llvmlite/binding/libllvmlite.so 178749368 1763807471…"
    """
    for folder in _folders(package):
        for name in names:
            with suppress(OSError):
                status = os.stat(f"{folder}/{name}")
                return f"{folder}/{name} {status.st_size} {status.st_mtime_ns}"
    return ""


def _folders(package: str) -> list[str]:
    spec = PathFinder.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def _in_version_file(package: str) -> str:
    for folder in _folders(package):
        try:
            with open(f"{folder}/_version.py", encoding="utf-8") as file:
                found = _WRITTEN().findall(file.read(1 << 14))
        except (OSError, ValueError):
            continue
        if len(found) == 1:
            return str(found[0])
    return ""


def _in_metadata(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def is_free_threaded() -> bool:
    """Whether this Python build can run without the global interpreter lock.

    Python documents `sys.version` for this. `sysconfig` also has the answer, but importing it takes 13 ms.
    """
    return "free-threading build" in sys.version
