"""TPU formats: the rule that compiled programs follow today, and the list on XLA's page."""

from __future__ import annotations

import math

from codegen import LayoutError
from tilejit.catalog.entries import Family, entry, ordered
from tilejit.catalog.format import Element
from tilejit.catalog.packing import rounded_up

LANES = 128
MAX_RANK = 1024
# For each number of elements in 32 bits, the tile height, which applies if it divides the second-minor size.
_FULL_HEIGHT = {1: 8, 2: 8, 4: 32, 8: 64}
Tiles = tuple[tuple[int, ...], ...]


def _tpu(element: Element, dims: tuple[int, ...]) -> str:
    """The layout in compiled TPU programs, derived from 3,895 observations on v4 to v7.

    s4[64,130] -> {1,0:T(64,128)(8,1)E(4)}    s4[70,130] -> {0,1:T(8,128)(8,1)E(4)}
    Tiles have their full height only if it divides the second-minor size. Among the orders of dimensions, the
    rule takes the one with the least padding: 136 x 128 elements for [70,130], instead of 72 x 256 for {1,0}.
    """
    packing = _packing(element, dims)
    width = 4 if packing == 8 else 0
    if 0 in dims:
        return _text(dims, width=width)
    if len(dims) < 2:
        return _text(dims, _vector_tiles(dims, packing), width)
    minor, second = _minor_pair(dims, packing)
    others = (d for d in reversed(range(len(dims))) if d not in (minor, second))
    tiles: Tiles = ((_tile_height(dims[second], packing), LANES),)
    if packing > 1:
        tiles += ((packing, 1),)
    return _text(dims, tiles, width, (minor, second, *others))


def _packing(element: Element, dims: tuple[int, ...]) -> int:
    """The number of elements that share 32 bits; 1 for 32 bits and more, 4 for pred."""
    bits = 8 if element.name == "pred" else element.bits
    packing = max(1, 32 // bits)
    if packing not in _FULL_HEIGHT or 32 % min(bits, 32):
        raise _no_rule("tpu", element, dims)
    return packing


def _no_rule(name: str, element: Element, dims: tuple[int, ...]) -> LayoutError:
    """The error for an element type of less than a byte without a rule, with a layout that it can have."""
    width = element.bits if 8 % element.bits == 0 else 0  # elements of six bits take a byte each
    tiles = ((64, LANES), (32 // (width or 8), 1)) if len(dims) > 1 else ()
    layout = _text(dims, tiles, width)
    wider = {"signed": "s8", "unsigned": "uint8"}.get(element.kind, "f8e4m3fn")
    return LayoutError(
        f"the format {name!r} has no rule for {element.name}\n"
        f"  write the layout out, e.g. {layout}, or "
        + ("write 'tpu'" if name != "tpu" and element.bits == 4 else f"convert to {wider}")
    )


def _vector_tiles(dims: tuple[int, ...], packing: int) -> Tiles:
    """The tiles of a scalar or a vector."""
    if not dims:
        return ((LANES * packing,),)
    long = min(1024, max(LANES * packing, 1 << (dims[0] - 1).bit_length()))
    return ((long,), (LANES,), (packing, 1)) if packing > 1 else ((long,),)


def _tile_height(size: int, packing: int) -> int:
    """Rows of a tile for a second-minor dimension of that size."""
    if size % _FULL_HEIGHT[packing] == 0:
        return _FULL_HEIGHT[packing]
    height = packing
    while height < min(size, 8):
        height *= 2
    return height


def _minor_pair(dims: tuple[int, ...], packing: int) -> tuple[int, int]:
    """The minor and second-minor dimensions: the least padding wins, then the descending order."""
    total = math.prod(dims)
    last = len(dims) - 1
    # Among dimensions of equal size only the last two can win a tie, so there are few pairs for any rank.
    seen: dict[int, int] = {}
    candidates: list[int] = []
    for dim in range(last, -1, -1):
        if seen.get(dims[dim], 0) < 2:
            candidates.append(dim)
            seen[dims[dim]] = seen.get(dims[dim], 0) + 1

    def cost(pair: tuple[int, int]) -> tuple[int, bool, int, int]:
        minor, second = pair
        height = _tile_height(dims[second], packing)
        padded = rounded_up(dims[minor], LANES) * rounded_up(dims[second], height)
        return total // (dims[minor] * dims[second]) * padded, pair != (last, last - 1), -minor, -second

    return min(((m, s) for m in candidates for s in candidates if m != s), key=cost)


def _tpu_doc(element: Element, dims: tuple[int, ...]) -> str:
    """The list on XLA's page on tiled layouts, with one bit for a pred element."""
    if len(dims) < 2 or element.bits >= 64:
        return _text(dims)
    if element.name == "pred":
        return _text(dims, ((32, LANES), (32, 1)), 1)
    if element.bits == 32:
        height = 2 if dims[-2] <= 2 else 4 if dims[-2] <= 4 else 8
        return _text(dims, ((height, LANES),))
    if element.bits not in (8, 16):
        raise _no_rule("tpu-doc", element, dims)
    return _text(dims, ((8, LANES), (32 // element.bits, 1)))


def _text(
    dims: tuple[int, ...], tiles: Tiles = (), width: int = 0, order: tuple[int, ...] | None = None
) -> str:
    """XLA's text of a layout; row-major unless `order` lists the dimensions from the minor one on.

    (33, 300), ((8, 128), (2, 1)) -> "{1,0:T(8,128)(2,1)}"

    Raises:
        LayoutError: there are too many dimensions.
    """
    if len(dims) > MAX_RANK:
        raise LayoutError(
            f"a tiled layout has at most {MAX_RANK} dimensions, got {len(dims)}\n  merge some of them"
        )
    minor = range(len(dims))[::-1] if order is None else order
    tail = "".join(f"({','.join(map(str, tile))})" for tile in tiles)
    rest = ("T" + tail if tail else "") + (f"E({width})" if width else "")
    return f"{{{','.join(map(str, minor))}{':' + rest if rest else ''}}}"


_TPU_RULE = (
    "{m,s,...:T(h,128)(p,1)}; m and s are the two dimensions that need the least padding, usually the last "
    "one and the one before it. p elements share 32 bits; if p is 1, (p,1) is omitted. A tile has h rows of "
    "128 elements: h is 8, or 32 for 8-bit and 64 for 4-bit elements, if the size of s is a multiple of it. "
    "Otherwise, h is the smallest power of two that is at least p and at least the size of s, but at most 8."
)
_DOC_RULE = (
    "{...,1,0:T(8,128)(p,1)}; p elements of 8 or 16 bits share 32 bits. 32-bit elements have T(8,128) alone, "
    "or T(2,128) for arrays of at most 2 rows and T(4,128) for at most 4. pred has T(32,128)(32,1)E(1), with "
    "one bit for each element. 64-bit elements have no tiles."
)
FAMILY = Family(
    "tpu-tiles",
    "TPU tiles, as XLA's compiler lays them out",
    (
        entry(
            "tpu",
            "current TPU layouts: the dimension order with the least padding, tiles by dtype and size",
            _tpu,
            ((16, 256), "bf16"),
            "layouts that XLA gives compiled TPU programs, v4 to v7",
            rule=_TPU_RULE,
        ),
        entry(
            "tpu-doc",
            "XLA's documented TPU tiles: row-major, tiles of 8 x 128, a second tile for narrow dtypes",
            _tpu_doc,
            ((16, 256), "bf16"),
            "https://openxla.org/xla/tiled_layout",
            rule=_DOC_RULE,
        ),
        entry(
            "tpu-int4",
            "TPU int4: tiles of 64 x 128, 8 rows in 32 bits, array M N; T(64,128)(8,1)E(4)",
            ordered("(M t r) (N n) -> M N t n r, t=8, r=8, n=128", bits=4),
            ((64, 128), "uint8"),
            "https://openxla.org/xla/tiled_layout",
            verified="definition",
        ),
    ),
)
