"""Codes of 4, 2 and 1 bits, one to a byte in uint8 and int8 arrays, packed and unpacked without `casting`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import fails, run
from tilejit.layout.dtypes import primitive_type

DIMS = (19, 24)
HASH = (np.arange(19 * 24, dtype=np.uint32) * 2654435761 >> 16).astype(np.int64)
WIDTHS = ("uint4", "uint2", "uint1", "s4", "s2", "s1")
LAYOUTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("(K k) N -> K N k", {"k": 8}),
    ("vnni", {"pack": 8}),
    ("BA16a8b", {}),
    ("((8,3),24):((1,192),8)", {}),
)


def codes(name: str) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    """Every value of a type, in bytes."""
    element = primitive_type(name)
    low, high = element.integer_range or (0, 0)
    assert element.byte_dtype is not None
    return (HASH % (high - low + 1) + low).reshape(DIMS).astype(element.byte_dtype)


def bit_stream(values: np.ndarray[Any, Any], bits: int) -> bytes:
    """The low bits of each value, the first value in the lowest bits."""
    rows = values.reshape(-1, 1).view(np.uint8) >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(rows.reshape(-1), bitorder="little").tobytes()


@pytest.mark.full
@pytest.mark.parametrize("name", WIDTHS)
def test_codes_are_the_low_bits_of_bytes(name: str) -> None:
    x, element = codes(name), primitive_type(name)
    t = tj.pack(x, "(K k) N -> K N k", k=8, element_size_in_bits=element.bits)
    assert t.layout.primitive_type == element.name
    padded = np.concatenate([x, np.zeros((5, 24), x.dtype)])
    assert t.buffer.tobytes() == bit_stream(
        np.ascontiguousarray(padded.reshape(3, 8, 24).swapaxes(1, 2)), element.bits
    )


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize(("layout", "parameters"), LAYOUTS, ids=str)
def test_every_call_packs_and_widens_codes(name: str, layout: str, parameters: dict[str, Any]) -> None:
    x, bits = codes(name), primitive_type(name).bits
    parameters = parameters | {"element_size_in_bits": bits}
    t = tj.pack(x, layout, **parameters)
    as_codes = tj.pack(x.astype(t.dtype), t.layout)
    assert t.buffer.tolist() == as_codes.buffer.tolist()
    plan, back = (
        tj.plan_pack(layout, DIMS, x.dtype, **parameters),
        tj.plan_unpack(t.layout, result_dtype=x.dtype),
    )
    for _ in range(4):  # later calls may be native
        assert plan(x).buffer.tolist() == t.buffer.tolist()
        assert back(t).tolist() == x.tolist()
    assert tj.pack(x.T.copy().T, layout, **parameters).buffer.tolist() == t.buffer.tolist()
    assert tj.pack(np.repeat(x, 2, 1)[:, ::2], layout, **parameters).buffer.tolist() == t.buffer.tolist()
    out = np.zeros((2 * DIMS[0], DIMS[1]), x.dtype)[::2]
    assert tj.unpack(t, out=out) is out
    assert out.tolist() == x.tolist()
    assert tj.unpack(t.buffer, layout, dtype=x.dtype, dims=DIMS, **parameters).tolist() == x.tolist()
    held = tj.TiledArray.from_buffer(t.buffer, layout, dtype=x.dtype, dims=DIMS, **parameters)
    assert held.unpack(dtype="s8").tolist() == x.tolist()
    held[3:5, ::2] = x[3:5, ::2]
    assert held.unpack(dtype="s8").tolist() == x.tolist()
    assert "def " in tj.explain(layout, x, **parameters).source
    assert "def " in tj.explain(out, t).source


@pytest.mark.parametrize("layout", ["u4[19,24]{1,0}", "u4[19,24]{1,0:T(8,8)E(4)}", "{0,1:E(4)}", "tpu"])
def test_shapes_and_the_layouts_of_narrow_types_take_codes(layout: str) -> None:
    x, parameters = codes("uint4"), {"element_size_in_bits": 4} if layout == "tpu" else {}
    t = tj.pack(x, layout, **parameters)
    assert t.layout.primitive_type == "u4"
    assert tj.unpack(t, dtype="uint8").tolist() == x.tolist()
    assert tj.unpack(t, dtype="s8").tolist() == x.tolist()


@pytest.mark.parametrize("order", ["C", "F", "gaps"])
def test_a_value_out_of_range_is_named_and_nothing_is_written(order: str) -> None:
    x = codes("uint4")
    x[[3, 4], [5, 2]] = 17, 200
    x = np.repeat(x, 2, 1)[:, ::2] if order == "gaps" else np.array(x, order=order)  # type: ignore[call-overload]
    out = np.full(228, 7, np.uint8)
    with pytest.raises(tj.LayoutError, match=r"element \[3, 5\] is 17, but u4 holds 0 to 15"):
        tj.pack(x, "a b -> b a", out=out, element_size_in_bits=4)
    assert out.tolist() == [7] * 228
    held = tj.TiledArray(out, tj.as_layout("a b -> b a", dtype="uint4", dims=DIMS, element_size_in_bits=4))
    with pytest.raises(tj.LayoutError, match=r"element \[0, 5\] is 17, but u4 holds 0 to 15"):
        held[3:5] = x[3:5]
    assert out.tolist() == [7] * 228


@pytest.mark.parametrize(
    ("dtype", "layout", "value"), [("i1", "u4", -1), ("u1", "s4", 8), ("i1", "s2", -3), ("u1", "u1", 2)]
)
def test_bytes_of_the_other_sign_are_checked_too(dtype: str, layout: str, value: int) -> None:
    x = np.zeros((2, 4), dtype)
    x[0, 1], text = 1 if layout[0] == "u" else 0, f"{layout}[2,4]{{0,1:E({layout[1]})}}"
    assert tj.unpack(tj.pack(x, text), dtype="s8").tolist() == x.tolist()
    x[1, 2] = value
    with pytest.raises(tj.LayoutError, match=rf"element \[1, 2\] is {value}, but {layout} holds"):
        tj.pack(x, text)


def test_large_signed_codes_are_checked_in_every_part() -> None:
    x = np.zeros((1 << 10, 1 << 10), np.int8)
    x[-1, -1] = -8
    t = tj.pack(x, "{1,0:E(4)}")
    assert np.array_equal(tj.unpack(t, dtype="s8"), x)
    x[700, 3] = -9
    with pytest.raises(tj.LayoutError, match=r"element \[700, 3\] is -9, but s4 holds -8 to 7"):
        tj.pack(x, "{1,0:E(4)}")


def test_what_may_lose_values_needs_casting() -> None:
    t = tj.pack(codes("s4"), "{1,0:E(4)}")
    with pytest.raises(tj.LayoutError, match="casting='no' forbids"):
        tj.unpack(t, dtype="uint8")
    with pytest.raises(tj.LayoutError, match="casting='no' forbids"):
        tj.unpack(t, dtype="s32")
    with pytest.raises(tj.LayoutError, match="casting='no' forbids"):
        tj.pack(codes("s4").astype(np.int16), "s4[19,24]{1,0}")
    with pytest.raises(tj.LayoutError, match="pass 4, 2 or 1 for codes, 8, or omit it"):
        tj.pack(codes("uint4"), "a b -> b a", element_size_in_bits=3)


@pytest.mark.parametrize("name", ["uint4", "s4"])
def test_tiles_of_codes_come_from_and_go_to_bytes(name: str) -> None:
    x = codes(name)[:16]
    t = tj.pack(x, "{1,0:T(8,8)E(4)}")
    tiles = x.reshape(2, 8, 3, 8).swapaxes(1, 2).reshape(6, 8, 8)
    out = np.zeros((3, 8, 8), x.dtype)
    for _ in range(3):
        assert tj.gather_tiles(t, [4, 0, 5], out) is out
        assert out.tolist() == tiles[[4, 0, 5]].tolist()
    u = tj.pack(np.zeros_like(x), t.layout)
    tj.scatter_tiles(u, range(6), tiles)
    assert u.buffer.tolist() == t.buffer.tolist()
    with pytest.raises(tj.LayoutError, match=r"element \[0, 0, 0\] is 99"):
        tj.scatter_tiles(u, [0], np.full((1, 8, 8), 99, x.dtype))
    if name == "s4":
        with pytest.raises(tj.LayoutError, match="out is uint8"):
            tj.gather_tiles(t, [0], out[:1].view(np.uint8))


@pytest.mark.parametrize("dtype", [[], ["--dtype", "uint4"]], ids=["bytes", "dtype"])
def test_the_command_line_packs_a_file_of_codes(tmp_path: Path, dtype: list[str]) -> None:
    x, (source, packed, back) = codes("uint4"), (tmp_path / name for name in ("x.npy", "p.npy", "y.npy"))
    np.save(source, x)
    layout = "--layout", "vnni", "pack=8", "element_size_in_bits=4", *dtype
    run("pack", source, packed, *layout)
    t = tj.pack(x, "vnni", pack=8, element_size_in_bits=4)
    assert np.load(packed).tolist() == t.buffer.tolist()
    run("unpack", packed, back, "--shape", t.layout)
    assert np.load(back).tolist() == x.tolist()
    x[2, 7] = 16
    np.save(source, x)
    packed.unlink()
    value = "a value" if dtype else "element [2, 7]"
    assert f"{value} is 16, but u4 holds 0 to 15" in fails("pack", source, packed, *layout)
    assert not packed.exists()
