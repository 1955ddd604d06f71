"""Safetensors files built by hand, good and bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilejit.files.windows import FileBytes

BF16 = np.dtype(ml_dtypes.bfloat16)


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A container with that header, which is JSON text or becomes it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def model() -> dict[str, NDArray[Any]]:
    """Tensors of many ranks and dtypes."""
    rng = np.random.default_rng(3)
    return {
        "weight": rng.normal(size=(40, 300)).astype(np.float32),
        "bias": rng.normal(size=700).astype(BF16),
        "scale": np.array(3.5, np.float16),
        "empty": np.zeros((0, 5), np.int8),
        "int": rng.integers(-8, 8, (40, 50)).astype(np.int8),
        "mask": rng.integers(0, 2, (3, 40, 50)).astype(bool),
        "wave": (rng.normal(size=(9, 9)) + 1j).astype(np.complex64),
        "small": rng.normal(size=(64, 200)).astype(ml_dtypes.float8_e4m3fn),
        "ids": rng.integers(0, 9, (4, 4)).astype(np.int64),
        "é, 1": rng.normal(size=(5, 2, 3, 8)).astype(BF16),
    }


def save_model(path: Path) -> Path:
    """The model as the safetensors library writes it."""
    from safetensors.numpy import save_file

    save_file(model(), path, {"format": "pt"})
    return path


def bytes_of(data: FileBytes) -> bytes:
    """The bytes of a range of a file."""
    return data.map(0, data.nbytes).tobytes()
