"""Whatever a search picks, a copy moves the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from codegen import AccessMap, CopyOptions, CopyProgram, CopyRequest, Element, strided_map
from codegen.pipeline.copies import compile_copy
from tests.tools.extent import few_by_default, is_full
from tests.tools.replay import Watched, interpreted_when_lowered
from tilejit.arrays.memory import bytes_map
from tilejit.arrays.strided import span
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map

T = TypeVar("T")
IN_CACHE, PAST_IT = 1 << 62, 0

COPIES = {
    "transpose": ("u2", (3, 70, 90), (2, 0, 1)),
    "short result rows": ("u2", (12, 1400), (1, 0)),
    "runs": ("u4", (16, 8, 70), (1, 0, 2)),
    "elements": ("u8", (6, 9, 8, 10), (2, 0, 3, 1)),
}
"""dtype, shape and permutation: just large enough to be tuned."""


class Picker:
    """Picks what is at a position, and remembers how much there was to choose from."""

    def __init__(self, position: int) -> None:
        self.position, self.most = position, 0

    def __call__(self, box: Any, schedules: tuple[T, ...]) -> T:
        return self.copies(schedules)

    def copies(self, given: Sequence[T]) -> T:
        self.most = max(self.most, len(given))
        return given[self.position % len(given)]


def moved(program: CopyProgram, content: bytes, size: int) -> bytes:
    """The destination after the loops of a copy's kernels are interpreted."""
    data, room = np.frombuffer(content, np.uint8), np.zeros(size, np.uint8)
    return interpreted_when_lowered(Watched(program, data, room, room)).tobytes()


def strided(array: np.ndarray[Any, Any]) -> AccessMap:
    width = array.itemsize
    reach = span(array.shape, array.strides, width)
    return strided_map(array.shape, array.strides, reach, element_bits=8 * width)


HOW: tuple[dict[str, Any], ...] = (
    {},
    {"virtual_vector_size": 5},
    {"virtual_vector_size": (8, 8)},
    {"threads": 3},
)


@pytest.mark.parametrize(
    ("name", "how", "stream_bytes"),
    few_by_default(
        [
            (name, how, (IN_CACHE, PAST_IT)[(m + n) % 2])
            for m, name in enumerate(COPIES)
            for n, how in enumerate(HOW)
        ],
        2,
    ),
)
def test_every_schedule_gives_the_same_bytes(name: str, how: dict[str, Any], stream_bytes: int) -> None:
    dtype, dims, order = COPIES[name]
    src = np.random.default_rng(3).integers(0, 256, dims).astype(dtype)
    turned = src.transpose(order)
    wanted = np.ascontiguousarray(turned)
    element, position, most = Element(f"u{8 * src.itemsize}", 8 * src.itemsize), 0, 1
    while position < most:
        pick = Picker(position)
        options = CopyOptions(stream_bytes=stream_bytes, pick=pick, **how)
        program = compile_copy(
            CopyRequest(strided(turned), strided(wanted), element, element, options=options)
        )
        assert moved(program, src.tobytes(), wanted.nbytes) == wanted.tobytes(), f"choice {position}"
        position, most = position + max(1, pick.most // (12 if is_full() else 5)), pick.most
    assert most > 1


LAYOUTS = {
    "runs that share lines": "u8[400,304]{1,0:T(8,8)}",
    "pieces in another order": "u16[20480] Sw<2,4,3> o 0 o 20480:1",
}


@pytest.mark.full
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_program_gives_the_same_bytes(name: str) -> None:
    """All boxes in one launch, or box by box."""
    spec = as_layout(LAYOUTS[name])
    width = spec.dtype.itemsize
    x = np.random.default_rng(3).integers(0, 200, spec.dimensions).astype(spec.dtype)
    element, found, position, most = Element(f"u{8 * width}", 8 * width), set(), 0, 1
    while position < most:
        pick = Picker(position)
        options = CopyOptions(stream_bytes=PAST_IT, pick_copy=pick.copies)
        maps = bytes_map(x.shape, x.strides, width), access_map(spec)
        program = compile_copy(CopyRequest(*maps, element, element, options=options))
        found.add(moved(program, x.tobytes(), spec.size_in_bytes))
        position, most = position + 1, pick.most
    assert most > 1
    assert len(found) == 1
