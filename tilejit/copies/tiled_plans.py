"""plan_pack, plan_unpack and plan_relayout: copies of tiled layouts, checked once and called many times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.strided import c_strides
from tilejit.layout.as_layout import LayoutLike, as_layout, of_the_layout
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import ElementLike, array_dtype
from tilejit.programs.tuning import (
    AUTO,
    STRUCTURE,
    Casting,
    Padding,
    Specialize,
    Tune,
    VectorSize,
    read_tuning,
)
from tilejit.tiled.buffers import check_packable, writable_layout
from tilejit.tiled.outputs import padding_of
from tilejit.tiled.plan_elements import unpacked_dtype
from tilejit.tiled.plans import PackPlan, RelayoutPlan, UnpackPlan
from tilejit.tiled.tiled_array import TiledArray, relayout_plan_of


def plan_pack(
    layout: LayoutLike,
    shape: Iterable[int],
    dtype: ElementLike,
    *,
    strides: Iterable[int] | None = None,
    padding: Padding | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> PackPlan[TiledArray]:
    """Check and compile a pack once, to run it many times.

    >>> plan = tilejit.plan_pack("{1,0:T(2,2)}", (3, 5), np.float32)
    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = plan(x)
    >>> t.buffer[:8]
    array([0., 1., 5., 6., 2., 3., 7., 8.], dtype=float32)
    >>> plan(x, t) is t  # into existing memory
    True

    Args:
        layout: the layout: anything that `as_layout` reads.
        shape: the shape of the arrays.
        dtype: the dtype of the arrays: XLA's name, a NumPy dtype or NumPy's code.
        strides: the strides of the arrays in bytes. None means C order.
        padding: the value of padding elements, as in `pack`. With "keep", each call needs an `out`.
        casting: NumPy's rule for conversions, if the layout has another dtype.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The plan. `plan(x)` returns a new TiledArray; `plan(x, out)` writes to a TiledArray or a flat buffer.

    Raises:
        LayoutError: the layout, `padding` or a keyword is wrong, or `casting` forbids the conversion.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
    dims, array = int_tuple(shape, "shape"), array_dtype(dtype)
    own = of_the_layout(parameters, "plan_pack", "the plan")
    spec = writable_layout(as_layout(layout, dtype=array, dims=dims, **own))
    steps = _strides(strides, dims, array)
    fill = padding_of(padding, spec, ...)
    return PackPlan(TiledArray, spec, (dims, steps, array), fill, casting, threads, tuning)


def plan_unpack(
    layout: LayoutLike,
    shape: Iterable[int] | None = None,
    dtype: ElementLike | None = None,
    *,
    strides: Iterable[int] | None = None,
    result_dtype: ElementLike | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> UnpackPlan[TiledArray]:
    """Check and compile an unpack once, to run it many times.

    >>> plan = tilejit.plan_unpack("f32[3,5]{1,0:T(2,2)}")
    >>> t = tilejit.pack(np.ones((3, 5), np.float32), "{1,0:T(2,2)}")
    >>> float(plan(t).sum())
    15.0

    Args:
        layout: the layout: anything that `as_layout` reads.
        shape: the logical shape, unless the layout names it.
        dtype: the dtype of the elements in the buffer, unless the layout names it.
        strides: the strides of results in bytes; then each call needs an `out`. None means C order.
        result_dtype: the dtype of results. None means the layout's dtype.
        casting: NumPy's rule for conversions, if results have another dtype.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The plan. `plan(t)` returns a new array; `plan(t, out)` writes to an array of the plan's strides.

    Raises:
        LayoutError: the layout or a keyword is wrong, or `casting` forbids the conversion.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
    dims = None if shape is None else int_tuple(shape, "shape")
    spec = as_layout(layout, dtype=dtype, dims=dims, **of_the_layout(parameters, "plan_unpack", "the plan"))
    check_packable(spec)
    want = unpacked_dtype(spec, None, result_dtype)
    steps = _strides(strides, spec.dimensions, want)
    return UnpackPlan(TiledArray, spec, steps, want, casting, threads, tuning)


def plan_relayout(
    source: LayoutLike,
    target: LayoutLike,
    shape: Iterable[int] | None = None,
    dtype: ElementLike | None = None,
    *,
    padding: Padding | None = None,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> RelayoutPlan[TiledArray]:
    """Check and compile a relayout once, to run it many times.

    >>> plan = tilejit.plan_relayout("f32[3,5]{1,0:T(2,2)}", "{0,1}")
    >>> t = tilejit.pack(np.ones((3, 5), np.float32), "{1,0:T(2,2)}")
    >>> plan(t).layout
    Shape.parse('f32[3,5]{0,1}')

    Args:
        source: the layout of the tiled arrays: anything that `as_layout` reads. Write the parameters of a
            format in its text: "blis-a, mr=8".
        target: the layout of results, of the same dimensions and dtype.
        shape: the logical shape, unless `source` names it.
        dtype: the dtype of the elements, unless `source` names it.
        padding: the value of padding elements, as in `relayout`. With "keep", each call needs an `out`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes, for `target`.

    Returns:
        The plan. `plan(t)` returns a new TiledArray; `plan(t, out)` writes to a TiledArray or a flat buffer.

    Raises:
        LayoutError: a layout, `padding` or a keyword is wrong.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
    dims = None if shape is None else int_tuple(shape, "shape")
    src = as_layout(source, dtype=dtype, dims=dims)
    check_packable(src)
    own = of_the_layout(parameters, "plan_relayout", "the source")
    dst = as_layout(target, dtype=src.element, dims=src.dimensions, **own)
    return relayout_plan_of(src, dst, padding, ..., threads, tuning)


def _strides(strides: Any, dims: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The given strides, or those of C order."""
    if strides is None:
        return c_strides(dims, dtype.itemsize)
    steps = int_tuple(strides, "strides")
    if len(steps) != len(dims):
        raise LayoutError(f"expected {len(dims)} strides, got {len(steps)}\n  pass one for each dimension")
    return steps
