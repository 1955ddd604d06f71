"""A layout as pad, reshape and transpose: the code without TileJIT, and the oracle of the bench."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.arrays import Array, aligned

Steps = tuple[tuple[Array, Array], ...]
"""Copies in order, each (destination, source), as strided views."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Pad each dimension to a multiple of its factors, split it by them, and put the parts in `order`.

    bf16[M,N] T(8,128)(2,1): split ((4, 2), (128,)), order (0, 3, 1, 4, 2)
    """

    shape: tuple[int, ...]
    split: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]

    @classmethod
    def permutation(cls, shape: tuple[int, ...], order: tuple[int, ...]) -> Recipe:
        """numpy.transpose, without padding or splitting."""
        return cls(shape, ((),) * len(shape), order)

    @property
    def padded(self) -> tuple[int, ...]:
        """The dimensions, including padding."""
        blocks = [math.prod(factors) for factors in self.split]
        return tuple(-(-n // block) * block for n, block in zip(self.shape, blocks, strict=True))

    @property
    def blocks(self) -> tuple[int, ...]:
        """The padded dimensions, split."""
        pairs = zip(self.padded, self.split, strict=True)
        return tuple(part for n, factors in pairs for part in (n // math.prod(factors), *factors))

    @property
    def packed(self) -> tuple[int, ...]:
        """The parts in the order of memory."""
        return tuple(self.blocks[k] for k in self.order)

    @property
    def back(self) -> tuple[int, ...]:
        """The order that undoes `order`."""
        return tuple(int(k) for k in np.argsort(self.order))

    @property
    def slots(self) -> int:
        """Elements of the buffer, padding included."""
        return math.prod(self.packed)

    def pack(self, x: Array, buffer: Array) -> Steps:
        """Copy the array to the buffer, through a padded array if the shape is uneven."""
        target = buffer.reshape(self.packed)
        if self.padded == self.shape:
            return ((target, x.reshape(self.blocks).transpose(self.order)),)
        scratch = aligned(self.padded, x.dtype)
        inside = scratch[self._inside]
        return ((inside, x), (target, scratch.reshape(self.blocks).transpose(self.order)))

    def unpack(self, buffer: Array, y: Array) -> Steps:
        """Copy the buffer to the array."""
        source = buffer.reshape(self.packed).transpose(self.back)
        if self.padded == self.shape:
            return ((y.reshape(self.blocks), source),)
        scratch = aligned(self.padded, y.dtype)
        return ((scratch.reshape(self.blocks), source), (y, scratch[self._inside]))

    def packer(self) -> Callable[[Array], Array]:
        """A function that pads, reshapes, transposes and copies an array into a fresh one in buffer order.

        The numbers are computed beforehand, because users write them as literals.
        """
        blocks, order = self.blocks, self.order
        if self.padded == self.shape:
            return lambda x: x.reshape(blocks).transpose(order).copy("C")
        after = [(0, p - n) for p, n in zip(self.padded, self.shape, strict=True)]
        return lambda x: np.ascontiguousarray(np.pad(x, after).reshape(blocks).transpose(order))

    def unpacker(self) -> Callable[[Array], Array]:
        """A function from the buffer to a fresh array; a view cuts the padding off."""
        packed, back, padded, inside = self.packed, self.back, self.padded, self._inside
        if padded == self.shape:
            return lambda buffer: buffer.reshape(packed).transpose(back).copy("C").reshape(padded)
        return lambda buffer: buffer.reshape(packed).transpose(back).copy("C").reshape(padded)[inside]

    def traced_pack(self, jnp: Any) -> Callable[[Any], Any]:
        """The pack, for jax to trace."""
        after = [(0, p - n) for p, n in zip(self.padded, self.shape, strict=True)]
        return lambda x: jnp.pad(x, after).reshape(self.blocks).transpose(self.order)

    def traced_unpack(self, jnp: Any) -> Callable[[Any], Any]:
        """The unpack, for jax to trace."""

        def unpack(buffer: Any) -> Any:
            split = buffer.reshape(self.packed).transpose(self.back)
            return split.reshape(self.padded)[self._inside]

        return unpack

    @property
    def _inside(self) -> tuple[slice, ...]:
        return tuple(slice(0, n) for n in self.shape)
