"""The keywords that every copy takes for its kernels, read once."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np

from codegen import LayoutError

AUTO, STRUCTURE, SIZES = "auto", "structure", "sizes"

SAME_KIND = "same_kind"
CASTINGS = ("no", "equiv", "safe", SAME_KIND, "unsafe")
"""NumPy's rules for conversions."""

Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Order: TypeAlias = Literal["K", "A", "C", "F"]
VectorSize: TypeAlias = int | tuple[int, int] | str
"""What `virtual_vector_size` takes: elements, rows and columns, or "auto"."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the caller asked of the kernels; None for `virtual_vector_size` lets the compiler choose."""

    virtual_vector_size: int | tuple[int, int] | None = None
    specialize: str = STRUCTURE
    tune: bool = False


DEFAULT = Tuning()


def read_tuning(virtual_vector_size: Any, specialize: Any, tune: Any) -> Tuning:
    """The three keywords, checked.

    read_tuning("auto", "structure", False) -> Tuning()    read_tuning([16, 4], "sizes", True)

    Raises:
        LayoutError: a value is none of those allowed.
        TypeError: it is of a wrong type.
    """
    if not isinstance(specialize, str):
        raise TypeError(f'specialize is "structure" or "sizes", not {type(specialize).__name__}')
    if specialize not in (STRUCTURE, SIZES):
        raise LayoutError(f'specialize={specialize[:40]!r}: write "structure" or "sizes"')
    if not isinstance(tune, bool | np.bool_):
        raise TypeError(f"tune is True or False, not {type(tune).__name__}")
    tuning = Tuning(_vector_size(virtual_vector_size), specialize, bool(tune))
    return DEFAULT if tuning == DEFAULT else tuning


def _vector_size(size: Any) -> int | tuple[int, int] | None:
    if isinstance(size, str):
        if size != AUTO:
            raise LayoutError(f'virtual_vector_size={size[:40]!r}: write "auto", 64, or (16, 16)')
        return None
    if not isinstance(size, tuple | list):
        return _positive(size)
    if len(size) != 2:
        numbers = "1 number" if len(size) == 1 else f"{len(size)} numbers"
        raise LayoutError(
            f"virtual_vector_size has {numbers}\n  write one, without brackets, or two: rows and columns"
        )
    return _positive(size[0]), _positive(size[1])


def _positive(size: Any) -> int:
    wrong = TypeError(
        f'virtual_vector_size is "auto", a whole number or a pair of them, not {type(size).__name__}'
    )
    if isinstance(size, bool):
        raise wrong
    try:
        number = index(size)
    except TypeError:  # arrays have __index__ too
        raise wrong from None
    if number < 1:
        raise LayoutError(f"virtual_vector_size={number}: a vector has at least one element")
    return number
