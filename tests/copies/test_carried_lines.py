"""Transposes whose blocks complete lines of result rows, wherever these begin."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import described, machine
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded, strided_view
from tests.tools.replay import interpreted_after_passes, watching
from tests.tools.schedules import carried

VBMI = replace(machine(), joins_bytes=True, stream_bytes=0, first_cache_ways=8)


@pytest.mark.parametrize("seed", few_by_default(range(40), 1))
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_rows_begin_anywhere(width: int, seed: int) -> None:
    """Between guard pages, on one thread and on several; bytes between result rows stay as they are."""
    random, dtype, line = Random(f"{width} {seed}"), np.dtype(f"u{width}"), 64 // width
    guards = Guarded(1 << 19), Guarded(1 << 19)
    rows, columns, gap = (
        random.randint(line + 1, 6 * line),
        random.randint(2 * line + 1, 5 * line),
        random.choice([0, 0, 1, 7]),
    )
    layers = random.choice([1, 1, 3])
    data = guards[0].place(layers * rows * columns * width, at_end=random.random() < 0.5)
    data[:] = np.random.default_rng(seed).integers(0, 256, len(data), np.uint8)
    src = data.view(dtype).reshape(layers, rows, columns)
    pitch = rows * width + gap
    strides = columns * pitch, pitch, width
    span = (layers - 1) * strides[0] + (columns - 1) * pitch + rows * width
    text = carried(["i"] if layers > 1 else [], width, random)
    for at_end, threads, shift in product((False, True), (1, 3), (0, random.randint(1, 63))):
        raw = guards[1].place(span, at_end=at_end, gap=shift)
        dst = strided_view(raw, dtype, (layers, columns, rows), strides)
        tj.copyto(dst, src.transpose(0, 2, 1), schedule=text, threads=threads)
        np.testing.assert_array_equal(dst, src.transpose(0, 2, 1), text)
        assert guards[1].untouched(), text
        between = np.lib.stride_tricks.as_strided(
            raw[rows * width :], (layers * columns - 1, gap), (pitch, 1)
        )
        assert (between == 0xA5).all(), text


@pytest.mark.parametrize(
    ("width", "rows", "columns"), [(8, 17, 9), (8, 24, 11), (4, 50, 21), (2, 71, 40), (1, 128, 64)]
)
def test_each_pass_keeps_the_meaning(width: int, rows: int, columns: int) -> None:
    text = carried([], width, Random(rows))
    src = np.random.default_rng(7).integers(0, 1 << 7, (rows, columns)).astype(f"u{width}")
    room = np.zeros(rows * columns * width + 128, np.uint8)
    for shift in (0, 3 * width, 5):
        dst = room[-room.ctypes.data % 64 + shift :][: src.nbytes].view(src.dtype).reshape(columns, rows)
        with watching() as seen:
            tj.copyto(dst, src.T, schedule=text, threads=1)
        np.testing.assert_array_equal(dst, src.T, text)
        names = []
        for name, made in interpreted_after_passes(seen[0]):
            assert (made == seen[0].after).all(), (name, shift, text)
            names.append(name)
        assert "stream_lines" in names


@pytest.mark.parametrize(
    ("dtype", "shape", "is_carried"),
    [
        ("u8", (901, 703), True),
        ("u8", (901, 1025), True),
        ("u4", (901, 703), True),
        ("u4", (901, 1025), False),
        ("u2", (1801, 1411), True),
        ("u1", (2801, 4097), False),
        ("u4", (301, 703), False),
        ("c16", (901, 703), True),
    ],
)
def test_which_transposes_are_carried(dtype: str, shape: tuple[int, int], is_carried: bool) -> None:
    """Long result rows that begin inside lines, if the source rows of a block stay in the first cache."""
    src = np.zeros(shape, dtype)
    dst = np.empty(shape[::-1], dtype)
    with described(VBMI):
        assert ('Stream("carried")' in tj.explain(dst, src.T).directives) == is_carried
        assert 'Stream("carried")' not in tj.explain(dst, src.T, virtual_vector_size=64).directives
        if is_carried:
            src.reshape(-1).view(np.uint8)[:] = np.arange(src.nbytes) % 251
            for threads in (1, 2):
                tj.copyto(dst, src.T, threads=threads)
                np.testing.assert_array_equal(dst, src.T)
    with described(replace(VBMI, joins_bytes=False)):
        assert 'Stream("carried")' not in tj.explain(dst, src.T).directives
