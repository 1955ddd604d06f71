"""The C library functions that kernels call by name, and their numbers of arguments."""

from __future__ import annotations

from types import MappingProxyType

_UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt"),
)
_BINARY = ("pow", "atan2", "hypot")

C_FUNCTIONS = MappingProxyType(dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2))
"""The number of arguments of each function."""
