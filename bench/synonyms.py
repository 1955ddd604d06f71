"""Synonyms for the words in the names of cases."""

from __future__ import annotations

import re

SYNONYMS = {
    "cast": ("convert", "conversion", "astype"),
    "casts": ("convert", "conversion", "astype"),
    "copies": ("copyto", "memory"),
    "permutations": ("permute", "transpose"),
    "reductions": ("reduce",),
    "scans": ("cumsum", "prefix"),
    "stencils": ("jacobi",),
    "triad": ("saxpy", "axpy"),
    "elementwise": ("ufunc",),
    "dropin": ("numpy_api", "routine"),
    "sub-byte": ("subbyte", "nibble"),
    "indexed": ("fancy", "index"),
    "nchw8c": ("onednn", "dnnl", "mkldnn"),
    "nchw16c": ("onednn", "dnnl", "mkldnn"),
    "oihw16i16o": ("onednn", "dnnl", "mkldnn"),
    "oihw4i16o4i": ("onednn", "dnnl", "mkldnn"),
    "swizzled": ("cute",),
    "uneven": ("padding", "padded"),
    "pred": ("bool", "bits"),
    "bf16": ("bfloat16",),
    "f16": ("float16", "half"),
    "f32": ("float32", "single"),
    "f64": ("float64", "double"),
    "s4": ("int4",),
    "s8": ("int8",),
    "u8": ("uint8",),
    "s32": ("int32",),
    "u32": ("uint32",),
    "s64": ("int64",),
    "u64": ("uint64",),
}
"""Words that users may pass to `-k`, keyed by the word in a name."""


def words_for(name: str) -> set[str]:
    """The synonyms of the words in a name.

    "casts: flat: f32 to bf16" -> {"convert", "conversion", "astype", "float32", "single", "bfloat16"}
    """
    found = set(re.findall(r"[a-z0-9][a-z0-9-]*", name.lower()))
    return {word for key in found & SYNONYMS.keys() for word in SYNONYMS[key]}
