"""The header of safetensors files: eight bytes of length, then JSON. The tensors' bytes follow without gaps.

Reading checks all requirements of the format before it accesses any data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any

from codegen import LayoutError
from tilejit.files.json_text import parsed, shortened
from tilejit.files.stream import Output
from tilejit.files.tensor_file import Entry

MAX_HEADER_BYTES = 100_000_000
"""The limit of the safetensors library."""
MAX_SIZE = 2**63 - 1

DTYPE_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


def read_header(file: IO[bytes], file_size: int) -> tuple[tuple[Entry, ...], dict[str, str], int]:
    """Return (entries, metadata, start of the data).

    Raises:
        LayoutError: the header violates the format; the message says where.
    """
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length > file_size - 8:
        raise LayoutError(f"the header states a length of {length} bytes, but the file has {file_size}")
    if length > MAX_HEADER_BYTES:
        raise LayoutError(f"the header takes {length} bytes, and the limit is {MAX_HEADER_BYTES}")
    header = _parse(file.read(length))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise LayoutError("__metadata__ is not a map from strings to strings")
    entries = sorted((_entry(*item) for item in header.items()), key=lambda e: (e.begin, e.end))
    at = 0
    for entry in entries:
        if entry.begin != at:
            raise LayoutError(
                f"tensor {shortened(entry.name)}: expected data from byte {at} on, got {entry.begin}"
            )
        at = entry.end
    if at != file_size - 8 - length:
        raise LayoutError(f"the tensors take {at} bytes, but {file_size - 8 - length} follow the header")
    return tuple(entries), metadata, 8 + length


def write_header(outputs: Iterable[Output], metadata: dict[str, str]) -> bytes:
    """The length and the JSON, padded with spaces to a multiple of eight bytes.

    Raises:
        LayoutError: the header exceeds the readers' limit.
    """
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for output in outputs:
        offsets = [at, at := at + output.nbytes]
        header[output.name] = {"dtype": output.dtype, "shape": list(output.shape), "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise LayoutError(f"the header would take {len(text)} bytes, and the limit is {MAX_HEADER_BYTES}")
    return len(text).to_bytes(8, "little") + text


def _parse(raw: bytes) -> dict[str, Any]:
    if not raw.startswith(b"{"):
        raise LayoutError("the header does not begin with {")
    header = parsed(raw, "the header", writable=True)
    if not isinstance(header, dict):
        raise LayoutError("the header is not a JSON object")
    return header


def _entry(name: str, facts: Any) -> Entry:
    """A tensor's entry in the header, checked."""
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "data_offsets"}:
        raise LayoutError(f"tensor {shortened(name)} must have exactly dtype, shape and data_offsets")
    dtype, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise LayoutError(f"tensor {shortened(name)} has the unknown dtype {shortened(dtype)}")
    if not _sizes(shape):
        raise LayoutError(
            f"tensor {shortened(name)}: expected a list of sizes as shape, got {shortened(shape)}"
        )
    if not _sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise LayoutError(
            f"tensor {shortened(name)}: expected [begin, end] as data_offsets, got {shortened(offsets)}"
        )
    count = 1
    for size in shape:  # in order, up to 2^64, as the safetensors library multiplies
        count *= size
        if count >> 64:
            break
    if count * DTYPE_BITS[dtype] != 8 * (offsets[1] - offsets[0]):
        taken = offsets[1] - offsets[0]
        raise LayoutError(
            f"tensor {shortened(name)} has {taken} bytes, which do not match dtype {dtype} and "
            f"shape {shortened(shape)}"
        )
    return Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _sizes(value: Any) -> bool:
    """Whether it is a list of integers from 0 to 2^63-1."""
    return isinstance(value, list) and all(type(v) is int and 0 <= v <= MAX_SIZE for v in value)
