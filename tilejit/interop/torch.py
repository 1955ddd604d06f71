"""Share memory between torch tensors, arrays and tiled buffers. Needs the extra `torch`.

`to_torch(t)`, `from_torch(tensor, layout)`, `pack(tensor, layout)` and `unpack(tensor, layout)` take tensors
on the CPU. bfloat16, 8-bit floats and bool keep their dtype.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np

if find_spec("torch") is None:
    raise ImportError("tilejit.interop.torch needs torch: pip install 'tilejit[torch]'", name="torch")

import torch

from codegen import LayoutError
from tilejit.arrays.array_likes import BY_BITS, view_of_tensor
from tilejit.arrays.memory import Array
from tilejit.copies import convert
from tilejit.interop.tiled_over import tiled_over
from tilejit.layout.as_layout import LayoutLike
from tilejit.layout.dtypes import ElementLike
from tilejit.programs.tuning import AUTO, STRUCTURE, Casting, Padding, Specialize, Tune, VectorSize
from tilejit.tiled.tiled_array import TiledArray

__all__ = ["from_torch", "numpy_view", "pack", "to_torch", "unpack"]


def to_torch(t: TiledArray | Array, /) -> torch.Tensor:
    """Create a tensor over the memory of an array, or of a tiled array's flat buffer, without a copy.

    >>> x = np.zeros((1000, 300), np.float32)
    >>> t = tilejit.pack(x, "bf16[1000,300]{1,0:T(8,128)(2,1)}", casting="same_kind")
    >>> to_torch(t).dtype, to_torch(t).shape
    (torch.bfloat16, torch.Size([384000]))

    Args:
        t: a TiledArray, or a NumPy array of any shape. Packed elements of at most four bits become uint8.

    Returns:
        The tensor. It keeps the memory alive; writes to either are visible in both.

    Raises:
        LayoutError: torch does not support the dtype, the byte order or the strides, or the memory is
            read-only.
        TypeError: `t` is neither a TiledArray nor an array.
    """
    array = t.buffer if isinstance(t, TiledArray) else t
    if not isinstance(array, np.ndarray):
        raise TypeError(f"to_torch: expected a TiledArray or a NumPy array, got {type(t).__name__}")
    array = np.asarray(array)
    if not array.flags.writeable:
        raise LayoutError("the array is read-only, but torch tensors are writable\n  copy it first")
    if not array.dtype.isnative:
        raise LayoutError(
            f"torch does not support {array.dtype.str}\n  convert to native byte order: x.astype('=…')"
        )
    if any(stride < 0 or stride % max(1, array.itemsize) for stride in array.strides):
        raise LayoutError(
            f"torch tensors cannot have strides of {array.strides} bytes\n  copy it first: tilejit.copy(x)"
        )
    bits = BY_BITS.get(array.dtype.name)
    own = getattr(torch, array.dtype.name, None) if bits else None
    if bits and own is not None:
        return torch.from_numpy(array.view(bits)).view(own)
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise LayoutError(
            f"torch does not support {array.dtype}\n  view the elements as integers: x.view(np.uint8)"
        ) from error


def from_torch(
    tensor: torch.Tensor,
    /,
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> TiledArray:
    """Create a tiled array over the memory of a flat tensor, without a copy.

    >>> flat = pack(torch.arange(300000.0).reshape(1000, 300), "{1,0:T(8,128)}")
    >>> float(from_torch(flat, "f32[1000,300]{1,0:T(8,128)}")[5, 7])
    1507.0

    Args:
        tensor: a contiguous tensor of any shape with the layout's size in bytes, padding included. Its dtype
            is the layout's dtype, or uint8.
        layout: the layout: anything that `as_layout` reads.
        dtype: the dtype of a layout without one; None takes the tensor's.
        dims: the dimensions of a layout without any.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array. It keeps the tensor alive.

    Raises:
        LayoutError: the tensor has another dtype or size, or its memory cannot be read; see `numpy_view`.
        TypeError: `tensor` is not a tensor, or the layout does not take a keyword.
    """
    buffer = numpy_view(tensor)
    if not buffer.flags.c_contiguous:
        raise LayoutError(
            f"the tensor is not contiguous: its strides are {tuple(tensor.stride())}\n"
            "  pass tensor.contiguous()"
        )
    return tiled_over(buffer, "tensor", layout, dtype, dims, parameters)


def pack(
    tensor: torch.Tensor,
    /,
    layout: LayoutLike,
    *,
    out: torch.Tensor | None = None,
    padding: Padding | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> torch.Tensor:
    """Pack a tensor into a layout.

    >>> weights = torch.ones(1000, 300)
    >>> pack(weights, "tenstorrent").shape
    torch.Size([327680])
    >>> out = torch.empty(384000)
    >>> pack(weights, "{1,0:T(8,128)}", out=out).data_ptr() == out.data_ptr()
    True

    Args:
        tensor: a tensor on the CPU with any strides.
        layout: the layout: anything that `as_layout` reads.
        out: where to write: a flat tensor of the same dtype or uint8 and of the layout's size. It must not
            overlap `tensor`. None allocates one.
        padding: the value of padding elements, as in `tilejit.pack`.
        casting: NumPy's rule for conversions, as in `tilejit.pack`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `tilejit.copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The flat buffer, padding included.

    Raises:
        LayoutError: as `tilejit.pack`; or the memory of a tensor cannot be read, see `numpy_view`.
        TypeError: as `tilejit.pack`.
    """
    target = None if out is None else numpy_view(out, "out")
    packed = convert.pack(
        numpy_view(tensor),
        layout,
        out=target,
        padding=padding,
        casting=casting,
        threads=threads,
        virtual_vector_size=virtual_vector_size,
        specialize=specialize,
        tune=tune,
        **parameters,
    )
    return to_torch(packed) if out is None else out


def unpack(
    tensor: torch.Tensor,
    /,
    layout: LayoutLike,
    *,
    out: torch.Tensor | None = None,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    casting: Casting = "no",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    **parameters: Any,
) -> torch.Tensor:
    """Unpack a flat buffer in a layout to a tensor.

    >>> flat = pack(torch.ones(1000, 300), "tenstorrent")
    >>> unpack(flat, "tenstorrent", dims=(1000, 300)).shape
    torch.Size([1000, 300])

    Args:
        tensor: a contiguous tensor of any shape with the layout's size in bytes, padding included. Its dtype
            is the layout's dtype, or uint8.
        layout: the layout: anything that `as_layout` reads.
        out: where to write: a tensor of the logical shape with any strides. None allocates one.
        dtype: the dtype of a layout without one; None takes the tensor's.
        dims: the dimensions of a layout without any.
        casting: NumPy's rule for conversions, as in `tilejit.unpack`.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `tilejit.copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tensor, without padding.

    Raises:
        LayoutError: as `from_torch` and `tilejit.unpack`; or torch does not support the dtype.
        TypeError: as `tilejit.unpack`.
    """
    target = None if out is None else numpy_view(out, "out")
    tiled = from_torch(tensor, layout, dtype=dtype, dims=dims, **parameters)
    array = convert.unpack(
        tiled,
        out=target,
        casting=casting,
        threads=threads,
        virtual_vector_size=virtual_vector_size,
        specialize=specialize,
        tune=tune,
    )
    return to_torch(array) if out is None else out


def numpy_view(tensor: torch.Tensor, what: str = "the tensor") -> Array:
    """Create a NumPy array over the memory of a tensor; bfloat16 and 8-bit floats become ml_dtypes types.

    >>> numpy_view(torch.ones(2, 3, dtype=torch.bfloat16)).dtype
    dtype(bfloat16)

    Args:
        tensor: a tensor on the CPU with any strides.
        what: the name of the tensor in messages.

    Returns:
        The array, with the tensor's shape and strides.

    Raises:
        LayoutError: the tensor requires a gradient, is not on the CPU, is sparse or quantized, is in oneDNN's
            own memory, is an unresolved conjugate or negation, or has a dtype that NumPy lacks.
        TypeError: `tensor` is not a tensor.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what}: expected a torch.Tensor, got {type(tensor).__name__}")
    reason = _unreadable(tensor)
    if reason is not None:
        raise LayoutError(f"{what} {reason}")
    if tensor.dtype in _BYTES:
        tensor = tensor.view(torch.uint8)
    try:
        array: Array = view_of_tensor(tensor, torch)
    except (RuntimeError, TypeError) as error:
        raise LayoutError(f"{what} cannot be read: {str(error)[:200]}\n  clone it, or convert it") from error
    return array


_BYTES = tuple(getattr(torch, name) for name in ("float4_e2m1fn_x2",) if hasattr(torch, name))
"""Dtypes of packed elements, whose memory is read as bytes."""


def _unreadable(tensor: torch.Tensor) -> str | None:
    """Why there is no NumPy array over a tensor's memory, and what to do; None if there is one."""
    if tensor.layout is not torch.strided:
        if str(tensor.layout) == "torch._mkldnn":
            return "is in oneDNN's memory\n  pass tensor.to_dense(), or read it with tilejit.interop.onednn"
        return f"is sparse ({tensor.layout})\n  pass tensor.to_dense()"
    if tensor.device.type == "meta":
        return "is on the device meta, which holds no elements\n  load the tensor first"
    if tensor.device.type != "cpu":
        return f"is on the device {tensor.device}\n  move it to the CPU: tensor.cpu()"
    if tensor.requires_grad:
        return "requires a gradient, which a copy would lose\n  pass tensor.detach()"
    if tensor.is_quantized:
        return "is quantized\n  pass tensor.int_repr(), its integers"
    if tensor.is_conj():
        return "is an unresolved conjugate\n  pass tensor.resolve_conj()"
    if tensor.is_neg():
        return "is an unresolved negation\n  pass tensor.resolve_neg()"
    return None
