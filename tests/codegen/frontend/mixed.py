"""Random kernels whose numbers change dtype, as Python text: branches, Python numbers, carried locals.

Each kernel has the arguments `x`, `y` and `z`, arrays of any dtypes, the result `out`, an integer `n` and a
float `f`. All random choices come from one function. Python on NumPy's scalars says what a kernel must store.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import Function
from tests.codegen.passes.random_nests import compiled

ARGUMENTS = ("x", "y", "z", "out", "n", "f")
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?")
RAISED = (OverflowError, ZeroDivisionError, TypeError, ValueError, FloatingPointError)
"""What Python raises where a kernel may store anything."""

Pick = Callable[[int], int]
"""pick(n): one of 0 to n - 1."""


@dataclass
class _Text:
    pick: Pick
    integers: list[str]
    lines: list[str] = field(default_factory=list)
    locals: list[str] = field(default_factory=list)

    def one(self, *options: str) -> str:
        return options[self.pick(len(options))]

    def atom(self) -> str:
        match self.pick(8):
            case 0:
                return self.one("i", "n", "f")
            case 1 if self.locals:
                return self.one(*self.locals)
            case 2 | 3:
                return self.one("0", "1", "2", "3", "-1", "0.5", "0.1", "True", "7")
        return f"{self.one('x', 'y', 'z')}[i]"

    def condition(self, depth: int) -> str:
        match self.pick(6):
            case 0:
                return f"i % {self.one('2', '3')} == 1"
            case 1:
                return self.value(depth + 1)
        return f"{self.value(depth + 1)} {self.one('<', '>', '==', '!=', '<=', '>=')} {self.value(depth + 1)}"

    def value(self, depth: int = 0) -> str:
        def part() -> str:
            return self.value(depth + 1)

        match self.pick(17) if depth < 4 else 0:
            case 0 | 1 | 2:
                return self.atom()
            case 3 | 4 | 5:
                return f"({part()} {self.one('+', '-', '*')} {part()})"
            case 6:
                return f"({part()} {self.one('//', '%', '/')} {part()})"
            case 7:
                return self.whole(depth)
            case 8:
                return f"{self.one('abs(', '-(', '+(', '(not ')}{part()})"
            case 9 | 10 | 11:
                return f"({part()} if {self.condition(depth)} else {part()})"
            case 12:
                return f"{self.one('min', 'max', 'np.maximum', 'np.minimum', 'np.add')}({part()}, {part()})"
            case 13:
                return f"({part()} {self.one('and', 'or')} {part()})"
            case 14:
                called = ("float", "bool", "np.float32", "np.int16", "np.uint8", "np.sqrt", "np.square")
                called += ("np.isnan", "np.logical_not", "np.negative")
                return self.one(f"(int({self.atom()}) % 1000)", *(f"{name}({part()})" for name in called))
            case 15:
                return f"({part()} ** {self.one('2', '3', '1', part())})"
        return f"({self.condition(depth)})"

    def whole(self, depth: int) -> str:
        """An integer."""
        if depth >= 4 or not self.pick(3):
            return self.one("1", "2", "5", "i", "n", *(f"{name}[i]" for name in self.integers))
        one, two = self.whole(depth + 1), self.whole(depth + 1)
        return self.one(
            f"({one} {self.one('&', '|', '^', '+', '-')} {two})",
            f"({one} {self.one('<<', '>>')} {self.one('1', '3')})",
            f"~{one}",
            f"({one} if {self.condition(depth)} else {two})",
        )

    def assign(self, name: str, depth: int) -> None:
        """A local, set in one way or in two."""
        indent = "    " * depth
        form = self.pick(3)
        if form == 0 or (form == 1 and name not in self.locals):
            self.lines.append(f"{indent}{name} = {self.value()}")
        else:
            self.lines += [f"{indent}if {self.condition(1)}:", f"{indent}    {name} = {self.value(1)}"]
            if form == 2:
                self.lines += [f"{indent}else:", f"{indent}    {name} = {self.value(1)}"]
        if name not in self.locals:
            self.locals.append(name)

    def kernel(self) -> None:
        """The body: perhaps a local that loops carry, one or two loops, and what is left of the local."""
        starts = ("0", "0.0", "1", "0.1", "True", "n", "f", "x[0]", "np.float32(0)", "-1")
        carried = not self.pick(2)
        if carried:
            self.lines.append(f"    s = {self.one(*starts)}")
            self.locals.append("s")
        self.lines.append("    for i in range(len(out)):")
        for _ in range(self.pick(3)):
            self.assign(self.one("t", "u"), 2)
        inner = carried and not self.pick(4)
        if inner:
            self.lines.append(f"        for j in range({self.one('i', '2', 'n')}):")
        if carried:
            if self.pick(2):
                self.lines.append(f"{'    ' * (2 + inner)}s {self.one('+=', '-=')} {self.value(1)}")
            else:
                self.assign("s", 2 + inner)
        if not carried or self.pick(4):
            self.lines.append(f"        out[i] {self.one('=', '=', '+=')} {self.value()}")
        if carried:
            last = self.one("s", "s", "s * 2", "s / n", "abs(-s)", "s + 0.1", "s - f", "s < 3", "-s")
            self.lines.append(f"    out[0] = {last}")


@dataclass(frozen=True)
class Mixed:
    """A kernel and its arguments. `text` is its source."""

    text: str
    python: Callable[..., Any]
    arguments: tuple[Any, ...]

    def copied(self) -> list[Any]:
        """The arguments of one call, with copies of the arrays."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]

    def wanted(self) -> np.ndarray | None:
        """What Python stores in `out`; None where kernels may store something else.

        That is where Python raises, makes an integer of more than 64 bits or a complex number, or converts a
        float that an integer cannot hold.
        """
        given = self.copied()
        with np.errstate(all="ignore", invalid="raise"), warnings.catch_warnings(action="ignore"):
            try:
                sys.settrace(_checked)
                self.python(*given)
            except RAISED:
                return None
            finally:
                sys.settrace(None)
        return given[3]  # type: ignore[no-any-return]

    def read(self) -> Function:
        """The kernel for these arguments.

        Raises:
            KernelError: kernels refuse it.
        """
        named = zip(ARGUMENTS, self.arguments, strict=True)
        return read_function(self.python).typed([argument(name, value) for name, value in named])

    def interpreted(self) -> np.ndarray:
        """What the kernel stores in `out`."""
        function, given = self.read(), self.copied()
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            interpret(function, given)
        return given[3]  # type: ignore[no-any-return]


def _checked(frame: FrameType, event: str, value: object) -> Any:
    """Raise for a local that kernels do not have: a trace function."""
    for held in frame.f_locals.values() if event != "call" else ():
        if isinstance(held, complex | np.complexfloating) or (isinstance(held, int) and abs(held) >= 2**63):
            raise OverflowError(held)
    return _checked


def mixed(pick: Pick) -> Mixed:
    """A kernel, with random choices by `pick`."""
    arrays = {name: _array(pick, DTYPES[pick(len(DTYPES))], 6) for name in "xyz"}
    text = _Text(pick, [name for name, array in arrays.items() if array.dtype.kind in "iu"])
    text.kernel()
    source = "\n".join([f"def drawn({', '.join(ARGUMENTS)}):", *text.lines, ""])
    return made(
        source,
        [*arrays.values()],
        np.zeros((6, 3, 1)[pick(3)], DTYPES[pick(len(DTYPES) - 1)]),
        (0, 3, 7, -2)[pick(4)],
        (0.0, 0.1, 2.5, -3.0)[pick(4)],
    )


def made(source: str, arrays: list[np.ndarray], *others: Any) -> Mixed:
    """A kernel from its source."""
    return Mixed(source, compiled(source), (*arrays, *others))


def _array(pick: Pick, name: str, size: int) -> np.ndarray:
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([pick(2) for _ in range(size)], dtype)
    if dtype.kind == "f":
        return np.array([(pick(40) - 20) * 0.3 for _ in range(size)]).astype(dtype)
    ends = np.iinfo(dtype)
    most = min(int(ends.max), 2**63 - 1)
    values = (0, 1, 2, 3, 5, most, ends.min, ends.max // 2, max(ends.min, -1), 42, 99)
    return np.array([values[pick(len(values))] for _ in range(size)], dtype)


def alike(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether two arrays have the same bytes, up to the payloads of NaN."""
    if one.dtype.kind != "f":
        return bool((one == two).all())
    nan = np.isnan(one)
    return bool((nan == np.isnan(two)).all()) and one[~nan].tobytes() == two[~nan].tobytes()
