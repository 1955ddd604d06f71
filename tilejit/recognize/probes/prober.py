"""`Prober` calls a pack function and reads the bytes that it returns; a `Counterexample` refutes it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.arrays.array_likes import as_numpy
from tilejit.layout.dtypes import PRIMITIVE_TYPES, ElementLike, PrimitiveType
from tilejit.layout.helpers import dims_text
from tilejit.recognize.probes.bit_patterns import (
    CHUNK,
    Alphabet,
    Bounds,
    Patterns,
    alphabet_of,
    array_of,
    code_type,
    random_patterns,
)
from tilejit.recognize.probes.slots import Bytes
from tilejit.tiled.tiled_array import TiledArray

Kind: TypeAlias = Literal[
    "lost", "duplicated", "combined", "changed", "split", "too small", "varying size", "not deterministic"
]
"""lost: an element is nowhere. duplicated: one is in two slots. combined: a slot depends on two elements.
changed: a slot does not tell an element's value. split: the bits of an element are not side by side."""


@dataclass(frozen=True, repr=False, slots=True)
class Counterexample:
    """What a function did that no layout does; it prints as a sentence.

    Attributes:
        kind: what happened, in one or two words.
        text: the observation, with values.
        elements: the indices of the elements that show it.
        slots: the slots that show it, counted in slots of the element's width from the start of the buffer.
    """

    kind: Kind
    text: str
    elements: tuple[tuple[int, ...], ...] = ()
    slots: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return self.text


class RefutedError(Exception):
    """Ends the search for a layout, because a counterexample was found; `infer` always catches it."""

    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(counterexample.text)
        self.counterexample = counterexample


class Prober:
    """A pack function of one array, and what its calls have shown so far.

    Attributes:
        element: the element type of the arrays. Codes of a floating-point type become unsigned integers.
        declared: the element type before that.
        widths: the bits that an element may have in the buffer, if several share a byte.
        bounds: the smallest and the largest integer that the function takes; None for all of the type.
        dims: their dimensions.
        dtype: their dtype: that of the elements, or uint8 or int8 for codes.
        calls: the number of calls.
        result: the dtype and dimensions of what the function returns, or its type.
        result_dtype: the dtype of what it returns, if that is an array.
        varied: for each byte, the bits that were not the same in all calls.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        element: PrimitiveType,
        dims: tuple[int, ...],
        dtypes: tuple[np.dtype[Any], ...],
        bounds: Bounds | None = None,
        widths: tuple[int, ...] = (),
    ) -> None:
        self.function = function
        self.element = self.declared = element
        self.bounds = bounds
        self.widths = widths or (element.bits,)
        self.dims = dims
        self.dtypes = dtypes
        self.dtype = dtypes[0]
        self.calls = 0
        self.result = ""
        self.result_dtype: Any = None
        self.first: Bytes | None = None
        self.varied: Bytes = np.zeros(0, np.uint8)

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    @property
    def alphabet(self) -> Alphabet:
        """The patterns that carry digits."""
        return alphabet_of(self.element, self.bounds)

    def random(self, seed: int, count: int | None = None) -> Patterns:
        """Random elements that the function takes, by default one for each index."""
        return random_patterns(self.element, self.count if count is None else count, seed, self.bounds)

    def stored(self, width: int) -> PrimitiveType:
        """The element type of a layout with slots of that many bits."""
        known = self.declared
        if known.name not in PRIMITIVE_TYPES:
            known = code_type(8, signed=self.signed)
        narrow = code_type(min(width, 8), signed=self.signed)
        return narrow if self.bounds and width < 8 and narrow.name in PRIMITIVE_TYPES else known

    @property
    def signed(self) -> bool:
        """Whether elements are signed integers."""
        return self.element.kind == "signed"

    def __call__(self, patterns: Patterns, what: str) -> Bytes:
        """The bytes of the function's result for an array of patterns; `what` describes them in messages.

        Raises:
            RefutedError: the size of the result differs from that of earlier calls.
            LayoutError: the function raises, or its result is not a buffer.
            TypeError: its result has no bytes.
        """
        result = self._call(patterns, what)
        self.calls += 1
        data = bytes_of(result)
        if self.first is None:
            self.first = data
            self.result = described(result)
            self.result_dtype = getattr(result, "dtype", None)
            self.varied = np.zeros_like(data)
        elif data.size != self.first.size:
            raise RefutedError(
                Counterexample(
                    "varying size",
                    f"the buffer has {self.first.size} bytes for an array of equal elements and {data.size} "
                    f"bytes for {what}",
                )
            )
        else:
            for start in range(0, data.size, CHUNK):
                part = slice(start, start + CHUNK)
                self.varied[part] |= self.first[part] ^ data[part]
        return data

    def _call(self, patterns: Patterns, what: str) -> Any:
        failed: list[tuple[np.dtype[Any], Exception]] = []
        for dtype in self.dtypes:
            array = array_of(np.array(patterns), self.element, dtype).reshape(self.dims)
            try:
                result = self.function(array)
            except Exception as error:  # whatever the function raises
                failed.append((dtype, error))
                continue
            self.dtypes, self.dtype = (dtype,), dtype
            if self.element.kind == "float" and dtype == np.uint8:
                self.element = code_type(self.element.bits)
            return result
        tried = "; ".join(
            f"on {dtype}{dims_text(self.dims)} it raised {type(error).__name__}: {_first_line(error)}"
            for dtype, error in failed
        )
        raise LayoutError(
            f"the function cannot pack {what}: {tried}\n  pass a dtype, dims and a value_range that it takes"
        ) from failed[0][1]


def dtypes_of(dtype: ElementLike, element: PrimitiveType) -> tuple[np.dtype[Any], ...]:
    """The dtypes of arrays to try: for the name of a type narrower than a byte, codes come first."""
    own = element.numpy
    if own is None:
        raise AssertionError(f"{element.name} is not the type of an array")
    if element.bits >= 8 or element.kind == "pred" or not isinstance(dtype, str):
        return (own,)
    codes = element.byte_dtype or np.dtype(np.uint8)
    return (codes, own)


def bytes_of(result: Any) -> Bytes:
    """A copy of the bytes of a function's result; arrays are read in C order.

    Raises:
        LayoutError: it is an array of objects, or several buffers.
        TypeError: it has no bytes.
    """
    if isinstance(result, TiledArray):
        result = result.buffer
    elif not isinstance(result, np.ndarray | bytes | bytearray | memoryview):
        inner = getattr(result, "buffer", None)
        result = inner if isinstance(inner, np.ndarray) else as_numpy(result)
    if isinstance(result, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(result), np.uint8).copy()
    if result is None or isinstance(result, str | tuple | list | dict | set):
        raise TypeError(
            f"expected the function to return an array or bytes, got {type(result).__name__}\n"
            "  return one buffer, e.g. lambda x: pack(x)[0]"
        )
    try:
        array: NDArray[Any] = np.ascontiguousarray(np.asarray(result))
    except Exception as error:  # such as torch's for a tensor on a device
        raise TypeError(
            f"the function returned {type(result).__name__}, which NumPy cannot read: {_first_line(error)}\n"
            "  return an array or bytes"
        ) from error
    if array.dtype.hasobject:
        raise TypeError(f"the function returned an array of {array.dtype}\n  return numbers or bytes")
    data: Bytes = array.reshape(-1).view(np.uint8).copy()
    return data


def described(result: Any) -> str:
    """The dtype and dimensions of a result, or its type.

    np.zeros((2, 3), np.int32) -> "int32[2,3]"    b"" -> "bytes"
    """
    dtype, shape = getattr(result, "dtype", None), getattr(result, "shape", None)
    if dtype is None or shape is None or isinstance(result, TiledArray):
        return type(result).__name__
    return f"{str(dtype).removeprefix('torch.')}[{','.join(map(str, shape))}]"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
