"""Packs, unpacks and relayouts from 1 KiB to 256 MiB, fresh and into given memory, against NumPy recipes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np
from rich.console import RenderableType
from rich.table import Table

import tilejit as tj
from bench import relayout
from bench.arrays import Array, aligned, bits, filled, flat_bytes, short_name
from bench.formats import FORMATS, Dims, Format
from bench.jobs import Case, Job, packing, unpacking
from bench.line_charts import bytes_text
from bench.measure import Row
from bench.narrow import expanded, squeezed
from bench.peers import Call
from tilejit.arrays.memory import empty

TABLE = "sizes"
SIZES = tuple(1 << k for k in range(10, 29, 2))
QUICK_SIZES = tuple(1 << k for k in (12, 16, 20))
PAIRS = ((0, 26), (1, 6), (12, 1), (2, 16))
"""Formats of one dtype: TPU to BLIS, TPU to Tenstorrent, VNNI to TPU, TPU to cuBLASLt."""
GIVEN, FRESH = "out= given", "fresh"
SLOWER, LONG_SECONDS = 0.95, 5e-6
"""A call counts as slower below this ratio to the recipe, if the recipe takes at least this long."""


def cases(quick: bool) -> list[Case]:
    """Every format at every size. Calls alternate with NumPy's, so that both find the same caches."""
    sizes, formats, pairs = (QUICK_SIZES, FORMATS[:2], PAIRS[1:2]) if quick else (SIZES, FORMATS, PAIRS)
    packs = [
        _case(operation, memory, size, named, "", partial(make, named))
        for named in formats
        for operation, memory, make in (
            ("pack", GIVEN, partial(_given, packing)),
            ("pack", FRESH, _fresh_pack),
            ("unpack", GIVEN, partial(_given, unpacking)),
            ("unpack", FRESH, _fresh_unpack),
        )
        for size in sizes
    ]
    moves = [
        _case("relayout", memory, size, source, f" to {_tiles(target)}", partial(make, source, target))
        for source, target in ((FORMATS[k], FORMATS[n]) for k, n in pairs)
        for memory, make in ((GIVEN, _given_relayout), (FRESH, _fresh_relayout))
        for size in sizes
    ]
    return packs + moves


def _case(
    operation: str, memory: str, size: int, named: Format, more: str, make: Callable[[Dims, int], Job]
) -> Case:
    """pack f32[32,128] tpu T(8,128), 16 KiB, fresh"""
    dims = scaled(named, size)
    array = f"{short_name(named.dtype)}[{','.join(map(str, dims))}]"
    name = f"{operation} {array} {_tiles(named)}{more}, {bytes_text(size)}, {memory}"
    return Case(TABLE, f"{operation}, {memory}", name, partial(make, dims), alternates=True)


def _tiles(named: Format) -> str:
    return f"{named.name} {named.layout[1:-1].partition(':')[2]}"


def scaled(named: Format, nbytes: int) -> Dims:
    """The format's even shape at about that size: complete tiles if one fits, and less than one otherwise.

    f32[4096,4096] T(8,128), 4 KiB -> (8, 128)    1 KiB -> (8, 32)    128 MiB -> (8192, 4096)
    """
    dims, itemsize = list(named.shapes[0]), named.dtype.itemsize
    blocks = [prod(factors) for factors in named.split]
    while prod(dims) * itemsize > nbytes:
        whole = [k for k, n in enumerate(dims) if n % (2 * blocks[k]) == 0]
        longest = max(whole or range(len(dims)), key=lambda k: dims[k])
        dims[longest] = -(-dims[longest] // 2)
    while prod(dims) * itemsize <= nbytes // 2:
        dims[0] *= 2
    return tuple(dims)


def _given(make: Callable[..., Job], named: Format, dims: Dims, threads: int) -> Job:
    return _against_numpy(make(named.layout, named.recipe(dims), named.dtype, threads, named.width))


def _given_relayout(source: Format, target: Format, dims: Dims, threads: int) -> Job:
    return _against_numpy(relayout.job(source, target, dims, source.dtype, empty, threads))


def _against_numpy(job: Job) -> Job:
    return Job(job.moved_bytes, job.out, job.expected, job.ours, {"numpy": job.peers["numpy"]})


def _fresh_pack(named: Format, dims: Dims, threads: int) -> Job:
    x, by_numpy = filled(dims, named.dtype), _packer(named, dims)
    spec, loose = tj.as_layout(named.layout, dtype=named.dtype, dims=dims), bits(x)
    return _fresh(x.nbytes, lambda: tj.pack(x, spec, threads=threads), lambda: by_numpy(loose))


def _fresh_unpack(named: Format, dims: Dims, threads: int) -> Job:
    there = _on_lines(_packer(named, dims)(bits(filled(dims, named.dtype))))
    tiled = _tiled(named, dims, there if named.width else there.view(named.dtype))
    by_numpy = _unpacker(named, dims)
    return _fresh(there.nbytes, lambda: tj.unpack(tiled, threads=threads), lambda: by_numpy(there))


def _fresh_relayout(source: Format, target: Format, dims: Dims, threads: int) -> Job:
    there = relayout.packed(source, dims, source.dtype, empty)
    tiled, spec = _tiled(source, dims, there), tj.as_layout(target.layout, dtype=target.dtype, dims=dims)
    unpack, pack, loose = _unpacker(source, dims), _packer(target, dims), bits(there)
    return _fresh(
        there.nbytes, lambda: tj.relayout(tiled, spec, threads=threads), lambda: pack(unpack(loose))
    )


def _fresh(source_bytes: int, ours: Call, by_numpy: Callable[[], Array]) -> Job:
    """NumPy's result is also the expected answer, because TileJIT takes no part in it."""
    expected = flat_bytes(by_numpy()).copy()
    return Job(
        moved_bytes=source_bytes + expected.nbytes,
        out=np.empty(0, np.uint8),
        expected=expected,
        ours=lambda: ours,
        peers={"numpy": lambda: by_numpy},
    )


def _packer(named: Format, dims: Dims) -> Callable[[Array], Array]:
    pack, width = named.recipe(dims).packer(), named.width
    return (lambda x: squeezed(pack(x), width)) if width else pack


def _unpacker(named: Format, dims: Dims) -> Callable[[Array], Array]:
    unpack, width = named.recipe(dims).unpacker(), named.width
    return (lambda buffer: unpack(expanded(buffer, width))) if width else unpack


def _tiled(named: Format, dims: Dims, buffer: Array) -> tj.TiledArray:
    return tj.TiledArray.from_buffer(buffer, tj.as_layout(named.layout, dtype=named.dtype, dims=dims))


def _on_lines(array: Array) -> Array:
    buffer = aligned((array.size,), array.dtype)
    buffer[:] = array.reshape(-1)
    return buffer


def tables(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Every case, the cases slower than their recipe, and the overhead of calls below 5 us."""
    yield _rows(rows)
    timed = [row for row in rows if not row.problem and _recipe_seconds(row) is not None]
    long = [row for row in timed if (_recipe_seconds(row) or 0.0) >= LONG_SECONDS]
    if long:
        yield _slower(long)
    short = [row for row in timed if (_recipe_seconds(row) or 0.0) < LONG_SECONDS]
    if short:
        yield _short(short)


def _rows(rows: Sequence[Row]) -> Table:
    heads = ("us", "min us", "recipe us", "x recipe", "memcpy us", "share", "1st s")
    table = _table("sizes: times and ratios to the NumPy recipe and to memcpy", heads)
    for row in rows:
        if row.problem:
            table.add_row(row.case, *[""] * (len(heads) - 1), row.problem.partition(":")[0])
            continue
        recipe = _recipe_seconds(row)
        beside = ("", "") if recipe is None else (_us(recipe), f"{row.peers['numpy'].ratio:.2f}")
        times = _us(row.ours.median), _us(row.ours.least), *beside, _us(row.memcpy.median)
        table.add_row(row.case, *times, f"{row.share:.2f}", f"{row.first_seconds:.2f}")
    return table


def _slower(rows: Sequence[Row]) -> RenderableType:
    found = sorted((row for row in rows if _ratio(row) < SLOWER), key=_ratio)
    title = f"slower than the recipe, where it takes 5 us or more: {len(found)} of {len(rows)} cases"
    if not found:
        return title
    table = _table(title, ("us", "recipe us", "x recipe", "share"))
    for row in found:
        times = _us(row.ours.median), _us(_recipe_seconds(row) or 0.0)
        table.add_row(row.case, *times, f"{_ratio(row):.2f}", f"{row.share:.2f}")
    return table


def _short(rows: Sequence[Row]) -> Table:
    """The short calls, by operation.

    Kernels take longer than memcpy, so the overhead of a call is less than its time above memcpy.
    """
    heads = ("cases", "us", "most us", "us above memcpy", "most us above memcpy", "x recipe", "least")
    table = _table("where the recipe takes less than 5 us: medians, and the extreme case", heads, "group")
    for group in dict.fromkeys(row.group for row in rows):
        members = [row for row in rows if row.group == group]
        columns = (
            [row.ours.median for row in members],
            [row.ours.median - row.memcpy.median for row in members],
        )
        times = [_us(value) for column in columns for value in (statistics.median(column), max(column))]
        ratios = [_ratio(row) for row in members]
        table.add_row(
            group, str(len(members)), *times, f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}"
        )
    return table


def _table(title: str, heads: Sequence[str], first: str = "case") -> Table:
    table = Table(first, title=title, title_justify="left", min_width=len(title))
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _ratio(row: Row) -> float:
    return row.peers["numpy"].ratio


def _recipe_seconds(row: Row) -> float | None:
    figure = row.peers.get("numpy")
    return figure.seconds.median if figure and figure.seconds else None


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g}" if seconds < 1e-3 else f"{seconds * 1e6:.0f}"
