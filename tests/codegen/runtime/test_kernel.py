"""Kernels in the store run without being lowered, whatever the store's notes say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.backend import store as store_module
from codegen.backend.store import KernelStore
from codegen.pipeline.program import CopyProgram
from codegen.runtime import kernel as kernel_module
from codegen.runtime.kernel import Kernel
from codegen.support.settings import settings

X = np.arange(90 * 70, dtype=np.uint32).reshape(90, 70)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelStore:
    made = KernelStore(tmp_path)
    monkeypatch.setattr(kernel_module, "default_store", lambda: made)
    forget(monkeypatch)
    return made


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act like a process that has neither loaded nor lowered a kernel."""
    monkeypatch.setattr(kernel_module, "_loaded", {})
    monkeypatch.setattr(kernel_module, "_natives", {})
    for kernel in (program().kernels[0], other_kernel()):
        for name in ("function", "source"):
            vars(kernel).pop(name, None)


@cache
def program() -> CopyProgram:
    made = tj.plan_copy(np.empty((70, 90), np.uint32), X.T)._program
    assert made
    return made


@cache
def other_kernel() -> Kernel:
    (kernel,) = tj.plan_copy(np.empty((70, 90), np.uint8), X.astype(np.uint8).T).kernels
    return kernel


def run() -> None:
    """Copy with the kernel, and check the result."""
    out = np.zeros((70, 90), np.uint32)
    program().run(X.ctypes.data, out.ctypes.data, alive=(X, out))
    assert (out == X.T).all()


def refuse(*_: Any) -> None:
    raise AssertionError("a kernel was lowered although the store has it")


def test_stored_kernels_are_not_lowered(store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    misses = store.misses
    forget(monkeypatch)
    monkeypatch.setattr(Kernel, "function", property(refuse))
    run()
    assert (store.hits, store.misses) == (1, misses)


def test_a_changed_compiler_lowers_again(store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's source may have changed. If it has not, the machine code is used again."""
    run()
    (kernel,), misses = program().kernels, store.misses
    noted = store.get_source_digest(kernel.digest)
    monkeypatch.setattr(store_module, "lowering_digest", lambda store: "another")
    assert store.get_source_digest(kernel.digest) is None
    forget(monkeypatch)
    run()
    assert "source" in vars(kernel)
    assert (store.hits, store.misses) == (1, misses)
    assert store.get_source_digest(kernel.digest) == noted


@pytest.mark.parametrize("noted", [None, 7, "", "0" * 64, "of another kernel"])
def test_a_wrong_note_is_a_miss(noted: Any, store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    (kernel,), other = program().kernels, other_kernel()
    _ = other.call
    if noted == "of another kernel":
        noted = store.get_source_digest(other.digest)
    store.put_source_digest(kernel.digest, noted)
    forget(monkeypatch)
    run()
    assert store.get_source_digest(kernel.digest) != noted


def test_a_dump_includes_stored_kernels(
    store: KernelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    forget(monkeypatch)
    folder = tmp_path / "dump"
    monkeypatch.setattr(kernel_module, "settings", lambda: replace(settings(), dump_directory=str(folder)))
    run()
    assert [file.stem for file in folder.iterdir()] == [kernel.name for kernel in program().kernels]
