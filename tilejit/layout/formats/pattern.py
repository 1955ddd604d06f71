"""Layouts written in einops' notation: "(m mi) (n ni) -> m n mi ni"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from codegen import LayoutError, dataclass, shown
from tilejit.catalog.checks import checked_int
from tilejit.catalog.format import nearest_keyword
from tilejit.cute.digit_step import check_permutation
from tilejit.layout.checks import int_tuple
from tilejit.layout.formats.blocking import Blocking, DigitName, Permutation
from tilejit.layout.helpers import dims_text
from tilejit.support.tokens import Token, mistake

Size = int | tuple[int, ...]
Sizes = Mapping[str, object]
Digits = dict[str, list[DigitName]]
"""The digits of each axis."""


@dataclass(frozen=True, slots=True)
class Group:
    """The axes of one dimension, the most major first, without units, and their position in the text."""

    axes: tuple[Token, ...]
    at: int
    ellipsis: bool = False


@dataclass(frozen=True, slots=True)
class PermutedAxis:
    """An axis whose indices have another order in memory: reversed, -p, or moved by another, j+i, j-i or j^i.

    Attributes:
        axis: the axis.
        operation: its sign.
        by: the axis whose index moves it; None reverses the axis.
    """

    axis: Token
    operation: str
    by: Token | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern.

    Attributes:
        text: its text.
        groups: the groups of the left side.
        order: the names in memory order.
        sizes: the sizes in the text; a table of positions for an axis that has one.
        permuted: the axes whose indices have another order in memory, each before those that it reads.
    """

    text: str
    groups: tuple[Group, ...]
    order: tuple[str, ...]
    sizes: tuple[tuple[str, Size], ...]
    permuted: tuple[PermutedAxis, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The axes of the left side, without the ellipsis."""
        return tuple(axis.text for group in self.groups for axis in group.axes)

    def blocking(self, dims: tuple[int, ...], sizes: Sizes) -> Blocking:
        """Return the digits of an array with those dimensions.

        "(m mi) (n ni) -> m n mi ni" of [30,300] with mi=8, ni=128: (4,8) and (3,128), in the order 0 2 1 3

        Within a dimension, one axis may lack a size: it gets the smallest size that covers the dimension. The
        excess over the dimension is padding.

        Raises:
            LayoutError: the number of dimensions differs, or a size is missing, given twice, below 1 or too
                small.
            TypeError: a size is not an integer, or belongs to an unknown axis.
        """
        known, tables = self._known(sizes)
        groups = self._spread(dims)
        digits: list[tuple[int, ...]] = []
        of_axis: Digits = {"...": []}
        units: list[int] = []
        for dim, (size, group) in enumerate(zip(dims, groups, strict=True)):
            if group.ellipsis:
                digits.append((size,))
                of_axis["..."].append(DigitName(dim, 0))
                continue
            digits.append(self._digits(dim, size, group, known) or (1,))
            of_axis.update({axis.text: [DigitName(dim, k)] for k, axis in enumerate(group.axes)})
            if not group.axes:
                units.append(dim)
        order = [digit for name in self.order for digit in of_axis[name]]
        plain = Blocking(dims, tuple(digits), tuple(_with_units(order, units)))
        if not (self.permuted or tables):
            return plain
        permutations = [self._permutation(permuted, plain, of_axis, tables) for permuted in self.permuted]
        # An axis with a table comes last, so that others read its index as it is.
        permutations += [
            Permutation(digit, table=table)
            for name, table in tables.items()
            for digit in of_axis[name]
            if len(table) > 1
        ]
        return replace(plain, permutations=tuple(one for one in permutations if one))

    def _permutation(
        self, permuted: PermutedAxis, plain: Blocking, of_axis: Digits, tables: Mapping[str, object]
    ) -> Permutation | None:
        """The permutation of a digit; None if it has no effect."""
        (digit,) = of_axis[permuted.axis.text]
        if permuted.axis.text in tables:
            raise mistake(
                self.text,
                permuted.axis.at,
                f"{permuted.axis.text} has a table of positions, which already says where each index lies",
                f"pass a number as {permuted.axis.text}=, or remove the sign",
            )
        if permuted.by is None:
            return Permutation(digit) if plain.size(digit) > 1 else None
        (by,) = of_axis[permuted.by.text]
        sizes = plain.size(digit), plain.size(by)
        if permuted.operation != "^":
            return Permutation(digit, by, permuted.operation) if min(sizes) > 1 else None
        for axis, size in zip((permuted.axis, permuted.by), sizes, strict=True):
            if size & (size - 1):
                raise mistake(
                    self.text,
                    axis.at,
                    f"{axis.text} has {shown(size)} values, but XOR needs a power of two",
                    f"pass {axis.text}={1 << size.bit_length()}, or split the dimension",
                )
        if sizes[1] > sizes[0] > 0:
            raise mistake(
                self.text,
                permuted.by.at,
                f"{permuted.by.text} has {shown(sizes[1])} values, more than the {shown(sizes[0])} of "
                f"{permuted.axis.text}",
                f"split it on the left, and XOR with a part of {shown(sizes[0])} values",
            )
        return Permutation(digit, by, "^") if sizes[1] > 1 else None

    def _known(self, sizes: Sizes) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        """The sizes from both the text and keywords, and the tables among them."""
        known = dict(self.sizes)
        for name, size in sizes.items():
            if name not in self.names:
                raise TypeError(
                    f"the pattern has no axis {cut(name)!r}; it has {', '.join(self.names[:16]) or 'none'}"
                    + nearest_keyword(name, self.names)
                )
            if name in known:
                raise LayoutError(
                    f"the size of {name} is given both in the pattern and as a keyword\n  pass it once"
                )
            known[name] = checked_table(name, size) if is_table(size) else checked_int(name, size)
        tables = {name: size for name, size in known.items() if isinstance(size, tuple)}
        numbers = {name: len(size) if isinstance(size, tuple) else size for name, size in known.items()}
        return numbers, tables

    def _spread(self, dims: tuple[int, ...]) -> list[Group]:
        """A group for each dimension."""
        spread = next((k for k, group in enumerate(self.groups) if group.ellipsis), None)
        if spread is None and len(dims) == len(self.groups):
            return list(self.groups)
        if spread is None or len(dims) < len(self.groups) - 1:
            least = "" if spread is None else "at least "
            count = len(self.groups) - (spread is not None)
            raise LayoutError(
                f"the pattern {cut(self.text)!r} takes {least}{count} dimensions; got an array "
                f"{dims_text(dims)}\n"
                "  write a name or (…) for each, or ... for those in front"
            )
        more = len(dims) - len(self.groups) + 1
        return [*self.groups[:spread], *[self.groups[spread]] * more, *self.groups[spread + 1 :]]

    def _digits(self, dim: int, size: int, group: Group, known: Mapping[str, int]) -> tuple[int, ...]:
        unknown = [axis for axis in group.axes if axis.text not in known]
        if len(unknown) > 1:
            first, second = unknown[0].text, unknown[1].text
            raise mistake(
                self.text,
                unknown[1].at,
                f"{first} and {second} both lack a size",
                f"pass one of them, e.g. {second}=8",
            )
        total = prod(known.get(axis.text, 1) for axis in group.axes)
        if size == 0:  # an array without elements has an empty buffer, regardless of the sizes
            return (0, *(known.get(axis.text, 1) for axis in group.axes[1:]))
        if unknown:
            rest = -(-size // total)
            return tuple(known.get(axis.text, rest) for axis in group.axes)
        if total < size:
            what = " and ".join(axis.text for axis in group.axes[:4]) or "1"
            raise mistake(
                self.text,
                group.at,
                f"the sizes of {what} cover {shown(total)} elements, but dimension {dim} has {shown(size)}",
                "make them larger, or omit one",
            )
        return tuple(known[axis.text] for axis in group.axes)


def is_table(size: object) -> bool:
    """Whether a size is a table of positions: a sequence of integers, or an array of them."""
    return isinstance(size, Sequence) or (isinstance(size, np.ndarray) and size.ndim == 1)


def checked_table(name: str, table: object) -> tuple[int, ...]:
    """Return a table of positions, which must name each once.

    Raises:
        LayoutError: a position is missing.
        TypeError: it contains anything other than integers.
    """
    positions = int_tuple(table, name)  # type: ignore[arg-type]
    if not positions:
        raise LayoutError(f"the table of {name} is empty\n  pass a position for each index")
    try:
        check_permutation(positions, len(positions))
    except LayoutError as error:
        raise LayoutError(f"{name}: {error}") from None
    return positions


def _with_units(order: list[DigitName], units: list[int]) -> list[DigitName]:
    """The order with the digits of empty groups inserted before the next dimension; they move nothing."""
    before: dict[int, list[DigitName]] = {}
    for dim in units:
        run = before.pop(dim, [])
        run.append(DigitName(dim, 0))
        before[dim + 1] = run
    out: list[DigitName] = []
    for digit in order:
        out += before.pop(digit.dim, []) if digit.number == 0 else []
        out.append(digit)
    return [*out, *(digit for digits in before.values() for digit in digits)]


def cut(text: str) -> str:
    """Shorten a long text for a message."""
    return text if len(text) <= 40 else text[:40] + "…"
