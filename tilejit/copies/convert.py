"""pack and unpack: copy NumPy arrays to and from tiled buffers in a single pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from codegen import Cache, LayoutError, check_threads
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.values import check_range
from tilejit.copies.planes import (
    PackedPlanes,
    names_planes,
    pack_planes,
    reads_planes,
    refuse_options,
    unpack_given,
)
from tilejit.copies.sources import as_array
from tilejit.layout.as_layout import PLAIN_LAYOUTS, LayoutLike, as_layout, of_the_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import ElementLike, array_dtype
from tilejit.layout.indexing import shape_name
from tilejit.programs.pack_programs import pack_program
from tilejit.programs.tuning import (
    AUTO,
    DEFAULT,
    STRUCTURE,
    Casting,
    Padding,
    Specialize,
    Tune,
    Tuning,
    VectorSize,
    check_casting,
    is_plain,
    read_tuning,
)
from tilejit.tiled.buffers import check_size, may_hold, writable_layout
from tilejit.tiled.outputs import check_target, padding_of
from tilejit.tiled.plan_elements import is_swapped, pack_element
from tilejit.tiled.plans import PackPlan, pack_plan
from tilejit.tiled.strided_buffers import has_gaps, strided_buffer
from tilejit.tiled.tiled_array import TiledArray

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tilejit.programs.compiled import Program


@overload
def pack(x: Mapping[str, ArrayLike], /, layout: str, **keywords: Any) -> PackedPlanes: ...
@overload
def pack(
    x: ArrayLike,
    /,
    layout: LayoutLike,
    *,
    out: Array | TiledArray | None = None,
    padding: Padding | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> TiledArray: ...
def pack(
    x: ArrayLike | Mapping[str, ArrayLike],
    /,
    layout: LayoutLike,
    *,
    out: Array | TiledArray | Mapping[str, Array] | None = None,
    padding: Padding | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> TiledArray | PackedPlanes:
    """Copy an array into a buffer of tiles.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> t.buffer
    array([ 0.,  1.,  5.,  6.,  2.,  3.,  7.,  8.,  4.,  0.,  9.,  0., 10.,
           11.,  0.,  0., 12., 13.,  0.,  0., 14.,  0.,  0.,  0.],
          dtype=float32)
    >>> float(t[1, 2])
    7.0

    The layout can also be the name of a format, or a pattern:

    >>> tilejit.pack(x, "blis-a", mr=2).buffer.shape
    (20,)
    >>> tilejit.pack(x, "(m mi) (n ni) -> m n mi ni, mi=2, ni=2").buffer.shape
    (24,)

    With `virtual_vector_size` or `specialize`, large arrays are copied into swizzled layouts in one step
    instead of block by block.

    Args:
        x: a NumPy array with any strides, alignment and byte order; a mapping of names to arrays for a
            format of several planes.
        layout: the layout: anything that `as_layout` reads, or a format of planes.
        out: where to write: a TiledArray, or an array of the right size in bytes and of any shape. Its dtype
            is that of the elements, uint8, or a wider integer type, such as int32 words that hold u4
            elements. The bytes of the array in C order are the buffer. It must not overlap `x`. None
            allocates a buffer. For a format of planes, a mapping of its buffers to arrays, each with the
            dtype and the dimensions that it has in checkpoints, or bytes as uint8; or the only buffer.
        padding: the value of padding elements. None takes the layout's own, or 0; "keep" keeps the padding of
            `out`.
        casting: NumPy's rule for conversions, as in `np.copyto`, if the layout's dtype differs from the
            array's. Arrays of uint8 and int8 need none for u4, s4 and narrower integers: they hold one value
            per byte, which must be in range. The conversion is part of the copy, and warns as NumPy's does.
            "same_kind" knows the kinds of ml_dtypes' types: unlike NumPy, it does not convert f32 to s4.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array; its `buffer` is 1-D. If `out` has gaps, as a field of a structured array does, the
        tiled array has a layout with the strides of `out`, or a buffer of its own if there is none. A
        `PackedPlanes` for a format that is not a layout of one array; its buffers have the dtypes and the
        dimensions that they have in checkpoints.

    Raises:
        LayoutError: the layout, the dtype, `padding`, `out` or a keyword is wrong; nothing has been written.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type, or neither `pack` nor the layout accepts a keyword.
        FloatingPointError: an element cannot be converted, and `np.errstate` asks for an error; `out` has its
            previous elements.
    """
    plan: PackPlan[TiledArray] | None = None
    key: tuple[Any, ...] | None = None
    if out is not None and has_gaps(out) and not names_planes(x, layout, parameters):
        tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
        return _pack_with_gaps(as_array(x), layout, out, padding, casting, threads, tuning, parameters)
    if (
        padding is None
        and type(x) is np.ndarray
        and type(layout) in PLAIN_LAYOUTS
        and is_plain(casting, threads, virtual_vector_size, specialize, tune, schedule)
    ):
        key = layout, x.dtype, x.shape, x.strides, casting, threads
        if parameters:
            key = (*key, *parameters.items()) if all(type(n) is int for n in parameters.values()) else None
        plan = _packs.get(key) if key else None
    if plan is None:
        if names_planes(x, layout, parameters):
            refuse_options("pack", padding, casting, virtual_vector_size, specialize, tune, schedule)
            return pack_planes(x, layout, parameters, out=out, threads=threads)
        tuning, x = read_tuning(virtual_vector_size, specialize, tune, schedule), as_array(x)
        plan = _pack_plan(x, layout, out, padding, casting, threads, tuning, parameters)
        if key is not None:
            _packs.keep(key, plan)
    array: Any = x
    target: Any = out
    return plan(array) if out is None else plan(array, target)


@overload
def unpack(
    t: PackedPlanes | Mapping[str, Any],
    /,
    layout: str | None = None,
    *,
    out: Array | Mapping[str, Array] | None = None,
    **keywords: Any,
) -> Array | dict[str, Array]: ...
@overload
def unpack(
    t: TiledArray | Array | Buffer,
    /,
    layout: LayoutLike | None = None,
    *,
    out: Array | None = None,
    dtype: ElementLike | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> Array: ...
def unpack(
    t: TiledArray | PackedPlanes | Array | Buffer | Mapping[str, Any],
    /,
    layout: LayoutLike | None = None,
    *,
    out: Array | Mapping[str, Array] | None = None,
    dtype: ElementLike | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> Array | dict[str, Array]:
    """Copy an array out of a buffer of tiles.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> tilejit.unpack(t)
    array([[ 0.,  1.,  2.,  3.,  4.],
           [ 5.,  6.,  7.,  8.,  9.],
           [10., 11., 12., 13., 14.]], dtype=float32)

    Elements are converted on the way:

    >>> tilejit.unpack(t, dtype="f64", casting="safe").dtype
    dtype('float64')

    A plain buffer needs its layout:

    >>> np.array_equal(tilejit.unpack(t.buffer, "f32[3,5]{1,0:T(2,2)}"), x)
    True
    >>> buffer = tilejit.pack(x, "blis-a", mr=2).buffer
    >>> np.array_equal(tilejit.unpack(buffer, "blis-a", dtype="f32", dims=(3, 5), mr=2), x)
    True

    np.save stores the types of ml_dtypes, such as bf16, as raw bytes, so that np.load returns '|V2'. View the
    loaded array in its dtype, e.g. with `y.view(ml_dtypes.bfloat16)`. A loaded buffer needs no view.

    Args:
        t: a TiledArray, or a bytes-like buffer of the layout's size: an array of any dtype and shape in
            native byte order. For a format of planes, PackedPlanes, a mapping of its buffers to bytes or to
            arrays as `pack` returns them, or the only buffer.
        layout: the layout of a plain buffer: anything that `as_layout` reads, or a format of planes.
        out: where to write: an array of the logical shape with any strides and byte order. It must not
            overlap the buffer. None allocates an array in C order. For a format of several planes, a mapping
            of planes to such arrays.
        dtype: the dtype of the result: XLA's name, a NumPy dtype or NumPy's code. None takes that of `out`,
            or else the layout's. If the layout of a plain buffer has no dtype, the buffer has this one.
        casting: NumPy's rule for conversions, as in `np.copyto`, if the dtype of the result differs from the
            layout's. From u4 and narrower integers to uint8 or int8, and from s4 to int8, none is needed. The
            conversion is part of the copy, and warns as NumPy's does. "same_kind" is as in
            `pack`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: `dims` of the array, keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The array, without padding; a mapping of planes to arrays for a format of several.

    Raises:
        LayoutError: the shape, the buffer, `out` or a keyword is wrong; nothing has been written.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
        FloatingPointError: an element cannot be converted, and `np.errstate` asks for an error; `out` has its
            previous elements.
    """
    if type(t) is not TiledArray and reads_planes(t, layout, parameters):
        refuse_options("unpack", None, casting, virtual_vector_size, specialize, tune, schedule)
        planes: Array | dict[str, Array] = unpack_given(
            t, layout, dtype, parameters, out=out, threads=threads
        )
        return planes
    target: Any = out
    return _as_tiled(t, layout, dtype, parameters).unpack(
        out=target,
        dtype=dtype,
        casting=casting,
        threads=threads,
        virtual_vector_size=virtual_vector_size,
        schedule=schedule,
        specialize=specialize,
        tune=tune,
    )


def program_of_pack(
    array: Array, spec: Spec, *, casting: Casting = "no", threads: int = 1, tuning: Tuning = DEFAULT
) -> Program:
    """The copy of a `pack` with zero padding, for `explain`.

    Raises:
        LayoutError: `casting` forbids the conversion, or NumPy converts in pieces.
    """
    source, checks_range = pack_element(array.dtype, spec, casting)
    if checks_range:
        check_range(array, spec.element)
    if source is None:
        raise LayoutError(
            f"NumPy converts {array.dtype} to {spec.primitive_type} in pieces, so the copy has no kernel"
        )
    fill = bytes(spec.dtype.itemsize)
    return pack_program(spec, array.strides, source, fill, is_swapped(array.dtype), threads, tuning)


_packs: Cache[tuple[Any, ...], PackPlan[TiledArray]] = Cache()
"""Plans of earlier calls."""


def _pack_plan(
    array: Array,
    layout: LayoutLike,
    out: Any,
    padding: Any,
    casting: Casting,
    threads: int | None,
    tuning: Tuning,
    parameters: dict[str, Any],
) -> PackPlan[TiledArray]:
    check_threads(threads)
    check_casting(casting)
    spec = _pack_spec(array, layout, parameters)
    fill, numbers = padding_of(padding, spec, out), (array.shape, array.strides, array.dtype)
    return pack_plan(TiledArray, spec, numbers, fill, casting, threads, tuning)


def _pack_spec(array: Array, layout: LayoutLike, parameters: dict[str, Any]) -> Spec:
    own = of_the_layout(parameters, "pack", "the array")
    return writable_layout(as_layout(layout, dtype=array.dtype, dims=array.shape, **own))


def _pack_with_gaps(
    array: Array,
    layout: LayoutLike,
    out: Any,
    padding: Any,
    casting: Casting,
    threads: int | None,
    tuning: Tuning,
    parameters: dict[str, Any],
) -> TiledArray:
    """Pack into an array with gaps: directly if a layout has its strides, otherwise through a buffer."""
    spec = _pack_spec(array, layout, parameters)
    check_target(out, array)
    check_size(out, spec, "out")
    if not may_hold(out.dtype, spec):
        raise LayoutError(
            f"out is {out.dtype}, but {shape_name(spec)} needs {spec.dtype}, uint8 or wider integers\n"
            "  pass an array of one of these"
        )
    found = strided_buffer(out, spec)
    if found is not None:
        target = TiledArray.from_buffer(*found)
        return _pack_plan(array, target.layout, target, "keep", casting, threads, tuning, {})(array, target)
    between = np.array(out, order="C")
    tiled = _pack_plan(array, spec, out, padding, casting, threads, tuning, {})(array, between)
    numpy_copyto(out, between)
    return tiled


def _as_tiled(t: Any, layout: Any, dtype: Any, parameters: dict[str, Any]) -> TiledArray:
    if layout is None and parameters:
        name = next(iter(parameters))[:40]
        raise TypeError(f"unpack has no keyword {name!r}\n  pass the layout that accepts it")
    if isinstance(t, TiledArray):
        if layout is not None:
            own = of_the_layout(parameters, "unpack of a TiledArray", "it")
            spec = as_layout(layout, dtype=t.layout.element, dims=t.shape, **own)
            if spec != t.layout:
                raise LayoutError(
                    f"the tiled array is {shape_name(t.layout)}, not {shape_name(spec)}\n  omit the layout"
                )
        return t
    if layout is None:
        raise TypeError("a buffer needs its layout: unpack(buffer, 'bf16[…]{…}')")
    if isinstance(dtype, str) and dtype.startswith(("<", ">")):
        dtype = array_dtype(dtype)  # the byte order is that of the result
    return TiledArray.from_buffer(t, layout, dtype=dtype, **parameters)
