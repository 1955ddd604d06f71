"""What instructions declare: their meaning in every shape, floating-point flags, and costs at CPU levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
import pytest

from codegen.backend.object_loader import load_object
from codegen.ir.buffers import Buffer
from codegen.ir.instruction import NoInstructionError
from codegen.ir.instructions import conversion, instruction, instructions, is_instruction, takes
from codegen.ir.values import Local
from codegen.runtime.float_flags import ALL_FLAGS, CLEAR_FLAGS, FLAGS_SUPPORTED, TEST_FLAGS
from codegen.runtime.kernel import KERNEL_PROTOTYPES, NativeFunction, copy_operands
from codegen.support.cpu import host_levels, level_named
from codegen.support.errors import KernelError
from tests.codegen.simd.instruction_cases import (
    TURNS,
    SmallKernel,
    instruction_cases,
    operation_case,
)
from tests.codegen.simd.objects import object_code
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded

NAMES = [each.name for each in instructions()]
OF_NUMBERS = ("repeated_line", "elements_to_line")
OPERATIONS = [each.name for each in instructions() if each.shapes and each.name not in OF_NUMBERS]
PLACEMENTS = ((False, 0), (True, 0), (False, 16), (True, 3))


def native(kernel: SmallKernel, level: str) -> NativeFunction:
    return KERNEL_PROTOTYPES[False](load_object(kernel.name, object_code(kernel, level_named(level))))


@pytest.mark.parametrize("level", host_levels())
@pytest.mark.parametrize("name", few_by_default(NAMES, 2))
def test_each_shape_alone(name: str, level: str) -> None:
    """The kernel of one instruction writes what its meaning says, flush against guard pages.

    Shapes take turns at lower levels.
    """
    source, target = Guarded(1 << 16), Guarded(1 << 16)
    cases, turn = instruction_cases(name), host_levels().index(level)
    chosen = cases[turn % TURNS :: TURNS] if turn else cases
    runs = {kernel: native(kernel, level) for kernel in {case.kernel for case in chosen}}
    for case in chosen:
        sizes = np.array(case.sizes, np.int64)
        for at_end, gap in PLACEMENTS:
            src = source.place(len(case.src), at_end=at_end, gap=gap)
            dst = target.place(len(case.before), at_end=at_end, gap=gap)
            src[:], dst[:] = case.src, case.before
            runs[case.kernel](copy_operands(src.ctypes.data, dst.ctypes.data), 0, sizes.ctypes.data, 0, 0)
            assert np.array_equal(dst, case.after), case
            assert target.untouched(), case


FLOATS = (0.1, 1.0, -2.0, 1e-40, 1e-300, 65520.0, 3e9, 1e19, 1e300, np.inf, np.nan)
SIGNALING = {32: 0x7F80_0001, 64: 0x7FF0_0000_0000_0001}
INTEGERS = (0, 1, 127, 128, 255, 65_519, 65_520, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


def patterns(bits: int) -> Iterable[int]:
    """The bits of elements: all if they are short, else floats of each kind and integers at the limits."""
    if bits <= 16:
        return range(1 << bits)
    with np.errstate(over="ignore", under="ignore"):
        floats = np.array(FLOATS, f"f{bits // 8}").view(f"u{bits // 8}").tolist()
    return [SIGNALING[bits], *floats, *(number for number in INTEGERS if number < 1 << bits)]


@pytest.mark.skipif(not FLAGS_SUPPORTED, reason="the C library has no feclearexcept")
@pytest.mark.parametrize("level", host_levels())
@pytest.mark.parametrize("name", few_by_default(OPERATIONS, 8))
def test_flags(name: str, level: str) -> None:
    """If a flag is declared, some element sets it; otherwise none does. Moves also read signaling NaNs."""
    operation = instruction(name)
    bits = max(operation.shapes)
    shape = max(operation.shapes[bits], key=lambda shape: (len(shape) == 1, prod(shape)))
    case = operation_case(operation, bits, shape)
    run, sizes, dst = native(case.kernel, level), np.array(case.sizes, np.int64), case.before.copy()
    width = min(bits, 64) // 8
    every = np.array(list(patterns(8 * width)), f"u{width}").view(np.uint8)
    lanes = max(len(case.src) // width, 1) * width
    assert CLEAR_FLAGS is not None
    assert TEST_FLAGS is not None
    CLEAR_FLAGS(ALL_FLAGS)
    for start in range(0, len(every), lanes):
        src = np.resize(every[start : start + lanes], len(case.src))
        run(copy_operands(src.ctypes.data, dst.ctypes.data), 0, sizes.ctypes.data, 0, 0)
    raised = TEST_FLAGS(ALL_FLAGS)
    assert bool(raised) == operation.sets_flags


@pytest.mark.parametrize("name", [each.name for each in instructions() if each.active])
def test_memory_instructions_touch_what_they_declare(name: str) -> None:
    """They touch all bytes for a count, and no others."""
    called = instruction(name)
    assert called.active
    for count in (1, 5, called.active.most or 100):
        sizes = {k: count * each for k, each in called.touched.items()}
        numbers = [count if k == called.active.operand else 0 for k in range(4)]

        def operands(sizes: Mapping[int, int], numbers: Sequence[int] = numbers) -> list[Buffer | int]:
            buffers = {k: Buffer(np.zeros(size, np.uint8)) for k, size in sizes.items()}
            return [buffers.get(k, number) for k, number in enumerate(numbers)][: 4 if "fill" in name else 3]

        called.run(*operands(sizes))
        for k, size in sizes.items():
            with pytest.raises(KernelError, match="outside of"):
                called.run(*operands({**sizes, k: size - 1}))


def test_unknown_instructions_are_refused() -> None:
    assert is_instruction("deinterleaved_3")
    assert takes("deinterleaved_3", 16)
    assert not takes("deinterleaved_3", 128)
    assert not takes("deinterleaved_5", 8)
    assert conversion("swap u32", "u32").name == "swap_32"
    assert conversion("s8", "pred").name == "convert_i8_to_i1"
    with pytest.raises(KernelError, match="unknown instruction convert_f32_to_u32"):
        conversion("f32", "u32")


def test_other_shapes_and_counts_are_refused() -> None:
    with pytest.raises(NoInstructionError, match=r"transposed does not take bits8\[3, 3\]"):
        instruction("transposed").check_operands([Local("block", "bits8", (3, 3))])
    with pytest.raises(KernelError, match="copy_part of 64 bytes"):
        instruction("copy_part").run(None, None, 64)
    with pytest.raises(KernelError, match="copy_block of -1 bytes"):
        instruction("copy_block").run(None, None, -1)
