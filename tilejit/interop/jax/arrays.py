"""Convert jax arrays to NumPy arrays and tiled buffers and back, sharing memory if jax allows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.copies import convert
from tilejit.interop.jax.dlpack import jax_array_over
from tilejit.interop.tiled_over import tiled_over
from tilejit.layout.as_layout import LayoutLike
from tilejit.layout.dtypes import ElementLike
from tilejit.programs.tuning import AUTO, STRUCTURE, Casting, Padding, Specialize, VectorSize
from tilejit.tiled.tiled_array import TiledArray


def to_jax(t: TiledArray | Array, /, *, copy: bool | None = None) -> jax.Array:
    """A jax array of an array, or of the flat buffer of a tiled one, over its memory where jax allows it.

    >>> to_jax(tilejit.pack(x, "bf16[1000,300]{1,0:T(8,128)(2,1)}"))  # bfloat16[384000], nothing copied

    t: a TiledArray, whose packed elements (four bits and fewer) come as uint8, or a NumPy array of any shape
    and strides. copy: None to copy where jax needs it: where the first element does not start a line of 64
    bytes, the strides leave holes or run backwards, the memory is read-only, or elements are narrower than a
    byte. False to raise instead, True to copy always. jax assumes that its arrays never change: do not write
    to memory that it shares.

    Raises:
        LayoutError: jax has no such dtype, or none without jax_enable_x64; or copy=False and it needs a copy.
        TypeError: it is neither a TiledArray nor an array, or copy is neither a bool nor None.
    """
    array = t.buffer if isinstance(t, TiledArray) else t
    if not isinstance(array, np.ndarray):
        raise TypeError(f"to_jax: expected a TiledArray or a NumPy array, got {type(t).__name__}")
    if copy is not None and not isinstance(copy, bool | np.bool_):
        raise TypeError(f"copy: expected True, False or None, got {type(copy).__name__}")
    return jax_array_over(np.asarray(array), copy)


def from_jax(
    array: jax.Array,
    /,
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> TiledArray:
    """A tiled array over the memory of a flat jax array; nothing is copied, and it cannot be written to.

    >>> from_jax(flat, "bf16[1000,300]{1,0:T(8,128)(2,1)}")[5, 7]
    >>> from_jax(flat, "tpu", dims=(1000, 300))

    array: of the layout's size in bytes with its padding, whatever its shape; of the layout's dtype, or
    uint8. layout, dtype, dims, parameters: as in `as_layout`; dtype is the array's if not given.

    Raises:
        LayoutError: the array is of another dtype or size, or cannot be read here: see `numpy_view`.
        TypeError: it is not an array of jax, or a parameter is not the layout's.
    """
    return tiled_over(numpy_view(array), "array", layout, dtype, dims, parameters)


def pack(
    array: jax.Array,
    /,
    layout: LayoutLike,
    *,
    padding: Padding | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: Specialize = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> jax.Array:
    """The flat buffer of a jax array in a layout, padding included, as a jax array.

    >>> flat = pack(weights, "{1,0:T(8,128)(2,1)}")

    The keywords are those of `tilejit.pack`, without out=.

    Raises:
        LayoutError: as `tilejit.pack`; or the array cannot be read here: see `numpy_view`.
        TypeError: as `tilejit.pack`; or out= is given, as arrays of jax are not written to.
    """
    _refuse_out(parameters)
    packed = convert.pack(
        numpy_view(array),
        layout,
        padding=padding,
        casting=casting,
        threads=threads,
        virtual_vector_size=virtual_vector_size,
        specialize=specialize,
        tune=tune,
        **parameters,
    )
    return to_jax(packed)


def unpack(
    array: jax.Array,
    /,
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: Specialize = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> jax.Array:
    """The jax array that a flat buffer in a layout holds.

    >>> unpack(flat, "bf16[1000,300]{1,0:T(8,128)(2,1)}")
    >>> unpack(flat, "tpu", dims=(1000, 300))

    array, layout, dtype, dims, parameters: as in `from_jax`. The other keywords are those of
    `tilejit.unpack`, without out=.

    Raises:
        LayoutError: as `from_jax` and `tilejit.unpack`.
        TypeError: as `tilejit.unpack`; or out= is given, as arrays of jax are not written to.
    """
    _refuse_out(parameters)
    unpacked = convert.unpack(
        from_jax(array, layout, dtype=dtype, dims=dims, **parameters),
        casting=casting,
        threads=threads,
        virtual_vector_size=virtual_vector_size,
        specialize=specialize,
        tune=tune,
    )
    return to_jax(unpacked)


def numpy_view(array: jax.Array) -> Array:
    """A read-only NumPy array of a jax array, over its memory unless jax keeps it packed or in tiles.

    >>> numpy_view(jax.numpy.ones((2, 3), "bfloat16")).dtype  # bfloat16

    Raises:
        LayoutError: the array is not on the CPU, is spread over devices, or has been deleted.
        TypeError: it is not an array of jax, or one that is traced by jit, grad or vmap.
    """
    if isinstance(array, jax.core.Tracer):
        raise TypeError(
            "this array is traced, by jit, grad or vmap, and has no memory yet\n"
            "  call it outside, or through jax.pure_callback"
        )
    if not isinstance(array, jax.Array):
        raise TypeError(f"expected a jax.Array, got {type(array).__name__}")
    if array.is_deleted():
        raise LayoutError("the array has been deleted, or donated to a function\n  use it before that")
    _refuse_devices(array.devices())
    return np.asarray(array)


def _refuse_devices(devices: set[Any]) -> None:
    """Raise a LayoutError unless the devices of an array are one CPU."""
    others = sorted({str(device.platform) for device in devices} - {"cpu"})
    if others:
        raise LayoutError(
            f"the array is on the device {others[0]}, not on the CPU\n"
            "  bring it there: jax.device_put(x, jax.devices('cpu')[0])"
        )
    if len(devices) != 1:
        raise LayoutError(
            f"the array is spread over {len(devices)} devices\n"
            "  gather it: jax.device_put(x, jax.devices('cpu')[0]), or take its addressable_shards one by one"
        )


def _refuse_out(parameters: dict[str, Any]) -> None:
    if "out" in parameters:
        raise TypeError("arrays of jax are not written to, so there is no out=\n  use tilejit.pack or unpack")
