"""The dtype of a result: NumPy 2's promotion rules, on the IR's dtype names.

Python numbers (literals, loop indices, sizes, int and float arguments) are weak: they take the dtype of the
other operand. They are "weak_bool", "weak_int" and "weak_float" while a function is parsed; if no other dtype
determines them, the IR uses "i1", "i64" and "f64".

There are two differences from NumPy. A Python float operand does not promote bf16. Loop indices that do not
fit the other operand's dtype wrap around, where NumPy raises OverflowError. Other Python integers that do not
fit are errors, as in NumPy: literals when the function is parsed, arguments and sizes at the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from typing import Any

import numpy as np

from codegen.ir.element_types import BYTE_FLOAT_TYPES
from codegen.ir.nodes import ArrayArg, ScalarArg
from codegen.support.errors import KernelError, OperandError

_NUMPY: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    **{f"i{8 * size}": np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    **{f"u{8 * size}": np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
}
_NAMES = {dtype: name for name, dtype in _NUMPY.items()}
_ML_DTYPES = {"bf16": "bfloat16"} | {name: f"float8_{name[2:]}" for name in BYTE_FLOAT_TYPES}
"""The dtypes of ml_dtypes, which is imported for them alone, because it adds its names to NumPy's tables."""

_COMPUTED = (*_NUMPY, "bf16")
"""The dtypes that kernels compute in."""

FLOATS = ("bf16", "f16", "f32", "f64")
WEAK = {"weak_bool": "i1", "weak_int": "i64", "weak_float": "f64"}
"""The weak dtypes, weakest first, with the dtype of each if no other operand determines one."""

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_FUNCTIONS: tuple[str, ...] = ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt")
FLOAT_FUNCTIONS += ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh")
FLOAT_FUNCTIONS += ("atanh", "atan2", "hypot", "rint", "copysign", "fma")
"""Operations on floating-point numbers that kernels call by name."""

_ROUNDED = ("floor", "ceil", "trunc")
_BITS = ("and", "or", "xor", "not")
_SHIFTS = ("shl", "shr")
_NO_BOOLS = ("floordiv", "mod", "pow", *_SHIFTS)
_ANY = ("add", "sub", "mul", "div", "neg", "abs", "min", "max")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an IR dtype.

    "f32" -> float32    "i1" -> bool    "bf16" -> ml_dtypes' bfloat16    "bits512" -> object, an int each

    Raises:
        KernelError: kernels do not support a dtype of this name.
    """
    if name.startswith("bits"):
        return np.dtype(object)
    if name not in _COMPUTED:
        one_of = ", ".join(sorted(_COMPUTED))
        raise KernelError(f"kernels do not support the dtype {name}\nuse one of {one_of}")
    return _NUMPY.get(name) or _ml_dtype(name)


def stored_dtype(name: str) -> np.dtype[Any]:
    """The same, and also for floats of 8 bits, which kernels convert but do not compute with.

    "f8e5m2" -> ml_dtypes' float8_e5m2

    Raises:
        KernelError: kernels do not support a dtype of this name.
    """
    return _ml_dtype(name) if name in _ML_DTYPES else numpy_dtype(name)


@cache
def _ml_dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return dtype


def is_computed(dtype: np.dtype[Any]) -> bool:
    """Whether kernels compute in a NumPy dtype."""
    return _name(dtype) is not None


def _name(dtype: np.dtype[Any]) -> str | None:
    if dtype in _NAMES:
        return _NAMES[dtype]
    if dtype.name == _ML_DTYPES["bf16"] and dtype == _ml_dtype("bf16"):
        return "bf16"
    return None


def dtype_name(dtype: np.dtype[Any], of: str = "") -> str:
    """The IR's name of a NumPy dtype in native byte order.

    float32 -> "f32"    bool -> "i1"

    `of` names the value of that dtype in the error message.

    Raises:
        KernelError: kernels do not compute in this dtype.
    """
    if (name := _name(dtype)) is not None:
        return name
    native = dtype.newbyteorder("=")
    fix = (
        f"convert it: {of or 'x'}.astype({native.name!r})"
        if is_computed(native)
        else f"use one of {', '.join(sorted(_COMPUTED))}"
    )
    if of:
        raise KernelError(f"{of} is {dtype}, which kernels do not support\n  {fix}")
    raise KernelError(f"kernels do not support {dtype}\n{fix}")


def argument(name: str, value: object) -> ArrayArg | ScalarArg:
    """The kernel argument for a value passed in a call.

    np.zeros((3, 4), "f4") -> ArrayArg(name, "f32", 2, "C")    2 -> ScalarArg(name, "weak_int")

    Python numbers get weak dtypes, as Source.typed expects.

    Raises:
        KernelError: kernels do not compute in the value's dtype.
        TypeError: the value is neither an array nor a number.
    """
    if isinstance(value, np.ndarray):
        contiguous = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else ""
        return ArrayArg(name, dtype_name(value.dtype, name), value.ndim, contiguous)  # type: ignore[arg-type]
    if isinstance(value, np.generic):
        return ScalarArg(name, dtype_name(value.dtype, name))
    for kind, weak in ((bool, "weak_bool"), (int, "weak_int"), (float, "weak_float")):
        if isinstance(value, kind):
            return ScalarArg(name, weak)
    raise TypeError(f"expected an array or a number for {name}, got {type(value).__name__}")


def concrete(dtype: str) -> str:
    """The dtype in the IR: a weak dtype becomes the one that Python computes in."""
    return WEAK.get(dtype, dtype)


def is_float(dtype: str) -> bool:
    """Whether a dtype, weak or not, is floating-point."""
    return dtype in FLOATS or dtype == "weak_float"


def is_bool(dtype: str) -> bool:
    """Whether a dtype, weak or not, is boolean."""
    return dtype in ("i1", "weak_bool")


def promote(dtypes: Sequence[str]) -> str:
    """The smallest dtype that holds all; weak dtypes only determine whether it is floating-point.

    f32, weak_float -> f32    i8, weak_float -> f64    i32, f32 -> f64    weak_int, weak_float -> weak_float
    """
    weakest = [list(WEAK).index(d) for d in dtypes if d in WEAK]
    weak = list(WEAK)[max(weakest)] if weakest else ""
    strong = {d for d in dtypes if d not in WEAK}
    if not strong:
        return weak
    found = _common(strong)
    if weak == "weak_float" and found not in FLOATS:
        return "f64"
    return "i64" if weak == "weak_int" and found == "i1" else found


def _common(dtypes: set[str]) -> str:
    """NumPy's promotion; bf16 promotes with integers as f16 does, and bf16 with f16 gives f32."""
    if "bf16" in dtypes:
        found = _common(dtypes - {"bf16"} | {"f16"})
        return found if found != "f16" else "f32" if "f16" in dtypes else "bf16"
    return dtype_name(reduce(np.promote_types, map(numpy_dtype, sorted(dtypes))))


def operand_type(op: str, dtypes: Sequence[str]) -> str:
    """The dtype that the operands of an operation are converted to; a select's condition is not converted.

    lt(i32, f32) -> f64    exp(i16) -> f32    add(u8, weak_int) -> u8

    Raises:
        KernelError: as in result_type.
    """
    if op in COMPARISONS:
        return promote(dtypes)
    return result_type(op, dtypes)


def result_type(op: str, dtypes: Sequence[str]) -> str:
    """The dtype of an IR operation on operands of these dtypes, as for NumPy scalars.

    add(f32, weak_float) -> f32    div(i8, i8) -> f64    exp(i8) -> f16    floordiv(i1, i1) -> i8

    If all operands are weak, so is the result, as for Python's operators.

    Raises:
        KernelError: the operation does not exist or does not support these dtypes.
    """
    if op in COMPARISONS:
        return "weak_bool" if all(d in WEAK for d in dtypes) else "i1"
    if op == "select":
        return promote(dtypes[1:])
    if op in FLOAT_FUNCTIONS:
        weak = [dtype for dtype in dtypes if dtype in WEAK]
        strong = [dtype for dtype in dtypes if dtype not in WEAK]
        return promote([_float_for(promote([dtype, *weak])) for dtype in strong or weak])
    common = promote(dtypes)
    if op in _BITS or op in _SHIFTS:
        _only_integers(op, common, dtypes)
    if op in _NO_BOOLS:
        return {"i1": "i8", "weak_bool": "weak_int"}.get(common, common)
    if op in _BITS:
        return "weak_int" if op == "not" and common == "weak_bool" else common
    if op in _ROUNDED or op == "broadcast":
        return common
    if op not in _ANY:
        raise KernelError(f"kernels do not support the operation {op}")
    return _arithmetic(op, common)


def _arithmetic(op: str, common: str) -> str:
    if op == "div" and not is_float(common):
        return "weak_float" if common in WEAK else "f64"
    if common == "i1" and op in ("sub", "neg"):
        raise OperandError(f"{op} of booleans\nNumPy does not define it; use ^, or convert them")
    return "weak_int" if common == "weak_bool" and op not in ("min", "max") else common


def _float_for(dtype: str) -> str:
    """The dtype itself if floating-point, else the smallest float dtype that NumPy's functions use for it."""
    if is_float(dtype):
        return dtype
    if dtype in WEAK:
        return "weak_float"
    return {1: "f16", 2: "f32"}.get(numpy_dtype(dtype).itemsize, "f64")


def _only_integers(op: str, common: str, dtypes: Sequence[str]) -> None:
    if is_float(common):
        raise OperandError(f"{op} of {' and '.join(dtypes)}\nbit operations need integers of one signedness")
