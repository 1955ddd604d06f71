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
from tilejit.programs.tuning import AUTO, STRUCTURE, Casting, Padding, Specialize, Tune, VectorSize
from tilejit.tiled.tiled_array import TiledArray


def to_jax(t: TiledArray | Array, /, *, copy: bool | None = None) -> jax.Array:
    """Create a jax array over the memory of an array, or of a tiled array's flat buffer, if jax allows it.

    >>> x = np.zeros((1000, 300), np.float32)
    >>> to_jax(tilejit.pack(x, "{1,0:T(8,128)}"), copy=False).shape
    (384000,)

    jax assumes that its arrays never change, so do not write to memory that it shares.

    Args:
        t: a TiledArray, or a NumPy array with any shape and strides. Packed elements of at most four bits
            become uint8.
        copy: None copies only if jax cannot share the memory: it is not aligned to 64 bytes, the strides
            leave holes or run backwards, the memory is read-only, or elements are narrower than a byte. False
            raises instead; True always copies.

    Returns:
        The jax array.

    Raises:
        LayoutError: jax does not support the dtype, or only with jax_enable_x64; or copy is False and jax
            needs a copy.
        TypeError: `t` is neither a TiledArray nor an array, or `copy` is neither a bool nor None.
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
    """Create a read-only tiled array over the memory of a flat jax array, without a copy.

    >>> flat = pack(jax.numpy.arange(300000.0).reshape(1000, 300), "{1,0:T(8,128)}")
    >>> float(from_jax(flat, "f32[1000,300]{1,0:T(8,128)}")[5, 7])
    1507.0

    Args:
        array: a jax array of any shape with the layout's size in bytes, padding included. Its dtype is the
            layout's dtype, or uint8.
        layout: the layout: anything that `as_layout` reads.
        dtype: the dtype of a layout without one; None takes the array's.
        dims: the dimensions of a layout without any.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array. It keeps the jax array alive.

    Raises:
        LayoutError: the array has another dtype or size, or cannot be read: see `numpy_view`.
        TypeError: `array` is not a jax array, or the layout does not take a keyword.
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
    tune: Tune = False,
    **parameters: Any,
) -> jax.Array:
    """Pack a jax array into a layout.

    >>> pack(jax.numpy.ones((1000, 300)), "{1,0:T(8,128)}").shape
    (384000,)

    Args:
        array: a jax array on the CPU.
        layout: the layout: anything that `as_layout` reads.
        padding: the value of padding elements, as in `tilejit.pack`.
        casting: NumPy's rule for conversions, as in `tilejit.pack`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `tilejit.copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The flat buffer, padding included.

    Raises:
        LayoutError: as `tilejit.pack`; or the array cannot be read: see `numpy_view`.
        TypeError: as `tilejit.pack`; or out= is passed, because jax arrays are immutable.
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
    tune: Tune = False,
    **parameters: Any,
) -> jax.Array:
    """Unpack a flat buffer in a layout to a jax array.

    >>> flat = pack(jax.numpy.ones((1000, 300)), "tpu")
    >>> unpack(flat, "tpu", dims=(1000, 300)).shape
    (1000, 300)

    Args:
        array: a jax array of any shape with the layout's size in bytes, padding included. Its dtype is the
            layout's dtype, or uint8.
        layout: the layout: anything that `as_layout` reads.
        dtype: the dtype of a layout without one; None takes the array's.
        dims: the dimensions of a layout without any.
        casting: NumPy's rule for conversions, as in `tilejit.unpack`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `tilejit.copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The jax array, without padding.

    Raises:
        LayoutError: as `from_jax` and `tilejit.unpack`.
        TypeError: as `tilejit.unpack`; or out= is passed, because jax arrays are immutable.
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
    """Return a read-only NumPy array over the memory of a jax array; a copy if jax stores it packed or tiled.

    >>> numpy_view(jax.numpy.ones((2, 3), "bfloat16")).dtype
    dtype(bfloat16)

    Args:
        array: a jax array on the CPU.

    Returns:
        The array, with the jax array's shape.

    Raises:
        LayoutError: the array is not on the CPU, is spread over devices, or has been deleted.
        TypeError: `array` is not a jax array, or is traced by jit, grad or vmap.
    """
    if isinstance(array, jax.core.Tracer):
        raise TypeError(
            "the array is traced by jit, grad or vmap, and has no memory yet\n"
            "  call the function outside of them, or through jax.pure_callback"
        )
    if not isinstance(array, jax.Array):
        raise TypeError(f"expected a jax.Array, got {type(array).__name__}")
    if array.is_deleted():
        raise LayoutError("the array was deleted, or donated to a function\n  use it before that")
    _refuse_devices(array.devices())
    return np.asarray(array)


def _refuse_devices(devices: set[Any]) -> None:
    """Raise a LayoutError unless the devices of an array are one CPU."""
    others = sorted({str(device.platform) for device in devices} - {"cpu"})
    if others:
        raise LayoutError(
            f"the array is on the device {others[0]}, not on the CPU\n"
            "  move it to the CPU: jax.device_put(x, jax.devices('cpu')[0])"
        )
    if len(devices) != 1:
        raise LayoutError(
            f"the array is spread over {len(devices)} devices\n"
            "  gather it: jax.device_put(x, jax.devices('cpu')[0]), or take its addressable_shards one by one"
        )


def _refuse_out(parameters: dict[str, Any]) -> None:
    if "out" in parameters:
        raise TypeError("jax arrays are immutable, so out= is not supported\n  use tilejit.pack or unpack")
