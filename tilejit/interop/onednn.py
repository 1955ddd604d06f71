"""oneDNN's blocked memory formats by tag: `aBcd16b`, `nChw16c`, `OIhw4i16o4i`. Needs no package.

`to_onednn(x, tag)` writes the same bytes as a oneDNN reorder to that tag, with zeros as padding, and
`from_onednn` reads them. `memory_desc(tag, dtype, dims)` returns the fields of dnnl_memory_desc_t for callers
of the C library. `of_mkldnn(tensor, tag)` shares the memory of a torch tensor that oneDNN owns.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.copies import convert
from tilejit.copies.sources import as_array
from tilejit.layout.as_layout import named_format
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import ElementLike, PrimitiveType, primitive_type
from tilejit.layout.helpers import dims_text
from tilejit.layout.text.tags import is_tag, parse_tag
from tilejit.tiled.tiled_array import TiledArray

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MemoryDesc", "from_onednn", "layout_of", "memory_desc", "of_mkldnn", "to_onednn"]

DATA_TYPES = {
    "f16": 1,
    "bf16": 2,
    "f32": 3,
    "s32": 4,
    "s8": 5,
    "u8": 6,
    "f64": 7,
    "pred": 8,
    "f8e5m2": 9,
    "f8e4m3fn": 10,
    "s4": 11,
    "u4": 12,
    "f8e8m0fnu": 13,
    "f4e2m1fn": 14,
    "s64": 16,
}
"""dnnl_data_type_t of each dtype, from dnnl_types.h of oneDNN 3; types from f8_e5m2 on are newer than 3.3."""


@dataclass(frozen=True, slots=True)
class MemoryDesc:
    """The fields of a dnnl_memory_desc_t, named as in dnnl_query_t.

    >>> desc = memory_desc("nChw16c", "f32", (2, 20, 5, 7))
    >>> desc.strides, desc.inner_blks, desc.size
    ((1120, 560, 112, 16), (16,), 8960)

    Attributes:
        dims: logical dimensions, in elements.
        padded_dims: the dimensions padded to whole blocks.
        data_type: dnnl_data_type_t.
        strides: the stride of each dimension, or of its blocks, in elements.
        inner_blks: sizes of the blocks, the outermost first.
        inner_idxs: the dimension of each block.
        size: bytes of the memory, padding included.
    """

    dims: tuple[int, ...]
    padded_dims: tuple[int, ...]
    data_type: int
    strides: tuple[int, ...]
    inner_blks: tuple[int, ...]
    inner_idxs: tuple[int, ...]
    size: int


def to_onednn(
    x: ArrayLike, tag: str, /, *, out: Array | TiledArray | None = None, threads: int | None = None
) -> TiledArray:
    """Pack an array into the memory of a oneDNN tag, as a oneDNN reorder writes it.

    >>> weights = np.ones((20, 5, 3, 3), np.float32)
    >>> to_onednn(weights, "OIhw16i16o").buffer.shape  # 2 x 1 x 3 x 3 blocks of 16 x 16
    (4608,)

    Args:
        x: an array, or a torch tensor or jax array on the CPU, with any strides. Its dimensions are the
            logical ones: N C H W for nChw16c.
        tag: the tag, such as "nChw16c" or "aBcd16b".
        out: where to write, as in `tilejit.pack`; None allocates a buffer that is aligned to 64 bytes.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The tiled array. Its padding is zero, and elements of four bits are packed two to a byte.

    Raises:
        LayoutError: the tag is not valid, the array's rank differs from the tag's, or oneDNN does not support
            the dtype; or as `tilejit.pack`.
        TypeError: the tag is not a str; or as `tilejit.pack`.
    """
    checked = _checked_tag(tag)
    array = as_array(x)
    spec = layout_of(checked, array.dtype, array.shape)
    return convert.pack(array, spec, out=out, threads=threads)


def from_onednn(
    buffer: Array | Buffer,
    tag: str,
    /,
    *,
    dtype: ElementLike,
    dims: Iterable[int],
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Unpack the memory of a oneDNN tag.

    >>> memory = to_onednn(np.ones((1, 20, 5, 7), np.float32), "nChw16c").buffer
    >>> from_onednn(memory, "nChw16c", dtype="f32", dims=(1, 20, 5, 7)).shape
    (1, 20, 5, 7)

    Args:
        buffer: a bytes-like object of the memory's size, padding included.
        tag: the tag, such as "nChw16c" or "aBcd16b".
        dtype: the element dtype.
        dims: the logical dimensions.
        out: where to write, as in `tilejit.unpack`; None allocates an array in C order.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The array, without padding.

    Raises:
        LayoutError: the tag is not valid, the buffer has another size, or oneDNN does not support the dtype;
            or as `tilejit.unpack`.
        TypeError: the tag is not a str; or as `tilejit.unpack`.
    """
    return convert.unpack(buffer, layout_of(tag, dtype, dims), out=out, threads=threads)


def layout_of(tag: str, dtype: ElementLike, dims: Iterable[int]) -> Spec:
    """Return the shape and layout of an array in a tag's memory.

    >>> print(layout_of("nChw16c", "f32", (2, 20, 5, 7)))
    f32[2,20,5,7]{3,2,1,0:T(16,1,1)}

    Args:
        tag: the tag, such as "nChw16c" or "aBcd16b".
        dtype: the element dtype.
        dims: the logical dimensions.

    Returns:
        A Shape, or a CuteShape if the tag has no tiled form.

    Raises:
        LayoutError: the tag is not valid, the rank of dims differs from the tag's, or oneDNN does not support
            the dtype.
        TypeError: an argument has the wrong type.
    """
    element = _element(dtype)
    packed = {"element_size_in_bits": element.bits} if element.bits < 8 and element.kind != "pred" else {}
    return named_format(_checked_tag(tag), element, dims, **packed)


def memory_desc(tag: str, dtype: ElementLike, dims: Iterable[int]) -> MemoryDesc:
    """Create the memory descriptor that dnnl_memory_desc_create_with_tag creates.

    >>> memory_desc("nChw16c", "f32", (2, 20, 5, 7)).padded_dims
    (2, 32, 5, 7)

    Args:
        tag: the tag, such as "nChw16c" or "aBcd16b".
        dtype: the element dtype.
        dims: the logical dimensions.

    Returns:
        The fields of the descriptor.

    Raises:
        LayoutError, TypeError: as `layout_of`.
    """
    sizes = int_tuple(dims, "dims")
    spec = layout_of(tag, dtype, sizes)
    parsed = parse_tag(tag)
    blocks = {letter: prod(n for n, name in parsed.blocks if name == letter) for letter in parsed.dims}
    padded = tuple(-(-n // blocks[d]) * blocks[d] for n, d in zip(sizes, parsed.dims, strict=True))
    strides = [0] * len(sizes)
    stride = prod(n for n, _ in parsed.blocks)
    for letter in reversed(parsed.order.lower()):
        at = parsed.dims.index(letter)
        strides[at] = stride
        stride *= max(1, padded[at] // blocks[letter])
    return MemoryDesc(
        sizes,
        padded,
        DATA_TYPES[spec.primitive_type],
        tuple(strides),
        tuple(n for n, _ in parsed.blocks),
        tuple(parsed.dims.index(letter) for _, letter in parsed.blocks),
        spec.size_in_bytes,
    )


def of_mkldnn(tensor: Any, tag: str, /) -> TiledArray:
    """Create a tiled array over the memory of a torch tensor that oneDNN owns, as from `to_mkldnn`.

    >>> weights = torch.ones(8, 4, 3, 3)
    >>> of_mkldnn(weights.to_mkldnn(), "abcd").unpack().shape
    (8, 4, 3, 3)

    A reordered weight has a blocked tag: `torch._C._nn.mkldnn_reorder_conv2d_weight` may choose "Acdb24a".

    Args:
        tensor: the tensor. The array keeps it alive.
        tag: the tag that oneDNN chose. torch does not expose it; run with ONEDNN_VERBOSE=2 to see it. A plain
            tensor has "abcd".

    Returns:
        The tiled array. Nothing is copied.

    Raises:
        LayoutError: the tensor's size in bytes does not match the tag; or as `layout_of`.
        TypeError: the object is not a tensor that oneDNN owns.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor) or not tensor.is_mkldnn:
        raise TypeError(f"of_mkldnn: expected the result of tensor.to_mkldnn(), got {type(tensor).__name__}")
    spec = layout_of(tag, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
    size = int(torch.ops.mkldnn._nbytes(tensor))
    if size != spec.size_in_bytes:
        raise LayoutError(
            f"the tensor has {size} bytes, but {tag} of {dims_text(spec.dimensions)} takes "
            f"{spec.size_in_bytes}\n  run with ONEDNN_VERBOSE=2 to see the tag that oneDNN chose"
        )
    memory: Any = (ctypes.c_ubyte * size).from_address(int(torch.ops.mkldnn.data_ptr(tensor)))
    memory.tensor = tensor  # the tensor keeps the memory alive
    return TiledArray.from_buffer(np.frombuffer(memory, np.uint8), spec)


def _checked_tag(tag: str) -> str:
    """Return the tag if it is valid.

    Raises:
        LayoutError: the tag is not valid; the message shows the mistake.
        TypeError: the tag is not a str.
    """
    if not isinstance(tag, str):
        raise TypeError(f"expected a tag such as 'nChw16c', got {type(tag).__name__}")
    if not is_tag(tag):
        raise LayoutError(
            f"{tag[:40]!r} is not a oneDNN tag\n  write its dimensions and blocks, e.g. nChw16c or aBcd16b"
        )
    parse_tag(tag)
    return tag


def _element(dtype: Any) -> PrimitiveType:
    """Return the dtype if oneDNN supports it."""
    element = primitive_type(dtype)
    if element.name not in DATA_TYPES:
        raise LayoutError(
            f"oneDNN does not support {element.name}\n  convert to one of {', '.join(DATA_TYPES)}"
        )
    return element
