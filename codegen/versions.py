"""Which Python and which compiler this is, found out without the modules that one usually asks."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.machinery import PathFinder

_WRITTEN = re.compile(r"""^\s*"?version(?:_version)?"?\s*[:=]\s*["']([^"']+)["']""", re.MULTILINE)
"""As versioneer writes it into a release: `"version": "0.68.1"` or `version_version = '0.50.0'`."""


@cache
def package_version(package: str) -> str:
    """The version of an installed package, "none" where there is none.

    "numba" -> "0.68.1"

    Neither imports it nor, for releases of Numba and llvmlite, `importlib.metadata`, which takes 15 ms.
    """
    return _in_version_file(package) or _in_metadata(package)


def _in_version_file(package: str) -> str:
    spec = PathFinder.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            with open(f"{folder}/_version.py", encoding="utf-8") as file:
                found = _WRITTEN.findall(file.read(1 << 14))
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


@cache
def is_free_threaded() -> bool:
    """Whether this Python is one that can run without its lock; only those from 3.13 on may be."""
    if sys.version_info < (3, 13):
        return False
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
