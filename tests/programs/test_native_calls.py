"""Which programs have calls that can be repeated, and that repeated calls give the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tilejit.arrays.memory import address
from tilejit.copies.convert import program_of_pack
from tilejit.programs.native_calls import MOST_CALLS, native_calls

LARGE = 1 << 40


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("f32[20,300]{1,0:T(8,128)}", np.float32),
        ("u8[33,70]{0,1}", np.uint8),
        ("s8[40,130]{1,0:T(8,128)(4,1)}", np.int8),
    ],
)
@pytest.mark.parametrize("moved", [0, 1 << 17, LARGE])
def test_repeated_calls_write_what_the_program_writes(text: str, dtype: type, moved: int) -> None:
    """With the GIL held, with it released, and with padding."""
    shape = tj.Shape.parse(text)
    x = np.random.default_rng(0).integers(0, 100, shape.dimensions).astype(dtype)
    program = program_of_pack(x, shape)
    want, got = (np.full(shape.size_in_bytes, 0xA5, np.uint8) for _ in range(2))
    program.run(address(x), address(want))
    calls = native_calls(program, moved)
    if calls is None:
        assert moved == LARGE
        assert any(launch.scratch_bytes for launch in program.launches)
        return
    assert calls.holds_gil == (moved == 0) or moved == 1 << 17
    assert len(calls.calls) <= MOST_CALLS
    for _ in range(2):
        got[:] = 0xA5
        calls(address(x), address(got))
        assert (got == want).all()


def test_programs_over_bits_have_no_repeated_calls() -> None:
    """Their addresses may count bits."""
    shape = tj.Shape.parse("s4[5,7]{1,0:E(4)}")
    program = program_of_pack(np.zeros((7, 5), shape.dtype).T, shape)
    assert any(launch.units != (1, 1) for launch in program.launches)
    assert native_calls(program, 0) is None
