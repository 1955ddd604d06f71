"""What `unpack` does with a tiled buffer: copy its elements into an array, and convert them on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codegen import CopyProgram, Element, LayoutError, cached, can_convert, thread_count
from tilejit.arrays.memory import Array, address, empty
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy, primitive_type
from tilejit.programs.compiled import array_element
from tilejit.programs.pack_programs import unpack_program
from tilejit.programs.tuning import Tuning, casting_error, may_cast
from tilejit.tiled.boxes import read_box
from tilejit.tiled.conversions import converted, pieces
from tilejit.tiled.outputs import checked_out

if TYPE_CHECKING:
    from codegen import StagedProgram


def unpack_buffer(
    buffer: Array, spec: Spec, out: Any, dtype: Any, casting: Any, threads: int | None, tuning: Tuning
) -> Array:
    """The elements of a buffer as an array, in `out` if that is given; arguments as those of `unpack`."""
    want = _result_dtype(spec, out, dtype, casting)
    result = empty(spec.dimensions, want) if out is None else checked_out(out, spec.dimensions, want, buffer)
    count = thread_count(threads, result.nbytes + spec.size_in_bytes)
    program = _program(spec, result.strides, want, count, tuning)
    if program is None:
        _through_numpy(buffer, spec, result)
    else:
        program.run(address(buffer), address(result), count, alive=(buffer, result))
    return result


def _result_dtype(spec: Spec, out: Any, dtype: Any, casting: Any) -> np.dtype[Any]:
    """The dtype that is asked for, that of `out`, or the layout's.

    Raises:
        LayoutError: `casting` does not allow the conversion.
        TypeError: there is no such dtype.
    """
    if dtype is None:
        want = out.dtype if isinstance(out, np.ndarray) else spec.dtype
    elif isinstance(dtype, str) and dtype.startswith(("<", ">", "=", "|")):
        primitive_type(dtype)
        want = np.dtype(dtype)
    else:
        want = dtype if isinstance(dtype, np.dtype) else primitive_type(dtype).numpy
        if want is None:
            raise LayoutError(f"there are no arrays of {dtype}\n  give the dtype of an array")
    native = want if want is spec.dtype else want.newbyteorder("=")
    if native != spec.dtype:
        from_numpy(want)
    if not may_cast(spec.dtype, native, casting):
        sides = f"the layout is {spec.primitive_type}, the result {want}"
        raise casting_error(spec.dtype, native, casting, sides)
    return want


@cached(512)
def _program(
    spec: Spec, strides: tuple[int, ...], want: np.dtype[Any], threads: int, tuning: Tuning
) -> CopyProgram | StagedProgram | None:
    """The copy into an array of that dtype and those strides; None where only NumPy makes the conversion."""
    if want.newbyteorder("=") == spec.dtype:
        target = array_element(spec)
    elif not want.isnative or spec.bits < 8:
        return None
    else:
        name = from_numpy(want).name
        if not can_convert(spec.primitive_type, name):
            return None
        target = Element(name, 8 * want.itemsize)
    return unpack_program(spec, strides, target, not want.isnative, threads, tuning)


def _through_numpy(buffer: Array, spec: Spec, result: Array) -> None:
    """Convert piece by piece with NumPy."""
    for box in pieces(spec.dimensions, spec.dtype.itemsize):
        result[box] = converted(read_box(buffer, spec, (*box, ...)), result.dtype)
