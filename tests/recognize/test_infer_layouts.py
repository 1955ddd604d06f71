"""`tilejit.infer` on functions that are layouts: formats, packers of other libraries, random layouts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.recognize import functions
from tests.recognize.functions import Array, by_slots
from tests.tools import strategies
from tests.tools.extent import few_by_default, spread
from tests.tools.named import LAYOUTS
from tests.tools.oracle import slots_of
from tilejit.layout.as_layout import recipe_of
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import primitive_type

RANDOM = 1000
BY_DEFAULT = 80
GROUP = 20
"""Random layouts that one case takes."""


def wanted_slots(spec: Spec) -> Array:
    """The slot of each element, by the definition of the layout."""
    slots = slots_of(spec)
    used = np.flatnonzero(slots >= 0)
    out = np.full(int(np.prod(spec.dimensions)), -1)
    out[slots[used]] = used
    return out.reshape(spec.dimensions)


def check(found: tj.InferredLayout, spec: Spec, wanted: Array | None = None) -> None:
    """The slots are those of a layout, which fills the same buffer; slots are compared in bits."""
    assert found.is_layout, found
    assert found.buffer_bytes == spec.size_in_bytes
    wanted = wanted_slots(spec) if wanted is None else wanted
    assert np.array_equal(found.slots() * found.element_bits, wanted * spec.bits)
    if found.layout is None:
        return
    if "Sw" not in found.cute:
        assert found.layout.size_in_bytes == found.buffer_bytes
    if spec.rank:
        index = tuple(np.indices(spec.dimensions, sparse=True))
        assert np.array_equal(tj.linear_index(found.layout, index), found.slots())


FORMAT_DIMS = ((64, 128), (33, 70), (1, 5), (4, 33, 70), (2, 32, 8, 16), (1, 17, 5, 3))
"""Even and ragged dimensions, for formats of different ranks."""


def format_cases(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Dtypes and dimensions that a format takes."""
    about = tj.describe_format(name)
    known = about.dtypes or ()
    rank = max(2, about.least_rank or 0)
    if about.most_rank is not None and rank > about.most_rank:
        return []
    return [
        (dtype, dims)
        for dtype in [t for t in ("f32", "bf16", "s8") if t in known] or known[:1]
        for dims in FORMAT_DIMS
        if len(dims) == rank and has_recipe(name, dtype, dims)
    ]


def has_recipe(name: str, dtype: str, dims: tuple[int, ...]) -> bool:
    """Whether a format is a layout of an array, of complete elements, and NumPy code can pack it."""
    element = primitive_type(dtype)
    try:
        recipe_of(name, element, dims)
        return tj.named_format(name, element, dims).primitive_type == element.name  # and not of codes
    except tj.LayoutError:
        return False


@pytest.mark.parametrize("name", few_by_default(LAYOUTS, 24))
def test_formats(name: str) -> None:
    """A recipe pads, reshapes and transposes in NumPy; the result is the format's layout."""
    for dtype, dims in spread(format_cases(name), 1):
        check_format(name, dtype, dims)


def check_format(name: str, dtype: str, dims: tuple[int, ...]) -> None:
    names: dict[str, Any] = {}
    element = primitive_type(dtype)
    exec(recipe_of(name, element, dims), names)
    found = tj.infer(names["pack"], element, dims)
    spec = tj.named_format(name, element, dims)
    check(found, spec, tj.linear_index(spec, tuple(np.indices(dims, sparse=True))))
    assert found.layout is not None
    assert found.padding_value in (None, 0)
    text = found.xla or found.pattern
    assert tj.as_layout(text, dtype=found.layout.element, dims=dims) == found.layout


MARLIN = "(K hi a lo) (N j b c) -> K N c a j lo b hi, hi=2, a=4, lo=2, j=4, b=2, c=8"
PACKERS: dict[str, tuple[Callable[[Array], Any], tuple[int, ...], str]] = {
    "awq": (functions.awq, (64, 128), "K (N q p) -> K N p q, q=4, p=2"),
    "gptq": (functions.gptq, (64, 32), "(K k) N -> K N k, k=8"),
    "marlin": (functions.marlin, (64, 128), MARLIN),
    "modelopt": (functions.modelopt, (16, 32), "(N p) k -> N k p, p=2"),
    "bitsandbytes": (functions.bitsandbytes, (64, 64), "Sw<0,0,0> o 1 o (64,(2,32)):(64,(-1,2))"),
    "hqq": (functions.hqq, (16, 32), "Sw<0,0,0> o 1 o ((8,2),32):((64,-1),2)"),
}


LIBRARIES: dict[str, tuple[Callable[[Array], Any], tuple[int, ...], int, str]] = {
    "awq": (functions.awq, (64, 128), 16, "7eca2711cc8f6f11"),
    "gptq": (functions.gptq, (128, 64), 16, "f4ead1adc15446fc"),
    "gptq, 3 bits": (functions.gptq_3_bits, (128, 64), 8, "8a697e967c1d51a0"),
    "marlin": (functions.marlin, (64, 128), 16, "603297b9"),
    "hqq": (functions.hqq, (16, 32), 16, "35065f02"),
    "hqq, 3 bits": (functions.hqq_3_bits, (10, 2), 8, "87620e47"),
    "aiter scales": (
        partial(functions.aiter_scales, padding=partial(np.empty, dtype=np.uint8)),
        (256, 16),
        256,
        "7403e866",
    ),
    "blocked scales": (functions.blocked_scales, (130, 5), 256, "45f92a25"),
    "flashinfer": (functions.flashinfer_rows, (128, 16), 256, "a6fe7cd0"),
    "ggml Q4_0": (functions.ggml_q4_0, (4, 32), 16, "792cf993063cc5c9"),
    "ggml Q5_0": (functions.ggml_q5_0, (4, 32), 32, "5cb2d93ad08fcaa1"),
    "FP6-LLM": (functions.fp6_llm, (64, 64), 64, "7b0b4f61"),
}
"""Dimensions, the number of codes, and the first digits of the SHA-256 of the bytes that libraries give."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_functions_are_those_of_libraries(name: str) -> None:
    pack, dims, modulus, digest = LIBRARIES[name]
    numbers = np.arange(np.prod(dims), dtype=np.uint64) * 2654435761 % 2**32 >> 16
    packed = pack((numbers % modulus).astype(np.uint8).reshape(dims))
    data = (
        packed
        if isinstance(packed, bytes)
        else np.ascontiguousarray(packed, np.asarray(packed).dtype).tobytes()
    )
    assert sha256(data).hexdigest().startswith(digest)


@pytest.mark.full
@pytest.mark.parametrize("name", PACKERS)
def test_packers_of_codes(name: str) -> None:
    pack, dims, layout = PACKERS[name]
    found = tj.infer(pack, "uint4", dims)
    check(found, tj.as_layout(layout, dtype="uint4", dims=dims, element_size_in_bits=4))
    assert (found.element_bits, found.array_dtype, found.value_map) == (4, np.uint8, "")
    codes = np.random.default_rng(1).integers(0, 16, dims).astype(np.uint8)
    assert np.array_equal(found.unpack(np.asarray(pack(codes))), codes)
    assert found.pack(codes).tobytes() == np.asarray(pack(codes)).tobytes()


def test_the_pattern_of_marlin() -> None:
    """The sizes are the published ones, in the published order."""
    found = tj.infer(functions.marlin, "uint4", (64, 128))
    assert found.text == found.pattern
    assert found.pattern == (
        "(M m1 m2 m3) (N n1 n2 n3) -> M N n3 m2 n1 m3 n2 m1, m1=2, m2=4, m3=2, n1=4, n2=2, n3=8"
    )
    assert found.layout == tj.as_layout(found.pattern, dtype="uint4", dims=(64, 128), element_size_in_bits=4)


def test_records_with_a_scale() -> None:
    """The scales of Q4_0 are constant here, so they are padding."""
    found = tj.infer(functions.ggml_q4_0, "uint4", (8, 64))
    assert found.cute == "Sw<0,0,0> o 4 o (8,(16,2,2)):(72,(2,1,36))"
    assert (found.padding_slots, found.padding_value) == (16 * 4, "several values")
    codes = np.random.default_rng(1).integers(0, 16, (8, 64)).astype(np.uint8)
    assert found.pack(codes).tobytes() == functions.ggml_q4_0(codes)
    assert np.array_equal(found.unpack(functions.ggml_q4_0(codes)), codes)


def test_shuffled_rows() -> None:
    found = tj.infer(functions.flashinfer_rows, "uint8", (128, 16))
    check(found, tj.as_layout("(M q p) k -> M p q k, q=8, p=4", dtype="uint8", dims=(128, 16)))


@pytest.mark.parametrize("dims", [(256, 16), (256, 5), (100, 16), (300, 9)])
def test_scales_with_padding(dims: tuple[int, int]) -> None:
    zeros = partial(np.zeros, dtype=np.uint8)
    found = tj.infer(partial(functions.aiter_scales, padding=zeros), "uint8", dims)
    check(found, aiter_layout(dims))
    assert found.padding_value == (0 if found.padding_slots else None)


def aiter_layout(dims: tuple[int, int]) -> Spec:
    """The layout of AITER's scales: rows padded to 256, so blocks of 32 rows to a multiple of 8."""
    text = f"(M a m) (K b k) -> M K k m b a, M={-(-dims[0] // 256) * 8}, a=2, m=16, b=2, k=4"
    return tj.as_layout(text, dtype="uint8", dims=dims)


@pytest.mark.full
@pytest.mark.parametrize("fill", [0, 0x7F])
def test_scales_padded_with_a_value(fill: int) -> None:
    found = tj.infer(partial(functions.blocked_scales, fill=fill), "uint8", (130, 5))
    check(found, tj.named_format("nvfp4-scales", "f8e4m3fn", (130, 5)))
    assert (found.padding_slots, found.padding_value) == (2048 - 650, fill)
    assert found.pattern == "(M m1 m2) (N n) -> M N m2 m1 n, m1=4, m2=32, n=4"
    assert found.layout is not None
    assert found.layout.padding_value == (fill or None)
    x = np.arange(650, dtype=np.uint16).astype(np.uint8).reshape(130, 5)
    packed = tj.pack(x, found.layout).buffer
    assert packed.tobytes() == functions.blocked_scales(x, fill).tobytes() == found.pack(x).tobytes()


def uninitialized(shape: tuple[int, ...]) -> Array:
    """Memory with other contents in each call."""
    return np.frombuffer(NOISE.bytes(int(np.prod(shape))), np.uint8).reshape(shape).copy()


NOISE = np.random.default_rng(3)


def test_uninitialized_padding() -> None:
    found = tj.infer(partial(functions.aiter_scales, padding=uninitialized), "uint8", (300, 9))
    check(found, aiter_layout((300, 9)))
    assert found.padding_value == "uninitialized"
    assert "uninitialized" in repr(found)


def random_spec(pick: strategies.Pick, kind: int) -> Spec | None:
    """A random XLA shape, CuTe layout, swizzled layout or pattern; None if elements share slots."""
    if kind == 0:
        spec: Spec = strategies.shape(pick)
    elif kind < 3:
        spec = strategies.cute_shape(pick, swizzled=kind == 2)
    else:
        dims = tuple(size for size in strategies.extents(pick, 2000) if size)
        pattern = strategies.pattern(pick, dims)
        element = primitive_type(strategies.one_of(pick, ("f32", "bf16", "s8", "f8e4m3fn", "c128")))
        spec = tj.as_layout(pattern.text, dtype=element, dims=dims, **pattern.sizes)
    slots = slots_of(spec)
    distinct = np.unique(slots[slots >= 0]).size == np.count_nonzero(slots >= 0) == np.prod(spec.dimensions)
    return spec if distinct and 0 not in spec.dimensions else None


@pytest.mark.parametrize("group", few_by_default(range(RANDOM // GROUP), BY_DEFAULT // GROUP))
def test_random_layouts(group: int, seed: int) -> None:
    pick = strategies.picker(np.random.default_rng((seed, group)))
    done = 0
    while done < GROUP:
        spec = random_spec(pick, done % 4)
        if spec is None:
            continue
        found = tj.infer(by_slots(slots_of(spec), spec), spec.dtype, spec.dimensions)
        check(found, spec)
        if done % 4 > 0:
            assert found.layout is not None, spec
        done += 1


def test_swizzles() -> None:
    spec = tj.as_layout("Sw<2,3,3> o 0 o (64,64):(64,1)", dtype="f16", dims=(64, 64))
    found = tj.infer(by_slots(slots_of(spec), spec), "f16", (64, 64))
    assert found.layout == spec
    assert found.text == "Sw<2,3,3> o 0 o (64,64):(64,1)"


@pytest.mark.parametrize("text", ["Sw<2,8,-4>", "Sw<1,0,13>", "Sw<5,2,6>"])
def test_swizzles_of_long_rows(text: str) -> None:
    """Digits longer than the part that all swizzles are tried on."""
    spec = tj.as_layout(f"{text} o 0 o (2,8192):(8192,1)", dtype="s8", dims=(2, 8192))
    assert tj.infer(by_slots(slots_of(spec), spec), "s8", (2, 8192)).layout == spec


def test_bits_first_at_the_top() -> None:
    """np.packbits flattens, so the layout is one of the elements' numbers."""
    found = tj.infer(np.packbits, bool, (10, 10))
    assert found.text == "Sw<0,0,0> o 7 o (8,13):(-1,8) o 0 o (10,10):(10,1)"
    assert (found.element_bits, found.padding_slots, found.padding_value) == (1, 4, False)
    x = np.random.default_rng(1).integers(0, 2, (10, 10)).astype(bool)
    assert np.array_equal(found.unpack(np.packbits(x)), x)


def test_a_table_of_rows_has_no_closed_form() -> None:
    order = np.random.default_rng(1).permutation(20)
    found = tj.infer(lambda x: x[order], "s32", (20, 3))
    assert found.is_layout
    assert (found.text, found.layout) == ("no closed form", None)
    assert np.array_equal(found.slots()[order], np.arange(60).reshape(20, 3))
    assert found.broken is not None
    row, column = found.broken.multi_index
    assert found.broken.value == found.slots()[row, column] != found.broken.expected
    assert column == 0
    x = np.arange(60, dtype=np.int32).reshape(20, 3)
    assert np.array_equal(found.unpack(x[order]), x)
    assert found.pack(x).tobytes() == x[order].tobytes()
    with pytest.raises(tj.LayoutError, match="cannot be drawn"):
        found.show()


@pytest.mark.parametrize(
    ("dtype", "dims", "most"),
    [
        ("uint4", (64, 64), 4 + 6),
        ("uint8", (300, 300), 3 + 6),
        ("f32", (300, 300), 1 + 6),
        (bool, (64, 64), 13 + 5),
    ],
)
def test_few_calls(dtype: Any, dims: tuple[int, ...], most: int) -> None:
    """One call for each digit of the elements' numbers, and six more, or five for two values."""
    found = tj.infer(lambda x: x.T, dtype, dims)
    assert found.calls <= most
