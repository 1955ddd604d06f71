"""Formats that pad, reshape and transpose, each written as a pattern; oneDNN's tags among them."""

from __future__ import annotations

from math import prod

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


def _tenstorrent(
    element: Element,
    dims: Dims,
    *,
    tile: int | tuple[int, int] = 32,
    face: int | tuple[int, int] | None = None,
) -> Blocking:
    height, width = _pair(tile, "tile")
    rows, columns = (min(16, height), min(16, width)) if face is None else _pair(face, "face")
    if height % rows or width % columns:
        raise LayoutError(
            f"a tile of {height} x {width} has no whole faces of {rows} x {columns}\n"
            "  give face= sizes that divide those of tile="
        )
    pattern = "... (M mf m) (N nf n) -> ... M N mf nf m n"
    return _blocked("tenstorrent", pattern, dims, mf=height // rows, m=rows, nf=width // columns, n=columns)


def _nc1hwc0(element: Element, dims: Dims, *, c0: int | None = None) -> Blocking:
    return _blocked("NC1HWC0", "N (C c) H W -> N C H W c", dims, c=_c0("NC1HWC0", element, c0))


def _fractal_nz(element: Element, dims: Dims, *, m0: int = 16, c0: int | None = None) -> Blocking:
    pattern = "... (M m) (N n) -> ... N M m n"
    return _blocked("fractal_nz", pattern, dims, m=checked_size("m0", m0), n=_c0("fractal_nz", element, c0))


def _vnni(element: Element, dims: Dims, *, pack: int | None = None) -> Blocking:
    return _blocked("vnni", "... (K k) N -> ... K N k", dims, k=_packed("vnni", element, pack))


def _amx_b(element: Element, dims: Dims, *, pack: int | None = None) -> Blocking:
    pattern = "... (K rows k) (N n) -> ... K N rows n k"
    return _blocked("amx-b", pattern, dims, rows=16, k=_packed("amx-b", element, pack), n=16)


def _col32(element: Element, dims: Dims) -> Blocking:
    return _blocked("col32", "... M (N n) -> ... N M n", dims, n=32)


def _col4_4r2_8c(element: Element, dims: Dims) -> Blocking:
    pattern = "... (M m4 m2) (N n4 n2 n) -> ... N M m2 n4 n2 m4 n"
    return _blocked("col4_4r2_8c", pattern, dims, m4=4, m2=2, n4=4, n2=2, n=4)


def _col32_2r_4r4(element: Element, dims: Dims) -> Blocking:
    pattern = "... (M m8 m2 m) (N n) -> ... N M m2 m8 m n"
    return _blocked("col32_2r_4r4", pattern, dims, m8=4, m2=4, m=2, n=32)


def _scales(element: Element, dims: Dims, *, name: str) -> Blocking:
    _width(name, element, {8: 1}, "view the scales as uint8, or convert them to f8e4m3fn or f8e8m0fnu")
    return _blocked(name, "... (R r4 r) (C c) -> ... R C r r4 c", dims, r4=4, r=32, c=4)


def _nvfp4_scales(element: Element, dims: Dims) -> Blocking:
    return _scales(element, dims, name="nvfp4-scales")


def _mx_scales(element: Element, dims: Dims) -> Blocking:
    return _scales(element, dims, name="mx-scales")


def _aiter_preshuffle(element: Element, dims: Dims) -> Blocking:
    mend = "convert to a 16-bit or an 8-bit type"
    k = _width("aiter-preshuffle", element, {16: 8, 8: 16}, mend)
    pattern = "... (N n) (K k2 k) -> ... N K k2 n k"
    return _blocked("aiter-preshuffle", pattern, dims, n=16, k2=32 // k, k=k)


def _crouton(element: Element, dims: Dims) -> Blocking:
    pair = _width("crouton", element, {16: 2, 8: 1}, "convert to a 16-bit or an 8-bit type")
    pattern = "N (H h) (W w w2) (C c) -> N H W C h w c w2"
    return _blocked("crouton", pattern, dims, h=8, w=8 // pair // pair, w2=pair, c=32)


def _blis_a(element: Element, dims: Dims, *, mr: int = 6) -> Blocking:
    return _blocked("blis-a", "... (M mr) K -> ... M K mr", dims, mr=checked_size("mr", mr))


def _blis_b(element: Element, dims: Dims, *, nr: int | None = None) -> Blocking:
    size = max(1, 512 // element.storage_bits) if nr is None else checked_size("nr", nr)
    return _blocked("blis-b", "... K (N nr) -> ... N K nr", dims, nr=size)


def _morton(element: Element, dims: Dims, *, size: int = 8) -> Blocking:
    block = checked_size("size", size)
    if not 2 <= block <= MAX_MORTON or block & (block - 1):
        raise LayoutError(f"size={block} is not a power of two from 2 to {MAX_MORTON}\n  write e.g. size=8")
    bits = range(block.bit_length() - 1)
    rows, columns = (" ".join(f"{axis}{bit}" for bit in bits) for axis in "mn")
    mixed = " ".join(f"m{bit} n{bit}" for bit in bits)
    pattern = f"... (M {rows}) (N {columns}) -> ... M N {mixed}"
    return _blocked("morton", pattern, dims, **{f"{axis}{bit}": 2 for axis in "mn" for bit in bits})


def _blocked(name: str, pattern: str, dims: Dims, **sizes: int) -> Blocking:
    """A pattern of a format, refused in the format's name for arrays of a wrong rank."""
    parsed = parse_pattern(pattern)
    groups = [group for group in parsed.groups if not group.ellipsis]
    open_ended = len(groups) < len(parsed.groups)
    if len(dims) < len(groups) or (len(dims) > len(groups) and not open_ended):
        names = ", ".join(group.axes[0].text for group in groups)
        more = " or more" if open_ended else ""
        raise LayoutError(
            f"the format {name!r} is of {len(groups)}{more} dimensions, the last {names}; "
            f"the array is {dims_text(dims)}\n  reshape it, or choose another format"
        )
    return parsed.blocking(dims, sizes)


def _width(name: str, element: Element, rule: dict[int, int], mend: str) -> int:
    """What a format's rule says for elements of that width, in bits."""
    # pred has one bit and is stored as a byte; types of 4 or 6 bits are no bytes.
    bits = 8 if element.name == "pred" else element.bits
    if bits not in rule:
        raise LayoutError(f"the format {name!r} has no rule for {element.name}\n  {mend}")
    return rule[bits]


def _c0(name: str, element: Element, c0: int | None) -> int:
    """Elements of the innermost block on Ascend: 32 bytes of 16-bit and 8-bit types."""
    if c0 is not None:
        return checked_size("c0", c0)
    return _width(name, element, {16: 16, 8: 32}, "give its innermost block, e.g. c0=16")


def _packed(name: str, element: Element, pack: int | None) -> int:
    """Rows that share 32 bits."""
    if pack is not None:
        return checked_size("pack", pack)
    return _width(name, element, {16: 2, 8: 4}, "say how many rows lie side by side, e.g. pack=8")


def _pair(sizes: object, name: str) -> tuple[int, int]:
    """Two sizes, or one for both."""
    if not isinstance(sizes, tuple | list):
        size = checked_size(name, sizes)
        return size, size
    if len(sizes) != 2:
        raise LayoutError(f"{name} has {len(sizes)} sizes\n  give rows and columns, e.g. {name}=(32, 32)")
    rows, columns = sizes
    return checked_size(name, rows), checked_size(name, columns)


def tag_format(tag: str, description: str | None = None, example: tuple[Dims, str] | None = None) -> Format:
    """The format that a blocked tag of oneDNN's stands for.

    Raises:
        LayoutError: a mistake in the tag.
    """
    parsed = parse_tag(tag)

    def build(element: Element, dims: Dims) -> Blocking:
        return parsed.blocking(dims)

    blocked = {letter: prod(n for n, name in parsed.blocks if name == letter) for _, letter in parsed.blocks}
    plain = [letter for letter in parsed.dims if letter not in blocked]
    # A picture shows two dimensions of more than one index: those with blocks, or the last without.
    small = dict.fromkeys(parsed.dims, 1 if blocked else 2) | {d: 2 * n for d, n in blocked.items()}
    if len(blocked) == 1 and plain:
        small[plain[-1]] = 4
    dims = tuple(small[letter] for letter in parsed.dims)
    what = description or f"oneDNN's tag, dimensions {' '.join(parsed.dims)}"
    return Format(tag, what, build, (), example or (dims, "f32"))


_HALF, _BYTE = "bf16", "s8"
FORMATS = (
    Format(
        "tenstorrent",
        "ttnn's TILE: tiles of 32 x 32 in four faces of 16 x 16",
        _tenstorrent,
        ("tile", "face"),
        ((64, 64), _HALF),
    ),
    tag_format("nChw16c", "oneDNN: channels in blocks of 16, array N C H W", ((1, 32, 1, 4), "f32")),
    tag_format("nChw8c", "oneDNN: channels in blocks of 8, array N C H W", ((1, 16, 1, 4), "f32")),
    Format(
        "NC1HWC0",
        "Ascend: channels in blocks of c0 (16-bit: 16, 8-bit: 32), array N C H W",
        _nc1hwc0,
        ("c0",),
        ((1, 32, 1, 4), "f16"),
    ),
    tag_format("OIhw16i16o", "oneDNN: weights in blocks of 16 x 16, array O I H W", ((16, 16, 1, 1), "f32")),
    tag_format("OIhw4i16o4i", "oneDNN: int8 weights, array O I H W", ((16, 16, 1, 1), _BYTE)),
    Format(
        "vnni",
        "VNNI: rows of K side by side, as many as share 32 bits, array K N",
        _vnni,
        ("pack",),
        ((8, 16), _HALF),
    ),
    Format(
        "amx-b",
        "AMX: B in tiles of 16 rows of 64 bytes, rows of K side by side, array K N",
        _amx_b,
        ("pack",),
        ((64, 32), _HALF),
    ),
    Format("col32", "cuBLASLt: columns in groups of 32, array M N", _col32, (), ((8, 64), _BYTE)),
    Format("col4_4r2_8c", "cuBLASLt: int8 B for Turing, array M N", _col4_4r2_8c, (), ((16, 64), _BYTE)),
    Format("col32_2r_4r4", "cuBLASLt: int8 B for Ampere, array M N", _col32_2r_4r4, (), ((64, 64), _BYTE)),
    Format(
        "nvfp4-scales",
        "NVFP4's scales, one for 16 elements, in blocks of 128 x 4, array R C",
        _nvfp4_scales,
        (),
        ((128, 8), "f8e4m3fn"),
    ),
    Format(
        "mx-scales",
        "MX formats' scales, one for 32 elements, in blocks of 128 x 4, array R C",
        _mx_scales,
        (),
        ((128, 8), "f8e8m0fnu"),
    ),
    Format(
        "aiter-preshuffle",
        "ROCm aiter's weights for matrix cores: 16 rows by 16 bytes, array N K",
        _aiter_preshuffle,
        (),
        ((32, 64), _HALF),
    ),
    Format(
        "fractal_nz",
        "Ascend: blocks of m0 x c0, columns of blocks one after the other, array M N",
        _fractal_nz,
        ("m0", "c0"),
        ((32, 32), "f16"),
    ),
    Format("crouton", "Hexagon: blocks of 2 KiB, array N H W C", _crouton, (), ((1, 16, 16, 32), "u8")),
    Format(
        "blis-a", "BLIS: panels of mr rows, column by column, array M K", _blis_a, ("mr",), ((12, 8), "f32")
    ),
    Format(
        "blis-b",
        "BLIS: panels of nr columns (64 bytes), row by row, array K N",
        _blis_b,
        ("nr",),
        ((8, 32), "f32"),
    ),
    Format(
        "morton",
        "textures: in blocks of size x size, the bits of row and column by turns, array M N",
        _morton,
        ("size",),
        ((16, 16), "u8"),
    ),
)
