"""The buffers of planes: found by name, and those of `out`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, extents
from tilejit.copies.plane_fields import PlacedField
from tilejit.layout.dtypes import PrimitiveType, from_numpy, lookup
from tilejit.tiled.outputs import check_target


def buffer_bytes(fields: list[PlacedField]) -> int:
    """The bytes of the buffer that holds some fields."""
    return fields[0].records * fields[0].pitch


def check_length(fields: list[PlacedField], data: Array, what: str) -> None:
    """Raise a LayoutError unless a buffer has the size of its fields."""
    if data.nbytes != buffer_bytes(fields):
        raise LayoutError(
            f"expected {buffer_bytes(fields)} bytes as {what}, got {data.nbytes}\n"
            "  pass the dimensions of the array, and a buffer of its size"
        )


def buffer_dtype(given: Any, packing: Packing) -> PrimitiveType | None:
    """The dtype of a buffer that holds the planes that take any; None if it is not typed or there is none."""
    for buffer, text in (packing.tensors or {}).items():
        value = given.get(buffer) if isinstance(given, Mapping) else given
        if text.startswith("any:") and not isinstance(value, bytes | bytearray | memoryview | None):
            found = from_numpy(np.asarray(as_numpy(value)).dtype)
            return None if found.name == "u8" else found
    return None


def shaped(data: Array, packing: Packing, buffer: str, sizes: Mapping[str, Any], free: str) -> Array:
    """The buffer with the dtype and the dimensions that it has in checkpoints.

    Args:
        data: its bytes.
        packing: the packing.
        buffer: its name.
        sizes: the sizes of the axes.
        free: the dtype of the planes that take any.
    """
    text = (packing.tensors or {}).get(buffer)
    if not text:
        return data
    dtype, _, shape = text.partition(":")
    numpy = lookup(free if dtype == "any" else dtype).numpy
    assert numpy is not None
    return data.view(numpy).reshape(extents(shape, sizes))


def named_buffers(given: Any, packing: Packing, name: str) -> dict[str, Array]:
    """The buffers by name, as flat bytes."""
    if not isinstance(given, Mapping):
        optional = [(plane,) for plane in packing.optional]
        if any(f.planes not in optional for f in packing.fields if f.buffer != packing.buffers[0]):
            raise LayoutError(
                f"the format {name!r} has the buffers {', '.join(packing.buffers)}\n"
                "  pass a mapping of these names to arrays"
            )
        given = {packing.buffers[0]: given}
    odd = [str(key) for key in given if key not in packing.buffers]
    if odd or not given:
        names = ", ".join(packing.buffers)
        got = f"got {odd[0][:40]!r}" if odd else "got none"
        raise LayoutError(f"the format {name!r} has the buffers {names}; {got}\n  pass them by these names")
    return {key: _flat_bytes(given[key], key) for key in packing.buffers if key in given}


def _flat_bytes(value: Any, name: str) -> Array:
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, np.uint8)
    array = np.asarray(as_numpy(value))
    if array.dtype.kind == "O":
        raise TypeError(f"{name}: expected an array or bytes, got {type(value).__name__}")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def targets_of(
    placed: Mapping[str, list[PlacedField]], out: Any, arrays: Mapping[str, Array]
) -> dict[str, Array]:
    """Flat bytes for each buffer: those of `out` if they are contiguous, else new ones."""
    fresh = {buffer: np.empty(buffer_bytes(fields), np.uint8) for buffer, fields in placed.items()}
    if out is None:
        return fresh
    given = out if isinstance(out, Mapping) else {next(iter(placed)): out}
    _check_targets(fresh, given)
    for name in fresh:
        if any(np.may_share_memory(given[name], array) for array in arrays.values()):
            raise LayoutError(f"out: {name} overlaps a plane\n  pass an array with its own memory")
    return {
        name: given[name].reshape(-1).view(np.uint8) if given[name].flags.c_contiguous else data
        for name, data in fresh.items()
    }


def written(targets: Mapping[str, Array], out: Any) -> dict[str, Array]:
    """The arrays of `out`, after bytes were copied to those that are not contiguous."""
    given = out if isinstance(out, Mapping) else {next(iter(targets)): out}
    for name, data in targets.items():
        if not given[name].flags.c_contiguous:
            given[name][...] = data.view(given[name].dtype).reshape(given[name].shape)
    return {name: given[name] for name in targets}


def copy_to(sources: Mapping[str, Array], targets: Any) -> None:
    """Copy arrays to the arrays of `out` with the same names, after all checks."""
    _check_targets(sources, targets)
    for name, data in sources.items():
        target = targets[name]
        target[...] = data.reshape(-1).view(np.uint8).view(target.dtype).reshape(target.shape)


def _check_targets(sources: Mapping[str, Array], targets: Any) -> None:
    """Check that bytes can be copied to the arrays of `out` with the same names.

    Raises:
        LayoutError: an array is missing, has another size, or is read-only.
        TypeError: it is not an array.
    """
    if not isinstance(targets, Mapping):
        names = ", ".join(sources)
        raise TypeError(f"out: expected a mapping of {names} to arrays, got {type(targets).__name__}")
    if set(targets) != set(sources):
        raise LayoutError(f"out: expected {', '.join(sources)}, got {', '.join(map(str, targets))[:80]}")
    for name, data in sources.items():
        target = targets[name]
        if not isinstance(target, np.ndarray):
            raise TypeError(f"out: expected an array as {name}, got {type(target).__name__}")
        other_shape = target.ndim > 1 and data.ndim > 1 and target.shape != data.shape
        if target.nbytes != data.nbytes or (other_shape and target.dtype == data.dtype):
            raise LayoutError(
                f"out: {name} is {target.dtype}{list(target.shape)}, but the result is "
                f"{data.dtype}{list(data.shape)}\n  pass an array of that size"
            )
        if not target.flags.writeable:
            raise LayoutError(f"out: {name} is read-only\n  pass a writable array")
        check_target(target, np.empty(0, np.uint8))
