"""Formats of several planes: which arrays and buffers they take, and that a refused call writes nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import mix
from tilejit.catalog.packing import Field, Packing, Plane
from tilejit.copies.plane_fields import place_fields
from tilejit.layout.dtypes import lookup

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize(("dtype", "rows"), [(np.bool_, 8), (ml_dtypes.int4, 2)], ids=str)
def test_elements_of_a_record_have_a_byte_unless_they_are_codes(dtype: Any, rows: int) -> None:
    scales, zeros = (mix((rows, 16), 2, seed).astype(dtype) for seed in (0, 99))
    packed = tj.pack({"scales": scales, "zeros": zeros}, "tinygemm-scales-and-zeros")
    assert packed.buffer.tobytes() == np.stack([scales.T, zeros.T], axis=-1).tobytes()


def test_a_table_moves_elements_of_a_record() -> None:
    field = Field(("codes",), "R (C c) -> R C c", sizes={"c": (2, 0, 3, 1)})  # type: ignore[dict-item]
    packing = Packing((Plane("codes", "R C", 8), Plane("d", "R", dtype="u8")), (field, Field(("d",))), "R")
    sizes = packing.sizes((3, 8), "the format")
    buffer = np.zeros(27, np.uint8)
    codes, d = mix((3, 8), 256).astype(np.uint8), np.arange(3, dtype=np.uint8)
    for placed in place_fields(packing, "buffer", sizes, {"codes": lookup("u8"), "d": lookup("u8")}):
        arrays = {"codes": codes, "d": d}
        placed.write(buffer, placed.encoded(arrays, None), None)
        (name,) = placed.field.planes
        np.testing.assert_array_equal(placed.read(buffer, {}, None)[name], arrays[name])
    want = np.empty((3, 2, 4), np.uint8)
    want[..., [2, 0, 3, 1]] = codes.reshape(3, 2, 4)
    np.testing.assert_array_equal(buffer.reshape(3, 9), np.column_stack([want.reshape(3, 8), d]))


def test_layouts_of_a_format_with_a_field_without_planes() -> None:
    planes = {"weight": np.zeros((8, 128), np.int8), "weight_scale": np.ones((8, 1), np.float16)}
    packed = tj.pack(planes, "compressed-tensors-wna16")
    assert set(packed.layouts) == {"weight", "weight_scale"}
