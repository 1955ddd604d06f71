"""torch tensors and jax arrays, read through views of their own memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tilejit.arrays.array_likes import as_numpy

VALUES = np.arange(60000, dtype=np.float32).reshape(200, 300)


def test_other_objects_are_returned_unchanged() -> None:
    for given in ([1, 2], 3.0, None, VALUES, np.float32(1)):
        assert as_numpy(given) is given


def test_torch_tensors() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.from_numpy(VALUES.copy())
    assert np.shares_memory(tj.asarray(tensor), tensor.numpy())
    assert (tj.ascontiguousarray(tensor.T) == VALUES.T).all()
    short = tensor.to(torch.bfloat16)
    expected = VALUES.astype(ml_dtypes.bfloat16)
    assert as_numpy(short).dtype == ml_dtypes.bfloat16
    assert tj.transpose(short).tobytes() == expected.T.tobytes()
    out = np.empty((300, 200), np.float32)
    tj.copyto(out, short.T)
    assert (out == expected.T.astype(np.float32)).all()
    assert tj.pack(short, "{1,0:T(8,128)(2,1)}").unpack().tobytes() == expected.tobytes()
    with pytest.raises(RuntimeError, match="grad"):
        tj.copy(torch.ones(200, 300, requires_grad=True))


def test_jax_arrays() -> None:
    jax: Any = pytest.importorskip("jax", reason="jax is not installed")
    array = jax.numpy.asarray(VALUES).astype(jax.numpy.bfloat16)
    assert np.shares_memory(tj.asarray(array), np.asarray(array))
    expected = VALUES.astype(ml_dtypes.bfloat16)
    assert tj.ascontiguousarray(array.T).tobytes() == expected.T.tobytes()
    assert tj.pack(array, "{1,0:T(8,128)(2,1)}").unpack().tobytes() == expected.tobytes()
