"""One box of a copy with its kernel, and the steps that led to it."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox
from codegen.passes.parametrize import axis_names
from codegen.runtime.kernel import Kernel
from codegen.schedule.copy_nest import CopyNest, offset_tables
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import Table
from codegen.schedule.schedule import Schedule
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One box of a copy on its way to a kernel; every stage is kept for inspection.

    `joined` holds the other boxes, including padding, where one nest covers several.
    """

    box: StridedBox
    schedule: Schedule
    nest: CopyNest
    kernel: Kernel
    sizes: tuple[tuple[str, int], ...]
    joined: tuple[StridedBox, ...] = ()

    @property
    def compiled(self) -> Step:
        """The step itself; a `StoredStep` is compiled again."""
        return self

    @property
    def numbers(self) -> dict[str, int]:
        """The arguments that the nest determines, addresses aside."""
        return dict(self.sizes)

    @property
    def tables(self) -> dict[str, Table]:
        """The tables that belong to the nest, by the arguments that receive their addresses."""
        return {name: table.offsets for name, table in offset_tables(self.nest).items()}

    @property
    def scratch_bytes(self) -> int:
        """Size of the thread's scratch during each call; 0 for none."""
        return int_size(self.nest.scratch_bytes)

    @property
    def unit_bits(self) -> int:
        """The unit of the addresses that the kernel receives: 8 for bytes, 1 for bits."""
        return self.nest.unit_bits

    @property
    def loop_stride(self) -> int:
        """Destination stride of the outer loop that threads share, in units; 0 if they share another one."""
        around = () if self.nest.transposes else self.nest.around
        return next((int_size(x.dst) for x in around if x.axis == self.nest.shared), 0)

    @property
    def boxes(self) -> tuple[StridedBox, ...]:
        """All boxes that the kernel moves."""
        return (self.box, *self.joined)

    @property
    def is_joined(self) -> bool:
        """Whether one nest covers all boxes of a copy; its axes are those of a table."""
        return not self.schedule.loops

    @property
    def axes(self) -> str:
        """Which axes of the boxes the loops of the kernel are."""
        return axis_names(self.nest, self.schedule, self.box)

    def report(self) -> str:
        """The schedule, the boxes, and the nest that moves them."""
        boxes = "\n".join(map(str, self.boxes))
        return f"schedule  {self.schedule}\nkernel    {self.kernel.name}\n\n{boxes}\n{self.nest}"
