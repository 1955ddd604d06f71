"""Textures: blocks of pixels whose bits of row and column are mixed."""

from __future__ import annotations

from collections.abc import Callable

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Dims, Element
from tilejit.catalog.packing import SAME_ORDER, Packing
from tilejit.catalog.widths import by_width

MAX_MORTON = 256
_PIXELS = "view the pixels as a type of 8, 16, 32, 64 or 128 bits, or as bytes"


def _morton(size: int = 8) -> Packing:
    """Blocks of size x size, with a digit for each bit of row and column."""
    block = checked_int("size", size, 2, MAX_MORTON, power_of_two=True)
    bits = range(block.bit_length() - 1)
    rows, columns = (" ".join(f"{axis}{bit}" for bit in bits) for axis in "mn")
    mixed = [f"{axis}{bit}" for bit in bits for axis in "mn"]
    sizes = ", ".join(f"{name}=2" for name in mixed)
    return ordered(f"... (M {rows}) (N {columns}) -> ... M N {' '.join(mixed)}, {sizes}")


def _interleaved(axes: str, order: str, dims: Dims) -> str:
    """The pattern of a whole array whose index has the bits of all axes in turns.

    "YX", "YX", (4, 8) -> "... (Y1 Y0) (X2 X1 X0) -> ... X2 Y1 X1 Y0 X0, X2=2, ...": x is in bit 0
    """
    widths = {axis: max(0, size - 1).bit_length() for axis, size in zip(axes, dims, strict=True)}
    groups = (" ".join(f"{axis}{bit}" for bit in reversed(range(widths[axis]))) for axis in axes)
    mixed = [
        f"{axis}{bit}"
        for bit in reversed(range(max(widths.values())))
        for axis in order
        if bit < widths[axis]
    ]
    left = " ".join(f"({group})" for group in groups)
    return ", ".join([f"... {left} -> ... {' '.join(mixed)}", *(f"{name}=2" for name in mixed)])


def _whole(axes: str, order: str) -> Callable[[Dims], Packing]:
    """The packing of a whole array, in the order of `_interleaved`."""

    names = " ".join(("...", *axes))

    def packing(dims: Dims) -> Packing:
        own = dims[-len(axes) :]  # if they are too few, the caller refuses them
        pattern = _interleaved(axes, order, own) if len(own) == len(axes) else SAME_ORDER
        return ordered(pattern, axes=names)

    return packing


def _pixels(name: str, element: Element) -> int:
    """The number of elements in 16 bytes."""
    return by_width(name, element, {8: 16, 16: 8, 32: 4, 64: 2, 128: 1}, _PIXELS)


def _tegra(element: Element, block_height: int = 16) -> Packing:
    height = checked_int("block_height", block_height, 1, 32, power_of_two=True)
    pattern = "... (Y b y z) (X u v c) -> ... Y X b u y v z c, y=4, z=2, u=2, v=2"
    return ordered(pattern, sizes={"b": height, "c": _pixels("tegra-block-linear", element)})


def _psp(element: Element) -> Packing:
    x = _pixels("psp-swizzled", element)
    return ordered("... (Y y) (X x) -> ... Y X y x, y=8", sizes={"x": x}, multiples={"X": x})


FAMILY = Family(
    "textures",
    "Textures and images in blocks",
    (
        entry(
            "morton",
            "textures: blocks of size x size, the bits of row and column interleaved, array M N",
            _morton,
            ((16, 16), "uint8"),
            "G. M. Morton, A Computer Oriented Geodetic Data Base, 1966",
            rule="for size = 8, the default; m0 and n0 are the highest bits",
            variants=grid(size=(8, 2, 4, 16, 32)),
        ),
        entry(
            "morton-2d",
            "Morton order of a whole array Y X, padded to powers of two",
            _whole("YX", "YX"),
            ((8, 8), "uint8"),
            "G. M. Morton, A Computer Oriented Geodetic Data Base, 1966",
            rule="for 8 x 8; bits of an index from bit 0: x0 y0 x1 ..., upper bits of the longer axis on top",
            verified="definition",
        ),
        entry(
            "morton-3d",
            "Morton order of a whole array Z Y X, padded to powers of two",
            _whole("ZYX", "ZYX"),
            ((4, 4, 4), "uint8"),
            "G. M. Morton, A Computer Oriented Geodetic Data Base, 1966",
            rule="for 4 x 4 x 4; bits of an index from bit 0: x0 y0 z0 ..., upper bits of longer axes on top",
            verified="definition",
        ),
        entry(
            "jpeg-8x8-blocks",
            "blocks of 8 x 8 samples, each row by row without a zigzag, array Y X",
            ordered("... (Y y) (X x) -> ... Y X y x, y=8, x=8"),
            ((16, 16), "uint8"),
            "ITU-T T.81, A.1 and A.2: blocks of 8 x 8 samples",
            verified="definition",
        ),
        entry(
            "tegra-block-linear",
            "Tegra: blocks of block_height GOBs of 64 bytes x 8 rows, array Y X of pixels or bytes",
            _tegra,
            ((16, 64), "uint8"),
            "py-tegra-swizzle 0.4.3, swizzle_block_linear",
            rule="b = block_height, by default 16; c = 128 / bits",
            verified="run: py-tegra-swizzle 0.4.3",
            variants=grid(block_height=(16, 1, 2, 4, 8, 32)),
        ),
        entry(
            "psvita-swizzled",
            "PS Vita: a swizzled texture, array Y X, padded to powers of two",
            _whole("YX", "XY"),
            ((8, 16), "uint8"),
            "Vita3K, texture code",
            rule="for 8 x 16; bits of an index from bit 0: y0 x0 ..., upper bits of the longer axis on top",
            verified="run in NumPy: the expressions of Vita3K",
        ),
        entry(
            "psvita-tiled",
            "PS Vita: a tiled texture, tiles of 32 x 32 pixels, array Y X",
            ordered("... (Y y) (X x) -> ... Y X y x, y=32, x=32"),
            ((64, 64), "uint8"),
            "Vita3K, texture code",
            verified="run in NumPy: the expressions of Vita3K",
        ),
        entry(
            "psp-swizzled",
            "PSP: blocks of 16 bytes x 8 rows, array Y X of pixels or bytes",
            _psp,
            ((16, 64), "uint8"),
            "PSPSDK, swizzle_fast",
            rule="x = 128 / bits",
            verified="read: not run",
        ),
    ),
)
