"""Elements narrower than a byte in NumPy, low bits first. ml_dtypes stores them one per byte."""

from __future__ import annotations

import numpy as np

from bench import peers
from bench.arrays import Array, aligned
from bench.peers import Call
from bench.recipe import Recipe, Steps


def squeeze(recipe: Recipe, x: Array, buffer: Array, width: int) -> Call:
    """Put the elements in the buffer's order, one per byte, then pack them to `width` bits each."""
    loose = x.view(np.uint8).reshape(-1)
    steps: Steps = ()
    if not _in_order(recipe):
        loose = aligned((recipe.slots,), np.uint8)
        steps = recipe.pack(x.view(np.uint8), loose)
    move = peers.by_numpy(steps)

    def run() -> None:
        move()
        if width == 4:
            np.left_shift(loose[1::2], 4, out=buffer)
            np.bitwise_or(buffer, loose[0::2], out=buffer)
        else:
            buffer[:] = np.packbits(loose, bitorder="little")

    return run


def expand(recipe: Recipe, buffer: Array, y: Array, width: int) -> Call:
    """The inverse of `squeeze`."""
    loose = y.view(np.uint8).reshape(-1)
    steps: Steps = ()
    if not _in_order(recipe):
        loose = aligned((recipe.slots,), np.uint8)
        steps = recipe.unpack(loose, y.view(np.uint8))
    move = peers.by_numpy(steps)

    def run() -> None:
        if width == 4:
            np.bitwise_and(buffer, 15, out=loose[0::2])
            np.right_shift(buffer, 4, out=loose[1::2])
        else:
            loose[:] = np.unpackbits(buffer, bitorder="little")
        move()

    return run


def squeezed(loose: Array, width: int) -> Array:
    """A fresh packed buffer from elements that are stored one per byte."""
    flat = loose.reshape(-1)
    return flat[0::2] | flat[1::2] << 4 if width == 4 else np.packbits(flat, bitorder="little")


def expanded(buffer: Array, width: int) -> Array:
    """A fresh array of one byte per element, in the order of the buffer."""
    if width == 4:
        return np.stack((buffer & 15, buffer >> 4), -1).reshape(-1)
    return np.unpackbits(buffer, bitorder="little")


def _in_order(recipe: Recipe) -> bool:
    """Whether the array already has its elements in the order of the buffer."""
    return recipe.padded == recipe.shape and recipe.order == tuple(sorted(recipe.order))
