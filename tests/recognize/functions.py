"""Pack functions in NumPy: those of libraries, and functions that follow a table of slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.tools.oracle import packed_bits
from tilejit.layout.cute_shape import Spec
from tilejit.recognize.probes.bit_patterns import patterns_of

Array = NDArray[Any]


def little_endian(codes: Array, bits: int = 4, word: str = "u4") -> Array:
    """Words of the codes along the last axis, the first code in the lowest bits."""
    count = np.dtype(word).itemsize * 8 // bits
    words = codes.reshape(*codes.shape[:-1], -1, count).astype(word)
    shifts = (bits * np.arange(count)).astype(word)
    return np.bitwise_or.reduce(words << shifts, axis=-1)


def awq(codes: Array) -> Array:
    """AutoAWQ, qweight int32 [K, N/8]: nibbles hold columns 0 2 4 6 1 3 5 7."""
    rows, columns = codes.shape
    shuffled = codes.reshape(rows, columns // 8, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]]
    return little_endian(shuffled).reshape(rows, -1)


def gptq(codes: Array) -> Array:
    """GPTQ, qweight int32 [K/8, N]: eight codes of a column in a word."""
    rows, columns = codes.shape
    return little_endian(codes.reshape(rows // 8, 8, columns).transpose(0, 2, 1)).reshape(-1, columns)


def marlin(codes: Array) -> Array:
    """Marlin, int32 [K/16, 2 N]: tiles of 16 x 64, in the order of tensor-core fragments."""
    rows, columns = codes.shape
    digits = codes.reshape(rows // 16, 2, 4, 2, columns // 64, 4, 2, 8)  # K hi a lo N j b c
    order = digits.transpose(0, 4, 7, 2, 5, 3, 6, 1)  # K N c a j lo b hi
    return little_endian(order.reshape(rows // 16, -1))


def bitsandbytes(codes: Array) -> Array:
    """bitsandbytes nf4 and fp4, uint8 [n/2, 1]: the even code in the high nibble."""
    flat = codes.reshape(-1)
    return (flat[::2] << 4 | flat[1::2]).reshape(-1, 1)


def hqq(codes: Array) -> Array:
    """HQQ, uint8 [R/2, C]: the first half of the rows in the high nibbles."""
    half = len(codes) // 2
    return codes[:half] << 4 | codes[half:]


def modelopt(codes: Array) -> Array:
    """ModelOpt int4 AWQ, uint8 [N/2, K]: pairs of rows."""
    return codes[::2] & 15 | (codes[1::2] & 15) << 4


def aiter_scales(scales: Array, padding: Callable[[tuple[int, ...]], Array]) -> Array:
    """AITER shuffle_scale and CDNA4: rows padded to 256, columns to 8, with uninitialized memory."""
    rows, columns = scales.shape
    whole = padding((-(-rows // 256) * 256, -(-columns // 8) * 8))
    whole[:rows, :columns] = scales
    digits = whole.reshape(-1, 2, 16, whole.shape[1] // 8, 2, 4)  # M a m K b k
    return digits.transpose(0, 3, 5, 2, 4, 1)  # M K k m b a


def blocked_scales(scales: Array, fill: int = 0) -> Array:
    """cuBLAS block scaling: 128 x 4 blocks, rows padded to 128 and columns to 4."""
    rows, columns = scales.shape
    whole = np.pad(scales, ((0, -rows % 128), (0, -columns % 4)), constant_values=fill)
    return whole.reshape(-1, 4, 32, whole.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4)


def flashinfer_rows(rows: Array) -> Array:
    """FlashInfer's shuffleMatrixA for tiles of 128 rows: in groups of 32, source rows 0 4 8 ... 1 5 ..."""
    order = np.arange(len(rows)).reshape(-1, 8, 4).transpose(0, 2, 1)
    return rows[order.reshape(-1)]


def ggml_q4_0(codes: Array) -> bytes:
    """ggml Q4_0: per 32 codes a scale, f16, and 16 bytes with code j low and code j + 16 high."""
    blocks = codes.reshape(-1, 2, 16)
    records = np.zeros(len(blocks), [("d", "<f2"), ("qs", "u1", 16)])
    records["d"] = 0.5
    records["qs"] = blocks[:, 0] | blocks[:, 1] << 4
    return records.tobytes()


def by_slots(slots: Sequence[int] | Array, spec: Spec) -> Callable[[Array], Array]:
    """The function that packs into the slots of a table: for each slot the number of its element, or -1."""
    table = np.asarray(slots)
    used = table >= 0

    def function(x: Array) -> Array:
        values = x.reshape(-1) if spec.element.bits == 128 else patterns_of(x, spec.element)
        out = np.zeros(table.size, values.dtype)
        out[used] = values[table[used]]
        return packed_bits(out, spec.bits) if spec.packed else out

    return function


def ggml_q5_0(codes: Array) -> bytes:
    """ggml Q5_0: a scale, bit 4 of each of 32 codes in a word of 32 bits, then the low bits as in Q4_0."""
    blocks = codes.reshape(-1, 32)
    records = np.zeros(len(blocks), [("d", "<f2"), ("qh", "<u4"), ("qs", "u1", 16)])
    records["d"] = 0.5
    records["qh"] = np.bitwise_or.reduce(
        (blocks >> 4).astype(np.uint32) << np.arange(32, dtype=np.uint32), axis=1
    )
    records["qs"] = blocks[:, :16] & 15 | (blocks[:, 16:] & 15) << 4
    return records.tobytes()


def ggml_q6_k(codes: Array) -> bytes:
    """ggml Q6_K: per 256 codes 128 bytes with the low 4 bits, 64 with the high 2, then scales."""
    parts = codes.reshape(-1, 2, 4, 32)
    low = parts[:, :, :2] & 15 | (parts[:, :, 2:] & 15) << 4
    high = np.bitwise_or.reduce((parts >> 4) << np.array([0, 2, 4, 6], np.uint8)[:, None], axis=2)
    records = np.zeros(len(parts), [("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "<f2")])
    records["ql"] = low.reshape(-1, 128)
    records["qh"] = high.reshape(-1, 64)
    records["scales"] = -1
    return records.tobytes()


def fp6_llm(codes: Array) -> Array:
    """FP6-LLM: per 64 x 64 codes, a plane of the high 2 bits, then one of the low 4 bits."""
    rows, columns = codes.shape
    parts = codes.reshape(rows // 64, 2, 2, 2, 8, columns // 16, 2, 8)[:, :, :, ::-1]
    high = (parts >> 4).transpose(0, 5, 1, 4, 7, 3, 2, 6).reshape(-1, 4)
    low = (parts & 15).transpose(0, 5, 1, 2, 4, 7, 3, 6).reshape(-1, 2)
    return np.concatenate([high @ np.array([64, 16, 4, 1]), low @ np.array([16, 1])]).astype(np.uint8)


def hqq_3_bits(codes: Array) -> Array:
    """HQQ, int32 [ceil(R/10), C]: tenth t of the rows at bits 27 - 3 t."""
    tenths = np.pad(codes, ((0, -len(codes) % 10), (0, 0))).reshape(10, -1, codes.shape[1]).astype(np.uint32)
    return np.bitwise_or.reduce(tenths << (27 - 3 * np.arange(10, dtype=np.uint32))[:, None, None], axis=0)


def bit_stream(codes: Array, bits: int) -> Array:
    """Rows of codes as little-endian streams, padded to words of 32 bits."""
    stream = (codes[..., None] >> np.arange(bits, dtype=np.uint8) & 1).reshape(len(codes), -1)
    return np.packbits(np.pad(stream, ((0, 0), (0, -stream.shape[1] % 32))), axis=1, bitorder="little")


def gptq_3_bits(codes: Array) -> Array:
    """GPTQ, qweight int32 [3 K/32, N]: a stream down each column, in which codes straddle words."""
    words = bit_stream(np.ascontiguousarray(codes.T), 3).view("<u4")
    return words.T.copy()
