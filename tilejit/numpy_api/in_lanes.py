"""take and put in super-vectors of a given size: loops over the indices, which the compiler vectorizes."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import Any

import numpy as np
from numpy import ndarray

from codegen import (
    Affine,
    ArrayArg,
    ArrayElement,
    Cache,
    For,
    Function,
    Index,
    KernelValueError,
    Load,
    Store,
    dtypes,
    index_symbol,
)
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import overlaps_itself
from tilejit.kernels.failures import report_failures
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.options import KernelKeywords, read_options
from tilejit.kernels.program import LoopProgram
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.flat_memory import is_plain, least_within
from tilejit.numpy_api.results import allocate, duplicate

_MODES = ("raise", "wrap", "clip")
_WIDEST_WORD = 8
"""Bytes of the widest integer that a kernel moves; wider elements are several."""

_programs: Cache[tuple[Any, ...], LoopProgram] = Cache()


def take_in_lanes(
    a: Any, indices: Any, axis: Any, out: Any, mode: Any, size: Any, threads: int | None
) -> Any:
    """Execute `tilejit.take` with a `virtual_vector_size`.

    Raises:
        IndexError: an index is out of range.
        KernelError: the size or the number of threads is invalid.
        TypeError: an argument has the wrong type.
        ValueError: `axis`, `mode` or the shape of `out` is wrong, or `out` is read-only.
    """
    options = _options("take", size, threads)
    a, indices = _checked("a", a), _integers(indices)
    flat = a.reshape(-1) if axis is None else a
    along = 0 if axis is None else np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    before, after = flat.shape[:along], flat.shape[along + 1 :]
    numbers = _numbers(indices, flat.shape[along], along, mode)
    shape = (*before, *indices.shape, *after)
    result = allocate(shape, a.dtype) if out is None else _checked_out(out, shape, a.dtype)
    direct = result.flags.carray and not any(np.may_share_memory(result, x) for x in (a, indices))
    held = result if direct else allocate(shape, a.dtype)
    if held.size:
        sizes = prod(before), prod(after)
        sides = _words(_straight(flat, threads), *sizes), numbers, _words(held, *sizes)
        _run("take", sides, options, into=False)
    if not direct:
        copyto(result, held, threads=threads)
    return result if shape or out is not None else result[()]


def put_in_lanes(a: Any, indices: Any, values: Any, mode: Any, size: Any, threads: int | None) -> None:
    """Execute `tilejit.put` with a `virtual_vector_size`.

    Raises:
        IndexError: an index is out of range; nothing has been written.
        KernelError: the size or the number of threads is invalid.
        TypeError: an argument has the wrong type.
        ValueError: `mode` is wrong, or `a` is read-only or overlaps itself.
    """
    options = _options("put", size, threads)
    if not isinstance(as_numpy(a), ndarray):
        raise TypeError(f"a: expected an array, got {type(a).__name__}")
    a, indices = _checked("a", a), _integers(indices)
    if not a.flags.writeable:
        raise KernelValueError("a is read-only\n  pass a copy of it, or set its writeable flag")
    if overlaps_itself(a.shape, a.strides, a.itemsize):
        raise KernelValueError("elements of a share memory\n  pass a copy of it")
    held = np.asarray(as_numpy(values), a.dtype).reshape(-1)
    numbers = _numbers(indices, a.size, 0, mode)
    if not numbers.size or not held.size:
        return
    chosen = _last_of_each(numbers, a.size)
    numbers, held = numbers[chosen], held[chosen % held.size]  # copies, which share no memory with the array
    target = _straight(a, threads)
    _run("put", (_words(target, 1, 1), numbers, _words(held, 1, 1)), options, into=True)
    if target is not a:
        copyto(a, target, threads=threads)


def _options(what: str, size: Any, threads: int | None) -> LoopOptions:
    """The options of the loops, which warn where they don't run in lanes as requested."""
    given = {"virtual_vector_size": size, "parallel": threads, "tail": "shift", "on_fail": "warn"}
    read = read_options(what, KernelKeywords, given)
    return replace(read, on_fail="scalar") if {*read.virtual_vector_size} == {1} else read


def _checked(name: str, x: Any) -> Array:
    """The array, if its elements are plain bytes."""
    given = np.asanyarray(as_numpy(x))
    if type(given) not in (ndarray, np.memmap):
        raise TypeError(
            f"{name}: expected a plain NumPy array, got {type(given).__name__}\n  omit virtual_vector_size"
        )
    if not is_plain(given.dtype):
        raise TypeError(
            f"{name}: expected numbers or other elements of a fixed size, got {given.dtype}\n"
            "  omit virtual_vector_size"
        )
    return np.asarray(given)


def _integers(indices: Any) -> Array:
    given: Array = np.asarray(as_numpy(indices))
    if given.size and given.dtype.kind not in "iub":
        raise TypeError(f"indices: expected integers, got {given.dtype}\n  convert them: astype(int)")
    return given


def _numbers(indices: Array, extent: int, axis: int, mode: Any) -> Array:
    """The indices in a row, each from 0 to extent - 1, by the rule of `mode`.

    Raises:
        IndexError: one is out of range.
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise KernelValueError(f"mode: expected one of {', '.join(_MODES)}, got {mode!r:.40}")
    numbers = np.ascontiguousarray(indices.reshape(-1), np.int64)
    if not numbers.size:
        return numbers
    if not extent:
        raise IndexError("indices: expected none, because the array has no elements along the axis")
    low = least_within(numbers, extent)
    if low == 0:
        return numbers
    if mode == "clip":
        return np.clip(numbers, 0, extent - 1)
    if mode == "wrap":
        return numbers % extent
    if low is None:
        wrong = int(numbers[np.argmax((numbers < -extent) | (numbers >= extent))])
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {extent}")
    return np.where(numbers < 0, numbers + extent, numbers)


def _checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if type(out) not in (ndarray, np.memmap):
        raise TypeError(f"out: expected a plain NumPy array, got {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise KernelValueError(
            f"out: expected {dtype}{list(shape)}, got {out.dtype}{list(out.shape)}\n  pass such an array"
        )
    if not out.flags.writeable:
        raise KernelValueError("out is read-only\n  pass an array of your own, or set its writeable flag")
    checked: Array = out
    return checked


def _last_of_each(numbers: Array, extent: int) -> Array:
    """The last position of each number, so that no two lanes write one element.

    [3, 1, 3], 4 -> [1, 2]
    """
    positions = np.arange(numbers.size)
    last = np.empty(extent, np.int64)  # only the elements at `numbers` are used
    last[numbers] = positions
    found: Array = positions[last[numbers] == positions]
    return found


def _straight(x: Array, threads: int | None) -> Array:
    """The array itself if its elements are aligned and in C order, otherwise such a copy."""
    if x.flags.c_contiguous and x.flags.aligned:
        return x
    made = duplicate(x, threads=threads)
    return np.array(x, order="C") if made is None else made


def _words(x: Array, outer: int, inner: int) -> Array:
    """An array in C order as [outer, along, inner] integers, several for a wide element.

    f4[5, 7, 3], 5, 3 -> u4[5, 7, 3]    c16[7], 1, 1 -> u8[1, 7, 2]
    """
    words = np.dtype(f"u{gcd(x.itemsize, _WIDEST_WORD)}")
    along, wide = x.size // (outer * inner), x.itemsize // words.itemsize
    return x.reshape(-1).view(words).reshape(outer, along, inner * wide)


def _run(what: str, sides: tuple[Array, Array, Array], options: LoopOptions, *, into: bool) -> None:
    """Run the loops over [outer, along, inner] arrays; those that run once are left out."""
    a, numbers, held = sides
    outer, inner = a.shape[0] > 1, a.shape[2] > 1
    a, held = (x[(slice(None) if outer else 0, slice(None), slice(None) if inner else 0)] for x in (a, held))
    key = what, a.ndim, outer, a.dtype, options, _most_lanes(a.shape[-1]) if inner else 0
    program = _programs.get(key)
    if program is None:
        function = _loops(what, a.dtype, outer=outer, inner=inner, into=into)
        program = _programs.keep(key, LoopProgram(function, _fitting(options, function, key[-1])))
        report_failures(program, what)
    program(a, numbers, held)


def _most_lanes(extent: int) -> int:
    """The largest power of two that is not more, so that shapes share kernels."""
    return 1 << (extent.bit_length() - 1)


def _fitting(options: LoopOptions, function: Function, most: int) -> LoopOptions:
    """The options with at most that many lanes in the innermost loop; 0 means any number."""
    if options.is_auto or not most:
        return options
    *others, last = options.sizes(function)
    return replace(options, virtual_vector_size=(*others, min(last, most)))


def _loops(what: str, dtype: np.dtype[Any], *, outer: bool, inner: bool, into: bool) -> Function:
    """The loops of one of the two, into the array that is indexed or from it.

    take: for o: for i: for k: held[o, i, k] = a[o, numbers[i], k]
    put:  for i: for k: a[numbers[i], k] = held[i, k]
    """
    word, rank = dtypes.dtype_name(dtype, "a"), 1 + outer + inner
    row = index_symbol("i")
    # put drops repeated numbers; take may read an element twice.
    number: Index = ArrayElement("numbers", (row,), "i64", distinct=into)
    before = (index_symbol("o"),) if outer else ()
    after = (index_symbol("k"),) if inner else ()
    indexed, straight = (*before, number, *after), (*before, row, *after)
    if into:
        body: Any = Store("a", indexed, Load("held", straight, word))
    else:
        body = Store("held", straight, Load("a", indexed, word))
    indices = [*("o" * outer), "i", *("k" * inner)]
    for dim, index in reversed([*enumerate(indices)]):
        stop = index_symbol(f"held.shape[{dim}]")
        body = For(index, (Affine(),), (stop,), 1, (body,), parallel=dim == 0)
    arrays = (
        ArrayArg("a", word, rank, "C"),
        ArrayArg("numbers", "i64", 1, "C"),
        ArrayArg("held", word, rank, "C"),
    )
    return Function(what, arrays, (body,))
