"""Kernels built for any CPU level, and their machine code as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from subprocess import run
from typing import TypeVar

from codegen.backend.build import assembly, build
from codegen.backend.store import default_store
from codegen.backend.store_files import digest_of
from codegen.backend.store_key import store_key
from codegen.support.cpu import CpuLevel
from tests.codegen.simd.case import Compiled

K = TypeVar("K", bound=Compiled)

DISASSEMBLERS = {"x86_64": "objdump", "aarch64": "aarch64-linux-gnu-objdump"}


def object_code(kernel: Compiled, level: CpuLevel) -> bytes:
    """The kernel built for a level, if no other test of this run has: their processes share one store."""
    store, key = default_store(), store_key(digest_of(kernel.source.encode()), level)
    code = store.get(key)
    if code is None:
        code = build(kernel.name, kernel.source, level).object_code
        store.put(key, code)
    return code


def machine_texts(level: CpuLevel, built: Mapping[K, bytes], directory: Path) -> Mapping[K, str]:
    """Each kernel's machine code as text: objects read back at once, or a second build written by LLVM."""
    disassembler = which(DISASSEMBLERS.get(level.triple.split("-")[0], ""))
    if disassembler is None:
        return {k: assembly(build(k.name, k.source, level).llvm_ir, level) for k in built}
    kernels = {str(directory / f"{kernel.name}.o"): kernel for kernel in built}
    for file, kernel in kernels.items():
        Path(file).write_bytes(built[kernel])
    command = [disassembler, "--disassemble", "--no-show-raw-insn", *kernels]
    done = run(command, capture_output=True, text=True, check=True)
    _, *parts = re.split(r"^(/.+\.o): +file format .+$", done.stdout, flags=re.MULTILINE)
    texts = {kernels[file]: text for file, text in zip(parts[::2], parts[1::2], strict=True)}
    assert texts.keys() == built.keys()
    assert all("\tret" in text for text in texts.values())
    return texts
