"""Names of vector routines in generated kernels.

D is i1 (a byte in memory), i8 to i64, u8 to u64, f32 or f64. N is a power of two. H is bf16 or f16.

    load_DxN(address)                    store_DxN(address, v)
    load_DxN_first(address, count)       store_DxN_first(address, v, count)
    gather_DxN(address, step_bytes)      scatter_DxN(address, step_bytes, v)
    gather_DxN_first(…, count)           scatter_DxN_first(…, count)
    pick_DxN(address, offsets_bytes)     pick_DxN_first(…, count): an offset for each lane
    store_DxN_where(address, v, mask)    scatter_DxN_where(address, step_bytes, v, mask)
    load_H_as_f32xN, gather_…, pick_…    store_f32xN_as_H, scatter_…, and their _first and _where forms
    stream_DxN(address, v)               stream_f32xN_as_H: non-temporal, at multiples of a line
    transposed_DxN((v, …))               N vectors with rows and columns swapped
    splat_DxN(number), iota_DxN(), cast_DxN(v), first_N(count)

Python's operators apply to vectors of one type. NAMES lists the other functions.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from codegen.simd.vector.math_library import ARGUMENTS
from codegen.simd.vector.values import EVERY

MAX_LANES = 1024
"""Lanes of the widest vector: a super-vector is split into registers before it gets here."""

NAMES = frozenset(
    [
        *ARGUMENTS,
        *("select", "minimum", "maximum", "floordiv", "modulo", "fmod", "abs", "sqrt", "fma", "copysign"),
        *("minimum_f16", "maximum_f16"),
        *("floor", "ceil", "trunc", "rint", "round_to_bf16", "round_to_f16", "round_to_odd_f32"),
        *(f"reduce_{combiner}" for combiner in ("add", "mul", "min", "max", "and", "or", "xor")),
        *(f"fast_{name}" for name in ("add", "sub", "mul", "div", "fma")),
        "first_lane",
    ]
)
"""Functions that have one name for every type."""

_FORMS = tuple(
    re.compile(form + "(?P<which>_first|_where)?")
    for form in (
        r"(?P<what>load|store|stream|gather|pick|scatter|splat|iota|cast|transposed)_(?P<dtype>[iuf]\d+)x(?P<lanes>\d+)",
        r"(?P<what>first)_(?P<lanes>\d+)",
        r"(?P<what>load|gather|pick)_(?P<half>bf16|f16)_as_f32x(?P<lanes>\d+)",
        r"(?P<what>store|stream|scatter)_f32x(?P<lanes>\d+)_as_(?P<half>bf16|f16)",
    )
)


@cache
def routine(name: str) -> Any:
    """The routine that generated kernels call by a name, built on first use; None for names not TileJIT's."""
    if name in NAMES:
        return by_name()[name]
    for form in _FORMS:
        found = form.fullmatch(name)
        if found:
            return _of_parts(name, **{"dtype": "f32", "half": "", **found.groupdict("")})
    return None


def _of_parts(name: str, what: str, dtype: str, lanes: str, half: str, which: str) -> Any:
    # Importing arithmetic defines the operators, which the source need not name.
    from codegen.simd.vector import arithmetic, casts, memory, transposes

    del arithmetic
    count = int(lanes)
    if dtype not in EVERY or count > MAX_LANES or count.bit_count() != 1:
        return None
    match what, which:
        case (("load" | "gather" | "pick"), ("" | "_first")) | (("store" | "scatter"), _):
            return memory.access(name, what, dtype, count, half, which)
        case "stream", "":
            return memory.streamed(name, dtype, count, half)
        case "first", "":
            return memory.first_lanes(name, count)
        case "splat", "":
            return casts.splat(name, dtype, count)
        case "iota", "":
            return casts.iota(name, dtype, count)
        case "transposed", "":
            return transposes.transposed(name, dtype, count)
        case "cast", "":
            return casts.cast(name, dtype, count)
    return None


@cache
def by_name() -> dict[str, Any]:
    """The functions in NAMES, by name."""
    from codegen.simd.vector import arithmetic, casts, math

    return arithmetic.NAMED | casts.NAMED | math.NAMED
