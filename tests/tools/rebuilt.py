"""Buffers made again as a match of `identify` says: a few NumPy lines around `pack`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import ml_dtypes  # noqa: F401 - its dtypes have names
import numpy as np

import tilejit as tj
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Packing
from tilejit.layout.dtypes import from_numpy, lookup
from tilejit.layout.formats.examples import example_packing
from tilejit.layout.formats.registry import find_format
from tilejit.layout.text.pattern_text import parse_pattern
from tilejit.recognize.formats.identification import Match

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH = "element_size_in_bits"


def packing_of(found: Format, parameters: Mapping[str, Any], array: Array | None = None) -> Packing | None:
    """The planes and fields for an array, or for the format's example; None if a rule decides the layout."""
    if array is None:
        return example_packing(found, parameters)
    built = found.layout(from_numpy(array.dtype), array.shape, dict(parameters))
    return built if isinstance(built, Packing) else None


def flat(buffer: Any) -> Array:
    """The bytes of a buffer."""
    return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)


def elements_again(packing: Packing | None, array: Array, buffer: Any, width: int = 0) -> Array | None:
    """The elements of a buffer as an array that the format packs again; None if there are others."""
    dims = array.shape
    if packing is not None and len(packing.fields) == 1 and not packing.fields[0].codec:
        (own,) = packing.fields
        dims = parse_pattern(own.pattern).blocking(dims, own.sizes).padded
    code_bits = packing.main.bits if packing is not None else 0
    data, bits = flat(buffer), code_bits or width or 8 * array.itemsize
    if data.size != -(-prod(dims) * bits // 8):
        return None
    if bits >= 8:
        return data.view(array.dtype).reshape(dims)
    spread = np.unpackbits(data, bitorder="little")[: prod(dims) * bits].reshape(-1, bits)
    codes = np.packbits(spread, axis=1, bitorder="little")[:, 0].reshape(dims)
    if packing is None or not code_bits or packing.main.code_range[0] >= 0:
        return codes.astype(array.dtype) if width else codes
    return ((codes.astype(np.int16) ^ 1 << bits - 1) - (1 << bits - 1)).astype(np.int8)


def same_buffers(found: Any, data: Any) -> bool:
    """Whether buffers, or buffers by name, have the same bytes."""
    if isinstance(found, Mapping):
        return all(np.array_equal(flat(found[key]), flat(value)) for key, value in data.items())
    return np.array_equal(flat(found), flat(data))


def rebuilt(match: Match, original: Any) -> Any:
    """The buffer, or the buffers by name, of an array or of planes, packed as a match says."""
    planes = dict(original) if isinstance(original, Mapping) else {"": original}
    main, *others = planes
    array, after = np.asarray(planes[main]), []
    for text in match.changes:
        if text.startswith("values"):
            array = _changed_values(array, text, _bits(match, array))
        elif text.startswith(("bytes", "first code", "halves of the buffer")):
            after.append(text)
        else:
            array = _moved(array, text)
    if match.format == "row-major":
        data: Any = _row_major(array, match.parameters.get(WIDTH, 0))
    else:
        data = _packed(match, array, {name: planes[name] for name in others})
    for text in after:
        data = _reordered(flat(data), text, _bits(match, array))
    return data


def _packed(match: Match, array: Array, others: Mapping[str, Array]) -> Any:
    given, packing = dict(match.parameters), _packing(match)
    width = given.get(WIDTH, 0)
    if width:
        array = (array.astype(np.int64) & (1 << width) - 1).astype(f"uint{width}")
    elif packing is not None and packing.main.bits:
        array = _in_range(array, packing)
    planes: Any = {packing.main.name: array, **others} if packing is not None and others else array
    out = tj.pack(planes, match.format, **given)
    if match.times == 2:
        own = packing_of(find_format(match.format), _own(match), array)
        again = elements_again(own, array, out.buffer, width)
        out = tj.pack(again, match.format, **given)
    several = isinstance(out, tj.PackedPlanes) and len(out.buffers) > 1
    return dict(out.buffers) if several else out.buffer


def _packing(match: Match) -> Packing | None:
    return packing_of(find_format(match.format), _own(match))


def _own(match: Match) -> dict[str, Any]:
    """The parameters of the format."""
    return {key: value for key, value in match.parameters.items() if key != WIDTH}


def _bits(match: Match, array: Array) -> int:
    """The width of the stored elements."""
    packing = None if match.format == "row-major" else _packing(match)
    own = packing.main.bits if packing is not None else 0
    return own or match.parameters.get(WIDTH, 0) or 8 * array.itemsize


def _in_range(array: Array, packing: Packing) -> Array:
    """Codes modulo their number, in the range of the plane."""
    low = packing.main.code_range[0]
    if array.dtype.kind not in "iub":
        return array
    codes = (array.astype(np.int64) - low) % (1 << packing.main.bits) + low
    return codes.astype(packing.main.array_dtype)


def _changed_values(array: Array, text: str, bits: int) -> Array:
    """The array after "values ^ 8"."""
    _, sign, number = text.split()
    mask, values = (1 << bits) - 1, array.astype(np.int64)
    step = int(number) if sign == "+" else -int(number)
    codes = (values & mask) ^ int(number) if sign == "^" else values + step & mask
    return codes.astype(np.uint8)


def _moved(array: Array, text: str) -> Array:
    """The array after a change before packing."""
    for start in ("cast to ", "as "):
        if text.startswith(start):
            return array.astype(lookup(text.removeprefix(start)).numpy)
    if text == "transposed":
        return np.ascontiguousarray(array.swapaxes(-1, -2))
    axis = int(text.split("axis ")[1].split()[0])
    numbers = np.arange(array.shape[axis])
    if text.endswith("swapped"):
        order = np.roll(numbers, len(numbers) // 2)
    elif text.endswith("interleaved"):
        order = numbers.reshape(2, -1).T.reshape(-1)
    else:
        order = numbers.reshape(-1, 2).T.reshape(-1)
    return np.take(array, order, axis)


def _row_major(array: Array, width: int) -> Array:
    if not width:
        return flat(array)
    codes = (array.astype(np.int64) & (1 << width) - 1).astype(np.uint8).reshape(-1, 1)
    return np.packbits(np.unpackbits(codes, axis=1, count=width, bitorder="little"), bitorder="little")


def _reordered(data: Array, text: str, bits: int) -> Array:
    """The bytes after a change of their order."""
    if text.startswith("halves"):
        return np.roll(data, data.size // 2)
    if text.startswith("first code"):
        digits = np.unpackbits(data, bitorder="little").reshape(-1, 8 // bits, bits)[:, ::-1]
        return np.packbits(digits.reshape(-1), bitorder="little")
    own = text == "bytes of each element reversed"
    width = bits // 8 if own else int(text.split()[3].split("-")[0]) // 8
    return data.reshape(-1, width)[:, ::-1].reshape(-1)
