"""What watches a compilation: it receives the name of each pass, and what the pass returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from codegen.ir.nodes import Function
from codegen.ir.strided_box import StridedBox
from codegen.schedule.transfers import TransferNest

Stage: TypeAlias = StridedBox | TransferNest | Function
"""What is compiled, after one of the passes."""

Observer: TypeAlias = Callable[[str, Stage], None]


def nobody(name: str, stage: Stage) -> None:
    """An observer that does nothing."""
