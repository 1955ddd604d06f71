"""The observer of a compilation, which receives the name and the result of each pass.

It also receives each schedule, by the name of the function of `schedule/` that chose it: "choose",
"choose_joined", or "misaligned".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from codegen.ir.strided_box import StridedBox
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.schedule import Schedule
from codegen.support.settings import settings

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.nodes import Function
    from codegen.passes.parametrize import Parametrized

Form: TypeAlias = "StridedBox | Schedule | CopyNest | Parametrized | Function"
"""The form after one of the passes, or the schedule that the following passes obey."""

Observer: TypeAlias = Callable[[str, Form], None]

T = TypeVar("T")


def nobody(name: str, form: Form) -> None:
    """An observer that does nothing."""


def verifying(observe: Observer = nobody) -> Observer:
    """An observer of functions of loops, which are also verified if the settings ask for it."""
    before: Form | None = None

    def verify_and_observe(name: str, form: Form) -> None:
        nonlocal before
        if form != before:  # many passes change nothing
            before = verified(form)
        observe(name, form)

    return verify_and_observe if settings().verify_passes else observe


def verified(form: T) -> T:
    """A function of loops, verified if the settings ask for it."""
    if settings().verify_passes:
        from codegen.ir.verifier import verify

        verify(form)  # type: ignore[arg-type]
    return form
