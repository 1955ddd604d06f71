"""The families in order; a family is imported when a name is searched for in it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from codegen import compiler_lock

if TYPE_CHECKING:
    from tilejit.catalog.entries import Family
    from tilejit.catalog.format import Format

_MODULES = (
    *("tpu", "tenstorrent", "onednn", "ascend", "cpu", "cublaslt", "scales", "rocm", "hexagon", "textures"),
    *("awq_gptq", "marlin", "tinygemm", "exllama", "hqq"),
    *("mixed_gemm", "compressed_tensors", "bitsandbytes", "mlx", "fp4_fp6", "fp4_tiles", "amd_scales"),
    *("ggml", "ggml_repack", "ik_llama"),
    *("rows", "xnnpack", "faiss", "onnx", "tenstorrent_bfp"),
)
"""The modules of the families; those that most programs use come first."""


def families() -> Iterator[Family]:
    """Every family, each imported when it is reached."""
    for name in _MODULES:
        with compiler_lock:  # a fork waits until the module is loaded
            family: Family = import_module(f"tilejit.catalog.{name}").FAMILY
        yield family


def find_in_catalog(name: str) -> Format | None:
    """The catalog's format with that name, in upper or lower case; None if there is none."""
    found = next((row for family in families() for row in family.formats if row.name == name), None)
    if found is None and name != name.lower():
        return find_in_catalog(name.lower())
    return found
