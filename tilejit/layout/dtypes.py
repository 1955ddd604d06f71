"""XLA's element types: their names, their widths, and the NumPy or ml_dtypes dtypes that hold them."""

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
    """One of XLA's element types.

    pred: bits 1, storage_bits 8, numpy bool    s4: bits 4, storage_bits 8, numpy int4    token: 0, 0, None

    Attributes:
        name: XLA's name in lower case.
        bits: the width of a value, in bits.
        storage_bits: the width of an element that is not packed, in bits.
        numpy_name: the name of its NumPy or ml_dtypes dtype; empty for token and opaque.
        fallback: NumPy's dtype that holds its elements if the installed ml_dtypes lacks the type.
    """

    name: str
    bits: int
    storage_bits: int
    numpy_name: str
    fallback: str = ""

    @lazy
    def numpy(self) -> np.dtype[Any] | None:
        """The NumPy or ml_dtypes dtype; None for token and opaque."""
        if not self.fallback:
            return np.dtype(self.numpy_name) if self.numpy_name else None
        with compiler_lock:
            import ml_dtypes
        return np.dtype(getattr(ml_dtypes, self.numpy_name, None) or self.fallback)

    @property
    def is_array_element(self) -> bool:
        """Whether arrays can have it; False for token and opaque."""
        return self.numpy_name != ""

    @property
    def kind(self) -> str:
        """The kind of its values: pred, signed, unsigned, float, complex or none.

        s4 -> signed    bf16 -> float    token -> none
        """
        if self.name == "pred":
            return "pred"
        if not self.numpy_name:
            return "none"
        return {"s": "signed", "u": "unsigned", "c": "complex"}.get(self.name[0], "float")

    @property
    def integer_range(self) -> tuple[int, int] | None:
        """The smallest and the largest value of pred and the integer types; None for the others.

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

    def codes(self, bits: int) -> PrimitiveType:
        """The integer type of `bits` bits whose values, the codes, an array of u8 or s8 holds in its bytes.

        u8, 4 -> u4    s8, 2 -> s2    any other type, or 8 bits -> itself
        """
        return PRIMITIVE_TYPES.get(f"{self.name[0]}{bits}", self) if self.name in ("u8", "s8") else self


ElementLike: TypeAlias = str | np.dtype[Any] | type[Any] | PrimitiveType
"""A dtype in any form that `primitive_type` reads: XLA's name, NumPy's code, a np.dtype or a scalar type."""


def _table() -> dict[str, PrimitiveType]:
    """Every type of xla_data.proto that may appear in a text."""
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
"""NumPy's codes of numeric types. Without a byte order, u1 to u8 are also XLA's names."""
_AMBIGUOUS = MappingProxyType({f"u{n}": (f"uint{n}", f"uint{8 * n}") for n in (1, 2, 4, 8)})
"""Names that count bits in XLA's text and bytes in NumPy's codes, and the two types that they may mean."""


@cache
def _of_ml_dtypes() -> dict[np.dtype[Any] | None, PrimitiveType]:
    """The types of ml_dtypes; if an old version lacks one, NumPy's own dtypes are searched first."""
    return {row.numpy: row for row in _BY_NUMPY_NAME.values() if row.fallback}


def lookup(name: str) -> PrimitiveType:
    """Look up a type by its name in XLA's text, in lower or upper case.

    "bf16" -> bf16    "F32" -> f32

    Raises:
        LayoutError: the type does not exist; the message names the nearest.
        TypeError: the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a dtype, such as 'f32', got {type(name).__name__}")
    found = PRIMITIVE_TYPES.get(name) or (PRIMITIVE_TYPES.get(name.lower()) if name.isupper() else None)
    if found is None:
        raise LayoutError(f"unknown dtype {_short(name)}\n  {nearest_dtype(name)}")
    return found


def nearest_dtype(name: str) -> str:
    """Suggest a replacement for an unknown dtype name, as a sentence.

    "int4" -> "write s4"    "f33" -> "write f32"    "f4" -> "write f32, which is NumPy's f4"
    """
    lowered = name[:64].lower()
    if lowered in PRIMITIVE_TYPES:
        return f"write {lowered}"
    if lowered in _BY_NUMPY_NAME:
        return f"write {_BY_NUMPY_NAME[lowered].name}"
    if found := _numpys_code(name):
        return f"write {found.name}, which is NumPy's {name}"
    if lowered in ("tuple", "buffer"):
        return "write a tuple in parentheses, e.g. (f32[2], s8[3]), and a buffer as b(f32[2])"
    import difflib

    elements = [row.name for row in PRIMITIVE_TYPES.values() if row.is_array_element]
    others = [name for name in PRIMITIVE_TYPES if name not in elements]
    close = difflib.get_close_matches(lowered, others, n=1, cutoff=0.8)
    close = close or difflib.get_close_matches(lowered, elements, n=1, cutoff=0.6)
    return (
        f"write {close[0]}" if close else "write a type such as pred, s8, u8, s32, f32, bf16, f8e4m3fn or c64"
    )


def primitive_type(dtype: object) -> PrimitiveType:
    """Return the element type for a name or code, a np.dtype, a scalar type or a PrimitiveType.

    "s4", np.float32, np.dtype(">i2"), ml_dtypes.bfloat16 -> s4, f32, s16, bf16.  NumPy's codes count bytes:
    "f4" -> f32, "i8" -> s64, "<u8" -> u64. XLA's f16 has two bytes, not the 16 of NumPy's long double.

    Every argument named dtype is read by this function, except in routines with NumPy's names. The texts of
    shapes and layouts contain XLA's names only, which `lookup` reads.

    Raises:
        LayoutError: the type has no XLA counterpart (structured, object, string, date, long double); or it is
            "u1", "u2", "u4" or "u8", which count bits in XLA and bytes in NumPy; or a code asks for the other
            byte order, as ">f4" does.
        TypeError: it is not a type.
    """
    if isinstance(dtype, PrimitiveType):
        return dtype
    if isinstance(dtype, str):
        _refuse_ambiguous(dtype)
        _refuse_swapped(dtype)
        return _BY_NUMPY_NAME.get(dtype) or PRIMITIVE_TYPES.get(dtype) or _numpys_code(dtype) or lookup(dtype)
    if not isinstance(dtype, np.dtype | type):
        raise TypeError(
            f"expected a dtype such as 'f32', a np.dtype or a scalar type, got {type(dtype).__name__}"
        )
    return from_numpy(np.dtype(dtype))


def array_dtype(dtype: object) -> np.dtype[Any]:
    """Return the array dtype for a name or code, a np.dtype, a scalar type or a PrimitiveType.

    "bf16", np.float32, ">i2" -> bfloat16, float32, >i2

    Raises:
        LayoutError: arrays cannot have it.
        TypeError: it is not a type.
    """
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, str) and _numpys_code(dtype) and dtype.startswith(("<", ">", "=", "|")):
        return np.dtype(dtype)
    found = primitive_type(dtype)
    if found.numpy is None:
        raise LayoutError(f"arrays cannot have the dtype {dtype}\n  pass the dtype of an array")
    return found.numpy


def unambiguous_name(element: PrimitiveType) -> str:
    """The name by which `primitive_type` finds a type again: XLA's, or NumPy's if XLA's is ambiguous.

    f32 -> "f32"    s4 -> "s4"    u4 -> "uint4"
    """
    return element.numpy_name if element.name in _AMBIGUOUS else element.name


def _refuse_ambiguous(name: str) -> None:
    meant = _AMBIGUOUS.get(name.lower())
    if meant:
        xlas, numpys = meant
        count, plural = name[1:], "s" * (name[1:] != "1")
        raise LayoutError(
            f"dtype {name!r} is ambiguous: {count} bit{plural} in XLA, {count} byte{plural} in NumPy\n"
            f"  write {xlas!r} or {numpys!r}"
        )


def _refuse_swapped(code: str) -> None:
    """Raise if a code names the other byte order, which element types lack."""
    found = _numpys_code(code) if code.startswith(("<", ">")) else None
    if found is not None and not np.dtype(code).isnative:
        raise LayoutError(
            f"dtype {code!r} is not in native byte order\n  pass {code[1:]!r}: packed elements and the files "
            f"that TileJIT writes are {sys.byteorder}-endian"
        )


def _numpys_code(code: str) -> PrimitiveType | None:
    """The type for NumPy's codes of numeric types, such as f4."""
    if not _NUMPYS_CODE().fullmatch(code):
        return None
    with suppress(TypeError):
        return _NUMPYS_OWN.get(np.dtype(code).newbyteorder("="))
    return None


def from_numpy(dtype: np.dtype[Any]) -> PrimitiveType:
    """Return the XLA type of a NumPy dtype of either byte order.

    Raises:
        LayoutError: the dtype has no XLA counterpart.
    """
    native = dtype.newbyteorder("=") if dtype.names is None and dtype.subdtype is None else dtype
    found = _NUMPYS_OWN.get(native)
    if found is None and "ml_dtypes" in sys.modules:
        found = _of_ml_dtypes().get(native)
    if found is None and dtype.kind == "V" and dtype.names is None and dtype.subdtype is None:
        raise LayoutError(
            f"NumPy's dtype {_short(str(dtype))} holds raw bytes, as np.load returns elements such as bf16\n"
            "  view the array in its dtype, e.g. x.view(ml_dtypes.bfloat16)"
        )
    if found is None:
        raise LayoutError(
            f"NumPy's dtype {_short(str(dtype))} has no XLA counterpart\n"
            "  convert first, e.g. x.astype(np.float32), or view a structured array's fields one by one"
        )
    return found


def _short(name: str) -> str:
    """Quote a name for a message, and cut it if it is long."""
    return repr(name if len(name) <= 40 else name[:40] + "…")
