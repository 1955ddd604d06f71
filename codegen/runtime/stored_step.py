"""One box of a copy with a kernel and arguments that the store noted: what calls need, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from codegen.runtime.kernel import Kernel
from codegen.support.dataclasses import dataclass

if TYPE_CHECKING:  # these steps exist so that no schedule is loaded
    from codegen.runtime.step import Step


@dataclass(frozen=True)
class StoredStep:
    """The part of a `Step` that runs; `again` compiles the rest, for inspection.

    sizes        the values of the kernel's arguments, none of which is an address
    unit_bits    the unit of the addresses that the kernel receives: 8 for bytes, 1 for bits
    loop_stride  destination stride of the first loop, in units; 0 without loops
    """

    kernel: Kernel
    sizes: tuple[tuple[str, int], ...]
    scratch_bytes: int
    unit_bits: int
    loop_stride: int
    again: Callable[[], Step] = field(compare=False, repr=False)

    @property
    def given(self) -> dict[str, int]:
        """The values by the names of their arguments."""
        return dict(self.sizes)

    @property
    def compiled(self) -> Step:
        """The same step with every stage."""
        return self.again()
