"""How kernels copy elements from one dtype to another: move bytes, swap bytes, or convert."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from codegen import (
    FLAGS_SUPPORTED,
    INTEGER_TYPES,
    Element,
    LayoutError,
    cached,
    can_convert,
    compiler_lock,
    dataclass,
)
from tilejit.layout.dtypes import from_numpy

WIDTHS = (16, 8, 4, 2, 1)
_WHOLE = ("pred", *INTEGER_TYPES)
_TRUNCATES = platform.machine().lower() in ("x86_64", "amd64")
"""Whether NumPy converts out-of-range floats to integers as kernels do, which depends on the machine."""

_SILENT = "bf16", "f16"
"""Dtypes that NumPy converts without a warning, although a signaling NaN sets a flag."""

_OBJECT = np.dtype(object).num
_LAST_BUILTIN = np.dtype(np.float16).num


can_cast = cached(1024)(np.can_cast)
"""Whether a casting rule allows a conversion; cached, because NumPy takes 0.3 us."""


@dataclass(frozen=True, slots=True)
class Move:
    """How to copy one element: as `units` pieces of `source`, each moved, swapped or converted to `target`.

    sets_flags       whether the conversion sets processor flags, for which NumPy may warn
    hides_underflow  whether underflow is excluded, because only NumPy's own loop reports it

    f4 -> f4: 1 piece u32    V12 -> V12: 3 pieces u32    >c16 -> c16: 2 pieces u64, swapped
    """

    source: Element
    target: Element
    units: int = 1
    swap: bool = False
    sets_flags: bool = False
    hides_underflow: bool = False


def move_for(source: np.dtype[Any], target: np.dtype[Any]) -> Move | None:
    """The move that a kernel performs, or None if only NumPy can copy such elements.

    No `casting` rule is checked.
    """
    # M8[s] == M8[1000ms], but not the other way round, so a cache would confuse them.
    return (_move_for.__wrapped__ if source.kind in "mM" else _move_for)(source, target)


@cached(1024)
def _move_for(source: np.dtype[Any], target: np.dtype[Any]) -> Move | None:
    if not (_is_plain(source) and _is_plain(target)):
        return None
    if source == target:
        return None if _has_holes(source) else _moved(source.itemsize)
    if source.newbyteorder("=") == target.newbyteorder("="):
        return _swapped(source)
    return _converted(source, target)


def _is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether copying the bytes of an element copies the element."""
    if dtype.hasobject or dtype.itemsize == 0:
        return False
    return (0 <= dtype.num <= _LAST_BUILTIN and dtype.num != _OBJECT) or _xla_name(dtype) != ""


def _has_holes(dtype: np.dtype[Any]) -> bool:
    """Whether some bytes of a structured element belong to no field; NumPy leaves such bytes unchanged."""
    return bool(np.count_nonzero(_field_bytes(dtype)) < dtype.itemsize)


def _field_bytes(dtype: np.dtype[Any]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each byte of an element, whether some field owns it."""
    if dtype.subdtype:
        item, shape = dtype.subdtype
        return np.tile(_field_bytes(item), int(np.prod(shape)))
    owned = np.full(dtype.itemsize, dtype.names is None)
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]  # type: ignore[index]
        owned[offset : offset + field.itemsize] |= _field_bytes(field)
    return owned


def _moved(itemsize: int) -> Move:
    width = next(w for w in WIDTHS if itemsize % w == 0)
    element = Element(f"u{8 * width}", 8 * width)
    return Move(element, element, itemsize // width)


def _swapped(dtype: np.dtype[Any]) -> Move | None:
    """The same type in the other byte order; parts of complex numbers and strings are swapped one by one."""
    if dtype.names is not None or dtype.subdtype is not None:
        return None
    parts = {"c": 2, "U": dtype.itemsize // 4}.get(dtype.kind, 1)
    width = dtype.itemsize // parts
    if width not in (2, 4, 8):
        return None
    element = Element(f"u{8 * width}", 8 * width)
    return Move(element, element, parts, swap=True)


def _converted(source: np.dtype[Any], target: np.dtype[Any]) -> Move | None:
    names = _xla_name(source), _xla_name(target)
    if not (source.isnative and target.isnative and can_convert(*names)):
        return None
    with compiler_lock:  # most copies convert nothing
        from codegen import conversion
    sets_flags = conversion(*names).sets_flags and names != _SILENT
    if sets_flags and not FLAGS_SUPPORTED:
        return None
    if names[0] not in _WHOLE and names[1] in _WHOLE and not _TRUNCATES:
        return None
    elements = [Element(n, 8 * d.itemsize) for n, d in zip(names, (source, target), strict=True)]
    return Move(
        elements[0], elements[1], sets_flags=sets_flags, hides_underflow=sets_flags and names[1] == "f16"
    )


def _xla_name(dtype: np.dtype[Any]) -> str:
    try:
        return from_numpy(dtype).name
    except LayoutError:
        return ""
