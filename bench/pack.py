"""Packs and unpacks of XLA's tiled buffers: three layouts, and the named formats."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.arrays import shrunk
from bench.formats import FORMATS, HALVES, WORDS, Dims, Format
from bench.jobs import Case, Job, packing, unpacking

OPERATIONS = (("pack", packing), ("unpack", unpacking))


TPU_F32, TPU_BF16 = FORMATS[0], FORMATS[1]
NESTED_F32 = Format(
    "nested", TPU_F32.dtype, "{1,0:T(32,32)(16,16)}", ((2, 16), (2, 16)), (0, 3, 1, 4, 2, 5), WORDS
)

CASES = (
    (TPU_F32, WORDS[0]),
    (NESTED_F32, WORDS[0]),
    (TPU_BF16, HALVES[0]),
    (TPU_F32, WORDS[1]),
    (NESTED_F32, WORDS[1]),
    (TPU_BF16, HALVES[1]),
)


def cases(quick: bool) -> list[Case]:
    """Packs and unpacks of three layouts, then each format's even and uneven shape."""
    return [
        *(
            _case("packs", operation, make, named, shrunk(dims, named.dtype, quick))
            for named, dims in CASES
            for operation, make in OPERATIONS
        ),
        *(
            _case("formats", f"{shape} shapes", make, named, shrunk(dims, named.dtype, quick), operation)
            for shape, index in (("even", 0), ("uneven", 1))
            for named in FORMATS
            for dims in (named.shapes[index],)
            for operation, make in OPERATIONS
        ),
    ]


def _case(table: str, group: str, make: Any, named: Format, dims: Dims, operation: str = "") -> Case:
    return Case(table, group, f"{operation or group} {named.label(dims)}", partial(_job, make, named, dims))


def _job(make: Any, named: Format, dims: Dims, threads: int) -> Job:
    job: Job = make(named.layout, named.recipe(dims), named.dtype, threads, named.width)
    return job
