"""A swizzle over any layout: the slots of that layout, moved by an offset and the swizzle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import refuses, run
from tests.tools.oracle import same_elements
from tilejit.cute import parse
from tilejit.layout.shape import Shape

HASH = (np.arange(1 << 17, dtype=np.uint32) * 2654435761 >> 16).astype(np.int64)
INNER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("{1,0:T(128,128)(16,32)(4,8)}", {}),
    ("{1,0:T(8,128)(2,1)}", {}),
    ("{0,1:T(4,4)}", {}),
    ("{1,0}", {}),
    ("tenstorrent", {}),
    ("tenstorrent, tile=16", {}),
    ("tpu", {}),
    ("BA16a8b", {}),
    ("vnni", {"pack": 4}),
    ("(m mi) n -> m n mi, mi=8", {}),
    ("(m mi) (n ni) -> m n mi -ni, ni=16", {"mi": 8}),
    ("(R r) (C c) -> R C r c^r, r=8, c=8", {}),
    ("Sw<1,0,3> o 0 o {1,0:T(8,8)}", {}),
)
CASES = (((128, 256), "Sw<3,4,3>", 0), ((37, 150), "Sw<2,3,3>", 0), ((37, 150), "Sw<2,1,-4>", 5))


@pytest.mark.full
@pytest.mark.parametrize(("dims", "swizzle", "offset"), CASES, ids=str)
@pytest.mark.parametrize(("inner", "parameters"), INNER, ids=str)
def test_slots_are_swizzled(
    inner: str, parameters: dict[str, Any], dims: tuple[int, int], swizzle: str, offset: int
) -> None:
    x = np.resize(HASH, dims).astype(np.int16)
    text = f"{swizzle} o {offset} o {inner}"
    spec = tj.as_layout(text, dtype="s16", dims=dims, **parameters)
    plain = tj.as_layout(inner, dtype="s16", dims=dims, **parameters)
    index = tuple(np.indices(dims))
    slots = parse(swizzle)(np.asarray(tj.linear_index(plain, index)) + offset)
    assert np.array_equal(tj.linear_index(spec, index), slots)
    assert spec.physical_size > slots.max()
    block = parse(swizzle).block
    if offset == 0 and plain.physical_size % block == 0:  # the swizzle permutes the slots, padding included
        assert spec.physical_size == plain.physical_size
    assert tj.as_layout(str(spec)) == spec
    t = tj.pack(x, text, **parameters)
    assert np.array_equal(t.buffer[slots], x)
    assert not np.delete(t.buffer, slots.reshape(-1)).any()
    assert same_elements(tj.unpack(t), x, spec)
    u = tj.relayout(tj.pack(x, plain), text, **parameters)
    assert np.array_equal(u.buffer, t.buffer)
    assert np.array_equal(tj.relayout(t, plain).buffer, tj.pack(x, plain).buffer)
    assert t[dims[0] - 1, 3] == x[-1, 3]
    assert np.array_equal(t[3:20:2, 5:9], x[3:20:2, 5:9])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("u4[64,64] Sw<2,3,3> o 0 o (r p) c -> r c -p, p=2 E(4)", "Sw<2,3,3> o 1 o ((2,32),64):((-1,128),2)"),
        ("s4[64,64] Sw<2,3,3> o 0 o vnni, pack=8 E(4)", "Sw<2,3,3> o 0 o ((8,8),64):((1,512),8)"),
        ("s4[64,64] Sw<2,3,3> o 0 o {1,0:T(8,1)E(4)}", "Sw<2,3,3> o 0 o ((8,8),64):((1,512),8)"),
        ("s4[64,64]  Sw < 2,3,3 > ∘  a b -> b a", "Sw<2,3,3> o 0 o (64,64):(1,64)"),
        ("Sw<2,3,3> o 4 o s4[64,64]{0,1}", "Sw<2,3,3> o 4 o (64,64):(1,64)"),
        ("s4[4,4] Dg<4:1+4:4> o 0 o {1,0}", "Dg<4:1+4:4> o 0 o (4,4):(4,1)"),
        ("s4[3] Sw<2,3,3> o 0 o {0:T(8,128)}", "Sw<2,3,3> o 0 o ((128,8)):((1,128))"),
        ("s4[8,64] Sw<2,3,3> o 0 o {1,0:T(*,32)}", "Sw<2,3,3> o 0 o (8,64):(64,1)"),
        ("s4[0,3] Sw<2,3,3> o 0 o {1,0:T(8,128)}", "Sw<2,3,3> o 0 o (0,3):(0,0)"),
    ],
)
def test_texts_with_a_shape(text: str, same: str) -> None:
    spec = tj.as_layout(text)
    assert str(spec.layout) == same
    assert spec.packed == ("E(4)" in text)
    assert tj.as_layout(str(spec)) == spec
    assert tj.as_layout(text, dims=spec.dimensions) == spec


def test_codes_in_a_swizzled_pattern() -> None:
    x = (np.resize(HASH, (64, 64)) % 16).astype(np.uint8)
    t = tj.pack(x, "Sw<2,3,3> o 0 o (r p) c -> r c p, p=2", element_size_in_bits=4)
    assert str(t.layout) == "u4[64,64] Sw<2,3,3> o 0 o ((2,32),64):((1,128),2) E(4)"
    assert tj.unpack(t, dtype="uint8").tolist() == x.tolist()


@pytest.mark.parametrize(
    ("text", "cause", "caret"),
    [
        (
            "Sw<2,3,3> o 0 o {1,0:T(8,128)(5,1)}",
            "no swizzle fits s16[9,256]{1,0:T(8,128)(5,1)}: the tile (5,1)",
            16,
        ),
        (
            "Sw<2,3,3> o 0 o {1,0:L(1000)}",
            "no swizzle fits s16[9,256]{1,0:L(1000)}: its buffer ends with",
            16,
        ),
        ("Sw<2,3,3> o 0 o {1,0:T(*,7)}", "no swizzle fits s16[9,256]{1,0:T(*,7)}: its buffer ends with", 16),
        ("Sw<2,3,3> o -4 o a b -> b a", "no swizzle fits s16[9,256]{0,1}: Sw<2,3,3> o -4 o", 17),
        ("Sw<2,3,3> tpu", "'o' is missing after a swizzle", 10),
        ("Sw<2,3> o 0 o tpu", "expected three numbers in a swizzle, got 2", 2),
        ("Sw<2,3,3> o 0 o {1,0:T(8,128}", "')' is missing after a tile", 12),
    ],
    ids=str,
)
def test_mistakes_show_where(text: str, cause: str, caret: int) -> None:
    with pytest.raises(tj.LayoutError) as caught:
        tj.as_layout(text, dtype="s16", dims=(9, 256))
    first, _, mark, _fix = str(caught.value).splitlines()
    assert first.startswith(cause)
    assert mark == " " * (2 + caret) + "^"


def test_other_mistakes() -> None:
    with pytest.raises(tj.LayoutError, match="write 'tenstorrent'"):
        tj.as_layout("Sw<2,3,3> o 0 o tenstorent", dtype="s16", dims=(9, 256))
    with pytest.raises(tj.ArrayUnknownError, match="dtype and dims"):
        tj.as_layout("Sw<2,3,3> o 0 o tpu")
    with pytest.raises(tj.LayoutError, match=r"expected an array of shape \[4,4\], got \[9\]"):
        tj.as_layout("s16[4,4] Sw<2,3,3> o 0 o tpu", dims=(9,))
    with pytest.raises(TypeError, match="has no parameter 'mr'"):
        tj.as_layout("Sw<2,3,3> o 0 o {1,0}", dtype="s16", dims=(9, 256), mr=8)


@pytest.mark.full
@pytest.mark.parametrize("text", ["Sw<1,1,2> o 0 o (m mi) n -> m n mi, mi=4", "Sw<1,1,2> o 0 o {1,0:T(4,1)}"])
def test_the_command_line_reads_it(text: str, tmp_path: Path) -> None:
    spec = tj.as_layout(text, dtype="f32", dims=(8, 4))
    assert not isinstance(spec, Shape)
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    picture = str(tj.show(spec))
    assert picture in run("show", "f32[8,4]", "--layout", text).output
    assert picture in run("show", f"f32[8,4] {text}").output
    assert "def " in run("explain", "f32[8,4]", text).output
    assert "def " in tj.explain(text, x).source
    np.save(tmp_path / "x.npy", x)
    assert run("pack", tmp_path / "x.npy", tmp_path / "p.npy", "--layout", text).output.startswith(str(spec))
    assert np.load(tmp_path / "p.npy").tolist() == tj.pack(x, text).buffer.tolist()
    run("unpack", tmp_path / "p.npy", tmp_path / "y.npy", "--shape", f"f32[8,4] {text}")
    assert np.load(tmp_path / "y.npy").tolist() == x.tolist()
    run("view", f"f32[8,4] {text}", "-o", tmp_path / "v.html")
    assert "'o' is missing" in refuses("show", "f32[8,4]", "--layout", text.replace(" o 0 o", ""))
