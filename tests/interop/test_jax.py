"""jax arrays and layouts in and out, with XLA's own buffers as the oracle."""

from __future__ import annotations

import ctypes
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.interop.frameworks import framework
from tests.tools.oracle import run_python

jax: Any = framework("jax")
from jax.experimental.layout import Format, Layout  # noqa: E402

from tilejit.arrays.memory import empty  # noqa: E402
from tilejit.interop import jax as ours  # noqa: E402
from tilejit.layout.dtypes import lookup  # noqa: E402

FLOATS = ("bf16", "f16", "f32", "f8e4m3fn", "f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3fnuz", "f8e8m0fnu")
DTYPES = (*FLOATS, "f8e5m2fnuz", "f8e4m3b11fnuz", "s8", "u16", "s32", "u32", "pred", "c64")


def numbers(dims: tuple[int, ...], name: str) -> Any:
    """An array with a dtype given by its XLA name; its bytes differ."""
    dtype = tj.as_layout("{}", dims=(), dtype=lookup(name)).dtype
    values = np.arange(np.prod(dims)).reshape(dims)
    return values % 2 == 0 if name == "pred" else (values % 7).astype(dtype)


def memory_of(array: Any, size: int) -> bytes:
    """The bytes that XLA has in an array's buffer."""
    return bytes((ctypes.c_ubyte * size).from_address(array.unsafe_buffer_pointer()))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("name", ["f32", "bf16", "f8e5m2"])
def test_orders_of_dimensions_are_xlas_bytes(name: str, order: tuple[int, ...]) -> None:
    x = numbers((3, 4, 5), name)
    shape = tj.make_shape(lookup(name), (3, 4, 5), order)
    y = jax.device_put(jax.numpy.asarray(x), ours.to_jax_format(shape))
    assert ours.layout_of(y) == shape
    assert memory_of(y, shape.size_in_bytes) == tj.pack(x, shape).buffer.tobytes()
    assert ours.numpy_view(y).tobytes() == x.tobytes()


@pytest.mark.parametrize("name", ["s4", "u4", "s2", "u2", "f4e2m1fn"])
def test_narrow_elements_are_packed_as_xla_packs_them(name: str) -> None:
    x = (np.arange(15) % 2).reshape(3, 5).astype(tj.as_layout("{}", dims=(), dtype=lookup(name)).dtype)
    y = jax.numpy.asarray(x)
    shape = ours.layout_of(y)
    assert shape.packed
    assert shape.layout.element_size_in_bits == int(name[1])
    # XLA leaves the unused bits of the last byte unchanged
    elements = (1 << 15 * int(name[1])) - 1
    theirs = int.from_bytes(memory_of(y, shape.size_in_bytes), "little") & elements
    assert theirs == int.from_bytes(tj.pack(x, shape).buffer.tobytes(), "little")
    assert ours.to_jax(x).dtype == x.dtype


TILED = (
    "f32[5,7]{1,0:T(2,2)}",
    "f32[20,300]{1,0:T(8,128)}",
    "bf16[20,300]{1,0:T(8,128)(2,1)}",
    "s8[20,300]{1,0:T(8,128)(4,1)}",
    "s32[5,7]{0,1:T(3,2)}",
    "f32[3,5,7]{1,2,0:T(2,4)}",
    "s4[20,300]{1,0:T(64,128)(8,1)E(4)}",
    "f32[300]{0:T(128)}",
)


@pytest.mark.parametrize("text", TILED)
def test_tiled_layouts_go_through_jax_and_have_xlas_sizes(text: str) -> None:
    shape = tj.Shape.parse(text)
    layout = ours.to_jax_layout(text)
    assert ours.layout_of(layout, dims=shape.dimensions, dtype=shape.dtype) == shape
    x = jax.numpy.zeros(shape.dimensions, shape.dtype)
    y = jax.device_put(x, ours.to_jax_format(text))
    assert ours.layout_of(y) == shape
    assert ours.layout_of(y.format, dims=shape.dimensions, dtype=shape.dtype) == shape
    assert y.on_device_size_in_bytes() == shape.size_in_bytes


def test_layouts_by_name_and_in_jit() -> None:
    form = ours.to_jax_format("{0,1}", dims=(3, 4), dtype="f32")
    y = jax.jit(lambda x: x + 1, out_shardings=form)(jax.numpy.zeros((3, 4)))
    assert str(ours.layout_of(y)) == "f32[3,4]{0,1}"
    assert ours.to_jax_layout("tpu", dims=(33, 300), dtype="bf16") == Layout((0, 1), ((8, 128), (2, 1)))
    struct = jax.ShapeDtypeStruct((3, 4), "float32", sharding=form)
    assert str(ours.layout_of(struct)) == "f32[3,4]{0,1}"
    assert str(ours.layout_of(Layout((0, 1)), dims=(3, 4), dtype="bf16")) == "bf16[3,4]{1,0}"
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert ours.to_jax_format("f32[3,4]", sharding) == Format(Layout((0, 1), ()), sharding)


@pytest.mark.parametrize(
    "obj",
    [
        tj.as_layout("(4,8):(8,1)", dims=(3, 5), dtype="f32"),
        tj.make_shape("f32", (3, 5), padded_dimensions=(4, 8)),
        "f32[<=3,5]{1,0}",
        "f32[3,5]{1,0:L(64)}",
        "f32[3,5]{1,0:S(3)}",
        "f32[3,5]{1,0:T(*,8)}",
        "s4[3,5]{1,0}",
        "s4[3,5]{1,0:T(2,4)E(8)}",
    ],
    ids=repr,
)
def test_layouts_that_jax_cannot_express(obj: Any) -> None:
    with pytest.raises(tj.LayoutError, match="\n  "):
        ours.to_jax_layout(obj)


def test_incomplete_and_conflicting_layouts() -> None:
    x = jax.numpy.zeros((3, 4))
    for call in (
        lambda: ours.layout_of(Layout((0, 1))),
        lambda: ours.layout_of(Layout((0, 1)), dims=(3, 4)),
        lambda: ours.layout_of(Layout((0, 1)), dims=(3,), dtype="f32"),
        lambda: ours.layout_of(Layout((0, 0)), dims=(3, 4), dtype="f32"),
        lambda: ours.layout_of(Layout((0, 1), ((-3,),)), dims=(3, 4), dtype="f32"),
        lambda: ours.layout_of(Format(), dims=(3, 4), dtype="f32"),
        lambda: ours.layout_of(Layout.AUTO, dims=(3, 4), dtype="f32"),
        lambda: ours.layout_of(Format(Layout.AUTO), dims=(3, 4), dtype="f32"),
        lambda: ours.layout_of(jax.ShapeDtypeStruct((3, 4), "float32")),
        lambda: ours.layout_of(x, dims=(4, 3)),
        lambda: ours.layout_of(x, dtype="bf16"),
    ):
        with pytest.raises(tj.LayoutError, match=r"\n  |order"):
            call()
    for wrong in (np.zeros(3), "{1,0}", 3):
        with pytest.raises(TypeError, match="wanted"):
            ours.layout_of(wrong, dims=(3, 4), dtype="f32")
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda a: ours.layout_of(a) and a)(x)


@pytest.mark.parametrize("name", DTYPES)
def test_to_jax_shares_aligned_memory(name: str) -> None:
    x = numbers((6, 7), name)
    t = tj.pack(x, "{0,1:T(2,4)}")
    flat = ours.to_jax(t, copy=False)
    assert flat.unsafe_buffer_pointer() == t.buffer.ctypes.data
    assert flat.dtype == x.dtype
    assert np.asarray(flat).tobytes() == t.buffer.tobytes()
    back = ours.unpack(flat, t.layout)
    assert back.dtype == x.dtype
    assert np.asarray(back).tobytes() == x.tobytes()


def test_arrays_that_jax_cannot_share_are_copied() -> None:
    x = empty((6, 10), np.float32)
    x[:] = np.arange(60).reshape(6, 10)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert ours.to_jax(x.T, copy=False).unsafe_buffer_pointer() == x.ctypes.data
    for view in (x[:, ::2], x[::-1], x[1:, 1:], np.broadcast_to(x[0], (3, 10)), frozen, x.astype(">f4")):
        assert (np.asarray(ours.to_jax(view)) == view).all()
        with pytest.raises(tj.LayoutError, match="cannot share"):
            ours.to_jax(view, copy=False)
    own = ours.to_jax(x, copy=True)
    assert own.unsafe_buffer_pointer() != x.ctypes.data
    x[:] = 0
    assert own[5, 9] == 59
    with pytest.raises(tj.LayoutError, match="narrower"):
        ours.to_jax(np.zeros(3, ml_dtypes.int4), copy=False)


def test_arrays_without_elements_or_dimensions() -> None:
    for dims in ((), (0,), (0, 5), (5, 0), (1, 3, 1)):
        for name in ("f32", "bf16"):
            x = np.asarray(numbers(dims, name))
            assert np.asarray(ours.to_jax(x)).tobytes() == x.tobytes()
            assert ours.to_jax(x).shape == dims
    assert ours.unpack(jax.numpy.zeros(0), "f32[0,5]{1,0:T(8,128)}").shape == (0, 5)


def test_shared_memory_lives_as_long_as_the_array() -> None:
    flat = ours.to_jax(tj.pack(np.arange(1 << 20).astype(ml_dtypes.bfloat16), "{0}"), copy=False)
    spare = [np.full(1 << 20, 7, np.uint16) for _ in range(4)]
    assert (np.asarray(flat) == np.arange(1 << 20).astype(ml_dtypes.bfloat16)).all()
    assert len(spare) == 4


def test_wide_elements_need_x64() -> None:
    for dtype in (np.float64, np.int64, np.uint64, np.complex128):
        with pytest.raises(tj.LayoutError, match="jax_enable_x64"):
            ours.to_jax(np.zeros(3, dtype))
    code = (
        "import jax, numpy as np; jax.config.update('jax_enable_x64', True)\n"
        "from tilejit.interop import jax as ours\n"
        "print(ours.to_jax(np.arange(8.0)).dtype, ours.to_jax(np.arange(8)).dtype)"
    )
    child = run_python(code)
    assert child.stdout.split() == ["float64", "int64"], child.stderr


@pytest.mark.parametrize("name", ["f32", "bf16", "f8e4m3fn"])
def test_pack_and_unpack(name: str) -> None:
    x = numbers((20, 130), name)
    y = jax.numpy.asarray(x)
    flat = ours.pack(y, "{1,0:T(8,128)}", padding=1)
    assert isinstance(flat, jax.Array)
    assert np.asarray(flat).tobytes() == tj.pack(x, "{1,0:T(8,128)}", padding=1).buffer.tobytes()
    assert tj.pack(y, "{1,0:T(8,128)}", padding=1).buffer.tobytes() == np.asarray(flat).tobytes()
    assert (ours.unpack(flat, "{1,0:T(8,128)}", dims=(20, 130)) == y).all()
    assert (
        ours.unpack(flat, "(m mi) (n ni) -> m n mi ni", dims=(20, 130), mi=8, ni=128, threads=1) == y
    ).all()
    t = ours.from_jax(flat, "{1,0:T(8,128)}", dims=(20, 130))
    assert t.buffer.ctypes.data == flat.unsafe_buffer_pointer()
    assert t[19, 129] == x[19, 129]
    with pytest.raises(tj.LayoutError, match="read-only"):
        t[0, 0] = 1


def test_arrays_that_cannot_be_read() -> None:
    x = jax.numpy.ones((4, 4))
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda a: ours.pack(a, "{1,0}"))(x)
    gone = x + 1
    gone.delete()
    with pytest.raises(tj.LayoutError, match="deleted"):
        ours.pack(gone, "{1,0}")


def test_arrays_spread_over_devices() -> None:
    code = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from tilejit import LayoutError
from tilejit.interop import jax as ours
spread = NamedSharding(jax.make_mesh((2,), ("x",)), PartitionSpec("x"))
x = jax.device_put(np.zeros((4, 4), np.float32), spread)
try:
    ours.pack(x, "{1,0}")
except LayoutError as error:
    print(error)
print([ours.pack(part.data, "{1,0}").shape for part in x.addressable_shards])
"""
    child = run_python(code, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert "spread over 2 devices" in child.stdout, child.stderr
    assert "[(8,), (8,)]" in child.stdout


def test_arguments_of_a_wrong_type_or_size() -> None:
    x = jax.numpy.ones((4, 4))
    for call in (
        lambda: ours.pack(np.ones((4, 4)), "{1,0}"),
        lambda: ours.pack(x, "{1,0}", out=np.empty(16)),
        lambda: ours.unpack(x, "f32[4,4]", out=np.empty(16)),
        lambda: ours.to_jax(x),
        lambda: ours.to_jax([1.0]),
        lambda: ours.to_jax(np.ones(3), copy="no"),
        lambda: ours.to_jax(np.ones(3), copy=np.ones(3)),
        lambda: ours.pack(x, "{1,0}", speed=3),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: ours.unpack(x, "f32[4,5]{1,0}"),
        lambda: ours.unpack(x, "s32[4,4]{1,0}"),
        lambda: ours.unpack(x, "{1,0}"),
        lambda: ours.to_jax(np.zeros(3, "M8[s]")),
    ):
        with pytest.raises(tj.LayoutError, match="\n  "):
            call()
