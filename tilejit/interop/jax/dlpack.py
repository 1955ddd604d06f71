"""Export NumPy arrays to jax by DLPack, including ml_dtypes dtypes, which NumPy's own export rejects."""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import jax.dlpack
import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import LINE_BYTES, Array, address, empty
from tilejit.layout.dtypes import from_numpy
from tilejit.numpy_api.copyto import copyto

TYPE_CODES = {
    "bf16": 4,
    "f8e3m4": 7,
    "f8e4m3": 8,
    "f8e4m3b11fnuz": 9,
    "f8e4m3fn": 10,
    "f8e4m3fnuz": 11,
    "f8e5m2": 12,
    "f8e5m2fnuz": 13,
    "f8e8m0fnu": 14,
}
"""DLDataTypeCode of types that NumPy does not export, from dlpack.h of DLPack 1.1."""
_CODE_AT = 20
"""Bytes before the type code in a DLTensor: the address, the device's type and number, and the rank."""

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True, slots=True)
class _Renamed:
    """NumPy's export of an integer array whose elements are declared as another type of the same width."""

    integers: Array
    code: int

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.integers.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.integers.__dlpack__(stream=None)
        ctypes.c_uint8.from_address(_pointer_of(capsule, b"dltensor") + _CODE_AT).value = self.code
        return capsule


def jax_array_over(array: Array, copy: bool | None) -> jax.Array:
    """A jax array over the memory of a NumPy array, or of a copy of it; see `tilejit.interop.jax.to_jax`.

    Raises:
        LayoutError: jax does not support the dtype, or copy is False and a copy is needed.
    """
    element = from_numpy(array.dtype)
    _refuse_dtype(array.dtype)
    reason = _why_copied(array)
    if copy is False and reason:
        raise LayoutError(f"jax cannot share this memory: {reason}\n  omit copy=False")
    if element.bits < 8 and element.kind != "pred":
        return jax.numpy.array(array)
    if copy or reason:
        fresh = empty(array.shape, array.dtype.newbyteorder("="))
        copyto(fresh, array)
        array = fresh
    code = TYPE_CODES.get(element.name)
    if code is None:
        return jax.dlpack.from_dlpack(array)
    return jax.dlpack.from_dlpack(_Renamed(array.view(f"u{array.itemsize}"), code))


def _refuse_dtype(dtype: np.dtype[Any]) -> None:
    """Raise a LayoutError unless jax keeps elements of a dtype unchanged."""
    try:
        own = jax.dtypes.canonicalize_dtype(dtype.newbyteorder("="))
    except TypeError as error:
        raise LayoutError(
            f"jax does not support {dtype}\n  view the elements as integers of the same width"
        ) from error
    if own != dtype.newbyteorder("="):
        raise LayoutError(
            f"jax converts {dtype} to {own} in its current configuration\n"
            "  call jax.config.update('jax_enable_x64', True) first, or convert"
        )


def _why_copied(array: Array) -> str:
    """Why jax cannot use the memory of an array directly; "" if it can."""
    element = from_numpy(array.dtype)
    if element.bits < 8 and element.kind != "pred":
        return "jax packs elements narrower than a byte"
    if not array.dtype.isnative:
        return "its bytes are in the other order"
    if not array.flags.writeable:
        return "it is read-only, which this version of DLPack cannot express"
    if address(array) % LINE_BYTES and array.size:
        return f"it is not aligned to {LINE_BYTES} bytes"
    axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    if not array.transpose(axes).flags.c_contiguous or (array.size < 2 and not array.flags.c_contiguous):
        return f"its strides of {array.strides} bytes leave holes, run backwards or repeat elements"
    return ""
