"""The examples of XLA's texts about tiled layouts and padded shapes, by number."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import slots_by_definition, slots_of


def test_element_2_3_of_f32_3_5_tiled_by_2_2() -> None:
    shape = tj.Shape.parse("F32[3,5]{1,0:T(2,2)}")
    assert tj.linear_index(shape, (2, 3)) == 17
    assert tj.multi_index(shape, 17) == (2, 3)
    assert shape.physical_size == 24
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert tj.pack(x, shape).buffer[17] == x[2, 3]


FIGURE_2 = """
 0  2  4  6  8 10 12 14
 1  3  5  7  9 11 13 15
16 18 20 22 24 26 28 30
17 19 21 23 25 27 29 31
"""


def figure_2() -> np.ndarray:  # type: ignore[type-arg]
    """[4,8] with (2,4)(2,1): the place of every element, from the text's own formula."""
    rows, columns = np.indices((4, 8))
    tile = (rows // 2) * 2 + columns // 4
    return np.asarray(tile * 8 + (columns % 4) * 2 + rows % 2)


def test_figure_2() -> None:
    shape = tj.Shape.parse("F32[4,8]{1,0:T(2,4)(2,1)}")
    assert figure_2().tolist() == [[int(n) for n in line.split()] for line in FIGURE_2.strip().splitlines()]
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    buffer = tj.pack(x, shape).buffer
    assert buffer[figure_2()].tolist() == x.tolist()
    assert tj.linear_index(shape, tuple(np.indices((4, 8)))).tolist() == figure_2().tolist()


def test_column_major_padded_2_3_to_3_5() -> None:
    shape = tj.make_shape("u8", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=0)
    x = np.frombuffer(b"abcdef", np.uint8).reshape(2, 3)
    text = tj.pack(x, shape).buffer.tobytes().replace(b"\0", b"0").decode()
    assert " ".join(text) == "a d 0 b e 0 c f 0 0 0 0 0 0 0"


def test_stars_combine_dimensions() -> None:
    """F32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)} is [112,110] tiled by (2,3)."""
    combined = tj.Shape.parse("F32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}")
    plain = tj.Shape.parse("F32[112,110]{1,0:T(2,3)}")
    assert combined.physical_size == plain.physical_size
    x = np.arange(112 * 110, dtype=np.float32)
    tiled = tj.pack(x.reshape(2, 7, 8, 11, 10), combined)
    assert tiled.buffer.tobytes() == tj.pack(x.reshape(112, 110), plain).buffer.tobytes()
    assert np.array_equal(tj.unpack(tiled).reshape(-1), x)


@pytest.mark.parametrize(
    "text",
    [
        "F32[3,5]{1,0:T(2,2)}",
        "F32[4,8]{1,0:T(2,4)(2,1)}",
        "F32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
        "bf16[33,300]{1,0:T(8,128)(2,1)}",
        "u8[33,300]{1,0:T(8,128)(4,1)}",
        "pred[33,300]{1,0:T(32,128)(32,1)}",
        "f32[3,5]{1,0:T(3,5)(4,1)}",
        "f32[7]{0:T(8,128)}",
        "f32[]{:T(256)}",
    ],
)
def test_every_slot_by_the_definition(text: str) -> None:
    shape = tj.Shape.parse(text)
    slots = slots_of(shape)
    index = tj.multi_index(shape, np.arange(shape.physical_size))
    if shape.rank:
        flat = np.where(
            index[0] < 0, -1, np.ravel_multi_index([np.maximum(i, 0) for i in index], shape.dimensions)
        )
        assert flat.tolist() == slots.tolist()
    assert (slots >= 0).sum() == np.prod(shape.dimensions)


def test_the_oracle_itself() -> None:
    """The definition's own worked examples, without any code of TileJIT."""
    slots = slots_by_definition((3, 5), (1, 0), [(2, 2)])
    assert slots.tolist()[:8] == [0, 1, 5, 6, 2, 3, 7, 8]
    assert slots.tolist().index(2 * 5 + 3) == 17
    assert (
        slots_by_definition((2, 3), (0, 1), padded=(3, 5)).tolist() == [0, 3, -1, 1, 4, -1, 2, 5] + [-1] * 7
    )
    assert slots_by_definition((5,), (0,), tail=4).tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
