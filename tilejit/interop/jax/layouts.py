"""Convert jax's Layout and Format to shapes in XLA's terms, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
from jax.experimental import layout as jax_layout

from codegen import LayoutError
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import ElementLike, PrimitiveType, primitive_type
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Layout, Shape
from tilejit.layout.tiling import MERGE


def layout_of(obj: Any, /, *, dtype: ElementLike | None = None, dims: Iterable[int] | None = None) -> Shape:
    """Return the shape, in XLA's terms, of a jax array or of a Layout or Format of `jax.experimental.layout`.

    >>> print(layout_of(jax.numpy.ones((5, 7), "bfloat16")))
    bf16[5,7]{1,0}
    >>> tpu = to_jax_layout("f32[5,7]{1,0:T(8,128)}")
    >>> print(layout_of(tpu, dtype="f32", dims=(5, 7)))
    f32[5,7]{1,0:T(8,128)}

    Args:
        obj: a jax array, a Layout, a Format, or a jax.ShapeDtypeStruct with a Format.
        dtype: the dtype for a Layout or a Format; arrays and ShapeDtypeStructs have their own.
        dims: the dimensions for a Layout or a Format, in elements.

    Returns:
        The shape. As in XLA, elements narrower than a byte are packed by default, with E(4) for int4.

    Raises:
        LayoutError: dtype or dims is missing, or differs from the array's; or the layout is AUTO or None, or
            its rank differs.
        TypeError: the object does not belong to jax.
    """
    if isinstance(obj, jax.core.Tracer):
        raise TypeError(
            "the array is traced, and XLA has not chosen its layout yet\n  pass the result of jit"
        )
    shape = None if dims is None else int_tuple(dims, "dims")
    element = None if dtype is None else primitive_type(dtype)
    layout = obj
    if isinstance(obj, jax.Array | jax.ShapeDtypeStruct):
        shape = _agreed("dims", shape, tuple(obj.shape))
        element = _agreed("dtype", element, primitive_type(obj.dtype))
        layout = obj.format
    if isinstance(layout, jax_layout.Format):
        layout = layout.layout
    if layout is None or layout is jax_layout.Layout.AUTO:
        raise LayoutError(
            f"jax has not chosen its layout yet: it is {'AUTO' if layout is not None else None}\n"
            "  pass an array, or one of a compiled function's input_formats or output_formats"
        )
    if not isinstance(layout, jax_layout.Layout):
        raise TypeError(f"expected a jax.Array, a Layout or a Format, got {type(obj).__name__}")
    if shape is None or element is None:
        missing = " and ".join(name for name, have in (("dtype", element), ("dims", shape)) if have is None)
        raise LayoutError(f"a jax layout does not name the array's {missing}\n  pass {missing}")
    return _shape(layout, element, shape)


def to_jax_layout(
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Any:
    """Convert a layout to a `jax.experimental.layout.Layout`.

    >>> to_jax_layout("bf16[1000,300]{1,0:T(8,128)(2,1)}").tiling
    ((8, 128), (2, 1))

    Args:
        layout: the layout: anything that `as_layout` reads, such as "tpu" with dtype= and dims=.
        dtype: the dtype of a layout without one.
        dims: the dimensions of a layout without any.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The jax Layout.

    Raises:
        LayoutError: jax layouts cannot express it. They do not support CuTe layouts, padding beyond whole
            tiles, `*` in a tile, XLA properties except E, or unpacked elements narrower than a byte.
        TypeError: as `as_layout`.
    """
    spec = as_layout(layout, dtype=dtype, dims=dims, **parameters)
    if isinstance(spec, CuteShape):
        raise LayoutError(
            f"{shape_name(spec)} is a CuTe layout, and jax layouts consist of tiles\n"
            "  use tilejit.layout.bridge to find its tiles, if it has any"
        )
    own = spec.layout or Layout(tuple(reversed(range(spec.rank))))
    plain = Layout(own.minor_to_major, own.tiles, own.element_size_in_bits)
    if plain != own or any(spec.dynamic) or spec.padded_dimensions is not None:
        raise LayoutError(
            f"jax layouts only have an order of dimensions, tiles and E: {shape_name(spec)}\n"
            f"  omit everything else: {plain}"
        )
    if xla_packs(spec.element) and not spec.packed:
        raise LayoutError(
            f"XLA packs {spec.primitive_type}, but this layout stores one per byte: {shape_name(spec)}\n"
            f"  write E({spec.element.bits}), or use a dtype of eight bits"
        )
    if any(MERGE in tile for tile in own.tiles):
        raise LayoutError(
            f"jax layouts have no * in a tile: {shape_name(spec)}\n  reshape the array, or write sizes"
        )
    major_to_minor = tuple(reversed(own.minor_to_major))
    return jax_layout.Layout(major_to_minor, own.tiles, own.element_size_in_bits)


def to_jax_format(
    layout: LayoutLike,
    sharding: Any = None,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Any:
    """Convert a layout to a `jax.experimental.layout.Format`, for jax.device_put and jit's out_shardings.

    >>> x = jax.device_put(np.ones((5, 7), np.float32), to_jax_format("f32[5,7]{0,1}"))
    >>> print(layout_of(x))
    f32[5,7]{0,1}

    Args:
        layout: the layout: anything that `as_layout` reads.
        sharding: a jax sharding; None places the array on the first device only.
        dtype: the dtype of a layout without one.
        dims: the dimensions of a layout without any.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The jax Format.

    Raises:
        LayoutError: as `to_jax_layout`.
        TypeError: as `to_jax_layout`; or `sharding` is not a jax sharding.
    """
    made = to_jax_layout(layout, dtype=dtype, dims=dims, **parameters)
    if sharding is None:
        sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax_layout.Format(made, sharding)


def xla_packs(element: PrimitiveType) -> bool:
    """Whether XLA packs elements of a type into bytes by default: types of 1, 2 and 4 bits except pred."""
    return element.bits in (1, 2, 4) and element.kind != "pred"


def _shape(layout: Any, element: PrimitiveType, dims: tuple[int, ...]) -> Shape:
    order = tuple(layout.major_to_minor)
    if len(order) != len(dims):
        raise LayoutError(
            f"the layout orders {len(order)} dimensions, but the array is {dims_text(dims)}\n"
            "  pass as many dims"
        )
    tiles = tuple(tuple(tile) for tile in layout.tiling or ())
    bits = layout.sub_byte_element_size_in_bits
    if not bits and xla_packs(element):
        bits = element.bits
    return Shape(element.name, dims, Layout(tuple(reversed(order)), tiles, bits))


def _agreed(name: str, given: Any, own: Any) -> Any:
    """Return the array's own value; raise if the caller gives another one."""
    if given is not None and given != own:
        raise LayoutError(f"{name}= differs from the array's\n  omit {name}=")
    return own
