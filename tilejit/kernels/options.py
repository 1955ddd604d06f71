"""Read and check the options of kernels and expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, Literal, TypeAlias, TypedDict, get_args, get_type_hints

import numpy as np

from codegen import (
    MOST_DIMS,
    KernelValueError,
    Size,
    read_loop_directives,
    read_vector_sizes,
    shown,
)
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.promises import NoAlias
from tilejit.programs.tuning import AUTO, Specialize

TailKind: TypeAlias = Literal["shift", "clamp", "mask", "scalar", "assume_divisible"]
OnFail: TypeAlias = Literal["scalar", "warn", "raise"]
VectorizeAt: TypeAlias = Literal["before_tile", "after_tile"]
IndexBounds: TypeAlias = Literal["check", "mask"]
_WORDS = {
    "tail": get_args(TailKind),
    "on_fail": get_args(OnFail),
    "vectorize_at": get_args(VectorizeAt),
    "specialize": get_args(Specialize),
    "index_bounds": get_args(IndexBounds),
}
_TRUTHS = ("vectorize_reductions", "fastmath", "tune", "vectorize_scans", "verify")
_A_SIZE = 'write 256, (32, 256), "2*hw", "l1/4", "2*cores*hw" or "auto"'


class LoopKeywords(TypedDict, total=False):
    """The keywords of `tilejit.kernel` and `tilejit.elementwise`, which `tilejit.kernel` describes."""

    virtual_vector_size: int | str | Sequence[int | str]
    fastest_varying: int | Sequence[int] | None
    vectorize_reductions: bool
    tail: TailKind
    on_fail: OnFail
    vectorize_at: VectorizeAt
    parallel: bool | int | None
    fastmath: bool
    tune: bool


class KernelKeywords(LoopKeywords, total=False):
    """The keywords of `tilejit.kernel`."""

    specialize: Specialize
    vectorize_scans: bool
    no_alias: bool | str | Sequence[str]
    verify: bool
    index_bounds: IndexBounds
    schedule: str | None


def options_signature(keywords: type[LoopKeywords], **defaults: Any) -> Signature:
    """The signature of a function that takes the keywords, for `help` and notebooks."""
    default = LoopOptions(**defaults)
    function = Parameter("function", Parameter.POSITIONAL_ONLY, default=None)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(default, name), annotation=kind)
        for name, kind in get_type_hints(keywords).items()
    ]
    return Signature([function, *options])


def read_options(what: str, keywords: type[LoopKeywords], given: Mapping[str, Any]) -> LoopOptions:
    """Read and check the options of `tilejit.kernel` and `tilejit.elementwise`.

    virtual_vector_size=256 -> LoopOptions((256,))    tail="none" -> KernelValueError

    Args:
        what: the name of the function in messages.
        keywords: the options that it has.
        given: the options of the call.

    Raises:
        KernelValueError, ScheduleError: an option has an invalid value.
        TypeError: an option does not exist, or a value has the wrong type.
    """
    known = [*get_type_hints(keywords)]
    for name in given:
        if name not in known:
            raise TypeError(f"{what} has no option {name}\n  it has {', '.join(known)}")
    requested = LoopOptions(**given)
    _check_schedule(requested)
    for name, words in _WORDS.items():
        _check_word(name, getattr(requested, name), words)
    sizes, varying = _sizes(requested.virtual_vector_size), requested.fastest_varying
    if varying is not None:
        varying = _dimensions(varying)
        if len(varying) != (len(sizes) if isinstance(sizes, tuple) else 1):
            raise KernelValueError(
                f"fastest_varying: expected one dimension for each size, got {len(varying)}\n"
                "  pass as many as virtual_vector_size has, such as (1, 0) for (8, 32)"
            )
    truths: dict[str, Any] = {name: read_truth(name, getattr(requested, name)) for name in _TRUTHS}
    return replace(
        requested,
        virtual_vector_size=sizes,
        fastest_varying=varying,
        parallel=_threads(requested.parallel),
        no_alias=_no_alias(requested.no_alias),
        **truths,
    )


_SCHEDULED = ("virtual_vector_size", "fastest_varying", "tail", "vectorize_at", "tune")
"""The options that a schedule replaces."""


def _check_schedule(requested: LoopOptions) -> None:
    """Check a schedule as far as it does not depend on the loops, and that no option says the same."""
    if requested.schedule is None:
        return
    if not isinstance(requested.schedule, str):
        raise TypeError(f"schedule: expected a str, got {type(requested.schedule).__name__}")
    for name in _SCHEDULED:
        if getattr(requested, name) != getattr(LoopOptions(), name):
            raise KernelValueError(f"{name} is part of the schedule\n  pass one of the two")
    read_loop_directives(requested.schedule)


def _check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        found = f"{value!r:.40}" if isinstance(value, str) else f"of type {type(value).__name__}"
        raise KernelValueError(f"{name}: unknown value {found}\n  pass one of {', '.join(words)}")


def read_truth(name: str, value: Any) -> bool:
    """Read an option that must be True or False.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}")
    return bool(value)


def _no_alias(value: Any) -> NoAlias:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"no_alias: expected True, False or names of arrays, got {type(value).__name__}")
    return tuple(names)


def _threads(value: Any) -> bool | int | None:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    threads = _whole("parallel", value)
    if threads < 1:
        raise KernelValueError(
            f"parallel: expected at least one thread, got {shown(threads)}\n  pass 1 or more, False or None"
        )
    return threads


def _sizes(value: Any) -> tuple[Size, ...] | str:
    return AUTO if isinstance(value, str) and value == AUTO else read_vector_sizes(value, MOST_DIMS, _A_SIZE)


def _dimensions(value: Any) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    numbers = tuple(_whole("fastest_varying", each) for each in values)
    for number in numbers:
        if number < 0:
            raise KernelValueError(
                f"fastest_varying: expected dimensions of at least 0, got {shown(number)}\n"
                "  count memory dimensions from the innermost, 0"
            )
    return numbers


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool | np.ndarray) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name}: expected an integer, got {type(value).__name__}")
    return int(value.__index__())
