"""Convert a shape to tile steps: which axes each tile splits, and the extents before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from codegen import LayoutError, dataclass
from tilejit.layout.fields import ShapeFields

MERGE = -1
MAX_TILES = 64
MAX_TILED_AXES = 1024
MAX_BITS = 2**63
Extents = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TileStep:
    """One tile applied to the axes of a buffer, most major axis first.

    [2,7,8,11,10] by (*,*,2,*,3): lead 0, groups ((0,1,2),(3,4)), tile (2,3), untouched 0
    [5] by (8,128):               lead 1, groups ((0,),(1,)),     tile (8,128), untouched 0

    Attributes:
        lead: the number of axes of extent 1 added in front, if the tile has more dimensions than there are
            axes.
        groups: for each tiled dimension the axes merged into it, most major first; positions include the
            leading axes. Only `*` merges more than one.
        tile: the tile size of each group, in elements.
        untouched: leading axes that pass through as they are.

    The axes afterwards are the untouched ones, then ceil(merged / tile) for each group, then the tile.
    """

    lead: int
    groups: tuple[tuple[int, ...], ...]
    tile: tuple[int, ...]
    untouched: int


def tile_steps(shape: ShapeFields) -> tuple[tuple[TileStep, ...], tuple[Extents, ...]]:
    """Return the tile steps of a shape, and the extents of the axes before each step and at the end.

    f32[3,5]{1,0:T(2,2)} -> (TileStep(0, ((0,),(1,)), (2,2), 0),), ((3,5), (2,3,2,2))

    Extents are in elements, in physical order, most major first. The first are the padded dimensions, if the
    shape has any. The extents before a step do not include its leading axes.

    Raises:
        LayoutError: a dimension is `?`, the layout has M(n) or P(shape), or the shape is a token or opaque.
    """
    refuse_unsized(shape)
    return expand(physical_extents(shape), shape.layout.tiles if shape.layout else ())


def physical_extents(shape: ShapeFields) -> Extents:
    """The dimensions in physical order, most major first, after padded_dimensions; `?` stays -1."""
    dims = shape.dimensions if shape.padded_dimensions is None else shape.padded_dimensions
    if shape.layout is None:
        return dims
    return tuple(dims[d] for d in reversed(shape.layout.minor_to_major))


def expand(
    extents: Extents, tiles: Sequence[tuple[int, ...]]
) -> tuple[tuple[TileStep, ...], tuple[Extents, ...]]:
    """Apply tiles to axes of the given extents, one after the other; the result is that of `tile_steps`.

    Raises:
        LayoutError: there are more than 64 tiles, or more than 1024 axes at some step.
    """
    if len(tiles) > MAX_TILES:
        raise LayoutError(f"the layout has {len(tiles)} tiles\n  use at most {MAX_TILES}")
    steps: list[TileStep] = []
    history = [extents]
    for tile in tiles:
        step = _step(len(extents), tile)
        extents = _apply(step, extents)
        if len(extents) > MAX_TILED_AXES:
            raise LayoutError(
                f"the tiles split the shape into {len(extents)} axes\n"
                f"  use fewer or shorter tiles, for at most {MAX_TILED_AXES} axes"
            )
        steps.append(step)
        history.append(extents)
    return tuple(steps), tuple(history)


def bounded_product(extents: Sequence[int]) -> int | None:
    """Multiply extents; None if the product exceeds 2^63, and 0 if one of them is 0.

    (3, 5) -> 15    (2**62, 4) -> None    (2**62, 4, 0) -> 0
    """
    if 0 in extents:
        return 0
    product = 1
    for extent in extents:
        product *= extent
        if product > MAX_BITS:
            return None
    return product


def physical_size(extents: Sequence[int], tail_alignment: int, bits: int) -> int:
    """Elements of a buffer with those final extents, rounded up to the tail alignment (in elements).

    Raises:
        LayoutError: they take more than 2^63 bits.
    """
    size = bounded_product(extents)
    if size is not None:
        size = -(-size // tail_alignment) * tail_alignment
    if size is None or size * bits > MAX_BITS:
        raise LayoutError(
            "the buffer takes more than 2^63 bits, padding included\n"
            "  make the dimensions or the tiles smaller"
        )
    return size


def refuse_unsized(shape: ShapeFields) -> None:
    """Raise a LayoutError for a shape whose buffer size is unknown."""
    if shape.primitive_type in ("token", "opaque"):
        raise LayoutError(f"{shape.primitive_type}[] has no elements, so no size\n  use an array's shape")
    if any(d < 0 for d in shape.dimensions):
        raise LayoutError(
            "a dimension is '?', so the buffer has no known size\n  write its size, or a bound such as <=456"
        )
    layout = shape.layout
    if layout is not None and layout.dynamic_shape_metadata_prefix_bytes:
        raise LayoutError("M(n) puts metadata before the elements, which TileJIT does not support\n  omit M")


def _step(axes: int, tile: tuple[int, ...]) -> TileStep:
    """Match a tile to a number of axes."""
    lead = max(0, len(tile) - axes)
    untouched = axes + lead - len(tile)
    groups: list[tuple[int, ...]] = []
    sizes: list[int] = []
    merged: list[int] = []
    for axis, size in enumerate(tile, untouched):
        merged.append(axis)
        if size != MERGE:
            groups.append(tuple(merged))
            sizes.append(size)
            merged = []
    return TileStep(lead, tuple(groups), tuple(sizes), untouched)


def _apply(step: TileStep, extents: Extents) -> Extents:
    """The extents after a step."""
    extents = (1,) * step.lead + extents
    merged = [math.prod(extents[a] for a in group) for group in step.groups]
    counts = tuple(-(-size // tile) for size, tile in zip(merged, step.tile, strict=True))
    return extents[: step.untouched] + counts + step.tile
