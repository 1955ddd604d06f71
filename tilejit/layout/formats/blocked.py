"""Formats that pad, reshape and transpose, each written as a pattern; oneDNN's tags are among them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from codegen import LayoutError
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.blocking import Blocking
from tilejit.layout.formats.format import Dims, Format
from tilejit.layout.formats.pattern import checked_size
from tilejit.layout.helpers import dims_text
from tilejit.layout.text.pattern_text import parse_pattern
from tilejit.layout.text.tags import parse_tag

MAX_MORTON = 256
Element = PrimitiveType
Sizes = dict[str, int]


def _tenstorrent(
    element: Element, tile: int | tuple[int, int] = 32, face: int | tuple[int, int] | None = None
) -> Sizes:
    height, width = _pair(tile, "tile")
    rows, columns = (min(16, height), min(16, width)) if face is None else _pair(face, "face")
    if height % rows or width % columns:
        raise LayoutError(
            f"faces of {rows} x {columns} do not divide a tile of {height} x {width}\n"
            "  pass face= sizes that divide those of tile="
        )
    return {"mf": height // rows, "m": rows, "nf": width // columns, "n": columns}


def _nc1hwc0(element: Element, c0: int | None = None) -> Sizes:
    return {"c": _c0("NC1HWC0", element, c0)}


def _fractal_nz(element: Element, m0: int = 16, c0: int | None = None) -> Sizes:
    return {"m": checked_size("m0", m0), "n": _c0("fractal_nz", element, c0)}


def _vnni(element: Element, pack: int | None = None) -> Sizes:
    return {"k": _packed("vnni", element, pack)}


def _amx_b(element: Element, pack: int | None = None) -> Sizes:
    return {"k": _packed("amx-b", element, pack)}


def _nvfp4_scales(element: Element) -> Sizes:
    return _scales("nvfp4-scales", element)


def _mx_scales(element: Element) -> Sizes:
    return _scales("mx-scales", element)


def _scales(name: str, element: Element) -> Sizes:
    _width(name, element, {8: 1}, "view the scales as uint8, or convert them to f8e4m3fn or f8e8m0fnu")
    return {}


def _aiter_preshuffle(element: Element) -> Sizes:
    fix = "convert to a 16-bit or an 8-bit type"
    k = _width("aiter-preshuffle", element, {16: 8, 8: 16}, fix)
    return {"k2": 32 // k, "k": k}


def _crouton(element: Element) -> Sizes:
    pair = _width("crouton", element, {16: 2, 8: 1}, "convert to a 16-bit or an 8-bit type")
    return {"w": 8 // pair // pair, "w2": pair}


def _blis_a(element: Element, mr: int = 6) -> Sizes:
    return {"mr": checked_size("mr", mr)}


def _blis_b(element: Element, nr: int | None = None) -> Sizes:
    return {"nr": max(1, 512 // element.storage_bits) if nr is None else checked_size("nr", nr)}


def _fixed(element: Element) -> Sizes:
    """The sizes of a pattern that specifies all of them."""
    return {}


def _morton(element: Element, dims: Dims, *, size: int = 8) -> Blocking:
    block = checked_size("size", size)
    if not 2 <= block <= MAX_MORTON or block & (block - 1):
        raise LayoutError(f"size={block} is not a power of two from 2 to {MAX_MORTON}\n  write e.g. size=8")
    return _blocked("morton", _morton_pattern(block.bit_length() - 1), dims, {})


def _morton_pattern(bits: int) -> str:
    """Blocks of 2**bits rows and columns, with a digit for each bit."""
    rows, columns = (" ".join(f"{axis}{bit}" for bit in range(bits)) for axis in "mn")
    mixed = [f"{axis}{bit}" for bit in range(bits) for axis in "mn"]
    sizes = ", ".join(f"{name}=2" for name in mixed)
    return f"... (M {rows}) (N {columns}) -> ... M N {' '.join(mixed)}, {sizes}"


def _blocked(name: str, pattern: str, dims: Dims, sizes: Sizes) -> Blocking:
    """The blocking of a format's pattern; raises in the format's name for arrays of the wrong rank."""
    parsed = parse_pattern(pattern)
    groups = [group for group in parsed.groups if not group.ellipsis]
    open_ended = len(groups) < len(parsed.groups)
    if len(dims) < len(groups) or (len(dims) > len(groups) and not open_ended):
        names = ", ".join(group.axes[0].text for group in groups)
        more = " or more" if open_ended else ""
        raise LayoutError(
            f"the format {name!r} takes {len(groups)}{more} dimensions, the last {names}; got an array "
            f"{dims_text(dims)}\n"
            "  reshape it, or choose another format"
        )
    return parsed.blocking(dims, sizes)


def _width(name: str, element: Element, rule: dict[int, int], fix: str) -> int:
    """The entry of a format's rule for elements of that width in bits."""
    # pred has one bit but is stored as a byte; types of 4 or 6 bits do not fill a byte.
    bits = 8 if element.name == "pred" else element.bits
    if bits not in rule:
        raise LayoutError(f"the format {name!r} has no rule for {element.name}\n  {fix}")
    return rule[bits]


def _c0(name: str, element: Element, c0: int | None) -> int:
    """Elements of the innermost block on Ascend: 32 bytes for 16-bit and 8-bit types."""
    if c0 is not None:
        return checked_size("c0", c0)
    return _width(name, element, {16: 16, 8: 32}, "pass its innermost block, e.g. c0=16")


def _packed(name: str, element: Element, pack: int | None) -> int:
    """The number of rows that share 32 bits."""
    if pack is not None:
        return checked_size("pack", pack)
    return _width(name, element, {16: 2, 8: 4}, "pass the number of rows that lie side by side, e.g. pack=8")


def _pair(sizes: object, name: str) -> tuple[int, int]:
    """Two sizes, or one for both."""
    if not isinstance(sizes, tuple | list):
        size = checked_size(name, sizes)
        return size, size
    if len(sizes) != 2:
        raise LayoutError(f"{name} has {len(sizes)} sizes\n  pass rows and columns, e.g. {name}=(32, 32)")
    rows, columns = sizes
    return checked_size(name, rows), checked_size(name, columns)


ONEDNN = "oneDNN, dnnl_format_tag_t in dnnl_types.h"


def tag_format(tag: str, description: str | None = None, example: tuple[Dims, str] | None = None) -> Format:
    """Return the format for a oneDNN blocked tag.

    Raises:
        LayoutError: the tag has a mistake.
    """
    parsed = parse_tag(tag)

    def build(element: Element, dims: Dims) -> Blocking:
        return parsed.blocking(dims)

    blocked = {letter: prod(n for n, name in parsed.blocks if name == letter) for _, letter in parsed.blocks}
    plain = [letter for letter in parsed.dims if letter not in blocked]
    # A picture shows two dimensions with more than one index: blocked ones, otherwise the last ones.
    small = dict.fromkeys(parsed.dims, 1 if blocked else 2) | {d: 2 * n for d, n in blocked.items()}
    if len(blocked) == 1 and plain:
        small[plain[-1]] = 4
    dims = tuple(small[letter] for letter in parsed.dims)
    what = description or f"oneDNN's tag, dimensions {' '.join(parsed.dims)}"
    return Format(tag, what, build, (), example or (dims, "f32"), parsed.formula, ONEDNN)


def pattern_format(
    name: str,
    description: str,
    pattern: str,
    example: tuple[Dims, str],
    source: str,
    sizes: Callable[..., Sizes] = _fixed,
    rule: str = "",
    parameters: tuple[str, ...] = (),
) -> Format:
    """Create a format from a pattern.

    Args:
        name: the format's name.
        description: one line about it.
        pattern: the pattern.
        example: dimensions and dtype of a small array.
        source: where the format is defined.
        sizes: sizes(element, **parameters) -> the sizes that the pattern omits.
        rule: those sizes in words.
        parameters: the keywords of `sizes`.
    """

    def build(element: Element, dims: Dims, **given: Any) -> Blocking:
        return _blocked(name, pattern, dims, sizes(element, **given))

    return Format(
        name, description, build, parameters, example, "; ".join(filter(None, (pattern, rule))), source
    )


_HALF, _BYTE = "bf16", "s8"
_CUBLASLT = "cuBLAS, cublasLtOrder_t:"
_SCALES = "... (R r4 r) (C c) -> ... R C r r4 c, r4=4, r=32, c=4"
_SCALES_SOURCE = "cuBLAS, 1D block scaling factors layout"
_INTEL = "Intel 64 and IA-32 Architectures Software Developer's Manual:"
_ASCEND = "Huawei CANN, data format"
FORMATS = (
    pattern_format(
        "tenstorrent",
        "ttnn's TILE: tiles of 32 x 32 in four faces of 16 x 16",
        "... (M mf m) (N nf n) -> ... M N mf nf m n",
        ((64, 64), _HALF),
        "tt-metal, tech_reports/tensor_layouts/tensor_layouts.md",
        _tenstorrent,
        "m x n = face, 16 x 16; mf m x nf n = tile, 32 x 32",
        ("tile", "face"),
    ),
    tag_format("nChw16c", "oneDNN: channels in blocks of 16, array N C H W", ((1, 32, 1, 4), "f32")),
    tag_format("nChw8c", "oneDNN: channels in blocks of 8, array N C H W", ((1, 16, 1, 4), "f32")),
    pattern_format(
        "NC1HWC0",
        "Ascend: channels in blocks of c0 (16-bit: 16, 8-bit: 32), array N C H W",
        "N (C c) H W -> N C H W c",
        ((1, 32, 1, 4), "f16"),
        f"{_ASCEND} NC1HWC0",
        _nc1hwc0,
        "c = c0, by default 16 for 16 bits and 32 for 8 bits",
        ("c0",),
    ),
    tag_format("OIhw16i16o", "oneDNN: weights in blocks of 16 x 16, array O I H W", ((16, 16, 1, 1), "f32")),
    tag_format("OIhw4i16o4i", "oneDNN: int8 weights, array O I H W", ((16, 16, 1, 1), _BYTE)),
    pattern_format(
        "vnni",
        "VNNI: rows of K side by side, as many as share 32 bits, array K N",
        "... (K k) N -> ... K N k",
        ((8, 16), _HALF),
        f"{_INTEL} VPDPBUSD, VDPBF16PS",
        _vnni,
        "k = pack, by default 32 / bits",
        ("pack",),
    ),
    pattern_format(
        "amx-b",
        "AMX: B in tiles of 16 rows of 64 bytes, rows of K side by side, array K N",
        "... (K rows k) (N n) -> ... K N rows n k, rows=16, n=16",
        ((64, 32), _HALF),
        f"{_INTEL} TDPBUSD, TDPBF16PS",
        _amx_b,
        "k = pack, by default 32 / bits",
        ("pack",),
    ),
    pattern_format(
        "col32",
        "cuBLASLt: columns in groups of 32, array M N",
        "... M (N n) -> ... N M n, n=32",
        ((8, 64), _BYTE),
        f"{_CUBLASLT} CUBLASLT_ORDER_COL32",
    ),
    pattern_format(
        "col4_4r2_8c",
        "cuBLASLt: int8 matrix B for Turing, array M N",
        "... (M m4 m2) (N n4 n2 n) -> ... N M m2 n4 n2 m4 n, m4=4, m2=2, n4=4, n2=2, n=4",
        ((16, 64), _BYTE),
        f"{_CUBLASLT} CUBLASLT_ORDER_COL4_4R2_8C",
    ),
    pattern_format(
        "col32_2r_4r4",
        "cuBLASLt: int8 matrix B for Ampere, array M N",
        "... (M m8 m2 m) (N n) -> ... N M m2 m8 m n, m8=4, m2=4, m=2, n=32",
        ((64, 64), _BYTE),
        f"{_CUBLASLT} CUBLASLT_ORDER_COL32_2R_4R4",
    ),
    pattern_format(
        "nvfp4-scales",
        "NVFP4's scales, one for 16 elements, in blocks of 128 x 4, array R C",
        _SCALES,
        ((128, 8), "f8e4m3fn"),
        _SCALES_SOURCE,
        _nvfp4_scales,
    ),
    pattern_format(
        "mx-scales",
        "MX formats' scales, one for 32 elements, in blocks of 128 x 4, array R C",
        _SCALES,
        ((128, 8), "f8e8m0fnu"),
        _SCALES_SOURCE,
        _mx_scales,
    ),
    pattern_format(
        "aiter-preshuffle",
        "ROCm aiter's weights for matrix cores: 16 rows by 16 bytes, array N K",
        "... (N n) (K k2 k) -> ... N K k2 n k, n=16",
        ((32, 64), _HALF),
        "ROCm aiter, shuffle_weight in aiter/ops/shuffle.py",
        _aiter_preshuffle,
        "k = 128 / bits; k2 = 32 / k",
    ),
    pattern_format(
        "fractal_nz",
        "Ascend: blocks of m0 x c0, column by column, array M N",
        "... (M m) (N n) -> ... N M m n",
        ((32, 32), "f16"),
        f"{_ASCEND} FRACTAL_NZ",
        _fractal_nz,
        "m = m0, by default 16; n = c0, by default 16 for 16 bits and 32 for 8 bits",
        ("m0", "c0"),
    ),
    pattern_format(
        "crouton",
        "Hexagon: blocks of 2 KiB, array N H W C",
        "N (H h) (W w w2) (C c) -> N H W C h w c w2, h=8, c=32",
        ((1, 16, 16, 32), "uint8"),
        "Apache TVM for Hexagon, layouts nhwc-8h2w32c2w and nhwc-8h8w32c",
        _crouton,
        "w = 8, w2 = 1 for 8 bits; w = 2, w2 = 2 for 16 bits",
    ),
    pattern_format(
        "blis-a",
        "BLIS: panels of mr rows, column by column, array M K",
        "... (M mr) K -> ... M K mr",
        ((12, 8), "f32"),
        "BLIS, docs/KernelsHowTo.md: micropanels of A",
        _blis_a,
        "mr = 6 by default",
        ("mr",),
    ),
    pattern_format(
        "blis-b",
        "BLIS: panels of nr columns (64 bytes), row by row, array K N",
        "... K (N nr) -> ... N K nr",
        ((8, 32), "f32"),
        "BLIS, docs/KernelsHowTo.md: micropanels of B",
        _blis_b,
        "nr = 512 / bits by default",
        ("nr",),
    ),
    Format(
        "morton",
        "textures: blocks of size x size, the bits of row and column interleaved, array M N",
        _morton,
        ("size",),
        ((16, 16), "uint8"),
        f"{_morton_pattern(3)}; for size = 8, the default; m0 and n0 are the highest bits",
        "G. M. Morton, A Computer Oriented Geodetic Data Base, 1966",
    ),
)
