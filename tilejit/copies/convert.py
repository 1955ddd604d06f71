"""pack and unpack: NumPy arrays to and from tiled buffers, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codegen import CopyProgram, Element, LayoutError, can_convert, thread_count
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array, address, empty
from tilejit.arrays.values import check_range, refuse_masked
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.indexing import shape_name
from tilejit.layout.padding import padding_bytes
from tilejit.programs.pack_programs import pack_at_once, pack_way, padding_program, unpack_way
from tilejit.programs.tuning import AUTO, CASTINGS, DEFAULT, STRUCTURE, Tuning, VectorSize, read_tuning
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.outputs import checked_out, output_tiled
from tilejit.tiled.tiled_array import TiledArray, address_of

UNPACK_OPTIONS = ("threads", "virtual_vector_size", "specialize", "tune")
"""Keywords of `unpack` beside `out` that are not of a layout."""
CHUNK_BYTES = 1 << 19
"""Source bytes that a conversion which no kernel makes goes through NumPy with, at one time."""


def pack(
    x: ArrayLike,
    /,
    obj: LayoutLike,
    *,
    out: Array | TiledArray | None = None,
    padding: int | float | complex | str | None = None,
    casting: str = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: str = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> TiledArray:
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

    With `virtual_vector_size` or `specialize`, large arrays go into swizzled layouts in one step, and not
    block by block.

    Args:
        x: a NumPy array with any strides, alignment and byte order.
        obj: the layout: anything that `as_layout` reads.
        out: where to write: a flat array of the element dtype, a uint8 array or a TiledArray, of the right
            size. It must not overlap `x`. None allocates a buffer.
        padding: the value of padding elements. None takes the layout's own, or 0; "keep" leaves what `out`
            holds.
        casting: NumPy's rule for conversions, as in `np.copyto`, where the layout names another dtype than
            the array has. The conversion is part of the copy.
        threads: how many threads to use; None lets the size decide.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels once and keeps the fastest.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array; its `buffer` is 1-D.

    Raises:
        LayoutError: the layout, the dtype, `padding`, `out` or a keyword is wrong; nothing has been written.
        TypeError: an argument has the wrong type, or neither `pack` nor the layout knows a keyword.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune)
    array = as_array(x)
    spec = as_layout(
        obj, dims=array.shape, dtype=array.dtype, **of_the_layout(parameters, "pack", "the array")
    )
    check_packable(spec)
    refuse_overlaps(spec)
    source = _source_element(array, spec, casting)
    fill = padding_of(padding, spec, out)
    target = output_tiled(out, spec, array)
    count = thread_count(threads, array.nbytes + spec.size_in_bytes)
    if source is None:
        _pack_through_numpy(array, target, fill, count)
    else:
        swap = not array.dtype.isnative
        program = pack_way(spec, array.strides, source, fill, swap, count, tuning)
        program.run(address(array), address_of(target), count, alive=(array, target))
    return target


def unpack(
    t: TiledArray | Array | bytes,
    /,
    obj: LayoutLike | None = None,
    *,
    out: Array | None = None,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: str = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> Array:
    """Copy an array out of a buffer of tiles.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> tilejit.unpack(t)
    array([[ 0.,  1.,  2.,  3.,  4.],
           [ 5.,  6.,  7.,  8.,  9.],
           [10., 11., 12., 13., 14.]], dtype=float32)

    A plain buffer needs its layout:

    >>> np.array_equal(tilejit.unpack(t.buffer, "f32[3,5]{1,0:T(2,2)}"), x)
    True
    >>> buffer = tilejit.pack(x, "blis-a", mr=2).buffer
    >>> np.array_equal(tilejit.unpack(buffer, "blis-a", dims=(3, 5), dtype="f32", mr=2), x)
    True

    Args:
        t: a TiledArray, or a bytes-like buffer of the layout's size.
        obj: the layout of a plain buffer: anything that `as_layout` reads.
        out: where to write: an array of the logical shape and dtype with any strides. It must not overlap the
            buffer. None allocates an array in C order.
        threads: how many threads to use; None lets the size decide.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels once and keeps the fastest.
        parameters: `dims` and `dtype` of the array, keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The array, without padding.

    Raises:
        LayoutError: the shape, the buffer, `out` or a keyword is wrong; nothing has been written.
        TypeError: an argument has the wrong type.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune)
    tiled = _as_tiled(t, obj, parameters)
    spec = tiled.spec
    result = (
        empty(spec.dimensions, spec.dtype)
        if out is None
        else checked_out(out, spec.dimensions, spec.dtype, tiled.buffer)
    )
    count = thread_count(threads, result.nbytes + spec.size_in_bytes)
    program = unpack_way(spec, result.strides, count, tuning)
    program.run(address_of(tiled), address(result), count, alive=(tiled, result))
    return result


def pack_program(
    array: Array, spec: Spec, *, casting: str = "no", threads: int = 1, tuning: Tuning = DEFAULT
) -> CopyProgram:
    """The copy that `pack` makes of an array, padding zero; for those who want to look at it.

    Raises:
        LayoutError: `casting` forbids the conversion, or it goes through NumPy piece by piece.
    """
    source = _source_element(array, spec, casting)
    if source is None:
        raise LayoutError(f"{array.dtype} to {spec.primitive_type} goes through NumPy, piece by piece")
    swap = not array.dtype.isnative
    fill = bytes(spec.dtype.itemsize)
    return pack_at_once(spec, array.strides, source, fill, swap, threads, tuning)


def of_the_layout(parameters: dict[str, Any], call: str, holder: str) -> dict[str, Any]:
    """The keywords of a layout, for a call whose array says dims and dtype already.

    Raises:
        TypeError: dims or dtype is among them.
    """
    for name in ("dims", "dtype"):
        if name in parameters:
            convert = ", or convert the array first with astype" * ((name, holder) == ("dtype", "the array"))
            raise TypeError(f"{call} takes no {name}: {holder} has its own\n  leave {name} out{convert}")
    return parameters


def as_array(x: Any) -> Array:
    """The array that `pack` makes of its argument, without a copy where there is a way.

    Raises:
        LayoutError: there is none in it.
        TypeError: it is packed already, masked, or of a dtype without an XLA counterpart.
    """
    if isinstance(x, TiledArray):
        raise TypeError("pack takes an array; this is packed already\n  unpack it first")
    refuse_masked(x)
    try:
        array = np.asarray(as_numpy(x))
    except (
        ValueError,
        OverflowError,
        RuntimeError,
    ) as error:  # the last is torch's, of a tensor with a gradient
        raise LayoutError(f"expected an array, got {type(x).__name__}: {error}") from error
    try:
        from_numpy(array.dtype)
    except LayoutError as error:
        raise TypeError(str(error)) from error
    return array


def _source_element(array: Array, spec: Spec, casting: str) -> Element | None:
    """How a kernel reads the array for this layout; None where only NumPy makes the conversion.

    Raises:
        LayoutError: `casting` does not allow the conversion, or a value does not fit a narrow integer.
    """
    if not isinstance(casting, str):
        raise TypeError(f"casting is one of {', '.join(CASTINGS)}, not {type(casting).__name__}")
    if casting not in CASTINGS:
        raise LayoutError(f"casting={casting!r}: write one of {', '.join(CASTINGS)}")
    have, want = array.dtype.newbyteorder("="), spec.dtype
    bits = 8 * array.itemsize
    if have == want:
        return Element(spec.primitive_type, bits)
    if spec.element.byte_dtype is not None and have == spec.element.byte_dtype:
        check_range(array, spec.element)
        return Element(spec.primitive_type, bits)
    if not np.can_cast(have, want, casting):  # type: ignore[arg-type]
        raise LayoutError(
            f"the array is {have}, the layout {spec.primitive_type}, and casting={casting!r} forbids the "
            f"conversion\n  give the layout of the array's dtype, or casting='unsafe'"
        )
    name = from_numpy(have).name
    if array.dtype.isnative and can_convert(name, spec.primitive_type) and spec.bits >= 8:
        return Element(name, bits)
    return None


def padding_of(padding: Any, spec: Spec, out: Any) -> bytes | None:
    """One element of the padding that `padding=` asks for, or None to keep what `out` holds.

    None -> the layout's own value, else 0    7 -> 7    "keep" -> None

    Raises:
        LayoutError: it is another word, no value of the dtype, or there is no `out` to keep it of.
    """
    if not isinstance(padding, str):
        return padding_bytes(spec.padding_value if padding is None else padding, spec.element)
    if padding != "keep":
        raise LayoutError(f'padding={padding[:40]!r}: write "keep", a number, or None')
    if out is None:
        raise LayoutError('padding="keep" keeps what out= holds\n  give out=, or a value')
    return None


def _as_tiled(t: Any, obj: Any, parameters: dict[str, Any]) -> TiledArray:
    if obj is None and parameters:
        name = next(iter(parameters))[:40]
        raise TypeError(f"unpack has no keyword {name!r}, and no layout is given that could have it")
    if isinstance(t, TiledArray):
        if obj is not None:
            own = of_the_layout(parameters, "unpack of a TiledArray", "it")
            spec = as_layout(obj, dims=t.shape, dtype=t.spec.primitive_type, **own)
            if spec != t.spec:
                raise LayoutError(
                    f"the tiled array is {shape_name(t.spec)}, not {shape_name(spec)}\n  leave the layout out"
                )
        return t
    if obj is None:
        raise TypeError("a buffer says nothing of its shape: unpack(buffer, 'bf16[…]{…}')")
    return TiledArray.from_buffer(t, obj, **parameters)


def _pack_through_numpy(array: Array, target: TiledArray, fill: bytes | None, threads: int) -> None:
    """Convert piece by piece with NumPy, each piece written to its place; memory stays flat."""
    spec = target.spec
    if fill is not None:
        pad = padding_program(spec, fill, threads)
        pad.run(0, address_of(target), threads, alive=target)
    for box in _pieces(array.shape, max(1, CHUNK_BYTES // max(array.itemsize, 1))):
        piece = array[box]
        if piece.dtype.kind == "c" and spec.element.kind not in ("complex", "pred"):
            piece = piece.real  # NumPy's own conversion does the same, with a warning
        with np.errstate(all="ignore"):
            target[box] = piece.astype(spec.dtype)


def _pieces(dims: tuple[int, ...], most: int) -> list[tuple[slice, ...]]:
    """Boxes of at most about `most` elements that cover the array: whole inner dimensions, parts of one."""
    inner, k = 1, len(dims)
    while k > 0 and inner * dims[k - 1] <= most:
        k -= 1
        inner *= dims[k]
    if k == 0:
        return [(slice(None),) * len(dims)] if 0 not in dims else []
    step = max(1, most // inner)
    outer = np.ndindex(*dims[: k - 1])
    return [
        (*(slice(i, i + 1) for i in prefix), slice(start, start + step), *(slice(None) for _ in dims[k:]))
        for prefix in outer
        for start in range(0, dims[k - 1], step)
    ]
