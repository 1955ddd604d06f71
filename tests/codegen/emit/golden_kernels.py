"""The kernels of the golden files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from codegen import ArrayArg, Directive, LoopKernel, Stream, read_function
from codegen.pipeline.loops import loops_source
from codegen.pipeline.passes import lower
from codegen.schedule.choose_registers import choose_registers
from codegen.schedule.machine import Machine
from tests.codegen.emit.golden_texts import KERNEL, SCHEDULES, Part, observing
from tests.tools.goldens import MACHINE
from tilejit.kernels.loop_kernels import LoopKernels
from tilejit.kernels.loop_options import LoopOptions
from tilejit.programs.tuning import AUTO


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with a golden file.

    arguments  the dtypes and ranks of its arrays
    options    those of `LoopOptions`
    form       which kernel of `LoopKernels`
    machine, in_brief  as in `Copy`
    """

    function: Callable[..., Any]
    arguments: str
    options: Mapping[str, Any] = field(default_factory=dict)
    form: Literal["kernel", "streaming_kernel", "tiled_kernel"] = "kernel"
    machine: Machine = MACHINE
    in_brief: bool = False

    @property
    def title(self) -> str:
        """The function, its arguments, its options, and which of its kernels."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{self.function.__name__}({self.arguments}){options}, {self.form}"

    def kernels(self, size: int | tuple[int, int] | None) -> LoopKernels:
        """Its kernels, with a `virtual_vector_size` or without."""
        arrays = [text.split(":") for text in self.arguments.split()]
        arguments = [ArrayArg("", dtype, int(rank), "C") for dtype, rank in arrays]
        sizes = AUTO if size is None else size if isinstance(size, tuple) else (size,)
        options = LoopOptions(virtual_vector_size=sizes, **self.options)
        return LoopKernels(read_function(self.function).typed(arguments), options)

    def parts(self, size: int | tuple[int, int] | None) -> list[Part]:
        """What the compiler makes of it; passes run again to be observed."""
        parts: list[Part] = []
        observe, kernels, width = observing(parts), self.kernels(size), self.machine.register_bytes
        made: LoopKernel = getattr(kernels, self.form)
        observe("function", kernels.function)
        reports = [f"{loop.index}: {str(loop).partition(': ')[2]}" for loop in kernels.vectorized.loops]
        parts.append(Part("loops", "\n".join(reports), is_result=True))
        parts.append(Part(SCHEDULES["choose"], kernels.schedule, is_result=True))
        observe("super_vectorize", kernels.vectorized.function)
        observe("tile", made.function)
        directives: tuple[Directive, ...] = kernels.directives
        if self.form == "streaming_kernel":
            directives = (*directives, Stream("full"))
        if self.form == "tiled_kernel":
            directives = (*kernels.transposed_tiles, *directives)
        lower(made.function, choose_registers(made.function, width, directives), observe)
        assert loops_source(made.function, directives, width) == made.emitted
        parts.append(Part(KERNEL, made.source, is_result=True))
        return parts


def blend(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 0.25 + b[j] if a[i, j] > 0.5 else 0.0


def total(a):
    s = np.float32(0)
    for i in range(3, a.shape[0]):
        s += a[i]
    return s


def transposed(a, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[j, i]


def backward(a, c):
    for i in range(c.shape[0]):
        c[i] = a[c.shape[0] - 1 - i] * 2


def in_pairs(a, b, c):
    for i in range(a.shape[0]):
        c[2 * i] = a[i]
        c[2 * i + 1] = b[i]


def in_threes(a, c):
    for i in range(c.shape[1]):
        for j in range(3):
            c[j, i] = a[3 * i + j]


def looked_up(a, ids, c):
    for i in range(c.shape[0]):
        c[i] = a[ids[i]]


def stretched(a, c):
    for j in range(c.shape[0]):
        c[j] = a[j // 2]


def running(a):
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1]


def scanned(a, c):
    s = np.float32(0)
    for i in range(a.shape[0]):
        s += a[i]
        c[i] = s


def scanned_before(a, c):
    s = a[0]
    for i in range(a.shape[0]):
        c[i] = s
        s = max(s, a[i])


KERNELS = {
    "kernel_blend": Kernel(blend, "f32:2 f32:1 f32:2"),
    "kernel_blend_streamed": Kernel(blend, "f32:2 f32:1 f32:2", form="streaming_kernel", in_brief=True),
    "kernel_blend_in_tiles": Kernel(
        blend, "f32:2 f32:1 f32:2", {"vectorize_at": "after_tile", "tail": "scalar"}, in_brief=True
    ),
    "kernel_blend_divisible": Kernel(blend, "f32:2 f32:1 f32:2", {"tail": "assume_divisible"}, in_brief=True),
    "kernel_sum": Kernel(total, "f32:1", {"vectorize_reductions": True}),
    "kernel_transposed": Kernel(transposed, "f32:2 f32:2"),
    "kernel_transposed_in_tiles": Kernel(transposed, "f32:2 f32:2", form="tiled_kernel", in_brief=True),
    "kernel_reversed": Kernel(backward, "f32:1 f32:1"),
    "kernel_interleaved": Kernel(in_pairs, "f32:1 f32:1 f32:1"),
    "kernel_deinterleaved": Kernel(in_threes, "f32:1 f32:2"),
    "kernel_looked_up": Kernel(looked_up, "f32:1 i64:1 f32:1"),
    "kernel_stretched_shifted": Kernel(stretched, "f32:1 f32:1", {"tail": "shift"}, in_brief=True),
    "kernel_running_sum": Kernel(running, "f32:1"),
    "kernel_scan": Kernel(scanned, "f32:1 f32:1", {"vectorize_scans": True}),
    "kernel_scan_before_scalar": Kernel(
        scanned_before, "f32:1 f32:1", {"vectorize_scans": True, "tail": "scalar"}, in_brief=True
    ),
}
"""Kernels of every kind by the names of their golden files."""
