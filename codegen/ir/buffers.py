"""Flat storage as the interpreter sees it: bytes, addressed in bytes or bits, with every access checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.dtypes import stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.lines import LINE_BYTES
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes of storage, and the address that a name stands for.

    Attributes:
        storage: the bytes that may be accessed.
        unit_bits: 8 if offsets count bytes, 1 if they count bits.
        origin: the address of the first byte of `storage`, in units.
        address: the address that offset 0 refers to, in units.
        lines: the offset of each line, if offsets count lines of bytes as adjacent; None if they are.
    """

    storage: NDArray[np.uint8]
    unit_bits: int = 8
    origin: int = 0
    address: int = 0
    lines: Any = None

    def view(self, offset: int) -> Buffer:
        """The same storage, from an offset on."""
        return Buffer(self.storage, self.unit_bits, self.origin, self.address + offset)

    def counting(self, unit_bits: int) -> Buffer:
        """The same storage, whose offsets count other units, from the one that holds offset 0 on."""
        origin, address = (at * self.unit_bits // unit_bits for at in (self.origin, self.address))
        return Buffer(self.storage, unit_bits, origin, address)

    def read(self, offset: int, bits: int) -> int:
        """The element at an offset, as a number; its first byte is least significant.

        Raises:
            KernelError: the element is not inside the storage.
        """
        first, shift, count = self._bytes(offset, bits)
        number = int.from_bytes(self.storage[first : first + count].tobytes(), "little")
        return number >> shift & (1 << bits) - 1

    def write(self, offset: int, bits: int, number: int) -> None:
        """Set the element at an offset; the other bits of its bytes are kept.

        Raises:
            KernelError: the element is not inside the storage.
        """
        first, shift, count = self._bytes(offset, bits)
        here = self.storage[first : first + count]
        kept = int.from_bytes(here.tobytes(), "little") & ~((1 << bits) - 1 << shift)
        here[:] = np.frombuffer((kept | number << shift).to_bytes(count, "little"), np.uint8)

    def _bytes(self, offset: int, bits: int) -> tuple[int, int, int]:
        """The first byte of an element, its first bit in there, and the number of its bytes."""
        if self.lines is not None:
            offset = int(self.lines[offset // LINE_BYTES]) + offset % LINE_BYTES
        first, shift = divmod((self.address - self.origin + offset) * self.unit_bits, 8)
        count = -(-(shift + bits) // 8)
        if first < 0 or first + count > len(self.storage):
            raise KernelError(
                f"interpret: bytes {first} to {first + count} are outside of {len(self.storage)} bytes"
            )
        return first, shift, count


def element_of(number: int, dtype: str) -> Any:
    """The element whose bits are a number; moved-only elements are the number itself."""
    if dtype.startswith("bits"):
        return number
    return np.frombuffer(number.to_bytes(bits_of(dtype) // 8, "little"), stored_dtype(dtype))[0]


def bits_of_element(element: Any, dtype: str) -> int:
    """The bits of an element as a number."""
    if dtype.startswith("bits"):
        return int(element)
    return int.from_bytes(np.asarray(element, stored_dtype(dtype)).tobytes(), "little")
