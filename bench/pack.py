"""Packs and unpacks of XLA's tiled buffers: six cases with targets of their own, and the named formats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.arrays import shrunk
from bench.formats import FORMATS, HALVES, WORDS, Dims, Format
from bench.jobs import Case, Job, packing, unpacking

WAYS = (("pack", packing), ("unpack", unpacking))
LEAST = {"even": 0.6, "uneven": 0.55}
"""The share of memcpy that no named format may miss; their means have targets of their own."""


@dataclass(frozen=True, slots=True)
class Tiled:
    """One format on one shape, and the share of memcpy that it has to reach."""

    format: Format
    dims: Dims
    target: float


TPU_F32, TPU_BF16 = FORMATS[0], FORMATS[1]
NESTED_F32 = Format(
    "nested", TPU_F32.dtype, "{1,0:T(32,32)(16,16)}", ((2, 16), (2, 16)), (0, 3, 1, 4, 2, 5), WORDS
)

CASES = (
    Tiled(TPU_F32, WORDS[0], 0.85),
    Tiled(NESTED_F32, WORDS[0], 0.7),
    Tiled(TPU_BF16, HALVES[0], 0.6),
    Tiled(TPU_F32, WORDS[1], 0.5),
    Tiled(NESTED_F32, WORDS[1], 0.5),
    Tiled(TPU_BF16, HALVES[1], 0.5),
)


def cases(quick: bool) -> list[Case]:
    """The six, then each format's even and uneven shape."""
    return [
        *(
            _case(
                "packs", way, make, tiled.format, shrunk(tiled.dims, tiled.format.dtype, quick), tiled.target
            )
            for tiled in CASES
            for way, make in WAYS
        ),
        *(
            _case(
                "formats", f"{shape} shapes", make, named, shrunk(dims, named.dtype, quick), LEAST[shape], way
            )
            for shape, index in (("even", 0), ("uneven", 1))
            for named in FORMATS
            for dims in (named.shapes[index],)
            for way, make in WAYS
        ),
    ]


def _case(table: str, group: str, make: Any, named: Format, dims: Dims, target: float, way: str = "") -> Case:
    return Case(table, group, f"{way or group} {named.label(dims)}", partial(_job, make, named, dims), target)


def _job(make: Any, named: Format, dims: Dims, threads: int) -> Job:
    job: Job = make(named.layout, named.recipe(dims), named.dtype, threads, named.width)
    return job
