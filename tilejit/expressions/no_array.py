"""Operations of arrays and numbers that expressions do not support, with their replacements."""

from __future__ import annotations

from typing import Any

from codegen import KernelError

_SHAPE = "it is recorded once for arrays of any shape: pass numbers as arguments, f(x, x.shape[0])"
_VIEW = "pass the view of an array as an argument, f(x.T)"
_INSTEAD = {
    **dict.fromkeys(("shape", "size", "nbytes", "strides"), _SHAPE),
    **dict.fromkeys(("T", "mT", "transpose", "reshape", "ravel", "flatten", "swapaxes", "squeeze"), _VIEW),
    "copy": "an expression is an immutable value",
    "fill": "expressions are not written in place",
    "item": "it is not a Python number",
}
"""Replacements for array attributes."""

_THERE_ARE = "use astype, clip, sum, min, max, mean, dot, ndim, dtype, or NumPy's elementwise functions"


class UnknownAttributeError(KernelError, AttributeError):
    """An expression lacks an attribute that arrays may have."""

    __module__ = "tilejit"


class NoArray:
    """The stand-in for one element; it rejects operations that only arrays and numbers support."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that it does not support
            raise AttributeError(name)
        raise UnknownAttributeError(
            f"an expression has no attribute {name}\n  {_INSTEAD.get(name, _THERE_ARE)}"
        )

    def __bool__(self) -> bool:
        raise KernelError(
            "an expression is recorded once for all elements\n"
            "  write np.where(c, x, y) for a choice, (a < x) & (x < b) for a < x < b or `and`"
        )

    def __iter__(self) -> Any:
        raise KernelError("an expression is recorded for one element; it has no parts")

    def __getitem__(self, key: Any) -> Any:
        raise KernelError(
            "an expression is recorded for one element; it has no parts\n"
            "  pass parts of arrays as arguments, f(x[1:]), and where= for those of a mask"
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        raise KernelError("an expression has no parts to be written\n  write np.where(mask, value, x)")

    def __len__(self) -> int:
        raise KernelError(f"an expression has no length\n  {_INSTEAD['shape']}")

    def __float__(self) -> float:
        raise KernelError(
            "an expression is not a Python number\n"
            "  write NumPy's functions, np.exp(x) for math.exp(x), and x.astype(...) for conversions"
        )

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise KernelError(
            "an expression is not a NumPy array\n  write functions of elements; x.astype(...) for conversions"
        )
