"""Checks that shapes, layouts and the parser share: orders, tiles, split configs and element names."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from codegen import LayoutError, shown
from tilejit.cute.int_tuple import as_integer
from tilejit.layout.dtypes import PrimitiveType, lookup
from tilejit.layout.fields import UNBOUNDED
from tilejit.layout.tiling import MERGE
from tilejit.support.tokens import MAX_INT64

MOST_MEMORY_SPACE = 127


def int_tuple(numbers: Iterable[int], what: str) -> tuple[int, ...]:
    """Read a tuple of Python ints from any iterable of integers.

    Raises:
        TypeError: it is not a sequence of integers.
    """
    if isinstance(numbers, str | bytes):
        raise TypeError(f"{what}: expected a sequence of integers, got {type(numbers).__name__}")
    found: list[int] = []
    try:
        for number in numbers:
            found.append(operator.index(None if isinstance(number, bool) else number))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what}: expected a sequence of integers, got {str(numbers)[:60]}") from None
    return tuple(found)


def tile_tuples(tiles: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """Read tiles as tuples of Python ints.

    Raises:
        TypeError: they are not a sequence of sequences of integers.
    """
    try:
        each = tuple(tiles)
    except TypeError:
        raise TypeError(f"expected a sequence of tiles, got {type(tiles).__name__}") from None
    return tuple(int_tuple(tile, "a tile") for tile in each)


def check_order(order: Sequence[int], rank: int) -> None:
    """Raise a LayoutError unless the order names each of `rank` dimensions once."""
    fault = order_fault(order, rank)
    if fault:
        raise LayoutError(f"{fault[1]}\n  {order_fix(rank)}")


def order_fault(order: Sequence[int], rank: int) -> tuple[int, str] | None:
    """The first position at which an order is wrong, and why; None if it is correct.

    ((2, 0), 2) -> (0, "minor_to_major names dimension 2, but the shape has dimensions 0 and 1")
    ((1, 0), 1) -> (0, "minor_to_major is for 2 dimensions, but the shape has 1")
    """
    if len(order) > rank and sorted(order) == list(range(len(order))):
        many = "1 dimension" if len(order) == 1 else f"{len(order)} dimensions"
        return 0, f"minor_to_major is for {many}, but the shape has {rank or 'none'}"
    seen: set[int] = set()
    for place, dim in enumerate(order):
        if not 0 <= dim < rank:
            return (
                place,
                f"minor_to_major names dimension {shown(dim)}, but the shape has {_dimensions(rank)}",
            )
        if dim in seen:
            return place, f"minor_to_major names dimension {dim} twice"
        seen.add(dim)
    if len(seen) < rank:
        return len(order), f"minor_to_major names {len(seen)} of the shape's {rank} dimensions"
    return None


def order_fix(rank: int) -> str:
    """Suggest an order for that rank."""
    if rank == 0:
        return "leave the order empty"
    if rank == 1:
        return "write {0}"
    example = ",".join(str(d) for d in reversed(range(min(rank, 8))))
    return f"name each of {_dimensions(rank).removeprefix('dimensions ').removeprefix('dimension ')} once" + (
        f", e.g. {{{example}}}" if rank <= 8 else ""
    )


def tile_fault(tile: Sequence[int]) -> tuple[int, str, str] | None:
    """The position in a tile that is wrong, the cause and the fix; None if it is correct."""
    if not tile:
        return 0, "a tile has no sizes", "write at least one, e.g. T(8,128)"
    for place, size in enumerate(tile):
        if size != MERGE and not 1 <= size <= MAX_INT64:
            return (
                place,
                f"a tile size is {shown(size)}",
                "write a size of 1 or more, or * to merge the dimension",
            )
    if tile[-1] == MERGE:
        return (
            len(tile) - 1,
            "a tile ends with *, but there is no dimension after it to merge into",
            "end it with a size",
        )
    return None


def check_element_name(name: str, what: str) -> str:
    """Return the lower-case name of a type that arrays can have, for `#(…)` and `*(…)`."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: expected the name of a dtype, got {type(name).__name__}")
    found = lookup(name)
    if found.kind not in ("signed", "unsigned"):
        raise LayoutError(f"{what} is {found.name}\n  write an integer type such as u32")
    return found.name


def _dimensions(rank: int) -> str:
    """The dimensions of a rank in words: "no dimensions", "dimensions 0 and 1", "dimensions 0 to 4"."""
    if rank <= 1:
        return "dimension 0" if rank else "no dimensions"
    return f"dimensions 0 and {rank - 1}" if rank == 2 else f"dimensions 0 to {rank - 1}"


def check_tile(tile: Sequence[int]) -> None:
    """Raise a LayoutError unless the tile has sizes of 1 or more, `*` anywhere but last."""
    fault = tile_fault(tile)
    if fault:
        raise LayoutError(f"{fault[1]}\n  {fault[2]}")


def checked_split(split: tuple[int, Sequence[int]], rank: int) -> tuple[int, tuple[int, ...]]:
    """Return a dimension and its split indices as ints.

    Raises:
        LayoutError: one of them is out of range.
        TypeError: it is not a pair of a dimension and its indices.
    """
    if not isinstance(split, tuple | list):
        raise TypeError(f"expected a dimension and its indices as a split config, got {type(split).__name__}")
    if len(split) != 2:
        raise LayoutError(
            f"a split config has {len(split)} parts\n  pass the dimension and its indices, e.g. (1, (200,))"
        )
    dim = as_integer(split[0], "the dimension of a split config")
    indices = int_tuple(split[1], "split indices")
    if not 0 <= dim < rank:
        raise LayoutError(f"the split config names dimension {shown(dim)}\n  {order_fix(rank)}")
    if not indices or not all(0 <= index <= MAX_INT64 for index in indices):
        raise LayoutError("a split config needs one or more indices from 0 to 2^63-1\n  write e.g. SC(1:200)")
    return dim, indices


def memory_space_fault(space: int) -> tuple[str, str] | None:
    """The reason XLA does not keep a memory space, and the fix; None if XLA keeps it.

    300 -> "S(300) does not fit XLA's 8 signed bits, which wrap it to S(44)"
    """
    if space <= MOST_MEMORY_SPACE:
        return None
    kept = (space + 128) % 256 - 128
    cause = f"S({shown(space)}) does not fit XLA's 8 signed bits, which wrap it to S({kept})"
    return cause, f"write a memory space from 0 to {MOST_MEMORY_SPACE}"


def checked_padded(padded: Iterable[int], dims: Sequence[int]) -> tuple[int, ...]:
    """Return padded_dimensions as ints; raise a LayoutError unless each is at least its dimension."""
    sizes = int_tuple(padded, "padded_dimensions")
    if len(sizes) != len(dims):
        raise LayoutError(
            f"padded_dimensions has {len(sizes)} sizes for {len(dims)} dimensions\n  pass one for each"
        )
    for size, wide in zip(dims, sizes, strict=True):
        if size == UNBOUNDED or not size <= wide <= MAX_INT64:
            raise LayoutError(
                f"a dimension of {'?' if size == UNBOUNDED else size} cannot be padded to {shown(wide)}\n"
                "  pass a size of at least the dimension, and not '?'"
            )
    return sizes


def width_of(element: PrimitiveType, bits: int) -> int:
    """The `element_size_in_bits` of a shape whose elements have that width in the buffer.

    (s4, 4) -> 4    (s4, 8), (s4, 0), (f32, 32) -> 0

    Raises:
        LayoutError: it is neither 0, the element's width nor its storage width.
    """
    if bits not in (0, element.bits, element.storage_bits):
        codes = "4, 2 or 1 for codes, " if element.name in ("u8", "s8") else ""
        raise LayoutError(
            f"element_size_in_bits is {shown(bits)}, but {element.name} has {element.bits}\n"
            f"  pass {codes}{element.bits}, or omit it"
        )
    return bits % 8


def set_fields(value: object, **fields: object) -> None:
    """Set checked fields of a frozen value under construction."""
    for name, content in fields.items():
        object.__setattr__(value, name, content)
