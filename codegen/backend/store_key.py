"""What compiled code and notes depend on: versions of libraries, the CPU level, and digests of this package.

A store caches the facts that are slow to determine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from codegen.backend.store_files import digest_of
from codegen.support.caching import cached
from codegen.support.cpu import CpuLevel
from codegen.support.dataclasses import dataclass
from codegen.support.interrupts import llvm_binding
from codegen.support.versions import library_stamp, package_version

FORMAT = 1

LLVM_LIBRARIES = ("binding/libllvmlite.so", "binding/libllvmlite.dylib", "binding/llvmlite.dll")
"""Paths of LLVM's library within llvmlite, one per system."""

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


class Notes(Protocol):
    """A store's notes: facts by name."""

    def get_note(self, name: str) -> dict[str, Any] | None:
        """The facts noted under a name, or None."""

    def put_note(self, name: str, facts: Mapping[str, Any]) -> None:
        """Note facts under a name."""

    def __hash__(self) -> int:
        """The hash by which this module caches the digests that it finds in these notes."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """Every input of the compiler: equal keys give the same machine code."""

    source_digest: str
    compiler_digest: str
    numba: str
    llvmlite: str
    llvm: str
    level: str
    triple: str
    cpu: str
    features: str
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """The entry's name."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def store_key(source_digest: str, level: CpuLevel, store: Notes | None = None) -> StoreKey:
    """The key of a source compiled for a CPU level; a store avoids loading LLVM for its version."""
    spelled = level.name, level.triple, level.llvm_cpu, level.llvm_features
    versions = package_version("numba"), package_version("llvmlite"), llvm_version(store)
    return StoreKey(source_digest, compiler_digest(store), *versions, *spelled)


@cached(8)
def llvm_version(store: Notes | None) -> str:
    """LLVM's version, such as "20.1.8". Only its library knows it, so a store remembers it per library.

    The same version of llvmlite may be built with different versions of LLVM.
    """
    stamp = library_stamp("llvmlite", LLVM_LIBRARIES) if store else ""
    note = f"llvm-{digest_of(stamp.encode())[:32]}"
    known = (store.get_note(note) or {}).get("version") if store and stamp else None
    if isinstance(known, str):
        return known
    found = ".".join(map(str, llvm_binding().llvm_version_info))
    if store and stamp:
        store.put_note(note, {"version": found})
    return found


@cached(8)
def compiler_digest(store: Notes | None = None) -> str:
    """Digest of the code that turns sources into machine code: the build and the kernels' routines.

    A store may have noted it, which avoids reading the files.
    """
    known = _package_note(store).known.get("compiler")
    return known if isinstance(known, str) else _digest_of_compiler()


@cached(1)
def _digest_of_compiler() -> str:
    return _digest_of_files(compiler_files())


@cached(8)
def lowering_digest(store: Notes) -> str:
    """Digest of the whole package, whose code turns the structure of a kernel into its source.

    The store notes both digests. A process that cannot list the files has a digest of its own.
    """
    note = _package_note(store)
    known = note.known.get("package")
    if isinstance(known, str):
        return known
    if not note.files:
        return os.urandom(32).hex()
    found = _digest_of_files(path for path, _ in note.files)
    facts = {"compiler": compiler_digest(store), "package": found}
    if _package_files() == note.files:
        store.put_note(note.name, facts)
    return found


class _PackageNote(NamedTuple):
    """The note of the package's digests, named after the sizes and times of its files.

    Those take a third of the time to read that the files take.
    """

    name: str
    files: list[tuple[str, tuple[int, ...]]]
    known: dict[str, Any]


@cached(8)
def _package_note(store: Notes | None) -> _PackageNote:
    """The note; an empty one for a process that may no longer list the files, and has read them before."""
    try:
        files = _package_files()
    except OSError:
        return _PackageNote("", [], {})
    stamp = digest_of("\n".join(f"{path} {facts}" for path, facts in files).encode())
    name = f"package-{stamp[:32]}"
    return _PackageNote(name, files, (store.get_note(name) if store else None) or {})


def compiler_files() -> tuple[str, ...]:
    """The files whose text determines the machine code of a source.

    Routines use constants of other modules, such as the length of a table entry.
    """
    names = (
        "backend/build.py",
        "ir/access_families.py",
        "ir/blocks.py",
        "ir/c_functions.py",
        "ir/dtypes.py",
        "ir/element_types.py",
        "ir/families.py",
        "ir/instruction.py",
        "ir/instructions.py",
        "ir/lines.py",
        "ir/packed_bits.py",
        "ir/prefix_steps.py",
        "ir/routines.py",
        "support/cpu.py",
        "support/dataclasses.py",
    )
    simd = os.path.join(_PACKAGE, "simd", "")
    return (
        *(os.path.join(_PACKAGE, *name.split("/")) for name in names),
        *(path for path, _ in _package_files() if path.startswith(simd)),
    )


def _digest_of_files(files: Iterable[str]) -> str:
    texts: list[bytes] = []
    for file in files:
        with open(file, "rb", buffering=0) as opened:
            texts.append(opened.read())
    return digest_of(b"\0".join(texts))


def _package_files() -> list[tuple[str, tuple[int, ...]]]:
    """The source files in order of their paths, each with what changes when it is written or replaced."""
    found: list[tuple[str, tuple[int, ...]]] = []
    folders = [_PACKAGE]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    facts = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                    found.append((entry.path, facts))
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return sorted(found)
