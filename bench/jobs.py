"""A case of the bench, and the jobs of most cases: a permutation, a pack, an unpack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilejit as tj
from bench import peers
from bench.arrays import Array, aligned, bits, filled, flat_bytes
from bench.narrow import expand, squeeze
from bench.peers import Call
from bench.recipe import Recipe, Steps

UNTOUCHED = 0xA5
"""The value of every byte of `out` before an answer is checked."""


@dataclass(frozen=True, slots=True)
class Job:
    """Arrays, the right answer, and the calls of TileJIT and its peers that compute it.

    Calls are built when their turn comes, so that compile time is separate and memory use stays small.
    A call writes to `out`, or returns a new array. If several answers are right, `agrees` replaces
    `expected`.
    """

    moved_bytes: int
    out: Array
    expected: Array
    ours: Callable[[], Call]
    peers: Mapping[str, Callable[[], Call]]
    agrees: Callable[[object], bool] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a table, and the group that it is averaged with.

    `make` gets the number of threads. If it `alternates`, TileJIT and a peer are timed call by call, which
    is fair if either allocates its result. Otherwise each takes turns with memcpy, for some milliseconds.
    """

    table: str
    group: str
    name: str
    make: Callable[[int], Job]
    alternates: bool = False


def permutation(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    dtype: Any,
    threads: int,
    *,
    allocate: Callable[[tuple[int, ...], Any], Array] = aligned,
) -> Job:
    """A `numpy.transpose` into an existing array, which `allocate` makes."""
    x = filled(shape, dtype)
    recipe = Recipe.permutation(shape, order)
    out = allocate(recipe.packed, dtype)
    matrix = order == (1, 0) and x.itemsize in (4, 8)
    others = {"mkl": lambda: peers.by_mkl(out, x, threads)} if matrix else {}
    return Job(
        moved_bytes=x.nbytes + out.nbytes,
        out=out,
        expected=answer_of(peers.by_numpy(((bits(out), bits(x).transpose(order)),)), out),
        ours=lambda: _planned(out, x.transpose(order), threads),
        peers={
            **_movers(((bits(out), bits(x).transpose(order)),), threads),
            "jax": lambda: peers.by_jax(lambda jnp: lambda a: jnp.transpose(a, order), x, threads),
            **others,
        },
    )


def conversion(shape: tuple[int, ...], order: tuple[int, ...], dtype: Any, to: Any, threads: int) -> Job:
    """A permutation that also converts elements."""
    x = filled(shape, dtype)
    view = x.transpose(order)
    out = aligned(view.shape, to)
    return Job(
        moved_bytes=x.nbytes + out.nbytes,
        out=out,
        expected=answer_of(peers.by_numpy(((out, view),)), out),
        ours=lambda: _planned(out, view, threads),
        peers={
            **_movers(((out, view),), threads),
            "jax": lambda: peers.by_jax(lambda jnp: lambda a: a.transpose(order).astype(to), x, threads),
        },
    )


def packing(layout: str, recipe: Recipe, dtype: Any, threads: int, width: int = 0) -> Job:
    """An array into a tiled buffer. `width` is the width of packed elements in bits."""
    x, spec, buffer = _tiled(layout, recipe, dtype, width)
    if width:
        by_numpy = squeeze(recipe, x, buffer, width)
        others = {"numpy": lambda: by_numpy}
    else:
        steps = recipe.pack(bits(x), bits(buffer))
        by_numpy = peers.by_numpy(steps)
        others = {
            **_movers(steps, threads),
            "jax": lambda: peers.by_jax(recipe.traced_pack, x, threads),
        }
    return Job(
        moved_bytes=x.nbytes + buffer.nbytes,
        out=buffer,
        expected=answer_of(by_numpy, buffer),
        ours=lambda: lambda: tj.pack(x, spec, out=buffer, threads=threads),
        peers=others,
    )


def unpacking(layout: str, recipe: Recipe, dtype: Any, threads: int, width: int = 0) -> Job:
    """A tiled buffer back into an array."""
    x, spec, buffer = _tiled(layout, recipe, dtype, width)
    if width:
        squeeze(recipe, x, buffer, width)()
        out = aligned(x.shape, dtype)
        others = {"numpy": lambda: expand(recipe, buffer, out, width)}
    else:
        peers.by_numpy(recipe.pack(bits(x), bits(buffer)))()
        out = aligned(x.shape, dtype)
        others = {
            **_movers(recipe.unpack(bits(buffer), bits(out)), threads),
            "jax": lambda: peers.by_jax(recipe.traced_unpack, buffer, threads),
        }
    tiled = tj.TiledArray.from_buffer(buffer, spec)
    return Job(
        moved_bytes=buffer.nbytes + out.nbytes,
        out=out,
        expected=flat_bytes(x),
        ours=lambda: lambda: tj.unpack(tiled, out=out, threads=threads),
        peers=others,
    )


def fresh(shape: tuple[int, ...], order: tuple[int, ...], dtype: Any, threads: int, *, given: bool) -> Job:
    """A permutation by `pack`, whose layout is an order of dimensions, with or without `out=`."""
    x = filled(shape, dtype)
    layout = "{" + ",".join(str(k) for k in reversed(order)) + "}"
    out = aligned((x.size,), dtype)
    view = bits(x).transpose(order)
    steps = ((bits(out).reshape(view.shape), view),)
    expected = answer_of(peers.by_numpy(steps), out)
    if given:
        return Job(
            moved_bytes=2 * x.nbytes,
            out=out,
            expected=expected,
            ours=lambda: lambda: tj.pack(x, layout, out=out, threads=threads),
            peers=_movers(steps, threads),
        )
    return Job(
        moved_bytes=2 * x.nbytes,
        out=out,
        expected=expected,
        ours=lambda: lambda: tj.pack(x, layout, threads=threads),
        peers={
            "numpy": lambda: lambda: view.copy("C"),
            "torch": lambda: peers.by_torch_fresh(view, threads),
            "jax": lambda: peers.by_jax(lambda jnp: lambda a: jnp.transpose(a, order), x, threads),
        },
    )


def _planned(out: Array, source: Array, threads: int) -> Call:
    plan = tj.plan_copy(out, source, threads=threads)
    return lambda: plan(out, source)


def _movers(steps: Steps, threads: int) -> dict[str, Callable[[], Call]]:
    """The peers that can copy between strided views."""
    return {"numpy": lambda: peers.by_numpy(steps), "torch": lambda: peers.by_torch(steps, threads)}


def _tiled(layout: str, recipe: Recipe, dtype: Any, width: int) -> tuple[Array, tj.Shape, Array]:
    """An array, its layout, and a buffer of the size that the recipe gives."""
    x = filled(recipe.shape, dtype)
    spec = tj.as_layout(layout, dtype=x.dtype, dims=x.shape)
    buffer = aligned((recipe.slots * width // 8,), np.uint8) if width else aligned((recipe.slots,), dtype)
    return x, spec, buffer


def answer_of(call: Call, out: Array) -> Array:
    """The oracle's answer, in separate memory."""
    call()
    return flat_bytes(out).copy()
