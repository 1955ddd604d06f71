"""Texts of MLIR, read."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from codegen import Function, KernelError, cached, dataclass
from tilejit.mlir.functions import read_function
from tilejit.mlir.places import mistake
from tilejit.mlir.program import Program
from tilejit.mlir.xdsl_text import operations


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of a text, by name: `parse(text)["vector_add_2d"]`."""

    text: str
    programs: tuple[Program, ...]

    @property
    def functions(self) -> tuple[Function, ...]:
        """The kernels; what the text allocates stands behind the arguments that it declares."""
        return tuple(p.function for p in self.programs)

    def __getitem__(self, name: str) -> Program:
        """A function by its name, with or without MLIR's `@`.

        Raises:
            KernelError: there is none.
            TypeError: it is not a name.
        """
        if not isinstance(name, str):
            raise TypeError(f"a function's name is a str, not {type(name).__name__}")
        for program in self.programs:
            if program.name == name.removeprefix("@"):
                return program
        names = ", ".join(p.name for p in self.programs)
        raise KernelError(
            f"the text has no function {name[:80]!r}\n  write one of {names or 'those it defines'}"
        )


@cached(64)
def parse(text: str) -> Module:
    """Read the functions of a text.

    "func.func @scale(%A: memref<?xf32>) { … }" -> Module with `.functions`

    Raises:
        KernelError: the text is not MLIR, or has what kernels cannot say; with its line and a caret.
        TypeError: it is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text of MLIR is a str, not {type(text).__name__}")
    tops, places = operations(text)
    programs: list[Program] = []
    for op in tops:
        if not isinstance(op, FuncOp):
            raise mistake(
                text, places.get(op, 0), f"{op.name} is not supported outside functions", "take it out"
            )
        if op.body.blocks:
            programs.append(read_function(op, text, places))
    return Module(text, tuple(programs))
