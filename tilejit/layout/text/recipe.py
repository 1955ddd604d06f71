"""A shape's layout as NumPy code a person can read and run: pad, reshape, transpose, flatten."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.layout.fields import ShapeFields
from tilejit.layout.text.xla_print import array_text
from tilejit.layout.tiling import TileStep, tile_steps

MAX_NUMPY_RANK = 64


def recipe(shape: ShapeFields) -> str:
    """The source of `pack(x)`, which brings an array of the shape's dimensions to its flat buffer.

    f32[3,5]{1,0:T(2,2)} ->
        x = np.pad(x, ((0, 1), (0, 1)))
        x = x.reshape(2, 2, 3, 2)
        x = x.transpose(0, 2, 1, 3)
        return x.reshape(-1)

    The buffer is flat, of x's dtype; of uint8 where E packs several elements into a byte.

    Raises:
        LayoutError: the shape has no size, E is not a width that can be packed, an array of more than
            NumPy's 64 dimensions would be needed.
    """
    steps, extents = tile_steps(shape)
    lines = _order_lines(shape)
    for step, before in zip(steps, extents, strict=False):
        lines += _step_lines(step, before, fill_text(shape))
    lines.append("x = x.reshape(-1)")
    slots = 1
    for extent in extents[-1]:
        slots *= extent
    if shape.physical_size > slots:
        lines.append(f"x = np.pad(x, (0, {shape.physical_size - slots}){fill_text(shape)})")
    lines += _packing_lines(shape)
    body = "\n".join(f"    {line}" for line in [*lines, "return x"])
    return f'import numpy as np\n\n\ndef pack(x):\n    """{array_text(shape)}"""\n{body}\n'


def _order_lines(shape: ShapeFields) -> list[str]:
    """Pad to padded_dimensions, then bring the dimensions into physical order."""
    _check_rank(shape.rank)
    lines: list[str] = []
    padded = shape.padded_dimensions
    if padded is not None and padded != shape.dimensions:
        lines.append(_pad_line(shape.dimensions, padded, fill_text(shape)))
    order = tuple(reversed(shape.minor_to_major))
    if order != tuple(range(shape.rank)):
        lines.append(f"x = x.transpose({_numbers(order)})")
    return lines


def _step_lines(step: TileStep, before: tuple[int, ...], fill: str) -> list[str]:
    """One tile: merge what `*` merges, pad to whole tiles, split, bring the tile to the end."""
    axes = (1,) * step.lead + before
    kept = axes[: step.untouched]
    merged: tuple[int, ...] = kept
    for group in step.groups:
        size = 1
        for axis in group:
            size *= axes[axis]
        merged += (size,)
    lines = [f"x = x.reshape({_numbers(merged)})"] if merged != before else []
    counts = tuple(-(-size // tile) for size, tile in zip(merged[len(kept) :], step.tile, strict=True))
    whole = kept + tuple(count * tile for count, tile in zip(counts, step.tile, strict=True))
    if whole != merged:
        lines.append(_pad_line(merged, whole, fill))
    split = kept + tuple(n for pair in zip(counts, step.tile, strict=True) for n in pair)
    _check_rank(len(split))
    lines.append(f"x = x.reshape({_numbers(split)})")
    first = len(kept)
    order = (*range(first), *range(first, len(split), 2), *range(first + 1, len(split), 2))
    if order != tuple(range(len(split))):
        lines.append(f"x = x.transpose({_numbers(order)})")
    return lines


def _packing_lines(shape: ShapeFields) -> list[str]:
    """Several elements to a byte, the first in the low bits."""
    bits = shape.bits
    if bits == shape.element.storage_bits:
        return []
    if bits != shape.element.bits or 8 % bits:
        raise LayoutError(
            f"E({bits}) is not a width that {shape.primitive_type} elements can have in a buffer\n"
            f"  leave E out, or write E({shape.element.bits}) where that is 1, 2 or 4"
        )
    group = 8 // bits
    rest = -shape.physical_size % group
    return [
        *([f"x = np.pad(x, (0, {rest}){fill_text(shape)})"] if rest else []),
        f"x = (x.view(np.uint8) & {2**bits - 1}).reshape(-1, {group})",
        f"x = np.bitwise_or.reduce(x << np.arange(0, 8, {bits}, dtype=np.uint8), axis=1)",
    ]


def _pad_line(now: tuple[int, ...], wanted: tuple[int, ...], fill: str) -> str:
    widths = _numbers(tuple((0, want - have) for have, want in zip(now, wanted, strict=True)))
    return f"x = np.pad(x, ({widths}{',' if len(now) == 1 else ''}){fill})"


def fill_text(shape: ShapeFields) -> str:
    """The argument of np.pad that gives the padding value, if it is not NumPy's own zero."""
    value = shape.padding_value
    if value is None and shape.primitive_type == "f8e8m0fnu":
        value = 2.0**-127  # its zero bits: the type has no zero
    if value is None or repr(value) in ("0", "0.0", "False"):
        return ""
    text = repr(value)
    for name in ("inf", "nan"):
        text = text.replace(name, f"np.{name}") if not isinstance(value, complex) else text
    if isinstance(value, complex):
        text = f"complex({_part(value.real)}, {_part(value.imag)})"
    return f", constant_values={text}"


def _part(value: float) -> str:
    return f'float("{value!r}")'


def _numbers(items: tuple[object, ...]) -> str:
    return ", ".join(map(str, items))


def _check_rank(rank: int) -> None:
    if rank > MAX_NUMPY_RANK:
        raise LayoutError(
            f"the recipe needs an array of {rank} dimensions\n  NumPy holds {MAX_NUMPY_RANK}; use fewer"
        )
