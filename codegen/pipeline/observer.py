"""The observer of a compilation, which receives the name and the result of each pass.

It also receives each schedule, by the name of the function of `schedule/` that chose it: "choose",
"choose_joined", or "misaligned".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from codegen.ir.strided_box import StridedBox
from codegen.schedule.schedule import Schedule
from codegen.schedule.transfers import TransferNest

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.nodes import Function
    from codegen.passes.parametrize import Parametrized

Form: TypeAlias = "StridedBox | Schedule | TransferNest | Parametrized | Function"
"""The form after one of the passes, or the schedule that the following passes obey."""

Observer: TypeAlias = Callable[[str, Form], None]


def nobody(name: str, form: Form) -> None:
    """An observer that does nothing."""
