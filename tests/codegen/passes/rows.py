"""Calls of the functions in `kernels`, and how the super-vectorizer reports their loops; one per row.

Outputs are filled with 7, so that wrong writes are visible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.codegen.frontend import kernels

SEED = 20261121


def numbers(shape: Any, dtype: Any, *, low: float = -8, high: float = 8) -> np.ndarray:
    """Random numbers, the same for the same arguments."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    dtype = np.dtype(dtype)
    random = np.random.default_rng([SEED, *shape, ord(dtype.char)])
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else low
        return random.integers(int(low), int(high) + 1, shape).astype(dtype)
    return random.uniform(low, high, shape).astype(dtype)


def out(shape: Any, dtype: Any) -> np.ndarray:
    return np.full(shape, 7, dtype)


@dataclass(frozen=True)
class Row:
    """A function, a call of it, and for each loop in source order its vector shape or the reason it has none.

    "other-loop-chosen; 16 contiguous, repeated": the outer loop is scalar for that reason, and the inner one
    runs in lanes with these accesses. "masked" means that the last super-vector must not begin earlier.

    Attributes:
        function: the function.
        gives: the report in super-vectors of 16.
        tiles: the report in super-vectors of 2x8; "" if the nest has fewer loops.
        asked: the report in super-vectors of 16 with reductions requested; "" if that changes nothing.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    gives: str
    tiles: str = ""
    asked: str = ""

    def __str__(self) -> str:
        kinds = [
            a.dtype.name if isinstance(a, np.ndarray | np.generic) else type(a).__name__
            for a in self.arguments
        ]
        return f"{self.function.__name__}({', '.join(kinds)})"


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 1e30], np.float32)

ROWS = [
    *(
        Row(kernels.add, (numbers(33, a), numbers(33, b), out(33, c)), "16 contiguous")
        for a, b, c in ["fff", "fdf", "bhi", "ifd", "eef", "BBB"]
    ),
    Row(
        kernels.add_2d,
        (numbers((5, 9), "f"), numbers((5, 9), "f"), out((5, 9), "f")),
        "other-loop-chosen; 16 contiguous",
        tiles="2 along 0; 2x8 contiguous",
    ),
    Row(kernels.saxpy, (2.1, numbers(9, "f"), numbers(9, "f")), "16 contiguous, masked"),
    Row(kernels.saxpy, (np.float64(2.1), numbers(9, "f"), numbers(9, "f")), "16 contiguous, masked"),
    Row(kernels.saxpy, (3, numbers(9, "h"), numbers(9, "h")), "16 contiguous, masked"),
    Row(kernels.saxpy, (0.1, numbers(9, "e"), numbers(9, "e")), "16 contiguous, masked"),
    *(
        Row(
            kernels.dot,
            (numbers(50, a), numbers(50, b)),
            "reduction-not-asked",
            asked="16 contiguous, reduced by add, masked",
        )
        for a, b in ["ff", "dd", "fd", "ii", "ee", "bb"]
    ),
    *(
        Row(
            kernels.total_and_product,
            (numbers(20, a, low=1, high=3),),
            "reduction-not-asked",
            asked="16 contiguous, reduced by add, reduced by mul, masked",
        )
        for a in "fdiBbl"
    ),
    Row(
        kernels.count,
        (numbers(30, "f"), 0.5),
        "reduction-not-asked",
        asked="16 contiguous, reduced by add, masked",
    ),
    Row(
        kernels.sum_of_some,
        (numbers(30, "f"),),
        "reduction-not-asked",
        asked="16 contiguous, reduced by add, masked",
    ),
    Row(kernels.largest_if, (SPECIAL,), "carried-value"),
    *(
        Row(kernels.record, (a,), "reduction-not-asked", asked="16 contiguous, reduced by max, masked")
        for a in (numbers(30, "f"), SPECIAL, SPECIAL[1:], numbers(30, "h"))
    ),
    *(
        Row(
            kernels.least_kept,
            (numbers(30, a),),
            "reduction-not-asked",
            asked="16 contiguous, reduced by min, masked",
        )
        for a in "iB"
    ),
    *(Row(kernels.least_kept, (a,), "carried-value") for a in (numbers(30, "d"), SPECIAL)),
    Row(kernels.not_reductions, (numbers(30, "f"),), "carried-value"),
    *(
        Row(kernels.least_and_largest, (a,), "carried-value")
        for a in (numbers(30, "f"), numbers(30, "d"), SPECIAL, SPECIAL[::-1])
    ),
    *(
        Row(
            kernels.bits,
            (numbers(20, a), numbers(20, a), out(20, a)),
            "reduction-not-asked",
            asked="16 contiguous, reduced by and, reduced by or, reduced by xor, masked",
        )
        for a in "ihlb"
    ),
    *(
        Row(
            kernels.matmul,
            (numbers((4, 5), a), numbers((5, 6), a), out((4, 6), a)),
            "other-loop-chosen; 16 repeated, contiguous; reduction-not-asked",
            tiles="2 along 0, repeated; 2x8 repeated, contiguous; reduction-not-asked",
            asked="other-loop-chosen; 16 repeated, contiguous; other-loop-chosen",
        )
        for a in "fdie"
    ),
    Row(
        kernels.matmul_in_place,
        (numbers((4, 5), "f"), numbers((5, 6), "f"), out((4, 6), "f")),
        "other-loop-chosen; other-loop-chosen; 16 repeated, contiguous, masked",
        tiles="2 along 0, repeated, masked; carried-dependence; 2x8 repeated, contiguous, masked",
    ),
    Row(
        kernels.matmul_in_place,
        (numbers((4, 5), "f"), numbers((5, 6), "d"), out((4, 6), "f")),
        "other-loop-chosen; other-loop-chosen; 16 contiguous, repeated, masked",
        tiles="2 along 0, repeated, masked; carried-dependence; 2x8 contiguous, repeated, masked",
    ),
    Row(
        kernels.transpose,
        (numbers((4, 7), "f"), out((7, 4), "f")),
        "16 along 0, contiguous; 16x16 contiguous, along 0",
        tiles="2 along 0, contiguous; 2x8 contiguous, along 0",
    ),
    Row(
        kernels.transpose,
        (numbers((7, 4), "f").T, out((7, 4), "f")),
        "16 contiguous; other-loop-chosen",
        tiles="2 contiguous; 2x8 along 1, along 0",
    ),
    Row(
        kernels.row_sums,
        (numbers((4, 7), "f"), out(4, "f")),
        "16 contiguous, along 0, masked; reduction-not-asked",
        tiles="reduction-not-asked; reduction-not-asked",
        asked="other-loop-chosen; 16 contiguous, repeated, reduced by add, masked",
    ),
    Row(
        kernels.row_sums,
        (numbers((4, 7), "f"), out(4, "d")),
        "16 contiguous, along 0, masked; reduction-not-asked",
        tiles="reduction-not-asked; reduction-not-asked",
        asked="other-loop-chosen; 16 contiguous, repeated, reduced by add, masked",
    ),
    Row(
        kernels.broadcast,
        (numbers((4, 7), "f"), numbers(4, "f"), out((4, 7), "f")),
        "other-loop-chosen; 16 contiguous",
        tiles="2 contiguous, along 0; 2x8 contiguous",
    ),
    Row(kernels.strided, (numbers(20, "f"), out(20, "f")), "16 strided by 2"),
    Row(kernels.every_third, (numbers(20, "f"), out(20, "f")), "16 strided by 3"),
    Row(kernels.every_third, (numbers(20, "i"), out(20, "d")), "16 strided by 3"),
    Row(kernels.backwards, (numbers(20, "f"), out(20, "f")), "16 reversed, contiguous"),
    Row(kernels.backwards_by_two, (numbers(19, "f"), out(19, "f")), "16 strided by -2, masked"),
    Row(kernels.backwards_by_two, (numbers(20, "f")[::-1], out(20, "f")), "16 strided by -2, masked"),
    Row(
        kernels.triangle,
        (numbers((6, 6), "f"), out((6, 6), "f")),
        "other-loop-chosen; 16 contiguous, along 0",
        tiles="bound-uses-index; bound-uses-index",
    ),
    Row(
        kernels.band,
        (numbers((6, 6), "f"), out((6, 6), "f")),
        "bound-uses-index; 16 contiguous",
        tiles="bound-uses-index; bound-uses-index",
    ),
    *(
        Row(kernels.clipped_ends, (numbers(20, "f"), out(20, "f"), n), "16 contiguous")
        for n in (3, 7, 19, np.int32(18))
    ),
    Row(kernels.floor_and_mod, (numbers(10, "f"), out(20, "f")), "not-profitable"),
    Row(kernels.tiled, (numbers(24, "f"), out(24, "f")), "not-profitable"),
    Row(kernels.carried_distance, (numbers(30, "f"),), "carried-dependence"),
    Row(kernels.forward, (numbers(30, "i"),), "16 contiguous, masked"),
    Row(kernels.prefix, (numbers(30, "f"), out(30, "f")), "scan-not-asked"),
    Row(kernels.prefix, (numbers(30, "i"), out(30, "f")), "scan-not-asked"),
    Row(
        kernels.horner,
        (numbers(9, "f"), numbers(6, "f"), out(9, "f")),
        "16 contiguous, repeated; carried-value",
        tiles="carried-value; carried-value",
    ),
    Row(kernels.last_of, (numbers(9, "f"),), "carried-value"),
    Row(kernels.reassigned, (numbers(9, "f"), out(9, "f")), "16 contiguous; 16 contiguous, masked"),
    *(
        Row(kernels.steps_of_types, (numbers(9, a), numbers(9, b), out(9, c)), "16 contiguous")
        for a, b, c in ["fff", "iif", "fdf", "bed", "lfd"]
    ),
    *(
        Row(kernels.division, (numbers(9, a), numbers(9, b), out(9, c)), "16 contiguous")
        for a, b, c in ["fff", "iii", "idd", "bBh", "BBB"]
    ),
    Row(
        kernels.with_index,
        (numbers((4, 7), "f"), out((4, 7), "f")),
        "other-loop-chosen; 16 contiguous",
        tiles="2 along 0; 2x8 contiguous",
    ),
    Row(
        kernels.with_index,
        (numbers((4, 7), "i"), out((4, 7), "d")),
        "other-loop-chosen; 16 contiguous",
        tiles="2 along 0; 2x8 contiguous",
    ),
    Row(kernels.chosen, (numbers(30, "f"), numbers(30, "f", low=-3), out(30, "f")), "16 contiguous"),
    Row(kernels.relu, (SPECIAL, out(8, "f")), "16 contiguous"),
    Row(kernels.nan_order, (SPECIAL, SPECIAL[::-1].copy(), out(8, "f"), out(8, "f")), "16 contiguous"),
    *(
        Row(kernels.numpys, (numbers(9, a), numbers(9, b), out(9, "d")), "16 contiguous")
        for a, b in ["ff", "dd", "ii", "bf", "ee"]
    ),
    *(Row(kernels.transcendental, (numbers(9, a), out(9, "d")), "16 contiguous") for a in "fde"),
    Row(kernels.maths, (numbers(9, "d"), out(9, "d")), "16 contiguous"),
    Row(kernels.maths, (numbers(9, "i"), out(9, "d")), "16 contiguous"),
    Row(kernels.casts, (numbers(9, "d"), out(9, "i"), out(9, "f")), "16 contiguous, masked"),
    *(
        Row(kernels.narrowing, (numbers(9, a), out(9, b)), "16 contiguous")
        for a, b in ["fi", "de", "ib", "df"]
    ),
    Row(
        kernels.flags,
        (numbers(9, "f"), out(9, "?")),
        "reduction-not-asked",
        asked="16 contiguous, reduced by and, reduced by or, masked",
    ),
    Row(
        kernels.flags,
        (numbers(9, "i"), out(9, "i")),
        "reduction-not-asked",
        asked="16 contiguous, reduced by and, reduced by or, masked",
    ),
    Row(kernels.branches, (numbers(30, "f"), out(30, "i")), "carried-value"),
    Row(
        kernels.imperfect,
        (numbers((4, 7), "f"), numbers(4, "f"), out((4, 7), "f")),
        "16 contiguous, along 0, masked; carried-dependence",
        tiles="carried-dependence; carried-dependence",
    ),
    Row(
        kernels.whole_sum,
        (numbers((4, 7), "f"),),
        "reduction-not-asked; reduction-not-asked",
        tiles="reduction-not-asked; reduction-not-asked",
        asked="other-loop-chosen; 16 contiguous, repeated, reduced by add, masked",
    ),
    Row(
        kernels.annotated,
        (numbers(9, "i"), out(9, "i")),
        "16 contiguous; 16 contiguous, reduced by add, masked",
    ),
    Row(kernels.by_number, (numbers(9, "f"), out(9, "f"), 5, 0.3), "16 reversed, contiguous"),
    Row(
        kernels.by_number,
        (numbers(9, "f"), out(9, "f"), np.int16(5), np.float32(0.3)),
        "16 reversed, contiguous",
    ),
    Row(
        kernels.chained,
        (numbers((4, 7), "f"), out((4, 7), "f")),
        "other-loop-chosen; 16 contiguous",
        tiles="2 along 0; 2x8 contiguous",
    ),
    Row(
        kernels.never,
        (numbers(9, "f"), out(9, "f")),
        "reduction-not-asked; 16 contiguous",
        asked="16 contiguous, reduced by add, masked; 16 contiguous",
    ),
    Row(kernels.scalar_only, (1.25, 6), "carried-value"),
    Row(kernels.scalar_only, (np.float32(1.1), 6), "carried-value"),
    Row(
        kernels.stencil,
        (numbers(12, "f"), out(12, "f")),
        "other-loop-chosen; 16 contiguous; 16 contiguous",
        tiles="carried-dependence; carried-dependence; carried-dependence",
    ),
    Row(
        kernels.shadowed,
        (numbers((3, 4), "f"), out((3, 4), "f")),
        "16 along 0; other-loop-chosen; other-loop-chosen; 16 contiguous, masked",
        tiles="2 along 0; 2x8 contiguous; 2 along 0, masked; 2x8 contiguous, masked",
    ),
    Row(kernels.tests, (SPECIAL, out(8, "i")), "16 contiguous"),
    Row(kernels.pairs, (numbers(9, "f"), out(9, "f")), "16 strided by 2"),
    Row(kernels.swapped, (20,), "carried-value"),
    *(
        Row(kernels.small_types, (numbers(9, a), numbers(9, b), out(9, c)), "16 contiguous")
        for a, b, c in ["bbb", "hhh", "bhi"]
    ),
    *(
        Row(kernels.guarded, (numbers(19, a), out(40, b)), "carried-dependence")
        for a, b in ["ff", "id", "bl", "ee", "?B"]
    ),
    Row(kernels.guarded, (SPECIAL, out(16, "f")), "carried-dependence"),
    Row(
        kernels.guarded_transposed,
        (numbers((5, 19), "f"), out((19, 6), "f")),
        "16 along 0, contiguous, masked; 16x16 contiguous, along 0, masked",
        tiles="2 along 0, contiguous, masked; 2x8 contiguous, along 0, masked",
    ),
    Row(
        kernels.guarded_transposed,
        (numbers((19, 20), "h"), np.asfortranarray(out((20, 19), "h"))),
        "other-loop-chosen; 16 contiguous, masked",
        tiles="2 along 0, along 1, masked; 2x8 contiguous, masked",
    ),
    *(
        Row(
            kernels.guarded_loop,
            (numbers((6, 13), "i"), out((6, 13), "i"), n),
            "16 along 0, masked; scan-not-asked",
            tiles="scan-not-asked; scan-not-asked",
        )
        for n in (2, 13)
    ),
    *(
        Row(
            kernels.guarded_sum,
            (numbers(37, a), out(2, a)),
            "reduction-not-asked",
            asked="16 contiguous, repeated, reduced by add, masked",
        )
        for a in "fi"
    ),
    *(
        Row(
            kernels.index_numbers,
            (numbers((4, 21), a), out((4, 21), a)),
            "other-loop-chosen; 16 contiguous",
            tiles="2 along 0; 2x8 contiguous",
        )
        for a in "fdile"
    ),
    *(Row(kernels.index_floats, (numbers(21, a), out(21, a)), "16 contiguous") for a in "fd"),
    *(
        Row(
            kernels.down_from_the_least,
            (numbers(30, "f"), out(30, "f"), n),
            "bound-uses-index; not-profitable",
            tiles="bound-uses-index; bound-uses-index",
        )
        for n in (3, 22, 40)
    ),
    Row(
        kernels.once,
        (numbers(9, "f"), out(9, "f")),
        "bound-uses-index; not-profitable; reduction-not-asked",
        tiles="bound-uses-index; reduction-not-asked; reduction-not-asked",
        asked="bound-uses-index; other-loop-chosen; 16 repeated, reduced by add, masked",
    ),
    *(Row(kernels.compared_beyond, (numbers(9, a), out(9, "i")), "16 contiguous, masked") for a in "BbifL"),
    *(
        Row(kernels.compared_past_all, (numbers(9, a), out(9, "i")), "16 contiguous, masked")
        for a in "BblLfd"
    ),
]
