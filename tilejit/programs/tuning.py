"""The keywords of copies that control their kernels, read and checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from codegen import LayoutError, check_calls, compiler_lock, dataclass
from tilejit.layout.dtypes import from_numpy

if TYPE_CHECKING:
    from codegen import Size

AUTO: Final = "auto"
STRUCTURE: Final = "structure"
SIZES: Final = "sizes"
LIVE: Final = "live"
_A_SIZE = 'write 64, (16, 16), "2*hw", "l1/4", "2*cores*hw" or "auto"'

SAME_KIND: Final = "same_kind"
CASTINGS = ("no", "equiv", "safe", SAME_KIND, "unsafe")
"""NumPy's rules for conversions."""
_KINDS = ("pred", "unsigned", "signed", "float", "complex")
"""Kinds of elements; the rule "same_kind" allows conversions within a kind and to later kinds."""

Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Order: TypeAlias = Literal["K", "A", "C", "F"]
VectorSize: TypeAlias = int | str | tuple[int | str, int | str]
"""Values of `virtual_vector_size`: elements, rows and columns, or "auto".

Text such as "2*hw" counts elements in terms of the machine.
"""
Specialize: TypeAlias = Literal["structure", "sizes"]
"""Whether shapes share kernels, or each shape gets its own."""
Tune: TypeAlias = bool | Literal["live"]
"""Whether kernels are measured: before the first call, or with "live" by the first calls."""
PaddingNumber: TypeAlias = int | float | complex | np.generic
"""The value of padding elements."""
Padding: TypeAlias = PaddingNumber | Literal["keep"]
"""Values of `padding`: the value of padding elements, or "keep" to leave them as they are."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The checked keywords; None for `virtual_vector_size` lets the compiler choose."""

    virtual_vector_size: tuple[Size, ...] | None = None
    specialize: str = STRUCTURE
    tune: Tune = False
    schedule: str = ""


DEFAULT = Tuning()


def read_tuning(virtual_vector_size: Any, specialize: Any, tune: Any, schedule: Any = None) -> Tuning:
    """Read and check the keywords; the directives of a schedule are read when the copy is planned.

    read_tuning("auto", "structure", False) -> Tuning()    read_tuning([16, 4], "sizes", True)

    Raises:
        LayoutError: a value is not allowed, or the schedule is not a list of directives.
        TypeError: a value has the wrong type.
    """
    if not isinstance(specialize, str):
        raise TypeError(f'specialize: expected "structure" or "sizes", got {type(specialize).__name__}')
    if specialize not in (STRUCTURE, SIZES):
        raise LayoutError(f'specialize: expected "structure" or "sizes", got {specialize[:40]!r}')
    if isinstance(tune, str) and tune != LIVE:
        raise LayoutError(f'tune: expected True, False or "live", got {tune[:40]!r}')
    if not isinstance(tune, bool | np.bool_ | str):
        raise TypeError(f'tune: expected True, False or "live", got {type(tune).__name__}')
    size = _vector_size(virtual_vector_size)
    if schedule is not None:
        _check_schedule(schedule, "tune" if tune else "virtual_vector_size" if size else "")
    tuning = Tuning(size, specialize, LIVE if tune == LIVE else bool(tune), schedule or "")
    return DEFAULT if tuning == DEFAULT else tuning


def _check_schedule(schedule: Any, other: str) -> None:
    """Check that directives are text, and that no other keyword chooses them."""
    if not isinstance(schedule, str):
        raise TypeError(f"schedule: expected directives as a str, got {type(schedule).__name__}")
    if other:
        raise LayoutError(f"{other} chooses a part of the schedule\n  pass one of the two")
    check_calls(schedule)


def is_plain(
    casting: object,
    threads: object,
    virtual_vector_size: object,
    specialize: object,
    tune: object,
    schedule: object = None,
) -> bool:
    """Whether `casting` and `threads` can be in a cache key, and the other keywords have default values."""
    return (
        virtual_vector_size is AUTO
        and specialize is STRUCTURE
        and tune is False
        and schedule is None
        and type(casting) is str
        and (threads is None or type(threads) is int)
    )


def check_casting(casting: Any) -> None:
    """Check that `casting` is one of NumPy's rules for conversions.

    Raises:
        LayoutError: there is no such rule.
        TypeError: `casting` is not a str.
    """
    if not isinstance(casting, str):
        raise TypeError(f"casting: expected one of {', '.join(CASTINGS)}, got {type(casting).__name__}")
    if casting not in CASTINGS:
        raise LayoutError(f"casting: expected one of {', '.join(CASTINGS)}, got {casting[:40]!r}")


def may_cast(have: np.dtype[Any], want: np.dtype[Any], casting: Any) -> bool:
    """Whether the rule `casting` allows a conversion between dtypes that have an XLA name.

    Raises:
        LayoutError, TypeError: as `check_casting`.
    """
    check_casting(casting)
    if have == want:
        return True
    if casting == SAME_KIND:  # NumPy allows float32 to int4, because it knows no kind for types of ml_dtypes
        before, after = (_KINDS.index(from_numpy(dtype).kind) for dtype in (have, want))
        return before <= after
    return np.can_cast(have, want, casting)


def casting_error(have: np.dtype[Any], want: np.dtype[Any], casting: str, sides: str) -> LayoutError:
    """The error for a conversion that `casting` forbids; `sides` names the dtypes in the message."""
    if not np.can_cast(have, want, "unsafe"):
        return LayoutError(
            f"{sides}, and NumPy has no such conversion\n  convert in two steps, e.g. through int8"
        )
    enough = SAME_KIND if may_cast(have, want, SAME_KIND) else "unsafe"
    return LayoutError(
        f"{sides}, and casting={casting!r} forbids the conversion\n"
        f"  use the same dtype, or pass casting={enough!r}"
    )


def _vector_size(size: Any) -> tuple[Size, ...] | None:
    if isinstance(size, str) and size == AUTO:
        return None
    with compiler_lock:  # few processes need it
        from codegen import read_vector_sizes

    return read_vector_sizes(size, 2, _A_SIZE)
