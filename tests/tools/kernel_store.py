"""The kernels of test runs: compiled once, kept between runs in the user's cache folder.

A folder belongs to one Python, NumPy, Numba and llvmlite. Inside it, `codegen.backend.store_key` keys machine
code by the kernel's source and the sources of the compiler. `numba_ir` keys Numba's output in the same way:
Numba takes two thirds of the time of a build, and its output serves all CPU levels.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import sysconfig
import tempfile
import time
import zlib
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from codegen.backend import build
from codegen.backend.build import NumbaIr
from codegen.backend.store import KernelStore
from codegen.backend.store_files import digest_of, distrust, user_cache
from codegen.backend.store_key import StoreKey, compiler_digest, llvm_version
from codegen.pipeline.calibrate import remember
from codegen.schedule.machine import STREAM_BYTES
from codegen.support.cpu import LEVELS
from codegen.support.versions import package_version

OWN_STORE = "TILEJIT_TEST_STORE"
"""The variable that names the store of a test run; its processes inherit it."""

FOLDERS_KEPT = 4
"""How many folders are kept, so that runs of four Python versions in turn find their kernels."""

IN_USE_SECONDS = 3600
"""A folder that a run opened within this time is kept, because the run may not have ended."""

_FOLDER = re.compile(r"[0-9a-f]{16}")
"""Names of folders, in the form of `folder_name`."""

_by_numba = build.numba_ir


def open_store(*, cold: bool) -> Path | None:
    """Name the store of this run in the environment; the folder to remove afterwards, or None.

    A process of a run that has a store keeps it. The store is empty if `cold`, or if the user's cache folder
    cannot be used.
    """
    made = None
    if OWN_STORE not in os.environ:
        folder = None if cold else _kept_folder()
        if folder is None:
            folder = made = Path(tempfile.mkdtemp(prefix="tilejit-tests-"))
        for note in KernelStore(folder).notes():  # discard measurements of earlier runs, such as schedules
            if not note.name.startswith(("llvm-", "thresholds-", "source-")):
                note.unlink(missing_ok=True)
        for level in LEVELS:  # schedules must not depend on how busy the machine is
            remember(KernelStore(folder), STREAM_BYTES, level)
        os.environ[OWN_STORE] = str(folder)
    os.environ["TILEJIT_CACHE_DIR"] = os.environ[OWN_STORE]
    os.environ.pop("TILEJIT_NO_CACHE", None)
    use_kept_ir()
    return made


def close_store(made: Path | None) -> None:
    """Remove a store that `open_store` made for this run alone."""
    if made:
        shutil.rmtree(made, ignore_errors=True)
        os.environ.pop(OWN_STORE, None)


def versions() -> dict[str, str]:
    """What a kernel depends on besides sources; a change of any value selects another folder."""
    return {
        "python": f"{platform.python_version()} {sysconfig.get_config_var('SOABI')}",
        "libc": " ".join(platform.libc_ver()),
        "numpy": np.__version__,
        "numba": package_version("numba"),
        "llvmlite": f"{package_version('llvmlite')} {llvm_version(None)}",
        "settings": json.dumps(sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))),
    }


def folder_name(facts: dict[str, str]) -> str:
    """The name of the folder for some versions."""
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _kept_folder() -> Path | None:
    """The folder of these versions, or None where nothing can be kept."""
    try:
        base = Path(user_cache()) / "tilejit-tests"
        folder = base / folder_name(versions())
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
        _remove_old_folders(base)
        return folder if os.access(folder, os.W_OK) and not distrust(folder) else None
    except (OSError, RuntimeError):
        return None


def _remove_old_folders(base: Path) -> None:
    """Keep the folders used last, and those that another run may be using; leave other entries alone."""
    used = []
    for path in base.iterdir():
        with suppress(OSError):  # another run may remove it at the same time
            if _FOLDER.fullmatch(path.name) and stat.S_ISDIR((status := path.lstat()).st_mode):
                used.append((status.st_mtime, path))
    for seconds, path in sorted(used)[:-FOLDERS_KEPT]:
        if time.time() - seconds > IN_USE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def use_kept_ir() -> None:
    """Make every build of this process look for Numba's IR in the store of the test run, if there is one."""
    if OWN_STORE in os.environ:
        build.numba_ir = numba_ir


def numba_ir(name: str, source: str) -> NumbaIr:
    """`codegen.backend.build.numba_ir`, kept in the store of the test run."""
    store, key = _ir_store(os.environ[OWN_STORE]), ir_key(name, source)
    kept = store.get(key)
    if kept is not None:
        return NumbaIr(*json.loads(zlib.decompress(kept)))
    made = _by_numba(name, source)
    store.put(key, zlib.compress(json.dumps((made.name, made.symbol, made.text)).encode(), 1))
    return made


@cache
def _ir_store(folder: str) -> KernelStore:
    directory = Path(folder, "numba-ir")
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
    return KernelStore(directory)


def ir_key(name: str, source: str) -> StoreKey:
    """The key of Numba's part of a build, which does not depend on the CPU level."""
    facts = versions()
    others = dict.fromkeys(("llvm", "triple", "cpu"), "")
    return StoreKey(
        digest_of(f"{name}\n{source}".encode()),
        compiler_digest(),
        facts["numba"],
        facts["llvmlite"],
        level="numba-ir",
        features=json.dumps(facts, sort_keys=True),
        **others,
    )
