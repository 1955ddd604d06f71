"""oneDNN memory by tag, against oneDNN: every tag of its C library, and torch tensors in its layouts."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.interop import libdnnl
from tests.interop.frameworks import framework
from tilejit.interop import onednn
from tilejit.layout.dtypes import lookup
from tilejit.layout.text.tags import is_tag, parse_tag

MOST = 60_000
"""The number of elements of an array, in tests of every tag."""


def uneven(tag: str) -> tuple[int, ...]:
    """Small dimensions whose blocks leave a tail."""
    parsed = parse_tag(tag)
    blocks = [int(np.prod([n for n, name in parsed.blocks if name == d])) for d in parsed.dims]
    plain = 3 if len(blocks) < 7 else 2
    return tuple(plain if block == 1 else block + block // 2 + 1 for block in blocks)


def numbers(dims: tuple[int, ...], name: str) -> Any:
    dtype = tj.as_layout("{}", dims=(), dtype=lookup(name)).dtype
    return (np.arange(np.prod(dims)) % 61).reshape(dims).astype(dtype)


def test_memory_descriptors_of_every_tag() -> None:
    seen = 0
    for tag in libdnnl.tags():
        dims = uneven(tag)
        ours = onednn.memory_desc(tag, "f32", dims)
        desc = libdnnl.descriptor(dims, ours.data_type, tag)
        theirs = libdnnl.numbers_of(desc, len(dims))
        libdnnl.call("memory_desc_destroy", desc)
        assert {name: getattr(ours, name) for name in theirs if name != "size"} == {
            name: value for name, value in theirs.items() if name != "size"
        }, tag
        assert theirs["size"] == (ours.size,), tag
        seen += 1
    assert seen > 500


def test_reorders_of_every_tag() -> None:
    """Bytes of an uneven array, tails included.

    Slots are computed by index, without a kernel for each tag.
    """
    seen = 0
    for tag in libdnnl.tags():
        dims = uneven(tag)
        if np.prod(dims) > MOST:
            continue
        x = numbers(dims, "u8") + 1
        spec = onednn.layout_of(tag, "uint8", dims)
        expected = np.zeros(spec.size_in_bytes, np.uint8)
        expected[tj.linear_index(spec, tuple(np.indices(dims)))] = x
        assert libdnnl.reordered(x, onednn.DATA_TYPES["u8"], tag).tobytes() == expected.tobytes(), tag
        seen += 1
    assert seen > 400


@pytest.mark.full
@pytest.mark.parametrize(
    ("tag", "alias", "dims", "name"),
    [
        ("aBcd16b", "nChw16c", (2, 20, 5, 7), "f32"),
        ("aBcd16b", "nChw16c", (2, 20, 5, 7), "s32"),
        ("ABcd16b16a", "OIhw16i16o", (20, 35, 3, 3), "bf16"),
        ("ABcd16b16a", "OIhw16i16o", (20, 35, 3, 3), "f16"),
        ("ABcd4b16a4b", "OIhw4i16o4i", (17, 16, 3, 2), "s8"),
        ("acdb", "nhwc", (2, 5, 6, 7), "u8"),
    ],
)
def test_packs_are_reorders(tag: str, alias: str, dims: tuple[int, ...], name: str) -> None:
    x = numbers(dims, name)
    t = onednn.to_onednn(x, alias)
    assert t.buffer.ctypes.data % 64 == 0
    assert t.buffer.tobytes() == libdnnl.reordered(x, onednn.DATA_TYPES[name], tag).tobytes()
    assert onednn.from_onednn(t.buffer, alias, dims=dims, dtype=lookup(name)).tobytes() == x.tobytes()


def test_aliases_are_those_of_the_header() -> None:
    """dnnl_types.h says which letters n c d h w and g o i stand for. torch includes it."""
    header = Path(framework("torch").__file__).parent / "include/oneapi/dnnl/dnnl_types.h"
    if not header.exists():
        pytest.skip("torch brings no dnnl_types.h here")
    seen = 0
    for alias, tag in re.findall(r"\bdnnl_(\w+) = dnnl_(\w+)", header.read_text()):
        if not is_tag(tag):
            continue
        assert is_tag(alias), alias
        ours, theirs = parse_tag(alias), parse_tag(tag)
        dims = uneven(tag)
        assert ours.blocking(dims) == theirs.blocking(dims), alias
        seen += 1
    assert seen > 700


def test_torch_tensors_in_onednns_layouts() -> None:
    torch = framework("torch")
    weights = torch.arange(20 * 12 * 9.0).reshape(20, 12, 3, 3)
    plain = onednn.of_mkldnn(weights.to_mkldnn(), "abcd")
    assert plain.buffer.tobytes() == weights.numpy().tobytes()
    blocked = torch._C._nn.mkldnn_reorder_conv2d_weight(weights.to_mkldnn(), [1, 1], [1, 1], [1, 1], 1)
    size = torch.ops.mkldnn._nbytes(blocked)
    if size == weights.nbytes:
        pytest.skip("oneDNN has left the weights in plain order on this machine")
    found = [
        tag
        for tag in libdnnl.CONVOLUTION_WEIGHTS
        if onednn.memory_desc(tag, "f32", weights.shape).size == size
        and onednn.of_mkldnn(blocked, tag).unpack().tobytes() == weights.numpy().tobytes()
    ]
    assert found, f"oneDNN has {size} bytes in an order that none of these tags says"
    with pytest.raises(tj.LayoutError, match="ONEDNN_VERBOSE"):
        onednn.of_mkldnn(blocked, "abcd")
    for wrong in (weights, weights.numpy(), None):
        with pytest.raises(TypeError, match="to_mkldnn"):
            onednn.of_mkldnn(wrong, "abcd")


def test_elements_of_four_bits_are_packed() -> None:
    x = (np.arange(15) % 8).reshape(3, 5).astype(ml_dtypes.int4)
    t = onednn.to_onednn(x, "ba")
    nibbles = [*x.T.reshape(-1).astype(int), 0]
    assert t.buffer.tolist() == [
        low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2], strict=True)
    ]


def test_the_example_of_the_page_works() -> None:
    """docs/howto/buffers.md gives a packed buffer to oneDNN, whose reorder reads it back."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "buffers.md").read_text()
    block = next(
        b for b in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) if "def mem" in b
    )
    names: dict[str, Any] = {"ctypes": ctypes}
    exec(block, names)
    dims = (20, 35, 3, 3)
    w = numbers(dims, "f32")
    t = onednn.to_onednn(w, "OIhw16i16o")
    plain = np.zeros(dims, np.float32)
    tags, (engine, _) = ("ABcd16b16a", "abcd"), libdnnl.engine_and_stream()
    memories = [
        names["memory_over"](libdnnl.library(), engine, array, dims, libdnnl.tags()[tag])
        for array, tag in zip((t.buffer, plain), tags, strict=True)
    ]
    descs = [libdnnl.descriptor(dims, onednn.DATA_TYPES["f32"], tag) for tag in tags]
    libdnnl.reorder(descs, memories)
    assert plain.tobytes() == w.tobytes()


def test_out_is_written() -> None:
    x = numbers((1, 20, 2, 2), "f32")
    out = np.full(128, 7, np.float32)
    assert onednn.to_onednn(x, "nChw16c", out=out, threads=1).buffer is out
    assert out.tobytes() == onednn.to_onednn(x, "nChw16c").buffer.tobytes()
    back = np.empty((2, 2, 20, 1), np.float32).T.reshape(1, 20, 2, 2)
    assert onednn.from_onednn(out, "nChw16c", dims=x.shape, dtype="f32", out=back) is back
    assert (back == x).all()


def test_errors() -> None:
    x = np.zeros((1, 20, 2, 2), np.float32)
    out = np.full(128, 7, np.float32)
    for call in (
        lambda: onednn.to_onednn(x, "tpu"),
        lambda: onednn.to_onednn(x, "nChw16"),
        lambda: onednn.to_onednn(x, "{1,0}"),
        lambda: onednn.to_onednn(x[0], "nChw16c"),
        lambda: onednn.to_onednn(x, "nChw16c", out=out[:100]),
        lambda: onednn.to_onednn(x.astype(np.complex64), "nChw16c"),
        lambda: onednn.from_onednn(out[:100], "nChw16c", dims=x.shape, dtype="f32"),
        lambda: onednn.from_onednn(out, "nChw16c", dims=x.shape, dtype="f33"),
        lambda: onednn.memory_desc("nChw16c", "f32", (1, 2)),
    ):
        with pytest.raises(tj.LayoutError, match="\n  "):
            call()
    assert (out == 7).all()
    with pytest.raises(TypeError):
        onednn.to_onednn(x, 16)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        onednn.from_onednn(3, "nChw16c", dims=x.shape, dtype="f32")
