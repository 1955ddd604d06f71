"""The methods of a tiled array besides indexing, and the operations that it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj

LAYOUT = "{1,0:T(2,2)}"
X = np.arange(15, dtype=np.float32).reshape(3, 5)


def test_properties() -> None:
    t = tj.pack(X, layout=LAYOUT)
    assert (t.shape, t.size, t.ndim, t.nbytes, t.grid) == ((3, 5), 15, 2, 96, (2, 3))
    assert t.layout == tj.as_layout(f"f32[3,5]{LAYOUT}")
    assert np.array_equal(t.unpack(), X)


def test_a_copy_has_its_own_buffer() -> None:
    t = tj.pack(X, LAYOUT, padding=-1)
    own = t.copy()
    own[0, 0] = 9
    assert (t[0, 0], own[0, 0], own.layout) == (0, 9, t.layout)
    assert own.buffer[1:].tobytes() == t.buffer[1:].tobytes()


def test_relayout_and_unpack_agree_with_the_functions() -> None:
    t = tj.pack(X, LAYOUT)
    u = t.relayout(layout="blis-a", mr=2, padding=3)
    assert u.layout == tj.relayout(t, "blis-a", mr=2).layout
    assert u.buffer.tobytes() == tj.pack(X, "blis-a", mr=2, padding=3).buffer.tobytes()
    out = np.zeros((5, 3), np.float32).T
    assert u.unpack(out=out) is out
    assert np.array_equal(out, X)


def test_slices_are_read_only() -> None:
    """Slices are copies, so a write to one would be lost."""
    t = tj.pack(X, LAYOUT)
    for part in (t[0], t[:, 1], t[...], t[1:, ::2]):
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 99
    t[0][()].copy()[0] = 99
    t.unpack()[0, 0] = 99
    assert np.array_equal(t.unpack(), X)


@pytest.mark.parametrize(
    "compute",
    [
        lambda t: t + 1,
        lambda t: 1 + t,
        lambda t: t + X,
        lambda t: X + t,
        lambda t: t * t,
        lambda t: -t,
        lambda t: t < 1,
        lambda t: np.equal(X, t),
        lambda t: np.sqrt(t),
        lambda t: np.add.reduce(t),
        lambda t: np.sum(t),
    ],
)
def test_arithmetic_suggests_elementwise(compute: Callable[[Any], object]) -> None:
    t = tj.pack(X, LAYOUT)
    with pytest.raises(TypeError, match=r"tilejit\.elementwise.*np\.asarray\(t\)"):
        compute(t)
    name = "iadd"
    with pytest.raises(TypeError, match=r"tilejit\.elementwise"):
        getattr(t, f"__{name}__")(1)
    assert np.array_equal(t.unpack(), X)


def test_equality_is_identity() -> None:
    t, twin = tj.pack(X, LAYOUT), tj.pack(X, LAYOUT)
    assert t == t
    assert (t == twin, t != twin, t == X, t in [twin], len({t, twin})) == (False, True, False, False, 2)


def test_lists_of_indices_suggest_gather_tiles() -> None:
    t = tj.pack(X, LAYOUT)
    for key in ([0, 1], (slice(None), np.array([0, 1])), X > 3):
        with pytest.raises(TypeError, match=r"gather_tiles"):
            t[key]


@pytest.mark.parametrize("name", ["f32", "f4", "float32", "<f4", np.float32, np.dtype("f4")])
def test_dtype_names(name: Any) -> None:
    assert str(tj.as_layout(LAYOUT, dims=(3, 5), dtype=name)) == f"f32[3,5]{LAYOUT}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *(
            ("f8", "f64"),
            ("f2", "f16"),
            ("i1", "s8"),
            ("i8", "s64"),
            ("c8", "c64"),
            ("uint1", "u1"),
            ("uint8", "u8"),
            ("f16", "f16"),
        ),
        *(("<u4", "u32"), ("|u1", "u8"), ("?", "pred"), ("=f4", "f32")),
    ],
)
def test_dtype_codes_of_xla_have_xlas_meaning(code: str, found: str) -> None:
    assert tj.as_layout("{0}", dims=(3,), dtype=code).primitive_type == found


@pytest.mark.full
def test_the_casting_error_suggests_the_narrowest_sufficient_rule() -> None:
    for want, enough in (("bf16", "same_kind"), ("f64", "same_kind"), ("s32", "unsafe")):
        fix = f"pass casting={enough!r}"
        with pytest.raises(tj.LayoutError, match=re.escape(fix)):
            tj.pack(X, f"{want}[3,5]{LAYOUT}")
        tj.pack(X, f"{want}[3,5]{LAYOUT}", casting=enough)
        with pytest.raises(tj.LayoutError, match=re.escape(fix)):
            tj.unpack(tj.pack(X, LAYOUT), dtype=want)


def test_a_byte_order_in_a_name_applies_to_the_result() -> None:
    t = tj.pack(X, LAYOUT)
    found = t.unpack(dtype=">f4")
    assert found.dtype == np.dtype(">f4")
    assert np.array_equal(found, X)
    assert np.array_equal(t.unpack(dtype=">f4", out=np.empty((3, 5), ">f4")), X)


def test_conversions_that_numpy_lacks_are_refused() -> None:
    t = tj.pack(np.zeros((4, 4), np.int8), "s4[4,4]{1,0:T(2,2)E(4)}")
    with pytest.raises(tj.LayoutError, match="NumPy has no such conversion"):
        t.unpack(dtype="uint4", casting="unsafe")
