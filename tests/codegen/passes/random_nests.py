"""Random functions of affine loops, as the text of a Python function, and arrays to call it with.

Loops have steps of both signs, bounds with outer indices, `min` and `max`; bodies load and store arrays of
several dtypes, ranks and orders, under conditions too, carry locals, use indices as numbers and reduce.
Subscripts stay in bounds by construction: indices are 0 to HIGHEST, and constants compensate for negative
factors. Some are elements of integer arrays. All random choices come from one function, so Hypothesis and a
seeded generator both work.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HIGHEST = 13
"""The largest index of any loop."""

EXTENTS = {1: (72,), 2: (44, 45), 3: (18, 17, 19)}
LEAST = 17
"""The fewest elements along a dimension."""

DTYPES = ("f4", "f4", "f8", "i4", "i8", "u1", "i2", "f2")
ARRAYS = "ABCDEIJ"
DATA = "ABCDE"
"""The arrays of numbers. Elements of I and J are subscripts: up to HIGHEST in I, also negative in J."""

Pick = Callable[[int], int]
"""pick(n): one of 0 to n - 1."""


@dataclass(frozen=True)
class Nest:
    """A Python function and its arguments. `text` is the generated source."""

    text: str
    python: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    n: int

    def copied(self) -> list[Any]:
        """The arguments of one call, with copies of the arrays in their memory order."""
        return [*(a.copy("K") for a in self.arrays), self.n]


@dataclass
class _Text:
    pick: Pick
    ranks: dict[str, int]
    lines: list[str] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)
    locals: list[str] = field(default_factory=list)
    made: int = 0

    def one(self, *options: str) -> str:
        return options[self.pick(len(options))]

    def line(self, text: str, depth: int) -> None:
        self.lines.append("    " * depth + text)

    def subscripts(self, rank: int, level: int = 0) -> str:
        parts = []
        for dimension in range(rank):
            if level < 2 and self.pick(12) == 11:
                parts.append(self.indexed(level + 1))
                continue
            constant, text, reach = self.pick(4), "", HIGHEST
            room = 1 if rank == 3 else 2
            for _ in range(room if self.indices else 0):
                factor = (1, 1, 1, 0, 2, -1)[self.pick(6)] if rank < 3 else (1, 1, 0)[self.pick(3)]
                if not factor or reach + 3 > EXTENTS[rank][dimension] - abs(factor) * HIGHEST + HIGHEST:
                    continue
                constant += HIGHEST if factor < 0 else 0
                reach += abs(factor) * HIGHEST
                index = self.indices[self.pick(len(self.indices))]
                text += {1: f" + {index}", 2: f" + 2 * {index}", -1: f" - {index}"}[factor]
            if rank < 3 and self.indices and not self.pick(8):
                index, other = (self.indices[self.pick(len(self.indices))] for _ in range(2))
                how = self.one("//", "%", "%", "^", "&", "|", ">>", "swizzle")
                text, constant = f" + ({index} {how} {self.pick(4) + 2})", constant % HIGHEST
                if how == "swizzle":
                    text = f" + ({index} ^ {self.one(f'({other} & 7)', f'{other} >> 1', f'(~{other} & 3)')})"
            parts.append(f"{constant}{text}".removeprefix("0 + "))
        return ", ".join(parts)

    def indexed(self, level: int) -> str:
        """A subscript that is an array element, in bounds for any dimension of any array."""
        at = self.subscripts(1, level)
        return self.one(f"J[{at}]", f"J[{at}]", f"I[{at}]", f"int(I[{at}]) + {self.pick(3)}",
                        f"int(I[{at}]) % 5", f"{HIGHEST} - int(I[{at}])")  # fmt: skip

    def element(self, names: str = DATA) -> str:
        name = names[self.pick(len(names))]
        return f"{name}[{self.subscripts(self.ranks[name])}]"

    def index_number(self) -> str:
        if not self.indices:
            return str(self.pick(9) + 1)
        a, b = (self.indices[self.pick(len(self.indices))] for _ in range(2))
        return self.one(a, f"({a} % 3)", f"{a} // 2", f"{a} * 0.5", f"float({a})", f"({a} + {b}) % 4",
                        f"({a} - {b})", f"({a} % 6) // 2", f"abs({a} - 5)", f"np.float32({a})")  # fmt: skip

    def value(self, depth: int = 0) -> str:
        match self.pick(10 if depth < 2 else 4):
            case 0:
                return self.index_number()
            case 1 if self.locals:
                return self.locals[self.pick(len(self.locals))]
            case 1 | 2:
                return self.element()
            case 3:
                return self.one("2", "3", "0.5", "n", "1")
            case 4 | 5:
                return f"({self.value(depth + 1)} {self.one('+', '-', '*')} {self.value(depth + 1)})"
            case 6:
                return f"{self.one('min', 'max')}({self.float(depth + 1)}, {self.float(depth + 1)})"
            case 7:
                return f"({self.float(depth + 1)} if {self.condition()} else {self.float(depth + 1)})"
            case 8:
                return f"{self.one('np.float64', 'np.float32', 'abs')}({self.value(depth + 1)})"
        return f"({self.element()} {self.one('+', '*')} {self.element()})"

    def float(self, depth: int) -> str:
        """A value of one dtype, because kernels give the result of a choice the dtype of both sides."""
        return f"np.float64({self.value(depth)})"

    def condition(self) -> str:
        return self.one(
            f"{self.value(2)} {self.one('<', '>', '==', '!=', '<=')} {self.value(2)}",
            f"{self.index_number()} {self.one('<', '>', '==')} {self.pick(5)}",
            f"{self.element()} > 1 and {self.index_number()} != 2",
        )

    def store(self, depth: int) -> None:
        name = "ABC"[self.pick(3)]
        target = f"{name}[{self.subscripts(self.ranks[name])}]"
        how = self.one("=", "=", "=", "+=", "-=")
        self.line(f"{target} {how} {self.value()}", depth)

    def statement(self, depth: int) -> None:
        match self.pick(6):
            case 0:
                name = f"t{self.made}"
                self.made += 1
                self.line(f"{name} = {self.value()}", depth)
                self.locals.append(name)
            case 1:
                self.line(f"if {self.condition()}:", depth)
                for _ in range(1 + self.pick(2)):
                    self.store(depth + 1)
                if self.pick(2):
                    self.line("else:", depth)
                    self.store(depth + 1)
            case _:
                self.store(depth)

    def bounds(self) -> str:
        outer = self.indices[-1] if self.indices else ""
        low = self.one("0", "0", "1", "2", *((outer, f"max(0, {outer} - 2)") if outer else ()))
        high = self.one("n", "12", "9", "n - 1", *((f"{outer} + 1", f"min({outer} + 4, n)") if outer else ()))
        match self.pick(6):
            case 0:
                return f"{low}, {high}, {self.pick(2) + 2}"
            case 1:
                return f"{high} - 1, {low} - 1, -1"
            case 2:
                return f"{high} - 1, {low}, -{self.pick(2) + 1}"
        return f"{low}, {high}"

    def loop(self, depth: int) -> None:
        index, known = "ijklm"[len(self.indices)], list(self.locals)
        total = f"s{self.made}" if not self.pick(4) else ""
        self.made += bool(total)
        if total:
            self.line(f"{total} = {self.one('0.0', '0', 'np.float32(1)')}", depth)
        self.line(f"for {index} in range({self.bounds()}):", depth)
        self.indices.append(index)
        for _ in range(self.pick(2) if len(self.indices) < 3 and not total else 1):
            self.statement(depth + 1)
        if total:
            self.line(f"{total} = {total} {self.one('+', '-')} {self.value()}", depth + 1)
        for _ in range((1, 1, 2)[self.pick(3)] if len(self.indices) < 1 + self.pick(3) else 0):
            self.loop(depth + 1)
        if self.pick(2):
            self.statement(depth + 1)
        if self.lines[-1].endswith(":"):
            self.store(depth + 1)
        self.indices.pop()
        self.locals[:] = known
        if total:
            self.line(f"C[{self.subscripts(self.ranks['C'])}] = {total}", depth)


def nest(pick: Pick) -> Nest:
    """A function and its arguments, with random choices by `pick`."""
    ranks = {name: (1, 2, 2, 2, 3)[pick(5)] for name in DATA} | dict.fromkeys("IJ", 1)
    text = _Text(pick, ranks)
    for _ in range(1 + (not pick(4))):
        text.loop(1)
    source = "\n".join([f"def drawn({', '.join(ARRAYS)}, n):", *text.lines, ""])
    arrays = tuple(_array(pick, name, ranks[name]) for name in ARRAYS)
    return Nest(source, compiled(source), arrays, (0, 1, 7, 11, 13)[pick(5)])


def _array(pick: Pick, name: str, rank: int) -> np.ndarray:
    if name in "IJ":
        dtype = np.dtype(("i4", "i8", "i1" if name == "J" else "u1")[pick(3)])
        values = np.arange(EXTENTS[1][0]) * 29 % (HIGHEST + 1 if name == "I" else 2 * LEAST)
        values = values - (LEAST if name == "J" else 0)
    else:
        dtype = np.dtype(DTYPES[pick(len(DTYPES))] if name != "C" else DTYPES[pick(4)])
        values = np.arange(np.prod(EXTENTS[rank])) * (7 + ord(name)) % 5
        values = values - (0 if dtype.kind in "ub" else 2)
    array = values.astype(dtype).reshape(EXTENTS[rank])
    match pick(6):
        case 0:
            return np.asfortranarray(array)
        case 1:
            return np.repeat(array, 2, axis=-1)[..., ::2]
        case 2:
            return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return array


def compiled(source: str) -> Callable[..., Any]:
    """The function of a text, whose lines `inspect` can find."""
    file = f"<nest {hash(source):x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), space)
    return space["drawn"]  # type: ignore[no-any-return]
