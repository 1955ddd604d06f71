"""Operations that act on the inner layout of a composed one, as CuTe's do: f(A o 0 o B) = A o 0 o f(B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from tilejit.cute.layout import is_composed

F = TypeVar("F", bound=Callable[..., Any])


def of_inner(operation: F) -> F:
    """The operation, of composed layouts too: it only chooses coordinates, so that A sees the same offsets.

    select of Sw<3,4,3> o 0 o (8,64):(64,1) at 1 -> Sw<3,4,3> o 0 o (64):(1)
    """

    @wraps(operation)
    def applied(*given: Any, **by_name: Any) -> Any:
        if given and is_composed(given[0]):
            layout, *others = given
            return replace(layout, inner=applied(layout.inner, *others, **by_name))
        return operation(*given, **by_name)

    return cast(F, applied)
