"""`identify`: the format of a buffer, beside the array that was packed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.values import refuse_masked
from tilejit.copies.planes import PackedPlanes
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import ElementLike, from_numpy, lookup, primitive_type
from tilejit.recognize.formats.candidates import candidates
from tilejit.recognize.formats.guess import guess
from tilejit.recognize.formats.identification import Identification
from tilejit.recognize.formats.matched import matched
from tilejit.recognize.formats.other_planes import Planes

MAX_RANK = 63
"""NumPy indexes an array by at most that many arrays."""


def identify(
    buffer: Any,
    original: Any = None,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
) -> Identification:
    """Find out in which format a buffer holds an array.

    >>> codes = np.random.default_rng(0).integers(0, 16, (64, 128), np.uint8)
    >>> buffer = tilejit.pack(codes, "marlin-int4").buffer
    >>> tilejit.identify(buffer, codes)
    exact: marlin-int4 (the same bytes as marlin-fp4)

    Every format of the catalog is tried with its usual parameters, applied once and twice, to the array as it
    is, transposed, with halves swapped or rows interleaved, with nibbles or bytes in the other order, and
    with values that differ by a constant. A match is exact if every byte of the buffer agrees, padding
    excluded, and no other order of the same elements explains it; its note says whether padding differs from
    what the format writes, or was not compared. If the values can't tell several orders apart, because many
    are equal, the answer is ambiguous and lists them all. It is ambiguous as well if all slices along an axis
    are equal, or if many are of few kinds, because any order of equal slices gives the same bytes.

    Without an original, the answer is a guess from the size of the buffer, from its padding if the dimensions
    are known, and from the scales in its records; or nothing.

    Args:
        buffer: the packed bytes: an array of any dtype, or bytes-like; or a mapping of names to buffers.
        original: the array before packing, with codes as uint8 or int8; or a mapping of planes to arrays.
        dtype: without an original, the dtype of the array, if it is known.
        dims: without an original, its dimensions in elements, if they are known.

    Returns:
        An `Identification`, which prints as text. Its `verdict` is "exact", "ambiguous", "near", "guess" or
        "unknown".

    Raises:
        LayoutError: the original is not an array with elements, or has a dtype and dimensions of its own; a
            mapping has no buffer.
        TypeError: an argument has the wrong type.
    """
    planes = _planes(buffer)
    if original is None:
        own = None if dims is None else int_tuple(dims, "dims")
        if own is not None and (not own or min(own) < 1):
            raise LayoutError(f"dims: expected the sizes of an array with elements, got {list(own)}")
        return guess(planes, own, None if dtype is None else primitive_type(dtype))
    if dtype is not None or dims is not None:
        raise LayoutError("the original has a dtype and dimensions of its own\n  omit dtype and dims")
    if not isinstance(original, Mapping):
        return _matched(planes, _array(original, "original"))
    if not original:
        raise LayoutError("original: expected planes by name, got none")
    arrays = {name: _array(x, name) for name, x in _short(original).items()}
    main = _main_of(arrays)
    array = arrays.pop(main)
    return _matched(planes._replace(main=main if arrays else "", others=arrays), array)


def _matched(planes: Planes, array: Array) -> Identification:
    """The formats in which buffers hold an array; without a byte, they hold none."""
    if not any(data.size for data in planes.buffers.values()):
        return Identification("unknown", ())
    return matched(planes, np.atleast_1d(array))


def _main_of(arrays: Mapping[str, Array]) -> str:
    """The plane that names the axes in a format with these planes, or else the first."""
    for candidate in candidates():
        packing = candidate.example_packing
        if packing is None or packing.main.name not in arrays:
            continue
        if {*arrays} <= {plane.name for plane in packing.planes}:
            return packing.main.name
    return next(iter(arrays))


def _short(named: Mapping[Any, Any]) -> dict[str, Any]:
    """Values by the last parts of their names, if the others are equal: layer.qweight, layer.scales."""
    heads = {str(name).rpartition(".")[0] for name in named}
    short = len(heads) == 1 and len(named) > 1
    return {str(name).rpartition(".")[2] if short else str(name): value for name, value in named.items()}


def _array(original: Any, what: str) -> Array:
    if isinstance(original, str | bytes):
        raise TypeError(f"{what}: expected an array, got {type(original).__name__}")
    refuse_masked(original)
    array = _regular(original, what)
    if array.size == 0:
        raise LayoutError(f"{what}: expected an array with elements, got {list(array.shape)}")
    if array.ndim > MAX_RANK:
        raise LayoutError(
            f"{what}: expected at most {MAX_RANK} dimensions, got {array.ndim}\n  reshape it to fewer"
        )
    from_numpy(array.dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _regular(value: Any, what: str) -> Array:
    """A value as an array.

    Raises:
        LayoutError: it is a list of lists of different lengths.
    """
    try:
        array: Array = np.asarray(as_numpy(value))
    except ValueError as error:
        raise LayoutError(
            f"{what}: expected an array, got a {type(value).__name__} that NumPy cannot convert: {error}"
        ) from error
    return array


def _planes(given: Any) -> Planes:
    """The buffers as flat bytes, and their types; a single one has no name, and may be bytes of any type."""
    if isinstance(given, Mapping) and not given:
        raise LayoutError("buffer: expected buffers by name, got none")
    if isinstance(given, Mapping | PackedPlanes):
        named = given.buffers if isinstance(given, PackedPlanes) else _short(given)
        arrays = (getattr(as_numpy(value), "dtype", np.dtype(np.uint8)) for value in named.values())
        types = dict(zip(named, map(from_numpy, arrays), strict=True))
        return Planes({name: _bytes(value) for name, value in named.items()}, types)
    return Planes({"": _bytes(getattr(given, "buffer", given))}, {"": lookup("u8")})


def _bytes(value: Any) -> Array:
    if isinstance(value, str):
        raise TypeError("buffer: expected an array or bytes, got str")
    if isinstance(value, memoryview):
        value = value if value.c_contiguous else value.tobytes()
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, np.uint8)
    array = _regular(value, "buffer")
    if array.dtype.kind == "O":
        raise TypeError(f"buffer: expected an array or bytes, got {type(value).__name__}")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
