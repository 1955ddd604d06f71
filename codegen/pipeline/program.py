"""A copy ready to run on two addresses, whether it was compiled now or noted in the store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from codegen.analysis.ranges import check_disjoint
from codegen.maps.access import AccessMap
from codegen.runtime.float_flags import watched
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from codegen.runtime.threads import run_parts
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass
from codegen.support.locks import compiler_lock

if TYPE_CHECKING:  # a stored program loads neither boxes nor schedules
    from codegen.maps.boxed_copy import BoxedCopy
    from codegen.maps.refine import Box
    from codegen.runtime.step import Step


@dataclass(frozen=True)
class CopyProgram:
    """A copy ready to run.

    src, dst  the maps, in the units of the boxes
    reads     whether any element is copied; otherwise only padding is written
    first     launches that must finish before the others begin, such as those that fill padding
    launches  launches that write disjoint slots
    fallback  whether it replaces a plan that failed
    """

    src: AccessMap
    dst: AccessMap
    reads: bool
    first: tuple[Launch, ...]
    launches: tuple[Launch, ...]
    fallback: bool = False

    def run(
        self,
        src: int,
        dst: int,
        threads: int = 1,
        *,
        alive: object = None,
        flags: list[int] | None = None,
        disjoint: bool = False,
    ) -> None:
        """Copy between two addresses; `alive` is kept referenced until the last thread has finished.

        `flags` receives the floating-point flags that each thread raises. `disjoint` says that the storages
        share no byte, although one may reach into the other.

        Raises:
            KernelError: the storages overlap, or a table leaves them. Then nothing has been written, except
                by boxes before the one whose table is wrong.
        """
        if self.reads and not disjoint:
            (src_low, src_stop), (dst_low, dst_stop) = self.bounds
            check_disjoint((src + src_low, src + src_stop), (dst + dst_low, dst + dst_stop))
        self.prepare(dst)
        for launches in (self.first, self.launches):
            if launches:
                part = partial(run_part, launches, src, dst, alive)
                run_parts(part if flags is None else watched(part, flags), threads)

    def prepare(self, dst: int) -> None:
        """Build the tables and kernels of a copy to that address, before any byte is written.

        Raises:
            KernelError: a kernel could not be built.
        """
        for launch in (*self.first, *self.launches):
            launch.prepare()
            _ = launch.serving(dst).runs.kernel.call

    def pads_only(self) -> CopyProgram:
        """The padding launches of a program compiled with `apart`; `run` then ignores `src`."""
        pads = tuple(x for x in self.launches if x.fill is not None)
        return replace(self, reads=False, launches=pads)

    @property
    def bounds(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Byte ranges of source and destination that every launch is proven to stay within."""
        return self.src.byte_bounds, self.dst.byte_bounds

    @property
    def fills_bytes(self) -> bool:
        """Whether the boxes provably write full bytes only.

        Otherwise a packed copy may share a byte with the next copy. Each reads the byte and writes it back,
        so the two must not run on different threads.
        """
        if self.dst.unit_bits == 8 or not self.reads:
            return True
        return all(_fills_bytes(box, self.dst.width) for box in self.boxed.boxes)

    @lazy
    def boxed(self) -> BoxedCopy:
        """The boxes that the copy was lowered to."""
        with compiler_lock:
            from codegen.frontend.box_copy import box_copy  # which programs that are stored do not need
        return box_copy(self.src, self.dst)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all boxes, padding included."""
        return tuple(launch.step for launch in (*self.first, *self.launches))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that the copy calls."""
        return tuple(dict.fromkeys(x.runs.kernel for x in (*self.first, *self.launches)))


def footprint_bytes(src: AccessMap, dst: AccessMap) -> int:
    """Bytes that a copy between two maps reads and writes, padding included."""
    written = (dst.slots or src.elements) * dst.element_bits
    return (src.elements * src.element_bits + written) // 8


def run_part(launches: tuple[Launch, ...], src: int, dst: int, alive: object, part: int, parts: int) -> None:
    """Run one thread's share of every box; `alive` is only kept referenced."""
    for launch in launches:
        launch.run(src, dst, part, parts)


def _fills_bytes(box: Box, width: int) -> bool:
    """Whether a box's elements, `width` bits each, lie in runs of full bytes."""
    run, steps = width, [box.dst_base]
    for extent, _, step in sorted(box.digits, key=lambda d: abs(d[2])):
        if step == run:
            run *= extent
        elif extent > 1:
            steps.append(step)
    return not box.tables and not run % 8 and not any(step % 8 for step in steps)
