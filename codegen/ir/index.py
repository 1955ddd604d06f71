"""Index expressions: affine in loop indices and sizes, with bits, and division and remainder by constants.

Elements of arrays of integers may be parts of subscripts, which are then gathers and scatters.

Lowered nests also multiply by strides that are known at run time, and take the minimum or maximum of several
expressions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """A constant plus a sum of coefficients times symbols.

    2*i + j - 3 -> Affine(-3, (("i", 2), ("j", 1)))

    Symbols are the names of loop indices, `A.shape[0]`, integer arguments, and integer locals of copies. The
    name of a buffer is its address. Symbols are sorted by name, and no coefficient is 0.
    """

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def coefficient(self, symbol: str) -> int:
        """The coefficient of a symbol, 0 if the symbol does not occur."""
        for name, c in self.terms:  # there are few terms, so a scan is faster than building a dict
            if name == symbol:
                return c
        return 0

    def __add__(self, other: Affine) -> Affine:
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms)
        return affine(self.constant + other.constant, [*self.terms, *other.terms])

    def __sub__(self, other: Affine) -> Affine:
        if not other.terms:
            return Affine(self.constant - other.constant, self.terms)
        return self + other * -1

    def __mul__(self, factor: int) -> Affine:
        if not factor:
            return Affine()
        if factor == 1:
            return self
        return Affine(self.constant * factor, tuple((name, c * factor) for name, c in self.terms))

    def __str__(self) -> str:
        parts = [_scaled(name, c) for name, c in sorted(self.terms, key=lambda term: term[1] < 0)]
        return _sum([*parts, *([str(self.constant)] if self.constant or not parts else [])])


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """The quotient by a positive number, rounded down."""

    of: Index
    by: int

    def __str__(self) -> str:
        return f"{_factor(self.of)} // {self.by}"


@dataclass(frozen=True, slots=True)
class Mod:
    """The remainder of floor division by a positive number."""

    of: Index
    by: int

    def __str__(self) -> str:
        return f"{_factor(self.of)} % {self.by}"


@dataclass(frozen=True, slots=True)
class Bitwise:
    """The bits of two expressions combined, as of Python's integers: negative ones have ones without end.

    Bitwise("xor", Affine(0, (("j", 1),)), Mod(Affine(0, (("i", 1),)), 8)) -> j ^ (i % 8)
    """

    operator: Literal["and", "or", "xor"]
    left: Index
    right: Index

    def __str__(self) -> str:
        return f"{_factor(self.left)} {BIT_SIGNS[self.operator]} {_factor(self.right)}"


BIT_SIGNS = {"and": "&", "or": "|", "xor": "^"}


@dataclass(frozen=True, slots=True)
class Times:
    """An expression times a symbol, such as a stride that is known at run time."""

    of: Index
    by: str

    def __str__(self) -> str:
        return f"{_factor(self.of)} * {self.by}"


@dataclass(frozen=True, slots=True)
class Quotient:
    """An expression divided by a positive symbol, rounded down."""

    of: Index
    by: str

    def __str__(self) -> str:
        return f"{_factor(self.of)} // {self.by}"


@dataclass(frozen=True, slots=True)
class Least:
    """The minimum of several expressions."""

    of: tuple[Index, ...]

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.of))})"


@dataclass(frozen=True, slots=True)
class Greatest:
    """The maximum of several expressions."""

    of: tuple[Index, ...]

    def __str__(self) -> str:
        return f"max({', '.join(map(str, self.of))})"


@dataclass(frozen=True, slots=True)
class ArrayElement:
    """An element of an array of integers, which a subscript depends on: x[idx[i]].

    No statement of the function stores to the array. Unsigned values of 2**63 or more count as 2**63 - 1.

    distinct  whether elements at different subscripts are known to differ, as `tilejit.permutation` promises
    """

    array: str
    subscripts: tuple[Index, ...]
    dtype: str
    distinct: bool = False

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.subscripts))}]"


@dataclass(frozen=True, slots=True)
class FromEnd:
    """A subscript that counts from the end if it is negative, as NumPy's do: `of + size`."""

    of: Index
    size: Index

    def __str__(self) -> str:
        return str(self.of)


@dataclass(frozen=True, slots=True)
class Inside:
    """A subscript that is 0 where `of` is negative, or `size` or more; a mask leaves such accesses out."""

    of: Index
    size: Index

    def __str__(self) -> str:
        return str(self.of)


@dataclass(frozen=True, slots=True)
class Sum:
    """Scaled parts that are not affine, plus an affine rest; `parts` holds (part, scale) pairs."""

    parts: tuple[tuple[Part, int], ...]
    rest: Affine = Affine()

    def __str__(self) -> str:
        parts = [str(p) if k == 1 else _scaled(f"({p})", k) for p, k in self.parts]
        return _sum([*parts, *([str(self.rest)] if self.rest != Affine() else [])])


def _scaled(text: str, factor: int) -> str:
    return f"{'-' * (factor < 0)}{text}" if abs(factor) == 1 else f"{factor}*{text}"


def _sum(parts: list[str]) -> str:
    return " + ".join(parts).replace("+ -", "- ")


def _factor(index: Index) -> str:
    """The expression as an operand: i, idx[i], or (i + 1)."""
    text = str(index)
    return text if text.isidentifier() or text.isdigit() or isinstance(index, ArrayElement) else f"({text})"


Loaded: TypeAlias = ArrayElement | FromEnd | Inside
"""Parts that depend on elements of arrays."""
LOADED = (ArrayElement, FromEnd, Inside)

Part: TypeAlias = FloorDiv | Mod | Bitwise | Times | Quotient | Least | Greatest | Loaded
Index: TypeAlias = Affine | Part | Sum


def affine(constant: int, terms: list[tuple[str, int]]) -> Affine:
    """The sum with each symbol once and no zero coefficients."""
    sums: dict[str, int] = {}
    for name, c in terms:
        sums[name] = sums.get(name, 0) + c
    return Affine(constant, tuple(sorted((name, c) for name, c in sums.items() if c)))


def index_symbol(name: str) -> Affine:
    """The expression that is just one symbol."""
    return Affine(0, ((name, 1),))


def add_indices(a: Index, b: Index) -> Index:
    """The sum of two expressions."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        return a + b
    if a == Affine():
        return b
    (first, one), (second, two) = _parts(a), _parts(b)
    return Sum((*first, *second), one + two)


def scale_index(a: Index, factor: int) -> Index:
    """An expression times a number."""
    if isinstance(a, Affine):
        return a * factor
    parts, rest = _parts(a)
    return Sum(tuple((p, k * factor) for p, k in parts), rest * factor) if factor else Affine()


def multiply_index(a: Index, symbol: str) -> Index:
    """An expression times a symbol: i, n -> i * n    2, n -> 2*n"""
    if isinstance(a, Affine) and not a.terms:
        return index_symbol(symbol) * a.constant
    return Times(a, symbol)


def _parts(a: Index) -> tuple[tuple[tuple[Part, int], ...], Affine]:
    if isinstance(a, Affine):
        return (), a
    return (a.parts, a.rest) if isinstance(a, Sum) else (((a, 1),), Affine())


def index_symbols(index: Index) -> set[str]:
    """All symbols of an expression."""
    match index:
        case Affine(_, terms):
            return {name for name, _ in terms}
        case FloorDiv(of) | Mod(of):
            return index_symbols(of)
        case Bitwise(_, left, right):
            return index_symbols(left) | index_symbols(right)
        case Times(of, by) | Quotient(of, by):
            return index_symbols(of) | {by}
        case Least(several) | Greatest(several):
            return set[str]().union(*map(index_symbols, several))
        case ArrayElement(_, subscripts):
            return set[str]().union(*map(index_symbols, subscripts))
        case FromEnd(of, size) | Inside(of, size):
            return index_symbols(of) | index_symbols(size)
        case Sum(parts, rest):
            return index_symbols(rest).union(*(index_symbols(part) for part, _ in parts))


BIT_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def evaluate_index(index: Index, values: Mapping[str, Any]) -> Any:
    """The value of an expression, given values or arrays of values for its symbols.

    The name of an array of integers maps to a function that returns its elements at some subscripts.
    """
    match index:
        case Affine(constant, terms):
            return constant + sum(c * values[name] for name, c in terms)
        case FloorDiv(of, by):
            return evaluate_index(of, values) // by
        case Mod(of, by):
            return evaluate_index(of, values) % by
        case Bitwise(name, left, right):
            return BIT_OPERATORS[name](evaluate_index(left, values), evaluate_index(right, values))
        case Times(of, name):
            return evaluate_index(of, values) * values[name]
        case Quotient(of, name):
            return evaluate_index(of, values) // values[name]
        case Least(several):
            return min(evaluate_index(each, values) for each in several)
        case Greatest(several):
            return max(evaluate_index(each, values) for each in several)
        case ArrayElement(array, subscripts):
            return values[array](*(evaluate_index(each, values) for each in subscripts))
        case FromEnd(of, size):
            number = evaluate_index(of, values)
            return number + evaluate_index(size, values) * (number < 0)
        case Inside(of, size):
            number = evaluate_index(of, values)
            return number * ((number >= 0) & (number < evaluate_index(size, values)))
        case Sum(parts, rest):
            return evaluate_index(rest, values) + sum(k * evaluate_index(part, values) for part, k in parts)


def substitute_index(index: Index, name: str, by: Index) -> Index:
    """An expression with another one in place of a symbol; a factor `by` of Times or Quotient stays.

    2*i + j, i := k + 1 -> 2*k + j + 2
    """
    if index == index_symbol(name):
        return by
    if isinstance(index, Affine):
        factor = index.coefficient(name)
        if not factor:
            return index
        return add_indices(index + Affine(0, ((name, -factor),)), scale_index(by, factor))
    return map_parts(index, lambda part: substitute_index(part, name, by))


def rename_index(index: Index, names: Mapping[str, str]) -> Index:
    """An expression with other names for its symbols, all at once; those that `names` lacks stay."""
    match index:
        case Affine(constant, terms):
            if all(names.get(name, name) == name for name, _ in terms):
                return index
            return affine(constant, [(names.get(name, name), c) for name, c in terms])
        case Times(of, by) | Quotient(of, by):
            index = type(index)(of, names.get(by, by))
        case ArrayElement(array):
            index = replace(index, array=names.get(array, array))
    return map_parts(index, lambda part: rename_index(part, names))


def map_parts(index: Index, change: Callable[[Index], Index]) -> Index:
    """An expression with its operands changed; factors and divisors that are symbols stay."""
    match index:
        case Affine():
            return index
        case FloorDiv(of, by) | Mod(of, by):
            return type(index)(change(of), by)
        case Bitwise(name, left, right):
            return Bitwise(name, change(left), change(right))
        case Times(of, name):
            return multiply_index(change(of), name)
        case Quotient(of, name):
            made = change(of)
            return Quotient(made, name) if made != Affine() else made
        case Least(several) | Greatest(several):
            return type(index)(tuple(map(change, several)))
        case ArrayElement(_, subscripts):
            return replace(index, subscripts=tuple(map(change, subscripts)))
        case FromEnd(of, size) | Inside(of, size):
            return type(index)(change(of), change(size))
        case Sum(parts, rest):
            total = change(rest)
            for part, k in reversed(parts):
                total = add_indices(scale_index(change(part), k), total)
            return total


def elements_in(index: Index) -> Iterator[ArrayElement]:
    """The elements that an expression depends on, those in the subscripts of others first."""
    match index:
        case ArrayElement(_, subscripts):
            for each in subscripts:
                yield from elements_in(each)
            yield index
        case FromEnd(of) | Inside(of) | FloorDiv(of) | Mod(of) | Times(of) | Quotient(of):
            yield from elements_in(of)
        case Bitwise(_, left, right):
            yield from elements_in(left)
            yield from elements_in(right)
        case Least(several) | Greatest(several):
            for each in several:
                yield from elements_in(each)
        case Sum(parts, _):
            for part, _ in parts:
                yield from elements_in(part)


def depends_on_elements(*indices: Index) -> bool:
    """Whether elements of arrays are parts of any of these expressions."""
    return any(True for index in indices for _ in elements_in(index))


def distinct_element(index: Index) -> ArrayElement | None:
    """The element that a subscript is, if different elements are promised to differ."""
    while isinstance(index, FromEnd | Inside):
        index = index.of
    return index if isinstance(index, ArrayElement) and index.distinct else None


def replace_parts(index: Index, kinds: tuple[type[Any], ...], change: Callable[[Any], Index]) -> Index:
    """An expression with others in place of the outermost parts of some kinds."""
    if isinstance(index, kinds):
        return change(index)
    return map_parts(index, lambda part: replace_parts(part, kinds, change))


def replace_loaded(index: Index, change: Callable[[Loaded], Index]) -> Index:
    """An expression with others in place of the outermost parts that depend on elements."""
    return replace_parts(index, LOADED, change)


def inside_parts(index: Index) -> Iterator[Inside]:
    """The masked parts of an expression, those in the subscripts of elements first."""
    for element in elements_in(index):
        for subscript in element.subscripts:
            yield from inside_parts(subscript)
    if isinstance(index, Inside):
        yield index
