"""What Numba makes of a kernel, made once for all processes and CPU levels of a test run.

Numba's half of a build is by far the longer one and knows no level; LLVM's half is done for each.
"""

from __future__ import annotations

import json
import os
import zlib
from hashlib import sha256
from pathlib import Path

from codegen import build
from codegen.build import NumbaIr
from codegen.store import compiler_digest

OWN_STORE = "TILEJIT_TEST_STORE"
"""The variable that names the store of a test run; its processes inherit it."""

_by_numba = build.numba_ir


def share() -> None:
    """Make every build of this process look in the store of the test run first, where there is one."""
    if OWN_STORE in os.environ:
        build.numba_ir = numba_ir


def numba_ir(name: str, source: str) -> NumbaIr:
    """`codegen.build.numba_ir`, kept in the store of the test run."""
    digest = sha256(f"{compiler_digest()}\n{name}\n{source}".encode()).hexdigest()
    file = Path(os.environ[OWN_STORE]) / "numba-ir" / digest
    if file.exists():
        return NumbaIr(*json.loads(zlib.decompress(file.read_bytes())))
    made = _by_numba(name, source)
    file.parent.mkdir(exist_ok=True)
    whole = file.with_suffix(f".{os.getpid()}")
    whole.write_bytes(zlib.compress(json.dumps((made.name, made.symbol, made.text)).encode(), 1))
    whole.replace(file)
    return made
