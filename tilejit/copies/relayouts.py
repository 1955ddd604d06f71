"""relayout: copy one tiled layout into another, directly or block by block, without unpacking."""

from __future__ import annotations

from typing import Any, overload

from tilejit.arrays.memory import Array
from tilejit.copies.convert import pack
from tilejit.copies.planes import PackedPlanes, names_planes
from tilejit.layout.as_layout import LayoutLike
from tilejit.programs.tuning import AUTO, STRUCTURE, Padding, Specialize, Tune, VectorSize
from tilejit.tiled.tiled_array import TiledArray


@overload
def relayout(
    t: TiledArray,
    /,
    layout: LayoutLike,
    *,
    out: Array | TiledArray | None = None,
    padding: Padding | None = None,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> TiledArray: ...
@overload
def relayout(t: PackedPlanes, /, layout: str, **keywords: Any) -> PackedPlanes: ...
def relayout(
    t: TiledArray | PackedPlanes,
    /,
    layout: LayoutLike,
    *,
    out: Array | TiledArray | None = None,
    padding: Padding | None = None,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> TiledArray | PackedPlanes:
    """Copy a tiled array into another layout.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> u = tilejit.relayout(t, "{0,1}")
    >>> u.buffer
    array([ 0.,  5., 10.,  1.,  6., 11.,  2.,  7., 12.,  3.,  8., 13.,  4.,
            9., 14.], dtype=float32)
    >>> np.array_equal(tilejit.unpack(u), x)
    True

    The result equals `pack(unpack(t), layout)`. Between layouts of one array, the complete array is never
    stored in row-major order. Most layouts are copied directly into each other. If that would move only a few
    bytes at a time, blocks of at most 384 KiB, and of less than half the second-level cache, go through a
    buffer of that size. Either way, memory is read once and written once. With `virtual_vector_size` or
    `specialize`, every copy is direct. From or to a format of planes, the planes are unpacked and packed.

    Args:
        t: a TiledArray, or PackedPlanes. Padding is not read.
        layout: the new layout, of the same dimensions and dtype: anything that `as_layout` reads, or a format
            of the same planes.
        out: where to write: a flat array of the element dtype, a uint8 array or a TiledArray, of the right
            size; for a format of planes as in `pack`. It must not overlap `t`. None allocates a buffer.
        padding: the value of padding elements. None takes the new layout's own, or 0; "keep" keeps the
            padding of `out`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array in the new layout. A `PackedPlanes` for a format that is not a layout of one array.

    Raises:
        LayoutError: the layout, `padding`, `out` or a keyword is wrong; nothing has been written.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type, or neither `relayout` nor the layout accepts a keyword.
    """
    if not isinstance(t, TiledArray | PackedPlanes):
        raise TypeError(
            f"relayout: expected a TiledArray or PackedPlanes, got {type(t).__name__}\n"
            "  pack an array, or wrap a buffer in TiledArray.from_buffer"
        )
    keywords: dict[str, Any] = {
        "out": out,
        "padding": padding,
        "threads": threads,
        "virtual_vector_size": virtual_vector_size,
        "schedule": schedule,
        "specialize": specialize,
        "tune": tune,
        **parameters,
    }
    if isinstance(t, TiledArray) and not names_planes(None, layout, parameters):
        return t.relayout(layout, **keywords)
    planes: Any = t.unpack(threads=threads)
    return pack(planes, layout, **keywords)
