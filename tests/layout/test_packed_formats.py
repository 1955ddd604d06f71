"""Formats and patterns whose narrow elements share bytes if element_size_in_bits requests it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tilejit.layout.as_layout import recipe_of

WIDTH = "element_size_in_bits"
NIBBLES = (np.arange(11 * 21) % 16 - 8).reshape(11, 21).astype(ml_dtypes.int4)
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("AB8b8a", {}),
    ("vnni", {"pack": 8}),
    ("blis-a", {"mr": 4}),
    ("(m mi) (n ni) -> m n mi ni", {"mi": 8, "ni": 3}),
)


@pytest.mark.parametrize(("layout", "parameters"), CASES, ids=str)
def test_nibbles_are_packed_low_bits_first(layout: str, parameters: dict[str, Any]) -> None:
    loose = tj.pack(NIBBLES, layout, **parameters)
    tight = tj.pack(NIBBLES, layout, **parameters, element_size_in_bits=4)
    assert str(tight.layout.layout) == str(loose.layout.layout)[:-1] + "E(4)}"
    codes = np.resize(loose.buffer.view(np.uint8) & 15, loose.buffer.size + loose.buffer.size % 2)
    codes[loose.buffer.size :] = 0
    assert tight.buffer.tolist() == (codes[::2] | codes[1::2] << 4).tolist()
    assert tj.unpack(tight).tolist() == NIBBLES.tolist()
    assert tj.relayout(loose, layout, **parameters, element_size_in_bits=4).buffer.tolist() == (
        tight.buffer.tolist()
    )
    source: dict[str, Any] = {}
    exec(recipe_of(layout, "s4", NIBBLES.shape, **parameters, element_size_in_bits=4), source)
    if loose.buffer.size % 2 == 0:
        assert source["pack"](NIBBLES).tolist() == tight.buffer.tolist()


def test_booleans_are_packed_eight_to_a_byte() -> None:
    x = np.arange(16 * 8).reshape(16, 8) % 3 == 0
    t = tj.pack(x, "(m mi) n -> m n mi", mi=8, element_size_in_bits=1)
    assert t.buffer.tolist() == np.packbits(x.reshape(2, 8, 8).swapaxes(1, 2), bitorder="little").tolist()


def test_the_width_of_whole_bytes_changes_nothing() -> None:
    plain = tj.as_layout("blis-a", dims=(6, 4), dtype="f32")
    assert tj.as_layout("blis-a", dims=(6, 4), dtype="f32", element_size_in_bits=32) == plain
    assert tj.as_layout("blis-a, element_size_in_bits=4", dims=(6, 4), dtype="s4").packed


@pytest.mark.parametrize(
    ("layout", "dtype", "width", "error"),
    [
        ("blis-a", "f32", 4, tj.LayoutError),
        ("blis-a", "s4", 2, tj.LayoutError),
        ("a b -> b a", "s4", -4, tj.LayoutError),
        ("blis-a", "s4", 10**30, tj.LayoutError),
        ("ba", "s4", "4", TypeError),
        ("ba", "s4", 4.0, TypeError),
        ("tpu", "s4", 4, TypeError),
        ("{1,0}", "s4", 4, TypeError),
    ],
)
def test_wrong_widths_are_refused(layout: str, dtype: str, width: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{WIDTH}|4"):
        tj.as_layout(layout, dims=(6, 4), dtype=dtype, element_size_in_bits=width)
