"""One box of a copy as its launch plan describes it: the kernel and its arguments, which calls need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from codegen.runtime.kernel import Kernel
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass

if TYPE_CHECKING:  # these steps exist so that no schedule is loaded
    from numpy.typing import NDArray

    from codegen.runtime.step import Step


@dataclass(frozen=True)
class StoredStep:
    """The part of a `Step` that runs; `again` compiles the rest.

    given        the values of the kernel's arguments
    listed       the tables that other arguments receive the addresses of
    unit_bits    the unit of the addresses that the kernel receives: 8 for bytes, 1 for bits
    loop_stride  destination stride of the first loop, in units; 0 without loops
    """

    kernel: Kernel
    given: tuple[tuple[str, int], ...]
    listed: tuple[tuple[str, tuple[int, ...]], ...]
    scratch_bytes: int
    unit_bits: int
    loop_stride: int
    again: Callable[[], Step] = field(compare=False, repr=False)

    @property
    def numbers(self) -> dict[str, int]:
        """The values by the names of their arguments, addresses aside."""
        return dict(self.given)

    @lazy
    def tables(self) -> dict[str, NDArray[np.int64]]:
        """The tables by the names of their arguments."""
        return {name: np.array(numbers, np.int64) for name, numbers in self.listed}

    @property
    def compiled(self) -> Step:
        """The same step with every stage."""
        return self.again()

    def __getstate__(self) -> dict[str, object]:
        """The fields only, as of launches."""
        return {name: value for name, value in vars(self).items() if name != "tables"}
