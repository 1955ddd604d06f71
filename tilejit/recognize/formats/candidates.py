"""The formats and parameters that a buffer may be in."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from codegen import LayoutError, caller_stacklevel, dataclass, lazy
from tilejit.catalog.families import families
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Packing
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.examples import example_packing
from tilejit.layout.formats.registry import find_format, formats


@dataclass(frozen=True, eq=False)
class Candidate:
    """A format with its parameters.

    Attributes:
        name: the name of the format.
        parameters: its parameters, without those that have their default.
        found: the format; None for the order of the array itself.
        is_own: whether it is TileJIT's, and not one of another package.
    """

    name: str
    parameters: Mapping[str, Any]
    found: Format | None
    is_own: bool = True

    def packing(self, element: PrimitiveType, dims: tuple[int, ...]) -> Packing | None:
        """The planes and fields for an array; None if a rule or a function decides the layout.

        Raises:
            LayoutError: the format does not take the array.
        """
        if self.found is None or self.found.example is None:
            return None
        built = self.found.layout(element, dims, dict(self.parameters))
        return built if isinstance(built, Packing) else None

    @lazy
    def example_packing(self) -> Packing | None:
        """The planes and fields of the format's example; None if a rule or a function decides the layout."""
        return None if self.found is None else example_packing(self.found, self.parameters)

    @property
    def is_code(self) -> bool:
        """Whether the format stores codes of a width of its own."""
        packing = self.example_packing
        return packing is not None and packing.main.bits > 0

    @lazy
    def is_opaque(self) -> bool:
        """Whether whole-array steps pack the main plane, so that its elements have no places of their own."""
        packing = self.example_packing
        return packing is not None and bool(
            packing.steps
            or any(
                packing.main.name in field.planes and (field.codec or (field.values and field.take))
                for field in packing.fields
            )
        )

    @lazy
    def generality(self) -> int:
        """0 for the array's own order and for codes in tensors, 1 for other codes, 2 for any dtype."""
        packing = self.example_packing
        if self.found is None or (self.is_code and packing is not None and packing.tensors):
            return 0
        return 1 if self.is_code else 2

    def layout(self, element: PrimitiveType, dims: tuple[int, ...]) -> Spec | None:
        """The layout that a rule or a function decides; None if the format takes no such array."""
        try:
            return as_layout(self.name, dtype=element, dims=dims, **self.parameters)
        except (LayoutError, TypeError):
            return None


ROW_MAJOR = Candidate("row-major", {}, None)
"""The order of the array itself."""


def candidates() -> Iterator[Candidate]:
    """The order of the array itself, then every format with its default parameters and with each variant.

    A format of another package that cannot be loaded is left out with a warning.
    """
    yield ROW_MAJOR
    own = _catalog()
    yield from own
    known = {candidate.name for candidate in own}
    for name in formats():
        if name not in known:
            try:
                yield Candidate(name, {}, find_format(name), is_own=False)
            except LayoutError as error:  # a package that cannot be loaded
                text = f"{str(error).splitlines()[0]}; identify leaves it out"
                warnings.warn(text, RuntimeWarning, stacklevel=caller_stacklevel())


@cache
def _catalog() -> tuple[Candidate, ...]:
    """TileJIT's own formats, which never change."""
    return tuple(
        Candidate(found.name, parameters, found)
        for family in families()
        for found in family.formats
        for parameters in ({}, *found.variants)
    )
