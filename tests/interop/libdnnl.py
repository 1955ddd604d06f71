"""oneDNN's C library by ctypes: tags, memory descriptors and reorders, as an oracle.

`pip install onednn-cpu-gomp` installs it (oneDNN 3.2) in the `lib` folder of the environment. TILEJIT_LIBDNNL
names another library.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.interop.frameworks import required

CPU, IN_ORDER = 1, 1
SRC, DST = 1, 17
"""DNNL_ARG_SRC and DNNL_ARG_DST."""
QUERIES = {"strides": 14, "dims": 257, "padded_dims": 260, "inner_blks": 264, "inner_idxs": 265}
CONVOLUTION_WEIGHTS = tuple(
    f"{order}{form}"
    for n in (4, 8, 16, 24, 32, 48, 64)
    for order, form in (("Acdb", f"{n}a"), ("ABcd", f"{n}b{n}a"), ("ABcd", f"16b{n}a"), ("ABcd", f"8b{n}a"))
)
"""Tags that oneDNN may choose for convolution weights, depending on the machine's instructions."""
NUMBER_OF_BLOCKS = 263
"""The dnnl_query_t values for memory descriptors, as in oneDNN 3.0 and later."""


class _Argument(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_int), ("memory", ctypes.c_void_p))


@cache
def library() -> Any:
    """The C library; the test is skipped if it is missing."""
    given = os.environ.get("TILEJIT_LIBDNNL")
    lib = Path(sys.prefix) / "lib"
    for path in [given] if given else [*sorted(lib.glob("libdnnl.so*")), *sorted(lib.glob("libdnnl*.dylib"))]:
        try:
            found = ctypes.CDLL(str(path))
        except OSError:
            if given:
                raise
            continue
        # OpenMP threads spin while they wait for each other, which takes minutes on a busy machine.
        if hasattr(found, "omp_set_num_threads"):
            found.omp_set_num_threads(1)
        found.dnnl_fmt_tag2str.restype = ctypes.c_char_p
        found.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        found.dnnl_memory_desc_get_size.argtypes = [ctypes.c_void_p]
        return found
    if required():
        raise AssertionError("libdnnl is not installed: pip install onednn-cpu-gomp")
    pytest.skip("libdnnl is not installed: pip install onednn-cpu-gomp")


def call(name: str, *arguments: Any) -> None:
    status = getattr(library(), f"dnnl_{name}")(*arguments)
    assert status == 0, f"dnnl_{name} returns {status}"


@cache
def tags() -> dict[str, int]:
    """Every tag of the library, by its name in letters a to l."""
    lib = library()
    found = {}
    for number in range(2, 4096):
        name = lib.dnnl_fmt_tag2str(number).decode()
        if name.startswith(("unknown", "format_tag_last")):
            break
        found[name] = number
    return found


def descriptor(dims: tuple[int, ...], data_type: int, tag: str) -> ctypes.c_void_p:
    """A memory descriptor, given the name of its tag."""
    made = ctypes.c_void_p()
    sizes = (ctypes.c_int64 * 12)(*dims)
    call("memory_desc_create_with_tag", ctypes.byref(made), len(dims), sizes, data_type, tags()[tag])
    return made


def numbers_of(desc: ctypes.c_void_p, rank: int) -> dict[str, tuple[int, ...]]:
    """The library's data about a descriptor, by the names in QUERIES, and its size in bytes."""
    blocks = ctypes.c_int32()
    call("memory_desc_query", desc, NUMBER_OF_BLOCKS, ctypes.byref(blocks))
    found = {"size": (int(library().dnnl_memory_desc_get_size(desc)),)}
    for name, what in QUERIES.items():
        at = ctypes.POINTER(ctypes.c_int64)()
        call("memory_desc_query", desc, what, ctypes.byref(at))
        found[name] = tuple(at[k] for k in range(blocks.value if name.startswith("inner") else rank))
    return found


@cache
def engine_and_stream() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    engine, stream = ctypes.c_void_p(), ctypes.c_void_p()
    call("engine_create", ctypes.byref(engine), CPU, ctypes.c_size_t(0))
    call("stream_create", ctypes.byref(stream), engine, IN_ORDER)
    return engine, stream


def reordered(x: Any, data_type: int, tag: str) -> Any:
    """The bytes that oneDNN's reorder makes from an array in C order, in memory with that tag."""
    plain = "abcdefghijkl"[: x.ndim]
    engine, _ = engine_and_stream()
    descs = [descriptor(x.shape, data_type, name) for name in (plain, tag)]
    target = np.full(library().dnnl_memory_desc_get_size(descs[1]), 0xAB, np.uint8)
    memories = []
    for desc, array in zip(descs, (x, target), strict=True):
        memory = ctypes.c_void_p()
        call("memory_create", ctypes.byref(memory), desc, engine, ctypes.c_void_p(array.ctypes.data))
        memories.append(memory)
    reorder(descs, memories)
    for memory, desc in zip(memories, descs, strict=True):
        call("memory_destroy", memory)
        call("memory_desc_destroy", desc)
    return target


def reorder(descs: Sequence[ctypes.c_void_p], memories: Sequence[ctypes.c_void_p]) -> None:
    """Reorder the first memory into the second one. `descs` are their descriptors."""
    engine, stream = engine_and_stream()
    way, primitive = ctypes.c_void_p(), ctypes.c_void_p()
    call("reorder_primitive_desc_create", ctypes.byref(way), descs[0], engine, descs[1], engine, None)
    call("primitive_create", ctypes.byref(primitive), way)
    arguments = (_Argument * 2)(_Argument(SRC, memories[0]), _Argument(DST, memories[1]))
    call("primitive_execute", primitive, stream, 2, arguments)
    call("stream_wait", stream)
    call("primitive_destroy", primitive)
    call("primitive_desc_destroy", way)
