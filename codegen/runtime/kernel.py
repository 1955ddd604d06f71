"""A kernel: generated source, its machine code, and the steps that led to it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import field
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from codegen.backend.object_loader import load_object
from codegen.backend.object_symbols import can_be_loaded
from codegen.backend.store import default_store
from codegen.backend.store_files import digest_of
from codegen.backend.store_key import store_key
from codegen.support.caching import lazy
from codegen.support.cpu import cpu_level
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError
from codegen.support.interrupts import uninterrupted
from codegen.support.locks import compiler_lock
from codegen.support.settings import settings

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.nodes import Function

KERNEL_PROTOTYPES = {
    hold: make(None, *[ctypes.c_void_p] * 5)
    for hold, make in ((True, ctypes.PYFUNCTYPE), (False, ctypes.CFUNCTYPE))
}
"""Prototypes of a kernel's code, by whether calls hold the GIL.

ctypes converts an int to c_void_p faster than to c_int64, and bytes to their address.
"""

NativeFunction: TypeAlias = Callable[[bytes | int, int, bytes | int, int, int], None]
"""kernel(operands, scratch, sizes, begin, end): tables as bytes or by their addresses."""

copy_operands = Struct("=2q").pack
"""The table of operands of a copy: the addresses of the source and of the destination, in units."""

_in_use: dict[str, Kernel] = {}
_noted: dict[str, Kernel] = {}
_loaded: dict[str, int] = {}
_natives: dict[str, NativeFunction] = {}


@dataclass(frozen=True)
class Kernel:
    """The code of a copy, shared by copies of many shapes.

    A stored kernel runs without being lowered or printed.

    Attributes:
        name: a unique name.
        digest: the digest of what it is lowered from.
        arguments: the names of its arguments, in the order of the table that the code receives.
        lower: creates its loops.
    """

    name: str
    digest: str = field(repr=False)
    arguments: tuple[str, ...] = field(repr=False)
    lower: Callable[[], Function] = field(compare=False, repr=False)

    @lazy
    def function(self) -> Function:
        """The loops over super-vectors."""
        return self.lower()

    @lazy
    def source(self) -> str:
        """The Python source that Numba compiles."""
        from codegen.emit.source import source_of

        return source_of(self.function)

    @property
    def call(self) -> NativeFunction:
        """The native function.

        Not `lazy`: a kernel is built once, under the compiler's lock.

        Raises:
            KernelError: it could not be built.
        """
        return _natives.get(self.name) or self._made()

    def _made(self) -> NativeFunction:
        with uninterrupted():
            if self.name not in _loaded and not self._load_noted():
                digest = digest_of(self.source.encode())
                _load_source(self.name, self.source, digest)
                default_store().put_source_digest(self.digest, digest)
            return _called(self.name)

    def _load_noted(self) -> bool:
        """Load the object code of the source that the store notes for this kernel, if it has both."""
        store = default_store()
        digest = store.get_source_digest(self.digest)
        if digest is None or settings().dump_directory:
            return False
        code = store.get(store_key(digest, cpu_level(), store))
        if code is None:
            return False
        try:
            _load(self.name, code)
        except KernelError:  # the note is of another kernel, or the code is damaged
            return False
        return True

    @property
    def address(self) -> int:
        """The address of the machine code.

        Raises:
            KernelError: it could not be built.
        """
        _ = self.call
        return _loaded[self.name]

    @property
    def llvm(self) -> str:
        """The optimized LLVM IR."""
        return llvm_of(self.name, self.source)

    @property
    def asm(self) -> str:
        """The machine code as assembly text."""
        return asm_of(self.llvm)

    def _repr_html_(self) -> str:
        """The summary and the source, for notebooks."""
        from html import escape

        texts = ("summary", self.function.summary), ("source", self.source)
        parts = (f"<details><summary>{n}</summary><pre>{escape(t)}</pre></details>" for n, t in texts)
        return f"<div><code>{escape(self.name)}</code>{''.join(parts)}</div>"


def native(name: str, source: str) -> NativeFunction:
    """The native function that a source defines, compiled unless the store has it.

    Raises:
        KernelError: it could not be built.
    """
    if name in _natives:  # some copies ask in each call
        return _natives[name]
    with uninterrupted():
        native_address(name, source)
        return _called(name)


def native_address(name: str, source: str) -> int:
    """The address of a source's machine code, compiled unless the store has it; any signature.

    Raises:
        KernelError: it could not be built.
    """
    if name in _loaded:  # some copies ask in each call
        return _loaded[name]
    with uninterrupted():
        if name not in _loaded:
            _load_source(name, source, digest_of(source.encode()))
        return _loaded[name]


def _called(name: str) -> NativeFunction:
    """The native function whose code is loaded."""
    if name not in _natives:
        _natives[name] = KERNEL_PROTOTYPES[False](_loaded[name])
    return _natives[name]


def _load_source(name: str, source: str, digest: str) -> None:
    _dump(name, source)
    _load(name, _object_code(name, source, digest))


def _load(name: str, object_code: bytes) -> None:
    """Load a kernel's object code, which may call only the allowed functions.

    Raises:
        KernelError: it calls others, or has no such kernel.
    """
    if not can_be_loaded(object_code):
        raise KernelError(f"{name} calls functions that no kernel may call, or that are missing")
    _loaded[name] = load_object(name, object_code)


def _object_code(name: str, source: str, digest: str) -> bytes:
    level, store = cpu_level(), default_store()
    key = store_key(digest, level, store)
    code = store.get(key)
    if code is None or not can_be_loaded(code):
        from codegen.backend.progress import compiling

        with compiling():
            code = bytes(_built(name, source).object_code)
        store.put(key, code)
    return code


def _built(name: str, source: str) -> Any:
    with uninterrupted():
        from codegen.backend.build import build

        return build(name, source, cpu_level())


def llvm_of(name: str, source: str) -> str:
    """The optimized LLVM IR of a source; recompiled, because the store keeps only machine code."""
    return str(_built(name, source).llvm_ir)


def asm_of(llvm: str) -> str:
    """The machine code of LLVM IR as assembly text."""
    with uninterrupted():
        from codegen.backend.build import assembly

        return assembly(llvm, cpu_level())


def _dump(name: str, source: str) -> None:
    """Write the source to the directory TILEJIT_DUMP, whether it is compiled now or was before."""
    directory = settings().dump_directory
    if not directory:
        return
    try:
        os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/{name}.py", "w", encoding="utf-8") as file:
            file.write(source)
    except OSError as error:
        print(f"TILEJIT_DUMP={directory}: {error}", file=sys.stderr)


def shared(kernel: Kernel) -> Kernel:
    """The kernel with that name, the same object each time."""
    with compiler_lock:
        known = _in_use.setdefault(kernel.name, kernel)
        if known != kernel:
            raise AssertionError(f"two kernels are named {kernel.name}")
        return known


def noted(kernel: Kernel) -> Kernel:
    """The kernel of a program that the store noted; the same object each time.

    It is apart from `shared` kernels of that name, because its loops are those of such a kernel.
    """
    with compiler_lock:
        known = _noted.setdefault(kernel.name, kernel)
        if known != kernel:
            raise ValueError(f"two kernels are named {kernel.name}")
        return known


def kernels_in_use() -> tuple[Kernel, ...]:
    """All kernels that this process has requested."""
    with compiler_lock:
        return tuple({**_noted, **_in_use}.values())
