"""The declaration of an instruction: its meaning, and facts that tests compare with machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from codegen.ir.element_types import bits_of
from codegen.support.cpu import LEVELS
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.values import Value, VectorShape

Shapes: TypeAlias = "Mapping[int, tuple[VectorShape, ...]]"
"""For each number of bits of an element, the shapes of the super-vector that an operation takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about each register-level operation, of copies and on numbers, which tests check.

    Attributes:
        sets_flags: whether it may set, at some CPU level, one of the floating-point status flags that NumPy
            reads.
        levels: the CPU levels at which it costs at most `cost`. At other levels, LLVM builds it from more
            instructions.
        cost: instructions that compute, per register, for the most expensive elements and shape. Loads,
            stores and moves are not counted.
    """

    sets_flags: bool = False
    levels: tuple[str, ...] = LEVELS
    cost: int = 0


class NoInstructionError(AssertionError):
    """No instruction has the meaning of a super-vector statement: a bug, unless a user chose the lanes."""


@dataclass(frozen=True, slots=True)
class ActiveCount:
    """The operand of a memory instruction that says how many bytes it acts on.

    Attributes:
        operand: the position of the operand.
        most: the largest number of bytes; None if any.
    """

    operand: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Instruction(Facts):
    """A register-level operation of copies, its meaning, and the facts that schedules and tests use.

    The cost is that of a register of the operand or of the result, whichever has more. A memory instruction
    has none.

    Attributes:
        name: the name in `Op` and `Call`, and in the source of kernels.
        meaning: the operation as a loop over scalars.
        shapes: the super-vectors that it takes; none for a memory instruction.
        active: the operand that counts bytes, those of packed elements if only one side is packed; None for
            an instruction that touches no memory.
        permutes: whether it only puts the elements of its operand in another order.
        touched: for each operand that is a buffer, by position, how many of its bytes are touched per byte
            counted: `pack_part_4` writes 1 and reads 2.
    """

    name: str
    meaning: Callable[..., Any]
    shapes: Shapes = field(default_factory=lambda: MappingProxyType({}))
    active: ActiveCount | None = None
    permutes: bool = False
    touched: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def check_operands(self, operands: Sequence[Value], *, selected: bool = True) -> None:
        """Raise if the operands of an `Op` are not of the declared shapes.

        selected  False for super-vectors of any shape, if the instruction takes single elements

        Raises:
            NoInstructionError: an operand has other elements, or another shape.
        """
        for operand in operands:
            shapes = self.shapes.get(bits_of(operand.dtype), ())
            if operand.shape not in shapes and (selected or () not in shapes):
                raise NoInstructionError(f"{self.name} does not take {operand.dtype}{list(operand.shape)}")

    def run(self, *operands: Any) -> Any:
        """Run the meaning.

        Raises:
            KernelError: more lanes are active than the instruction can handle.
        """
        if self.active:
            count, most = operands[self.active.operand], self.active.most
            if count < 0 or (most is not None and count > most):
                raise KernelError(f"{self.name} of {count} bytes, but it takes 0 to {most or 'any number'}")
        return self.meaning(*operands)
