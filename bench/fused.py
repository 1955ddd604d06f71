"""A multiplication whose result is packed as bf16 in one pass, against a cast followed by a transpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import tilejit as tj
from bench.arrays import Array
from bench.jobs import Case, Job
from bench.peers import Call

NAME = "scale to bf16, T(8,128)(2,1)"
TABLE = "elementwise"
SHAPES = {1_000: (8, 128), 100_000: (96, 1024), 10_000_000: (1024, 9728)}
"""About as many elements as in the other expressions, in whole tiles."""
SEED = 7
BF16 = np.dtype(ml_dtypes.bfloat16)
ORDER = (0, 3, 1, 4, 2)


def cases(quick: bool) -> list[Case]:
    """One case per size. A quick run omits the largest."""
    sizes = list(SHAPES)[: 2 if quick else None]
    return [Case(TABLE, "into tiles", f"{NAME} {size}", partial(job, size)) for size in sizes]


def job(size: int, threads: int) -> Job:
    """Multiply a float32 array into a tiled buffer. Answers must agree bit for bit."""
    shape = SHAPES[size]
    x = np.random.default_rng(SEED).random(shape).astype(np.float32)
    tiles = (shape[0] // 8, 4, 2, shape[1] // 128, 128)
    by_numpy = _numpy(x, tiles)
    expected = by_numpy().tobytes()
    return Job(
        moved_bytes=x.nbytes + x.nbytes // 2,
        out=np.empty(0, np.uint8),
        expected=np.empty(0, np.uint8),
        ours=lambda: _ours(x, threads),
        peers={
            "numpy": lambda: by_numpy,
            "torch": lambda: _torch(x, tiles, threads),
            "jax": lambda: _jax(x, tiles),
        },
        agrees=lambda answer: _bytes(answer) == expected,
    )


def _ours(x: Array, threads: int) -> Call:
    kernel = tj.elementwise(lambda x: (x * 0.7).astype(BF16), parallel=None if threads > 1 else False)
    out = tj.pack(x.astype(BF16), "{1,0:T(8,128)(2,1)}")
    out.buffer[...] = 0
    return lambda: kernel(x, out=out).buffer


def _numpy(x: Array, tiles: tuple[int, ...]) -> Callable[[], Array]:
    return lambda: np.ascontiguousarray((x * np.float32(0.7)).astype(BF16).reshape(tiles).transpose(ORDER))


def _torch(x: Array, tiles: tuple[int, ...], threads: int) -> Call:
    import torch

    torch.set_num_threads(threads)
    tensor = torch.from_numpy(x)
    return lambda: (tensor * 0.7).to(torch.bfloat16).reshape(tiles).permute(ORDER).contiguous()


def _jax(x: Array, tiles: tuple[int, ...]) -> Call:
    import jax

    packed = jax.jit(lambda a: (a * jax.numpy.float32(0.7)).astype(BF16).reshape(tiles).transpose(ORDER))
    argument = jax.device_put(x)
    return lambda: packed(argument).block_until_ready()


def _bytes(answer: Any) -> bytes:
    """The memory of the answer, because NumPy has no dtype for torch's bfloat16."""
    if type(answer).__module__.partition(".")[0] == "torch":
        import torch

        answer = answer.view(torch.int16).numpy()
    return np.asarray(answer).tobytes()
