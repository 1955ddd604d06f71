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
    """The shape of a jax array, or of a Layout or Format of `jax.experimental.layout`, in XLA's terms.

    >>> layout_of(jax.numpy.ones((5, 7), "bfloat16"))                      # bf16[5,7]{1,0}
    >>> layout_of(Layout((0, 1), ((8, 128),)), dtype="f32", dims=(5, 7))   # f32[5,7]{1,0:T(8,128)}

    dtype, dims: for a Layout or a Format alone; an array, and a jax.ShapeDtypeStruct with a Format, has its
    own. Elements narrower than a byte are packed, E(4) for int4, as XLA does where the layout leaves it open.

    Raises:
        LayoutError: dtype or dims is missing, or is not the array's; the layout is AUTO or None, or of
            another rank.
        TypeError: the object does not belong to jax.
    """
    if isinstance(obj, jax.core.Tracer):
        raise TypeError(
            "this array is traced, and XLA has not chosen its layout yet\n  ask the result of jit"
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
            f"jax has chosen no layout for it yet: it is {'AUTO' if layout is not None else None}\n"
            "  ask an array, or a compiled function's input_formats and output_formats"
        )
    if not isinstance(layout, jax_layout.Layout):
        raise TypeError(f"expected a jax.Array, a Layout or a Format, got {type(obj).__name__}")
    if shape is None or element is None:
        missing = " and ".join(name for name, have in (("dtype", element), ("dims", shape)) if have is None)
        raise LayoutError(f"a layout of jax does not say the array's {missing}\n  pass {missing}")
    return _shape(layout, element, shape)


def to_jax_layout(
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Any:
    """The `jax.experimental.layout.Layout` of a layout.

    >>> to_jax_layout("bf16[1000,300]{1,0:T(8,128)(2,1)}")
    Layout(major_to_minor=(0, 1), tiling=((8, 128), (2, 1)), sub_byte_element_size_in_bits=0)

    layout, dtype, dims, parameters: as in `as_layout`: "tpu" with dtype and dims will do.

    Raises:
        LayoutError: jax's layouts cannot say it: CuTe layouts, padding besides that of tiles, `*` in a tile,
            L, S, # and other properties but E; and elements narrower than a byte that are not packed.
        TypeError: as `as_layout`.
    """
    spec = as_layout(layout, dtype=dtype, dims=dims, **parameters)
    if isinstance(spec, CuteShape):
        raise LayoutError(
            f"{shape_name(spec)} is a CuTe layout, and jax's have tiles\n"
            "  tilejit.layout.bridge finds the tiles of one that has some"
        )
    own = spec.layout or Layout(tuple(reversed(range(spec.rank))))
    plain = Layout(own.minor_to_major, own.tiles, own.element_size_in_bits)
    if plain != own or any(spec.dynamic) or spec.padded_dimensions is not None:
        raise LayoutError(
            f"jax's layouts have an order of dimensions, tiles and E, nothing else: {shape_name(spec)}\n"
            f"  leave the rest out: {plain}"
        )
    if xla_packs(spec.element) and not spec.packed:
        raise LayoutError(
            f"XLA packs {spec.primitive_type}, and this layout has one a byte: {shape_name(spec)}\n"
            f"  write E({spec.element.bits}), or take a dtype of eight bits"
        )
    if any(MERGE in tile for tile in own.tiles):
        raise LayoutError(
            f"jax's layouts have no * in a tile: {shape_name(spec)}\n  reshape the array, or write sizes"
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
    """The `jax.experimental.layout.Format` of a layout: what jax.device_put and jit's out_shardings take.

    >>> jax.device_put(x, to_jax_format("f32[5,7]{0,1}"))

    sharding: of jax; None is the first device of jax alone. The others: as in `to_jax_layout`.

    Raises:
        LayoutError, TypeError: as `to_jax_layout`; and TypeError where sharding is none of jax's.
    """
    made = to_jax_layout(layout, dtype=dtype, dims=dims, **parameters)
    if sharding is None:
        sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax_layout.Format(made, sharding)


def xla_packs(element: PrimitiveType) -> bool:
    """Whether XLA packs elements of a type into bytes by default: those of 1, 2 and 4 bits, but not pred."""
    return element.bits in (1, 2, 4) and element.kind != "pred"


def _shape(layout: Any, element: PrimitiveType, dims: tuple[int, ...]) -> Shape:
    order = tuple(layout.major_to_minor)
    if len(order) != len(dims):
        raise LayoutError(
            f"the layout orders {len(order)} dimensions, but the array is {dims_text(dims)}\n"
            "  give dims of as many"
        )
    tiles = tuple(tuple(tile) for tile in layout.tiling or ())
    bits = layout.sub_byte_element_size_in_bits
    if not bits and xla_packs(element):
        bits = element.bits
    return Shape(element.name, dims, Layout(tuple(reversed(order)), tiles, bits))


def _agreed(name: str, given: Any, own: Any) -> Any:
    """Return the array's own value; raise if the caller gives another one."""
    if given is not None and given != own:
        raise LayoutError(f"the array has {name} of its own, and others than given\n  leave {name}= out")
    return own
