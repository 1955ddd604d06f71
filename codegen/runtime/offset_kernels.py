"""Kernels of copies at offsets: one makes the offsets from indices, one calls other kernels at each."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from codegen.emit.abi import kernel_head
from codegen.runtime.kernel import native_address

_CHECK = "offsets_of_indices"
_CHECK_SOURCE = f'''"""{_CHECK}

for entries [begin, end): the offset of the cell that the entry's indices name in a grid, each index checked
offsets, homes and slots lie one after the other in `scratch`; refused[0] = 1 if an index lies outside
opaque: each index is read once, whatever another thread writes meanwhile
mask: of the slots, a hash table that refuses a cell named twice; 0 without. A slot holds an entry if this
entry's home is the slot, so nothing has to be cleared. The multiplier is 2**64 divided by the golden ratio
"""

{kernel_head(_CHECK)}
    indices, refused = addresses_2(operands)
    step, mask, rank = arguments_3(sizes)
    homes = scratch + 8 * (end - begin)
    slots = homes + 8 * (end - begin)
    for entry in range(begin, end):
        cell = 0
        for axis in range(rank):
            index = opaque(int64_at(indices, rank * entry + axis))
            extent = int64_at(sizes, 3 + axis)
            if index < 0 or index >= extent:
                store_u64_at(refused, 0, 1)
                return
            cell = extent * cell + index
        offset = step * cell
        if mask != 0:
            slot = ((cell * -7046029254386353131) >> 32) & mask
            other = int64_at(slots, slot)
            while 0 <= other and other < entry and int64_at(homes, other) == slot:
                if int64_at(scratch, other) == offset:
                    store_u64_at(refused, 0, 1)
                    return
                slot = (slot + 1) & mask
                other = int64_at(slots, slot)
            store_u64_at(slots, 8 * slot, entry)
            store_u64_at(homes, 8 * entry, slot)
        store_u64_at(scratch, 8 * entry, offset)
'''

_EACH = "call_at_offsets"
_EACH_SOURCE = f'''"""{_EACH}

for entries [begin, end) and `count` rows of 8 numbers: one call of a kernel, at the entry's offsets in bytes
"""

{kernel_head(_EACH)}
    src, dst = addresses_2(operands)
    src_offsets, dst_offsets, rows, count = arguments_4(sizes)
    own_operands = stack_16()
    for entry in range(begin, end):
        src_entry = src + int64_at(src_offsets, entry)
        dst_entry = dst + int64_at(dst_offsets, entry)
        for row in range(count):
            call = rows + 64 * row
            kernel, own_sizes, first, last, src_units, src_at, dst_units, dst_at = arguments_8(call)
            store_u64_at(own_operands, 0, src_units * src_entry + src_at)
            store_u64_at(own_operands, 8, dst_units * dst_entry + dst_at)
            call_kernel(kernel, own_operands, scratch, own_sizes, first, last)
'''

MOST_CLEARED_BYTES = 1 << 17
"""Smaller scratch is a ctypes array: it is cleared, but small ones are made faster than NumPy's."""


def check_code() -> int:
    """Where the machine code of the kernel that checks indices and makes offsets begins."""
    return native_address(_CHECK, _CHECK_SOURCE)


def each_code() -> int:
    """Where the machine code of the kernel that calls other kernels at each entry begins."""
    return native_address(_EACH, _EACH_SOURCE)


class CheckScratch:
    """The scratch of a check: words of 64 bits for the offsets, homes and slots of its entries.

    The offsets come first, so the scratch is also the table of offsets. Slots find duplicates; there are none
    where a cell may be named twice. One more word, the last, says whether an index was refused.

    refused_offset  bytes to that word
    size_bytes      the size of all words
    """

    __slots__ = ("_words", "refused_offset", "size_bytes")

    def __init__(self, entries: int, slots: int) -> None:
        self.refused_offset = 8 * (2 * entries + slots)
        self.size_bytes = self.refused_offset + 8
        is_small = self.size_bytes < MOST_CLEARED_BYTES
        self._words: Any = ctypes.c_int64 * (self.size_bytes // 8) if is_small else None

    def new(self) -> tuple[Any, int]:
        """Memory for one check, whose last word is 0, and its address."""
        if self._words is not None:
            words = self._words()
            return words, ctypes.addressof(words)
        words = np.empty(self.size_bytes // 8, np.int64)
        words[-1] = 0
        return words, words.ctypes.data
