"""The command line as a target: one argument per line, run in this process, in a separate folder.

Kernels do nothing here, so nothing is compiled. Memory is limited, so large layouts get none. Writes are
watched: outside the folder they are refused, inside it they are compared with the previous files.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

MLIR = """func.func @add(%A: memref<?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    %a = affine.load %A[%i] : memref<?xf32>
    affine.store %a, %A[%i] : memref<?xf32>
  }
  return
}
"""
PYTHON = """def add(a: "f32[:]", b: "f32[:]"):
    for i in range(a.shape[0]):
        a[i] = a[i] + b[i]
"""
_WRITES = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND)
_PATHS = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "shutil.rmtree"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2),
}
"""Events that change files, and how many of their arguments are paths."""
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect")


class CommandLine:
    """Runs the program with an input as its arguments, and checks how it ends."""

    def __init__(self) -> None:
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="tilejit-fuzz-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        tempfile.tempdir = self.folder
        os.environ["TILEJIT_CACHE_DIR"] = tempfile.mkdtemp(dir=self.folder, prefix="store-")
        self.files = _files()
        for name in self.files:
            self._restore(name)
        self._marks = {name: self._mark(name) for name in self.files}
        os.chdir(self.folder)
        self._command = _command()
        _without_kernels()
        _with_little_memory()
        self._watching = False
        sys.addaudithook(self._audit)

    def __call__(self, data: bytes) -> str:
        """Run one command and return its stderr.

        Raises:
            AssertionError: it ends in a wrong way, or leaves files that it should not leave.
        """
        arguments = [os.fsdecode(line) for line in data.replace(b"\0", b"").split(b"\n")]
        if arguments[:1] == ["demo"]:
            arguments.append("--help")  # its output takes a second
        if arguments and arguments[0].startswith(("--install", "--show")):
            arguments.insert(0, "--version")  # typer writes the scripts for shells
        out, err = (
            io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace")
        )
        self._watching = True
        try:
            with redirect_stdout(out), redirect_stderr(err), _standard_input(self.files["x.npy"]):
                self._command.main(args=arguments, prog_name="tilejit")
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            self._watching = False
        err.flush()
        said = err.buffer.getvalue().decode()
        changed = self._changed()
        assert code in (0, 1, 2), f"exit code {code}"
        if code:
            assert said.startswith("tilejit: "), f"stderr is {said[:80]!r}"
            assert said.count("tilejit: ") == 1, f"stderr has several messages: {said[:200]!r}"
            assert "Traceback" not in said, f"stderr has a traceback: {said[:200]!r}"
            assert not changed, f"{changed} changed, though the command failed"
        return said or f"{arguments[:1]}"

    def _changed(self) -> list[str]:
        """Files that changed. They are restored, and new ones removed."""
        changed = [name for name, mark in self._marks.items() if self._mark(name) != mark]
        for name in changed:
            self._restore(name)
            self._marks[name] = self._mark(name)
        for entry in os.scandir(self.folder):
            if entry.name not in self.files and entry.is_file():
                os.unlink(entry.path)
                changed.append(entry.name)
        return changed

    def _restore(self, name: str) -> None:
        Path(self.folder, name).write_bytes(self.files[name])

    def _mark(self, name: str) -> tuple[int, ...] | None:
        try:
            status = os.stat(os.path.join(self.folder, name))
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns, status.st_ino

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching:
            return
        if event == "open" and isinstance(arguments[2], int) and any(arguments[2] & f for f in _WRITES):
            self._refuse_outside(arguments[0])
        elif event in _PATHS:
            for path in arguments[: _PATHS[event]]:
                self._refuse_outside(path)
        elif event in _STARTS:
            raise AssertionError(f"the command line asks for {event}")

    def _refuse_outside(self, path: Any) -> None:
        if isinstance(path, int) or path == os.devnull:
            return
        whole = os.path.realpath(os.fsdecode(path))
        if whole != self.folder and not whole.startswith(self.folder + os.sep):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(path))


@contextmanager
def _standard_input(data: bytes) -> Iterator[None]:
    own, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace")
    try:
        yield
    finally:
        sys.stdin = own


def _command() -> Any:
    import typer.main

    from tilejit.cli import app

    return typer.main.get_command(app)


def _files() -> dict[str, bytes]:
    """The files that commands find, by name."""
    import tilejit
    from tests.files.containers import entry, raw

    plain = io.BytesIO()
    np.save(plain, np.arange(15, dtype=np.float32).reshape(3, 5))
    spec = tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}")
    packed = io.BytesIO()
    np.save(packed, np.zeros(24, np.float32))
    model = {"a": entry("F32", [3, 5], 0, 60), "b": entry("BF16", [7], 60, 74)}
    tiled = {"__metadata__": {"tilejit.a": _json(spec)}, "a": entry("F32", [24], 0, 96)}
    return {
        "x.npy": plain.getvalue(),
        "p.npy": packed.getvalue(),
        "m.safetensors": raw(model, bytes(74)),
        "t.safetensors": raw(tiled, bytes(96)),
        "f.mlir": MLIR.encode(),
        "f.py": PYTHON.encode(),
    }


def _json(spec: Any) -> str:
    import json

    return json.dumps(spec.to_json())


def _without_kernels() -> None:
    """Let every kernel exist and do nothing, and let the machine be calibrated."""
    from codegen.backend import build
    from codegen.backend.store import default_store
    from codegen.pipeline import calibrate
    from codegen.runtime import call_tables, kernel, loop_kernel
    from codegen.schedule.machine import STREAM_BYTES
    from codegen.support.cpu import cpu_level
    from codegen.support.errors import KernelError

    nothing = kernel.KERNEL_PROTOTYPES[False](lambda *_: None)
    address = ctypes.cast(nothing, ctypes.c_void_p).value or 0

    def refused(*_: Any) -> Any:
        raise KernelError("nothing is compiled here")

    class Addresses(dict[str, int]):
        def __missing__(self, name: str) -> int:
            return address

    for module in (kernel, call_tables, loop_kernel):
        module.native = lambda name, source: nothing  # type: ignore[assignment]
    kernel._loaded = Addresses()
    kernel._built = refused
    build.build = build.assembly = refused  # type: ignore[assignment]
    calibrate.remember(default_store(), STREAM_BYTES, cpu_level())
    calibrate.streamed_from(1 << 40)


MOST_BUFFER = 16 << 20
"""Bytes of the largest array that memory allows."""


def _with_little_memory() -> None:
    from codegen.support.errors import TilejitError
    from tilejit.arrays import memory
    from tilejit.files import directory  # noqa: F401 - with all that commands import later

    own = memory.empty

    def empty(shape: tuple[int, ...], dtype: Any) -> Any:
        if prod(shape) * np.dtype(dtype).itemsize > MOST_BUFFER:
            raise TilejitError(f"no memory for an array of {shape}")
        return own(shape, dtype)

    for name, module in list(sys.modules.items()):
        if name.startswith("tilejit.") and getattr(module, "empty", None) is own:
            module.empty = empty  # type: ignore[attr-defined]
