"""The element types of XLA: their names, their widths, and the NumPy or ml_dtypes type that holds them."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, compiler_lock, dataclass, lazy, lazy_pattern


@dataclass(frozen=True)
class PrimitiveType:
    """One element type: the bits it means, the bits it takes when not packed, and the name of its NumPy type.

    pred: bits 1, storage_bits 8, numpy bool    s4: bits 4, storage_bits 8, numpy int4    token: 0, 0, None

    fallback    for a type of ml_dtypes: what holds it where the installed ml_dtypes has none of that name
    """

    name: str
    bits: int
    storage_bits: int
    numpy_name: str
    fallback: str = ""

    @lazy
    def numpy(self) -> np.dtype[Any] | None:
        """The NumPy or ml_dtypes type; None for token and opaque."""
        if not self.fallback:
            return np.dtype(self.numpy_name) if self.numpy_name else None
        with compiler_lock:
            import ml_dtypes
        return np.dtype(getattr(ml_dtypes, self.numpy_name, None) or self.fallback)

    @property
    def is_array_element(self) -> bool:
        """Whether arrays of it exist; not so for token and opaque."""
        return self.numpy_name != ""

    @property
    def kind(self) -> str:
        """What its values are: pred, signed, unsigned, float, complex or none.

        s4 -> signed    bf16 -> float    token -> none
        """
        if self.name == "pred":
            return "pred"
        if not self.numpy_name:
            return "none"
        return {"s": "signed", "u": "unsigned", "c": "complex"}.get(self.name[0], "float")

    @property
    def integer_range(self) -> tuple[int, int] | None:
        """The least and the greatest value of pred and the integer types; None for the others.

        s4 -> (-8, 7)    u2 -> (0, 3)    pred -> (0, 1)    f32 -> None
        """
        if self.kind == "signed":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return (0, (1 << self.bits) - 1) if self.kind in ("unsigned", "pred") else None

    @property
    def byte_dtype(self) -> np.dtype[Any] | None:
        """int8 or uint8, which also hold integers narrower than a byte; None for every other type.

        s4 -> int8    u2 -> uint8    s8 -> None    f4e2m1fn -> None
        """
        if self.kind not in ("signed", "unsigned") or self.bits >= 8:
            return None
        return np.dtype(np.int8 if self.kind == "signed" else np.uint8)


ElementLike: TypeAlias = str | np.dtype[Any] | type[Any] | PrimitiveType
"""What `primitive_type` reads: XLA's name or NumPy's code, a np.dtype, a scalar type."""


def _table() -> dict[str, PrimitiveType]:
    """Every type of xla_data.proto that a text may name."""
    rows = [PrimitiveType("pred", 1, 8, "bool")]
    for bits in (1, 2, 4):
        rows.append(PrimitiveType(f"s{bits}", bits, 8, f"int{bits}", "int8"))
        rows.append(PrimitiveType(f"u{bits}", bits, 8, f"uint{bits}", "uint8"))
    for bits in (8, 16, 32, 64):
        rows.append(PrimitiveType(f"s{bits}", bits, bits, f"int{bits}"))
        rows.append(PrimitiveType(f"u{bits}", bits, bits, f"uint{bits}"))
    rows += [PrimitiveType(f"f{bits}", bits, bits, f"float{bits}") for bits in (16, 32, 64)]
    rows.append(PrimitiveType("bf16", 16, 16, "bfloat16", "uint16"))
    small = ("e5m2", "e4m3", "e4m3fn", "e4m3b11fnuz", "e3m4", "e5m2fnuz", "e4m3fnuz", "e8m0fnu")
    rows += [PrimitiveType(f"f8{s}", 8, 8, f"float8_{s}", "uint8") for s in small]
    rows += [PrimitiveType(f"f6{s}", 6, 8, f"float6_{s}", "uint8") for s in ("e3m2fn", "e2m3fn")]
    rows.append(PrimitiveType("f4e2m1fn", 4, 8, "float4_e2m1fn", "uint8"))
    rows += [PrimitiveType("c64", 64, 64, "complex64"), PrimitiveType("c128", 128, 128, "complex128")]
    rows += [PrimitiveType("token", 0, 0, ""), PrimitiveType("opaque", 0, 0, "")]
    return {row.name: row for row in rows}


PRIMITIVE_TYPES: MappingProxyType[str, PrimitiveType] = MappingProxyType(_table())

_BY_NUMPY_NAME = {row.numpy_name: row for row in PRIMITIVE_TYPES.values() if row.numpy_name}
_NUMPYS_OWN = {row.numpy: row for row in _BY_NUMPY_NAME.values() if not row.fallback}
_NUMPYS_CODE = lazy_pattern(r"[<>=|][biufc]\d{1,2}|[fic]\d{1,2}|\?")
"""NumPy's short names of numbers. u1 to u8 without a byte order are XLA's."""


@cache
def _of_ml_dtypes() -> dict[np.dtype[Any] | None, PrimitiveType]:
    """The types of ml_dtypes; what holds one that an old ml_dtypes lacks is found among NumPy's own first."""
    return {row.numpy: row for row in _BY_NUMPY_NAME.values() if row.fallback}


def lookup(name: str) -> PrimitiveType:
    """The type that an XLA text calls so, in lower or in upper case.

    "bf16" -> bf16    "F32" -> f32

    Raises:
        LayoutError: there is no such type; the message names the nearest.
        TypeError: the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a dtype is a str such as 'f32', not {type(name).__name__}")
    found = PRIMITIVE_TYPES.get(name) or (PRIMITIVE_TYPES.get(name.lower()) if name.isupper() else None)
    if found is None:
        raise LayoutError(f"there is no dtype {_short(name)}\n  {nearest_dtype(name)}")
    return found


def nearest_dtype(name: str) -> str:
    """What to write instead of a name that is no dtype, as a sentence.

    "int4" -> "write s4"    "f33" -> "write f32"    "f4" -> "write f32, which is NumPy's f4"
    """
    lowered = name[:64].lower()
    if lowered in PRIMITIVE_TYPES:
        return f"write {lowered}"
    if lowered in _BY_NUMPY_NAME:
        return f"write {_BY_NUMPY_NAME[lowered].name}"
    if found := _numpys_code(lowered):
        return f"write {found.name}, which is NumPy's {lowered}"
    if lowered in ("tuple", "buffer"):
        return "write a tuple in parentheses, e.g. (f32[2], s8[3]), and a buffer as b(f32[2])"
    import difflib

    elements = [row.name for row in PRIMITIVE_TYPES.values() if row.is_array_element]
    others = [name for name in PRIMITIVE_TYPES if name not in elements]
    close = difflib.get_close_matches(lowered, others, n=1, cutoff=0.8)
    close = close or difflib.get_close_matches(lowered, elements, n=1, cutoff=0.6)
    return (
        f"write {close[0]}"
        if close
        else "write one of pred, s8, u8, s32, f32, bf16, f8e4m3fn, c64 and the like"
    )


def primitive_type(dtype: object) -> PrimitiveType:
    """The type meant by a name or code, a np.dtype, a scalar type or a PrimitiveType.

    "s4", np.float32, np.dtype(">i2"), ml_dtypes.bfloat16 -> s4, f32, s16, bf16.  NumPy's codes count bytes:
    "f4" -> f32, "i8" -> s64. A code that is also a name of XLA's is XLA's: u1 is one bit, f16 two bytes.

    Raises:
        LayoutError: the type has no XLA counterpart (structured, object, string, date, long double).
        TypeError: it is not a type at all.
    """
    if isinstance(dtype, PrimitiveType):
        return dtype
    if isinstance(dtype, str):
        return _BY_NUMPY_NAME.get(dtype) or PRIMITIVE_TYPES.get(dtype) or _numpys_code(dtype) or lookup(dtype)
    if not isinstance(dtype, np.dtype | type):
        raise TypeError(
            f"a dtype is a name such as 'f32', a np.dtype or a scalar type, not {type(dtype).__name__}"
        )
    return from_numpy(np.dtype(dtype))


def array_dtype(dtype: object) -> np.dtype[Any]:
    """The dtype of arrays that a name or code, a np.dtype, a scalar type or a PrimitiveType means.

    "bf16", np.float32, ">i2" -> bfloat16, float32, >i2

    Raises:
        LayoutError: no array has it.
        TypeError: it is not a type at all.
    """
    if isinstance(dtype, np.dtype):
        return dtype
    found = primitive_type(dtype)
    if isinstance(dtype, str) and dtype.startswith(("<", ">", "=", "|")):
        return np.dtype(dtype)
    if found.numpy is None:
        raise LayoutError(f"there are no arrays of {dtype}\n  give the dtype of an array")
    return found.numpy


def _numpys_code(code: str) -> PrimitiveType | None:
    """The type of NumPy's short names of numbers, such as f4; u1 to u8 are XLA's."""
    if not _NUMPYS_CODE().fullmatch(code):
        return None
    with suppress(TypeError):
        return _NUMPYS_OWN.get(np.dtype(code).newbyteorder("="))
    return None


def from_numpy(dtype: np.dtype[Any]) -> PrimitiveType:
    """The XLA type of a NumPy dtype; the byte order does not matter.

    Raises:
        LayoutError: the dtype has no XLA counterpart.
    """
    native = dtype.newbyteorder("=") if dtype.names is None and dtype.subdtype is None else dtype
    found = _NUMPYS_OWN.get(native)
    if found is None and "ml_dtypes" in sys.modules:
        found = _of_ml_dtypes().get(native)
    if found is None:
        raise LayoutError(
            f"NumPy's dtype {_short(str(dtype))} has no XLA counterpart\n"
            "  convert first, e.g. x.astype(np.float32), or view a structured array's fields one by one"
        )
    return found


def _short(name: str) -> str:
    """A name as a message shows it: quoted, and cut when long."""
    return repr(name if len(name) <= 40 else name[:40] + "…")
