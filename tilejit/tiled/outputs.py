"""Check `out=` and `padding=` for copies of complete arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, NoReturn

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import overlaps_itself
from tilejit.arrays.values import refuse_masked
from tilejit.layout.cute_shape import Spec
from tilejit.layout.padding import padding_bytes
from tilejit.tiled.buffers import checked_buffer, flat_words

MOST_WORK = 1000
"""NumPy's effort to prove that two arrays share no memory, such as two fields of one structured array."""


def output_buffer(out: Any, spec: Spec, source: Array) -> Array:
    """Check `out` and return it as a flat array: a contiguous array of elements, of bytes or of words.

    Raises:
        LayoutError: `out` does not hold the shape, is read-only, or overlaps the source.
        TypeError: it is not an array.
    """
    buffer = checked_buffer(flat_words(out, spec), spec, "out")
    check_target(buffer, source)
    return buffer


def padding_of(padding: Any, spec: Spec, out: Any) -> bytes | None:
    """One element of padding for `padding=`, or None to keep the padding of `out`.

    None -> the layout's own value, else 0    7 -> 7    "keep" -> None

    Raises:
        LayoutError: it is another word, does not fit the dtype, or there is no `out` to keep it from.
    """
    if not isinstance(padding, str):
        return padding_bytes(spec.padding_value if padding is None else padding, spec.element)
    if padding != "keep":
        raise LayoutError(f'padding: expected "keep", a number or None, got {padding[:40]!r}')
    if out is None:
        refuse_keep()
    return None


def refuse_keep() -> NoReturn:
    """Raise the LayoutError for `padding="keep"` without `out`, because new memory has no padding to keep."""
    raise LayoutError('padding="keep" needs an out= whose padding it keeps\n  pass out=, or a value')


def checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], source: Array) -> Array:
    """Return `out` if it is an array of that shape and dtype that may be written while `source` is read.

    Raises:
        LayoutError: `out` has another shape or dtype, is read-only, or overlaps itself or the source.
        TypeError: it is not an array, or has masked elements.
    """
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: expected an array, got {type(out).__name__}")
    refuse_masked(out)
    check_alike(out, shape, dtype)
    check_target(out, source)
    return out


def check_alike(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str = "out") -> None:
    """Raise a LayoutError unless `out` has the shape and dtype of the result."""
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise LayoutError(
            f"{what} is {out.dtype}{list(out.shape)}, but the result is {dtype}{list(shape)}\n"
            "  pass an array of that shape and dtype, or omit out="
        )


def check_target(memory: Array, *sources: Array, what: str = "out") -> None:
    """Check that the memory of `out` may be written while sources are read.

    Raises:
        LayoutError: it is read-only, or overlaps itself or a source.
    """
    if not memory.flags.writeable:
        raise LayoutError(f"{what} is read-only\n  pass a writable array")
    if overlaps_itself(memory.shape, memory.strides, memory.itemsize):
        raise LayoutError(
            f"{what} has elements that share memory: strides {memory.strides} for shape {memory.shape}\n"
            "  pass an array without overlapping elements"
        )
    if any(np.may_share_memory(memory, source) for source in sources):
        raise LayoutError(
            f"{what} overlaps the array that is copied into it\n  pass an array with its own memory"
        )


def checked_outs(
    out: Any, checks: Mapping[str, Callable[[Array, str], None]], sources: Iterable[Array]
) -> dict[str, Array]:
    """Return the arrays of `out` by name if all may be written while sources are read; none if it is None.

    Args:
        out: a mapping of names to arrays, or the only array.
        checks: for each name, check(array, what) raises unless the array has the form of the result.
        sources: the arrays that are read.

    Raises:
        LayoutError: a name is missing or unknown, or an array has another form, is read-only, or overlaps
            itself, a source or another one.
        TypeError: one is not an array, or has masked elements.
    """
    if out is None:
        return {}
    listed, is_mapping = ", ".join(checks), isinstance(out, Mapping)
    if not is_mapping and len(checks) > 1:
        raise TypeError(
            f"out: expected a mapping of {listed} to arrays, got {type(out).__name__}\n  pass a dict"
        )
    targets = dict(out) if is_mapping else dict.fromkeys(checks, out)
    if set(targets) != set(checks):
        got = ", ".join(map(str, targets))[:80] or "nothing"
        raise LayoutError(f"out: expected {listed}, got {got}\n  pass an array for each of these names")
    for name, check in checks.items():
        target, what = targets[name], f"{name} of out" if is_mapping else "out"
        if not isinstance(target, np.ndarray):
            raise TypeError(f"{what}: expected an array, got {type(target).__name__}")
        refuse_masked(target)
        check(target, what)
        check_target(target, *sources, what=what)
    for (one, first), (other, second) in combinations(targets.items(), 2):
        if np.may_share_memory(first, second, max_work=MOST_WORK):  # type: ignore[arg-type]
            raise LayoutError(f"out: {one} and {other} share memory\n  pass arrays with their own memory")
    return targets
