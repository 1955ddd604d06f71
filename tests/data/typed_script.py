"""A user's script with annotations, which `mypy --strict` and pyright check; it also runs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilejit as tj

Floats = NDArray[np.float32]


def read(text: str) -> tj.Shape | None:
    try:
        return tj.Shape.parse(text)
    except tj.LayoutError as error:
        print(f"{type(error).__name__}: {error}")
        return None


def largest(text: str) -> int:
    shape = tj.parse_shape(text)
    members = shape.shapes if isinstance(shape, tj.TupleShape) else (shape,)
    arrays = [
        member for member in members if isinstance(member, tj.Shape) and member.element.is_array_element
    ]
    return max(shape.size_in_bytes for shape in arrays)


def corner(shape: tj.Shape) -> tuple[int, ...] | None:
    slot: int = tj.linear_index(shape, (0,) * shape.rank)
    slots: NDArray[np.int64] = tj.linear_index(shape, (np.arange(2), 0))
    rows, columns = tj.multi_index(shape, slots)
    print(rows.tolist(), columns.tolist())
    return tj.multi_index(shape, slot)


def there_and_back(x: Floats, layout: str) -> NDArray[Any]:
    t: tj.TiledArray = tj.pack(x, layout, padding=-1.0, casting="same_kind", specialize="sizes")
    print(repr(t), t.layout.size_in_bytes, t.grid)
    u = tj.relayout(t, "tenstorrent", padding="keep" if t.size == 0 else None)
    first = tj.gather_tiles(u, [0])
    tj.scatter_tiles(u, [0, 0], np.concatenate([first, first]), duplicates="last")
    return tj.ascontiguousarray(tj.unpack(u, dtype="f64", casting="safe", virtual_vector_size="auto"))


def planes_there_and_back(planes: dict[str, NDArray[Any]]) -> NDArray[Any]:
    packed: tj.PackedPlanes = tj.pack(planes, "ggml-q4_0")
    again = tj.relayout(packed, "ggml-q4_0x8")
    found = tj.unpack(again, out={name: np.zeros_like(plane) for name, plane in planes.items()})
    assert isinstance(found, dict)
    return found["codes"]


@tj.kernel
def scale(a: Floats, b: Floats, factor: float) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * factor


@tj.kernel(virtual_vector_size=(4, 16), tail="scalar", on_fail="warn")
def add(a: Floats, b: Floats) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] += a[i, j]


@tj.elementwise
def gauss(x: Floats, y: Floats) -> Floats:
    result: Floats = np.exp(-x * x) + y
    return result


def main() -> None:
    x = np.linspace(0, 1, 4200, dtype=np.float32).reshape(60, 70)
    shape = read("f32[60,70]{1,0:T(8,128)}")
    assert shape is not None
    assert tj.as_layout("{1,0:T(8,128)}", dtype=x.dtype, dims=x.shape) == shape
    assert read("f32[60,70]{2,0}") is None
    assert corner(shape) == (0, 0)
    assert largest("(f32[2]{0}, bf16[8]{0}, token[])") == 16
    y = np.empty_like(x)
    scale(x, y, 2.0)
    add(x, b=y)
    z = gauss(x, y)
    gauss(x, y, out=z)
    plan = tj.plan_copy(y, x.T.copy().T)
    plan(y, x.T.copy().T)
    tj.copyto(y, x, casting="no")
    source: str = tj.explain(shape, x).source
    print(len(source) > 0, scale.specialize(x, y, 2.0).report(), z.shape)
    assert np.array_equal(there_and_back(x, "{1,0:T(8,128)}"), x)
    codes = np.zeros((8, 32), np.uint8)
    assert np.array_equal(planes_there_and_back({"codes": codes, "d": np.ones((8, 1), np.float16)}), codes)


main()
