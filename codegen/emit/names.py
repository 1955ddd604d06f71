"""Names in a loop kernel's source (the user's names unless they are taken), and its table of arguments."""

from __future__ import annotations

import builtins
import keyword
import re

from codegen.ir.dtypes import FLOAT_FUNCTIONS
from codegen.ir.index import Affine, FloorDiv, Index, Mod, Sum

KERNEL_ARGUMENTS = ("results", "scratch", "sizes", "begin", "end")

_ROUTINES = re.compile(
    r"(load|store|stream|gather|pick|scatter|splat|iota|cast|transposed|first|reduce|as|read|write|select)_.*"
    r"|.*_(i1|[iu](8|16|32|64)|f32|f64|bf16|f16)(_at)?|int64_at|select|minimum|maximum|floordiv|modulo|fmod|inf|nan"
    r"|elements_to_line"
)
"""Names of routines that kernels call; these are reserved, and so are the names of math functions."""


FUNCTIONS = ("abs", "floordiv", "pow", "floor", "ceil", "trunc", *FLOAT_FUNCTIONS)
"""Operations that kernels call by name."""


class Names:
    """Fresh identifiers, each used once."""

    def __init__(self) -> None:
        self._taken: set[str] = set(KERNEL_ARGUMENTS)

    def fresh(self, wanted: str) -> str:
        """An unused name close to the wanted one: `t.1` becomes t_1, `range` becomes range_."""
        name = re.sub(r"[^0-9A-Za-z_]", "_", wanted) or "_"
        name = name if not name[0].isdigit() else f"_{name}"
        if (
            keyword.iskeyword(name)
            or hasattr(builtins, name)
            or name in FUNCTIONS
            or _ROUTINES.fullmatch(name)
        ):
            name += "_"
        free, k = name, 2
        while free in self._taken:
            free, k = f"{name}_{k}", k + 1
        self._taken.add(free)
        return free


class Table:
    """The argument-table entries that a kernel reads, in the order of their first use."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._held: dict[str, str] = {}

    def name(self, entry: str) -> str:
        """The name in the source of an entry: `A`, `A.shape[0]`, `A.stride[0]` (in bytes) or a scalar."""
        if entry not in self._held:
            self._held[entry] = self._names.fresh(re.sub(r"\.(\w+)\[(\d+)\]", r"_\1_\2", entry))
        return self._held[entry]

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """(entry, its name in the source) in table order."""
        return tuple(self._held.items())


def index_text(index: Index, names: dict[str, str], table: Table) -> str:
    """An index expression in Python; symbols that are not loop indices come from the table."""
    match index:
        case Affine(constant, terms):
            return affine_text(constant, [(names.get(n) or table.name(n), c) for n, c in terms])
        case FloorDiv(of, by):
            return f"{_factor(index_text(of, names, table))} // {by}"
        case Mod(of, by):
            return f"{_factor(index_text(of, names, table))} % {by}"
        case Sum(parts, rest):
            texts = [index_text(part, names, table) for part, _ in parts]
            texts = [f"({t})" if k == 1 else f"{k} * ({t})" for t, (_, k) in zip(texts, parts, strict=True)]
            return " + ".join([*texts, *([index_text(rest, names, table)] if rest != Affine() else [])])
        case _:
            raise AssertionError(f"emit: no rule for {type(index).__name__}")


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def affine_text(constant: int, terms: list[tuple[str, int]]) -> str:
    """A sum of products in natural notation: 2 * i - j + 3."""
    text = ""
    for name, factor in sorted(terms, key=lambda term: term[1] < 0):
        product = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {product}" if text else product if factor > 0 else f"-{product}"
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text


def product_text(text: str, factor: str) -> str:
    """The product of an expression and a name or number."""
    return f"{_factor(text)} * {factor}"
