"""torch tensors in and out, against torch's own pad, reshape and permute."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.interop.frameworks import framework

torch: Any = framework("torch")
from tilejit.interop import torch as ours  # noqa: E402

PLAIN = ("bool", "uint8", "int8", "int32", "int64", "uint16", "float16", "float32", "float64", "complex64")
DTYPES = (*PLAIN, "bfloat16", *(f"float8_{k}" for k in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")))


def bits(tensor: Any) -> bytes:
    """The elements' bytes, in C order."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def numbers(dims: tuple[int, ...], name: str) -> Any:
    """A tensor with random bytes of a dtype; for bool, 0 and 1."""
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(7)
    if dtype is torch.bool:
        return torch.randint(0, 2, dims, generator=generator).bool()
    raw = torch.randint(0, 256, (*dims, dtype.itemsize), dtype=torch.uint8, generator=generator)
    return raw.view(dtype).reshape(dims)


def tpu_tiles(x: Any, rows: int, columns: int) -> Any:
    """T(rows,columns) by torch: pad, reshape, permute."""
    h, w = x.shape
    width = x.dtype.itemsize
    raw = x.contiguous().view(torch.uint8).reshape(h, w, width)
    raw = torch.nn.functional.pad(raw, (0, 0, 0, -w % columns, 0, -h % rows))
    split = raw.reshape(-(-h // rows), rows, -(-w // columns), columns, width)
    return split.permute(0, 2, 1, 3, 4).reshape(-1)


@pytest.mark.parametrize("name", DTYPES)
def test_pack_and_unpack_are_torchs_reshape_and_permute(name: str) -> None:
    x = numbers((20, 130), name)
    strided = (x.T.contiguous().T, numbers((20, 260), name)[:, ::2]) if name == "bfloat16" else ()
    for tensor in (x, *strided):
        flat = ours.pack(tensor, "{1,0:T(8,128)}")
        assert flat.dtype == tensor.dtype
        assert bits(flat) == bytes(tpu_tiles(tensor, 8, 128).numpy())
        back = ours.unpack(flat, "{1,0:T(8,128)}", dims=(20, 130))
        assert back.dtype == tensor.dtype
        assert bits(back) == bits(tensor)


@pytest.mark.parametrize("name", DTYPES)
def test_to_torch_shares_memory(name: str) -> None:
    x = numbers((6, 7), name)
    t = tj.pack(ours.numpy_view(x), "{0,1}")
    flat = ours.to_torch(t)
    assert flat.data_ptr() == t.buffer.ctypes.data
    assert flat.dtype == x.dtype
    assert flat.shape == (42,)
    view = ours.numpy_view(x)
    assert view.ctypes.data == x.data_ptr()
    assert ours.to_torch(view.T).stride() == (1, 7)
    assert bits(ours.to_torch(view.T)) == bits(x.T)


def test_from_torch_shares_memory() -> None:
    flat = torch.zeros(8 * 128, dtype=torch.bfloat16)
    t = ours.from_torch(flat, "tpu", dims=(7, 5))
    assert str(t.layout) == "bf16[7,5]{1,0:T(8,128)(2,1)}"
    t[2, 4] = 3.0
    assert flat.float().sum() == 3.0
    assert t.buffer.ctypes.data == flat.data_ptr()
    as_bytes = ours.from_torch(flat.view(torch.uint8), "bf16[7,5]{1,0:T(8,128)(2,1)}")
    assert as_bytes[2, 4] == 3.0
    tiled = ours.from_torch(flat.reshape(8, 128), "tpu", dims=(7, 5))
    assert tiled[2, 4] == 3.0


def test_memory_lives_as_long_as_its_tensor() -> None:
    flat = ours.to_torch(tj.pack(np.arange(1 << 20, dtype=np.int32), "{0}"))
    view = ours.numpy_view(torch.arange(1 << 20, dtype=torch.int32))
    spare = [torch.zeros(1 << 20, dtype=torch.int32) for _ in range(4)]
    assert (flat == torch.arange(1 << 20)).all()
    assert (view == np.arange(1 << 20)).all()
    assert len(spare) == 4


def test_elements_of_four_bits_are_bytes() -> None:
    x = np.arange(15, dtype=np.int8).reshape(3, 5).astype(ml_dtypes.int4)
    t = tj.pack(x, "{1,0:T(2,4)E(4)}")
    flat = ours.to_torch(t)
    assert flat.dtype == torch.uint8
    assert (ours.from_torch(flat, t.layout).numpy() == x).all()
    pairs = flat.view(torch.float4_e2m1fn_x2)
    spec = "f4e2m1fn[3,5]{1,0:T(2,4)E(4)}"
    assert ours.from_torch(pairs, spec).buffer.tobytes() == t.buffer.tobytes()
    with pytest.raises(tj.LayoutError, match="does not support int4"):
        ours.unpack(flat, t.layout)


def test_out_is_written() -> None:
    x = numbers((10, 20), "bfloat16")
    out = torch.full((1024,), 7.0, dtype=torch.bfloat16)
    assert ours.pack(x, "{1,0:T(8,32)}", out=out[:512]).data_ptr() == out.data_ptr()
    assert bits(out[:512]) == bits(ours.pack(x, "{1,0:T(8,32)}"))
    assert (out[512:] == 7.0).all()
    kept = ours.pack(x, "{1,0:T(8,32)}", out=torch.full((512,), 7.0).bfloat16(), padding="keep")
    assert kept[-1] == 7.0
    back = torch.empty(20, 10, dtype=torch.bfloat16)
    assert ours.unpack(out[:512], "{1,0:T(8,32)}", dims=(10, 20), out=back.T) is not None
    assert bits(back) == bits(x.T)


def test_options_are_passed_on() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    flat = ours.pack(x, "(m mi) n -> m n mi", mi=4, padding=-1.0, casting="same_kind", threads=1)
    assert flat.tolist() == [0, 3, -1, -1, 1, 4, -1, -1, 2, 5, -1, -1]
    back = ours.unpack(flat, "(m mi) n -> m n mi", dims=(2, 3), mi=4, threads=1)
    assert back.equal(x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.ones(4, 4, requires_grad=True), "detach"),
        (lambda: torch.ones(4, 4, device="meta"), "meta"),
        (lambda: torch.eye(4).to_sparse(), "to_dense"),
        (lambda: torch.eye(4).to_sparse_csr(), "to_dense"),
        (lambda: torch.eye(4).to_mkldnn(), "oneDNN"),
        (lambda: torch.ones(4, 4, dtype=torch.complex64).conj(), "resolve_conj"),
        (lambda: torch.ones(4, 4, dtype=torch.complex64).conj().imag, "resolve_neg"),
        (lambda: torch.quantize_per_tensor(torch.ones(4, 4), 0.1, 0, torch.qint8), "int_repr"),
        (lambda: torch.zeros(4, 4, dtype=torch.uint8).view(torch.bits8), "cannot be read"),
    ],
    ids=["gradient", "meta", "coo", "csr", "mkldnn", "conjugate", "negation", "quantized", "bits8"],
)
def test_tensors_that_cannot_be_read(make: Any, words: str) -> None:
    tensor = make()
    with pytest.raises(tj.LayoutError, match=words):
        ours.pack(tensor, "{1,0}")
    out = torch.zeros(16)
    with pytest.raises(tj.LayoutError, match=words):
        ours.unpack(out, "f32[4,4]{1,0}", out=tensor)
    with pytest.raises(tj.LayoutError, match=words):
        ours.from_torch(tensor, "{0}", dims=(16,))


def test_arguments_of_a_wrong_type_or_size() -> None:
    x = torch.ones(4, 4)
    for call in (
        lambda: ours.pack(np.ones((4, 4)), "{1,0}"),
        lambda: ours.pack(x, "{1,0}", out=np.empty(16)),
        lambda: ours.to_torch(x),
        lambda: ours.to_torch([1.0]),
        lambda: ours.from_torch(x.numpy(), "f32[4,4]"),
        lambda: ours.pack(x, "{1,0}", speed=3),
        lambda: ours.unpack(x.reshape(-1), "f32[4,4]", speed=3),
    ):
        with pytest.raises(TypeError):
            call()
    out = torch.full((17,), 7.0)
    for call in (
        lambda: ours.pack(x, "{1,0}", out=out),
        lambda: ours.pack(x, "{1,0}", out=out[:16].double()),
        lambda: ours.pack(x, "{1,0}", out=torch.zeros(1).expand(16)),
        lambda: ours.unpack(x.reshape(-1), "bf16[4,4]{1,0}"),
        lambda: ours.unpack(out, "f32[4,4]{1,0}"),
        lambda: ours.from_torch(torch.ones(32)[::2], "f32[4,4]{1,0}"),
        lambda: ours.from_torch(torch.ones(16, dtype=torch.int32), "f32[4,4]{1,0}"),
        lambda: ours.unpack(x.reshape(-1), "{1,0}"),
    ):
        with pytest.raises(tj.LayoutError, match="\n  "):
            call()
    assert (out == 7.0).all()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones(3)[::-1], "strides"),
        (np.ones(3, ">f4"), "native byte order"),
        (np.broadcast_to(np.ones(3), (2, 3)), "read-only"),
        (np.zeros(3, ml_dtypes.int4), "int4"),
        (np.zeros(3, "M8[s]"), "datetime64"),
        (np.zeros(3, "i1,f4")["f1"], "strides"),
        (np.zeros(3, "V0"), "does not support"),
    ],
    ids=["backwards", "byte order", "read-only", "int4", "dates", "field", "nothing"],
)
def test_arrays_that_torch_does_not_support(array: Any, words: str) -> None:
    with pytest.raises(tj.LayoutError, match=words):
        ours.to_torch(array)


def test_arrays_without_elements_or_dimensions() -> None:
    assert ours.pack(torch.empty(0, 5), "{1,0:T(8,128)}").shape == (0,)
    assert ours.unpack(torch.empty(0), "f32[0,5]{1,0:T(8,128)}").shape == (0, 5)
    assert ours.pack(torch.tensor(3.0, dtype=torch.float8_e5m2), "{}").tolist() == [3.0]
    assert ours.unpack(torch.tensor([3.0]), "f32[]").item() == 3.0


def test_tilejits_packs_accept_floats_of_eight_bits() -> None:
    x = numbers((5, 9), "float8_e4m3fn")
    assert tj.pack(x, "{0,1}").buffer.tobytes() == bits(x.T)
    with pytest.raises(tj.LayoutError, match="grad"):
        tj.pack(torch.ones(3, requires_grad=True), "{0}")
