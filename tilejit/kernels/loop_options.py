"""The checked options of kernels and expressions, and the sizes that they request."""

from __future__ import annotations

from dataclasses import replace

from codegen import ELEMENT_BYTES, ArrayArg, Function, Size, dataclass, machine, sizes_in_elements
from tilejit.kernels.promises import NoAlias
from tilejit.programs.tuning import AUTO

AUTO_REGISTERS = 4
"""The registers of an "auto" super-vector."""


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """The checked options of `tilejit.kernel`, whose docstring describes them.

    Attributes:
        auto_registers: the registers of an "auto" super-vector.
    """

    virtual_vector_size: tuple[Size, ...] | str = AUTO
    fastest_varying: tuple[int, ...] | None = None
    vectorize_reductions: bool = False
    tail: str = "shift"
    on_fail: str = "scalar"
    vectorize_at: str = "before_tile"
    parallel: bool | int | None = None
    fastmath: bool = False
    specialize: str = "structure"
    tune: bool = False
    vectorize_scans: bool = False
    no_alias: NoAlias = False
    verify: bool = False
    index_bounds: str = "check"
    schedule: str | None = None
    auto_registers: int = AUTO_REGISTERS

    @property
    def threads(self) -> int | None:
        """The number of threads for `parallel`; None if the size of the arrays decides."""
        return None if self.parallel is None or self.parallel is True else max(self.parallel, 1)

    @property
    def is_auto(self) -> bool:
        """Whether TileJIT chooses the size of super-vectors, or a schedule has them."""
        return self.virtual_vector_size == AUTO

    @property
    def reductions_in_lanes(self) -> bool:
        """Whether reductions may become super-vectors, which changes the rounding of floats."""
        return self.vectorize_reductions or self.fastmath

    @property
    def rank(self) -> int:
        """The dimensions of a super-vector."""
        return len(self.virtual_vector_size) if isinstance(self.virtual_vector_size, tuple) else 1

    def of_rank(self, rank: int) -> LoopOptions:
        """The options for that many loops: super-vectors of more dimensions lose their outer ones."""
        if self.rank <= rank:
            return self
        sizes, fastest = self.virtual_vector_size, self.fastest_varying
        return replace(
            self,
            virtual_vector_size=sizes[-rank:],
            fastest_varying=fastest if fastest is None else fastest[-rank:],
        )

    @property
    def machine_sizes(self) -> str:
        """The requested sizes if they depend on the machine, otherwise ""."""
        sizes = self.virtual_vector_size
        if isinstance(sizes, str) or all(isinstance(each, int) for each in sizes):
            return ""
        return ", ".join(map(str, sizes))

    def sizes(self, function: Function) -> tuple[int, ...]:
        """The super-vector's shape; sizes in terms of the machine count elements of the widest array."""
        widths = [ELEMENT_BYTES[a.dtype] for a in function.arguments if isinstance(a, ArrayArg)]
        widest = max(widths, default=8)
        if isinstance(self.virtual_vector_size, tuple):
            return sizes_in_elements(self.virtual_vector_size, 8 * widest)
        return (self.auto_registers * (machine().register_bytes // widest),)
