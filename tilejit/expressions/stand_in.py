"""The base of stand-ins for elements: it rejects unsupported operations and names their replacements."""

from __future__ import annotations

from typing import Any

from codegen import KernelError

_SHAPE = "pass the number as an argument, f(x, x.shape[0])"
_VIEW = "pass the view of an array as an argument, f(x.T)"
_INSTEAD = {
    **dict.fromkeys(("shape", "size", "nbytes", "strides"), _SHAPE),
    **dict.fromkeys(("T", "mT", "transpose", "reshape", "ravel", "flatten", "swapaxes", "squeeze"), _VIEW),
    "copy": "omit it, because expressions are immutable",
    "fill": "omit it, because expressions cannot be modified in place",
    "item": "omit it, because an expression is not a Python number",
}
"""Replacements for array attributes."""

_SUPPORTED = "use astype, clip, sum, min, max, mean, dot, ndim, dtype, or NumPy's elementwise functions"


class UnknownAttributeError(KernelError, AttributeError):
    """An expression lacks an attribute that arrays may have."""

    __module__ = "tilejit"


class StandIn:
    """The stand-in for one element; it rejects operations that only arrays and numbers support."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python probes for protocols that expressions do not support
            raise AttributeError(name)
        raise UnknownAttributeError(
            f"an expression has no attribute {name}\n  {_INSTEAD.get(name, _SUPPORTED)}"
        )

    def __bool__(self) -> bool:
        raise KernelError(
            "an expression is recorded once for all elements\n"
            "  write np.where(c, x, y) for a choice, (a < x) & (x < b) for a < x < b or `and`"
        )

    def __iter__(self) -> Any:
        raise KernelError("an expression stands for one element, so it cannot be iterated over")

    def __getitem__(self, key: Any) -> Any:
        raise KernelError(
            "an expression stands for one element, so it cannot be indexed\n"
            "  pass slices of arrays as arguments, f(x[1:]), and where= for a mask"
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        raise KernelError(
            "an expression stands for one element, so its items cannot be assigned\n"
            "  write np.where(mask, value, x)"
        )

    def __len__(self) -> int:
        raise KernelError(f"an expression has no length\n  {_INSTEAD['shape']}")

    def __float__(self) -> float:
        raise KernelError(
            "an expression is not a Python number\n"
            "  use NumPy's functions, np.exp(x) for math.exp(x), and x.astype(...) for conversions"
        )

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise KernelError(
            "an expression is not a NumPy array\n"
            "  use NumPy's elementwise functions, and x.astype(...) for conversions"
        )
