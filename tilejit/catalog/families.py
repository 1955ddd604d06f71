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


_formats: dict[str, Format] = {}
"""The formats of the families that were imported, by their names in lower case."""
_imported: list[Family] = []


def families() -> Iterator[Family]:
    """Every family, each imported when it is reached."""
    for number, name in enumerate(_MODULES):
        with compiler_lock:  # a fork waits until the module is loaded
            if number == len(_imported):
                family: Family = import_module(f"tilejit.catalog.{name}").FAMILY
                _formats.update((row.name.lower(), row) for row in family.formats)
                _imported.append(family)
        yield _imported[number]


def find_in_catalog(name: str) -> Format | None:
    """The catalog's format with that name, in upper or lower case; None if there is none."""
    key = name.lower()
    if key not in _formats and len(_imported) < len(_MODULES):
        next((family for family in families() if key in _formats), None)
    return _formats.get(key)
