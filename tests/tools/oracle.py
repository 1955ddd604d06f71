"""The contents of a tiled buffer by XLA's definition: pad, reshape, transpose. It uses no code of TileJIT."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from subprocess import CompletedProcess, run
from sys import executable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PADDING = -1
MERGE = -1


def slots_by_definition(
    dims: Sequence[int],
    minor_to_major: Sequence[int],
    tiles: Sequence[Sequence[int]] = (),
    padded: Sequence[int] | None = None,
    tail: int = 1,
) -> NDArray[np.int64]:
    """For every slot of the buffer, the C-order number of its element, or -1 for padding.

    [2,3] column-major, padded to [3,3] -> 0 3 -1 1 4 -1 2 5 -1
    """
    a = _padded(np.arange(prod(dims)).reshape(dims), padded or dims).transpose(*reversed(minor_to_major))
    for tile in tiles:
        a = a.reshape((1,) * (len(tile) - a.ndim) + a.shape)
        lead = a.shape[: a.ndim - len(tile)]
        sizes = [t for t in tile if t != MERGE]
        a = a.reshape(lead + _merged(a.shape[len(lead) :], tile))
        counts = [-(-n // t) for n, t in zip(a.shape[len(lead) :], sizes, strict=True)]
        a = _padded(a, [*lead, *(c * t for c, t in zip(counts, sizes, strict=True))])
        a = a.reshape([*lead, *(n for pair in zip(counts, sizes, strict=True) for n in pair)])
        k, r = len(lead), a.ndim
        a = a.transpose([*range(k), *range(k, r, 2), *range(k + 1, r, 2)])
    return _padded(a.reshape(-1), [-(-a.size // tail) * tail])


def _padded(a: Array, extents: Sequence[int]) -> Array:
    out = np.full(extents, PADDING, np.int64)
    out[tuple(map(slice, a.shape))] = a
    return out


def _merged(extents: Sequence[int], tile: Sequence[int]) -> tuple[int, ...]:
    """Join the dimension of each `*` to the next more minor one."""
    out, carry = [], 1
    for n, t in zip(extents, tile, strict=True):
        carry *= n
        if t != MERGE:
            out.append(carry)
            carry = 1
    return tuple(out)


def slots_of(shape: Any) -> NDArray[np.int64]:
    """`slots_by_definition` for a Shape.

    Slots that fill the last byte of a packed buffer count as padding.
    """
    if not hasattr(shape.layout, "minor_to_major") and shape.layout is not None:
        return _slots_of_cute(shape)
    layout = shape.layout
    order = layout.minor_to_major if layout else tuple(reversed(range(len(shape.dimensions))))
    tiles = layout.tiles if layout else ()
    tail = layout.tail_padding_alignment_in_elements if layout else 1
    slots = slots_by_definition(shape.dimensions, order, tiles, shape.padded_dimensions, tail)
    group = 8 // shape.bits if shape.bits < 8 else 1
    return _padded(slots, [-(-slots.size // group) * group])


def _slots_of_cute(shape: Any) -> NDArray[np.int64]:
    """The same for a CuTe layout: every element at its offset, in a buffer as long as the box requires."""
    index = tuple(np.indices(shape.dimensions).reshape(len(shape.dimensions), -1))
    box = tuple(np.indices(_sizes(shape.layout)).reshape(len(shape.dimensions), -1))
    reach = cute_offsets(shape.layout, box)
    slots = np.full(int(reach.max()) + 1 if reach.size else 0, PADDING, np.int64)
    slots[cute_offsets(shape.layout, index)] = np.arange(prod(shape.dimensions))
    group = 8 // shape.bits if shape.bits < 8 else 1
    return _padded(slots, [-(-slots.size // group) * group])


def cute_offsets(layout: Any, index: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The offsets of a CuTe layout at one index per mode, by its definition."""
    if hasattr(layout, "inner"):
        inner = cute_offsets(layout.inner, index) + layout.offset
        outer = layout.outer
        if not hasattr(outer, "base"):
            digits = list(zip(_flat(outer.shape), _flat(outer.stride), strict=True))
            total = np.zeros_like(inner)
            for size, stride in digits[:-1]:
                total, inner = total + inner % size * stride, inner // size
            return total + inner * digits[-1][1] if digits else total  # the last digit is unbounded
        out = inner.copy()
        for k in range(outer.bits):
            source, target = outer.base + max(0, outer.shift) + k, outer.base + max(0, -outer.shift) + k
            out ^= (inner >> source & 1) << target
        return out
    modes = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    total = np.zeros_like(index[0]) if len(index) else np.zeros(1, np.int64)
    for at, sizes, strides in zip(index, shapes, modes, strict=True):
        for size, stride in zip(_flat(sizes), _flat(strides), strict=True):
            total = total + at % size * stride
            at = at // size
    return total


def _sizes(layout: Any) -> tuple[int, ...]:
    while hasattr(layout, "inner"):
        layout = layout.inner
    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    return tuple(prod(_flat(sizes)) for sizes in shapes)


def _flat(value: Any) -> tuple[int, ...]:
    return sum(map(_flat, value), ()) if isinstance(value, tuple) else (value,)


def element_bytes(array: Array) -> NDArray[np.uint8]:
    """[elements, bytes per element], native byte order, C order of the elements."""
    native = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
    return native.reshape(-1).view(np.uint8).reshape(native.size, native.itemsize)


def packed_bits(values: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Bytes of 8/bits elements each, the first in the low bits."""
    group = values.reshape(-1, 8 // bits).astype(np.uint32) & ((1 << bits) - 1)
    return (group << (np.arange(8 // bits, dtype=np.uint32) * bits)).sum(axis=1).astype(np.uint8)


def unpacked_bits(data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """One element per byte, with zeros above it."""
    return (
        ((data[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & ((1 << bits) - 1))
        .astype(np.uint8)
        .reshape(-1)
    )


def packed_by_definition(
    array: Array, shape: Any, fill: Array | None, before: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The buffer's bytes after packing: elements (of the shape's dtype) at their slots, padding filled.

    `fill` is an array of the one padding element, or None to keep what `before` holds there.
    """
    slots, bits = slots_of(shape), shape.bits
    valid = slots >= 0
    if bits >= 8:
        out = before.reshape(-1, bits // 8).copy()
        if fill is not None:
            out[~valid] = element_bytes(fill)
        out[valid] = element_bytes(array)[slots[valid]]
        return out.reshape(-1)
    values = unpacked_bits(before, bits)
    mask = (1 << bits) - 1
    if fill is not None:
        values[~valid] = element_bytes(fill)[0, 0] & mask
    flat = element_bytes(array)[:, 0]
    values[valid] = flat[slots[valid]] & mask
    return packed_bits(values, bits)


def unpacked_by_definition(data: NDArray[np.uint8], shape: Any) -> Array:
    """The logical array of a buffer's bytes. Elements narrower than a byte have zeros above them."""
    slots, bits = slots_of(shape), shape.bits
    values = unpacked_bits(data, bits)[:, None] if bits < 8 else data.reshape(-1, bits // 8)
    place = np.empty(prod(shape.dimensions), np.int64)
    place[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    return np.ascontiguousarray(values[place]).reshape(-1).view(shape.dtype).reshape(shape.dimensions)


def same_elements(a: Array, b: Array, shape: Any) -> bool:
    """Equal bit for bit. Bits above an element narrower than its byte do not count."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    x, y = element_bytes(a), element_bytes(b)
    mask = value_mask(shape) if not shape.packed else np.uint8((1 << shape.bits) - 1)
    return bool(((x & mask) == (y & mask)).all())


def value_mask(shape: Any) -> np.uint8:
    """The bits of each buffer byte that count: the low ones if a narrow element has its own byte."""
    bits = shape.element.bits
    return np.uint8(255 if shape.packed or shape.primitive_type == "pred" else (1 << min(bits, 8)) - 1)


def random_elements(rng: np.random.Generator, dtype: np.dtype[Any], count: int) -> Array:
    """Elements with any bit pattern of the dtype, including NaNs and subnormals; booleans are 0 or 1."""
    if dtype.kind == "b":
        return rng.integers(0, 2, count, np.uint8).view(np.bool_)
    raw = np.frombuffer(rng.bytes(count * dtype.itemsize), np.uint8)
    name = dtype.name
    widths = {"int1": 1, "uint1": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4}
    widths |= {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
    if name in widths:
        raw = raw & np.uint8((1 << widths[name]) - 1)
    return raw.view(dtype).copy()


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, for a child that must import the same sources."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, **changes}


def run_python(
    code: str,
    *arguments: object,
    flags: Sequence[str] = (),
    input: str | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
    **settings: str,
) -> CompletedProcess[str]:
    """Run a program in a separate process that imports the same sources.

    Args:
        code: the program.
        arguments: its arguments.
        flags: options of the interpreter.
        input: its standard input.
        cwd: its folder.
        timeout: seconds after which it is killed.
        settings: its environment variables.
    """
    return run(
        [executable, *flags, "-c", code, *map(str, arguments)],
        input=input,
        cwd=cwd,
        timeout=timeout,
        env=environment(**settings),
        capture_output=True,
        text=True,
        check=False,
    )


def printed(code: str, store: Path) -> str:
    """The output of a program in a separate process, with kernels kept in a directory."""
    done = run_python(code, TILEJIT_CACHE_DIR=str(store))
    assert done.returncode == 0, done.stderr
    return done.stdout
