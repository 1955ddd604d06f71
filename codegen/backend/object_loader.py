"""Load object code without LLVM: copy its sections to fresh memory and fill in addresses.

Loading LLVM's library takes longer than all other work for a stored kernel. On x86-64 the code of a kernel
has one type of relocation, a 64-bit address. LLVM's own loader handles objects with other relocations or
writable data, and those of other systems.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import sys
from functools import cache
from typing import Any, NamedTuple

from codegen.backend import elf
from codegen.simd.vector.math_library import address_of
from codegen.support.errors import KernelError

RUNS_HERE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether this process can run the code that this module loads."""

_FAILED = ctypes.c_void_p(-1).value


class Wanted(NamedTuple):
    """An address to fill in at `offset`: that of `function`, or of the image if "", plus `addend` bytes."""

    offset: int
    function: str
    addend: int


class Image(NamedTuple):
    """Code and constants as they will be in memory, the addresses to fill in, and the entry's offset."""

    content: bytes
    wanted: tuple[Wanted, ...]
    entry: int


def load_object(name: str, object_code: bytes) -> int:
    """The address of the kernel `name`, which stays loaded for the life of the process.

    Raises:
        KernelError: the object does not define it, a function that it calls is missing, or memory runs out.
    """
    found = image(name, object_code) if RUNS_HERE else None
    return _load(found) if found else _load_by_llvm(name, object_code)


def image(name: str, object_code: bytes) -> Image | None:
    """The image to load for a kernel, or None if the object needs LLVM's loader."""
    try:
        return _image(name, object_code) if elf.is_elf(object_code) else None
    except (struct.error, ValueError, LookupError):
        return None


def _image(name: str, object_code: bytes) -> Image | None:
    table = elf.sections(object_code)
    content, begins = bytearray(), dict[int, int]()
    for number, section in enumerate(table):
        if section.kind == elf.NO_BITS or section.flags & elf.WRITTEN or section.alignment > mmap.PAGESIZE:
            return None
        if section.offset + section.size > len(object_code):
            return None
        if section.kind == elf.BITS and section.flags & elf.IN_MEMORY:
            content += bytes(-len(content) % max(section.alignment, 1))
            begins[number] = len(content)
            content += object_code[section.offset : section.offset + section.size]
    (symtab,) = [section for section in table if section.kind == elf.SYMTAB]
    symbols = elf.symbols(object_code, symtab, table[symtab.link])
    wanted = []
    for section in table:
        if section.kind != elf.RELA or section.info not in begins:
            continue
        for offset, kind, number, addend in elf.relocations(object_code, section):
            if kind != elf.ADDRESS_64 or not 0 <= offset <= table[section.info].size - elf.ADDRESS_BYTES:
                return None
            symbol = symbols[number]
            target = begins[symbol.section] + symbol.value if symbol.section else 0
            function = "" if symbol.section else symbol.name
            if not 0 <= target + addend <= (0 if function else len(content)):
                return None
            wanted.append(Wanted(begins[section.info] + offset, function, target + addend))
    (entry,) = [begins[s.section] + s.value for s in symbols if s.name == name and s.section]
    return Image(bytes(content), tuple(wanted), entry) if entry < len(content) else None


def _load(found: Image) -> int:
    """Copy an image to executable memory, which is never freed: a thread may run in it until the end."""
    functions = {x.function: address_of(x.function) for x in found.wanted if x.function}
    if not all(functions.values()):
        raise KernelError(f"a kernel calls {sorted(functions)}, but this process lacks some of them")
    system, content = _system(), bytearray(found.content)
    kind, writable = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
    begin = system.mmap(None, len(content), writable, kind, -1, 0)
    if begin == _FAILED:
        raise KernelError(f"no memory for a kernel: {os.strerror(ctypes.get_errno())}")
    for offset, function, addend in found.wanted:
        struct.pack_into("<Q", content, offset, functions.get(function, begin) + addend)
    ctypes.memmove(begin, bytes(content), len(content))
    if system.mprotect(begin, len(content), mmap.PROT_READ | mmap.PROT_EXEC):
        reason = os.strerror(ctypes.get_errno())
        system.munmap(begin, len(content))
        raise KernelError(f"no memory for a kernel that may be run: {reason}")
    return int(begin) + found.entry


@cache
def _system() -> Any:
    """The C library, with the functions called here declared."""
    library = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = address
    library.mmap.argtypes = address, size, number, number, number, ctypes.c_long
    library.mprotect.argtypes = address, size, number
    library.munmap.argtypes = address, size
    return library


def _load_by_llvm(name: str, object_code: bytes) -> int:
    from llvmlite import binding

    engine = _llvm_engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    address = int(engine.get_function_address(name))
    if not address:
        raise KernelError(f"the object code of {name} does not define it")
    return address


@cache
def _llvm_engine() -> Any:
    """LLVM's loader; loaded code stays loaded."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(codemodel="jitdefault")
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
