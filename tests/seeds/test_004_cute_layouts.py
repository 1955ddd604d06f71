"""The page "CuTe Tilers": seed 004."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilejit import pack
from tilejit.cute import (
    Layout,
    NoLayoutError,
    blocked_product,
    complement,
    composition,
    cosize,
    flat_divide,
    flat_product,
    is_bijective,
    is_injective,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_layout,
    make_layout_tv,
    offsets,
    parse,
    partition_tv,
    raked_product,
    size,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)

ABCD = np.frombuffer(b"abcd", np.uint8)

TILER: Any = parse("<2:3,3:2>")
"""The seed's tiler of a matrix of 32 x 16."""

MATRICES = (
    "(32,16):(1,32)",
    "(32,16):(16,1)",
    "(32,16):(1,50)",
    "((4,8),16):((1,64),4)",
    "((16,2),(8,2)):((8,256),(1,128))",
    "Sw<2,0,5> o 0 o (32,16):(1,32)",
)
"""Layouts of 32 x 16 that the seed may mean by A: by columns, by rows, with gaps, in tiles, swizzled."""
matrices = pytest.mark.parametrize("a", [parse(text) for text in MATRICES], ids=MATRICES)

FOUR_BY_SIX = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
"""The coordinates of C and D, in the seed's order."""


def stored(layout: Any) -> str:
    """The letters abcd in memory, as the seed draws them."""
    memory = ["▢"] * 8 if cosize(layout) > 4 else ["▢"] * 4
    for coordinate, letter in enumerate("abcd"):
        memory[layout(coordinate)] = letter
    return "".join(memory)


def read(layout: Any) -> str:
    """The elements at coordinates 0, 1, 2 and 3 in a memory of abcd."""
    return "".join("abcd"[layout(coordinate)] for coordinate in range(4))


def repeated(tiler: Layout, count: int) -> Layout:
    """(B, B*) for a mode with that many elements."""
    return make_layout(tiler, complement(tiler, count))


def by_mode(*parts: Layout) -> Layout:
    return make_layout(*parts)


# --- Introduction ---


def test_a_tiler_designs_access_in_tiles() -> None:
    """A tiler describes access to data, and to layouts."""
    x = np.arange(32 * 16).reshape(32, 16)
    for i, j in np.ndindex(8, 4):
        assert local_tile(x, (4, 4), (i, j)).tolist() == x[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].tolist()


def test_several_levels_of_tiling() -> None:
    """A tile of a tile, by the same operation."""
    x = np.arange(32 * 16).reshape(32, 16)
    for block, thread in ((0, 0), (1, 0)), ((3, 1), (2, 3)):
        inner = local_tile(local_tile(x, (8, 8), block), (2, 2), thread)
        top, left = (8 * b + 2 * t for b, t in zip(block, thread, strict=True))
        assert inner.tolist() == x[top : top + 2, left : left + 2].tolist()


# --- CuTe logical coordinate ---


@matrices
def test_a_layout_maps_coordinates_to_indices_of_storage(a: Any) -> None:
    """By one convention, the coordinate names the element, whatever the layout."""
    x = np.arange(32 * 16, dtype=np.uint16).reshape(32, 16)
    packed = pack(x, a)
    for i, j in np.ndindex(32, 16):
        assert packed[i, j] == x[i, j]
        assert packed.buffer[a(i, j)] == x[i, j]


def test_a_coordinate_is_a_number_or_a_tuple() -> None:
    """By convention, the first mode is the fastest."""
    layout = parse("(2,2):(2,4)")
    assert [layout(k) for k in range(4)] == [layout(i, j) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]


def test_there_are_many_ways_to_store_the_same_data() -> None:
    """The test adds one storage order after another."""
    found = [Layout(4, step) for step in range(1, 100)]
    assert all(is_injective(layout) for layout in found)
    assert len({tuple(offsets(layout).tolist()) for layout in found}) == len(found)


@pytest.mark.parametrize(
    ("text", "memory"), [("4:1", "abcd"), ("4:2", "a▢b▢c▢d▢"), ("(2,2):(2,4)", "a▢b▢c▢d▢")]
)
def test_data_stored_by_a_layout(text: str, memory: str) -> None:
    """A buffer ends with its last element, so it has no last gap."""
    layout = parse(text)
    assert stored(layout) == memory
    one_mode = Layout((layout.shape,), (layout.stride,))
    assert pack(ABCD, one_mode).buffer.tobytes() == memory.rstrip("▢").replace("▢", "\0").encode()


@pytest.mark.parametrize(
    ("text", "found"), [("4:1", "abcd"), ("(2,2):(1,2)", "abcd"), ("(2,2):(2,1)", "acbd")]
)
def test_stored_data_read_by_a_layout(text: str, found: str) -> None:
    """A memory of abcd, read at coordinates 0, 1, 2 and 3."""
    layout = parse(text)
    assert read(layout) == found
    view = composition(ABCD, layout)
    assert view.tobytes("F").decode() == found


def test_another_access_is_another_layout() -> None:
    """The algebra derives it from the original layout and a description."""
    a = parse("(2,2):(2,1)")
    assert composition(a, Layout((2, 2), (2, 1))) == parse("(2,2):(1,2)")
    assert read(composition(a, Layout((2, 2), (2, 1)))) == "abcd"


# --- CuTe composition ---


@matrices
def test_the_seeds_composition(a: Any) -> None:
    """C maps its six coordinates to elements of A at the coordinates that the seed lists."""
    c = composition(a, TILER)
    assert size(c) == 6
    listed = ((0, 0), (3, 0), (0, 2), (3, 2), (0, 4), (3, 4))
    assert [c(*at) for at in FOUR_BY_SIX] == [a(*at) for at in listed]


def test_the_shape_of_the_composition() -> None:
    """(2, 3), and for an array as well."""
    assert composition(parse("(32,16):(1,32)"), TILER).shape == (2, 3)
    x = np.arange(32 * 16).reshape(32, 16)
    assert composition(x, TILER).tolist() == x[0:4:3, 0:5:2].tolist()


@pytest.mark.parametrize(("rows", "columns"), [(1, 32), (16, 1), (1, 50)])
def test_the_stride_of_access(rows: int, columns: int) -> None:
    """3 rows and 2 columns."""
    assert composition(Layout((32, 16), (rows, columns)), TILER) == Layout((2, 3), (3 * rows, 2 * columns))


def test_a_tiler_is_a_tuple_of_layouts() -> None:
    """The number of elements and the stride between them, along each mode."""
    assert [(mode.shape, mode.stride) for mode in TILER] == [(2, 3), (3, 2)]
    assert str(TILER) == "<2:3,3:2>"


def test_a_layout_may_be_incompatible_with_a_tiler() -> None:
    """Columns 0, 2 and 4 are at 0, 16 and 500. No stride expresses that, so no layout is returned."""
    with pytest.raises(NoLayoutError, match="index 2 gives 500"):
        composition(parse("((4,8),(4,4)):((1,32),(8,500))"), TILER)


@matrices
def test_more_complicated_mappings(a: Any) -> None:
    """A tiler's mode may be a layout with several modes, as long as each stays in its own mode."""
    tiler: Any = parse("<(2,2):(1,16),(4,2):(2,1)>")
    c = composition(a, tiler)
    for k, m in np.ndindex(4, 8):
        assert c(k, m) == a(tiler[0](k), tiler[1](m))


@matrices
def test_the_seeds_other_composition(a: Any) -> None:
    """D, by <2:1,3:1>, maps the same six coordinates to themselves."""
    d = composition(a, parse("<2:1,3:1>"))
    assert [d(*at) for at in FOUR_BY_SIX] == [a(*at) for at in FOUR_BY_SIX]


def test_a_tiler_is_designed_mode_by_mode() -> None:
    """The result for one mode does not depend on the tilers of the others."""
    a = parse("((4,8),16):((1,64),4)")
    for first in ("2:3", "2:1", "(2,2):(1,16)"):
        modes = {composition(a, parse(f"<{first},{second}>"))[0] for second in ("3:2", "3:1", "16:1")}
        assert modes == {composition(a[0], parse(first))}


@matrices
@pytest.mark.parametrize("tiler", ["<2:3,3:2>", "<2:1,3:1>", "<4:8,2:8>", "<16:2,16:1>"])
def test_composition_finds_the_mapping_for_any_layout(a: Any, tiler: str) -> None:
    """From a coordinate of C to the index of its element in storage."""
    modes: Any = parse(tiler)
    c = composition(a, modes)
    for at in np.ndindex(*(size(mode) for mode in modes)):
        assert c(*at) == a(*(mode(k) for mode, k in zip(modes, at, strict=True)))


@pytest.mark.parametrize("text", MATRICES[:-1])
def test_the_definition_of_composition_by_mode(text: str) -> None:
    """(A0, A1) o <B0, B1> := (A0 o B0, A1 o B1)."""
    a, (b0, b1) = parse(text), TILER
    assert composition(a, TILER) == by_mode(composition(a[0], b0), composition(a[1], b1))


# --- CuTe complement ---

WHOLE = [("2:4", 32), ("4:2", 16), ("2:16", 32), ("(2,2):(1,8)", 32), ("8:1", 16), ("1:0", 16)]
"""Tilers, and numbers of elements that they divide without a remainder."""


@pytest.mark.parametrize(("text", "count"), WHOLE)
def test_size_and_cosize_of_a_repeated_layout(text: str, count: int) -> None:
    """Both are the requested number."""
    layout = repeated(parse(text), count)
    assert size(layout) == cosize(layout) == count


@pytest.mark.parametrize(("text", "count"), WHOLE)
def test_a_repeated_layout_maps_all_coordinates_to_all(text: str, count: int) -> None:
    """0 to count - 1, each once: the coordinates of the layout that the tiler composes with."""
    assert sorted(offsets(repeated(parse(text), count)).reshape(-1).tolist()) == list(range(count))


@pytest.mark.parametrize(("text", "count", "covered"), [("2:3", 32, 36), ("3:2", 16, 18)])
def test_the_seeds_tiler_covers_more(text: str, count: int, covered: int) -> None:
    """No layout repeats 2:3 to 32, or 3:2 to 16: complements round up to whole periods of 6."""
    layout = repeated(parse(text), count)
    assert size(layout) == cosize(layout) == covered
    assert is_bijective(layout)
    assert count <= covered < count + 6


def test_the_seeds_complements() -> None:
    """B0* and B1*."""
    b0, b1 = TILER
    assert complement(b0, 32) == parse("(3,6):(1,6)")
    assert complement(b1, 16) == parse("(2,3):(1,6)")


def test_elements_past_the_matrix_are_masked() -> None:
    """They are the elements of 36 x 18 that are not in 32 x 16."""
    x = np.arange(32 * 16).reshape(32, 16)
    view = logical_divide(x, TILER, fill_value=-1)
    assert view.shape == ((2, (3, 6)), (3, (2, 3)))
    assert sorted(np.asarray(view)[view.predicate].tolist()) == list(range(32 * 16))


# --- CuTe logical division ---

PAIRS = [
    ("32:1", "2:4"),
    ("16:3", "4:2"),
    ("24:2", "(2,3):(1,4)"),
    ("(4,2,3):(2,1,8)", "4:2"),
    ("(8,4):(4,1)", "8:4"),
    ("(6,4):(1,10)", "3:2"),
]
"""A and B, where B is a tiler of all elements of A."""
pairs = pytest.mark.parametrize(("a", "b"), [tuple(map(parse, pair)) for pair in PAIRS], ids=map(str, PAIRS))


def test_division_is_composition_and_complement() -> None:
    """C = (A0 o (B0, B0*), A1 o (B1, B1*))."""
    a, (b0, b1) = parse("(32,16):(1,32)"), TILER
    c = by_mode(composition(a[0], repeated(b0, 32)), composition(a[1], repeated(b1, 16)))
    assert logical_divide(a, TILER) == c


@pytest.mark.parametrize("text", MATRICES[:-1])
def test_a_divided_layout_reaches_the_same_data(text: str) -> None:
    """A and C map one domain to the same set of storage indices, in another order."""
    a = parse(text)
    c = logical_divide(a, parse("<2:4,4:2>"))
    assert size(a) == size(c)
    before, after = (offsets(layout).reshape(-1).tolist() for layout in (a, c))
    assert sorted(before) == sorted(after)
    assert [a(k) for k in range(size(a))] != [c(k) for k in range(size(c))]


@pairs
def test_the_definition_of_division(a: Layout, b: Layout) -> None:
    """A / B := A o (B, complement(B, size(A)))."""
    assert logical_divide(a, b) == composition(a, make_layout(b, complement(b, size(a))))


@pairs
def test_division_in_two_modes(a: Layout, b: Layout) -> None:
    """(A o B, A o complement(B, size(A))), as functions."""
    divided = logical_divide(a, b)
    rest = composition(a, complement(b, size(a)))
    assert [divided(k, 0) for k in range(size(b))] == [composition(a, b)(k) for k in range(size(b))]
    assert [divided(0, k) for k in range(size(rest))] == [rest(k) for k in range(size(rest))]


@pairs
def test_the_tiler_decides_the_mapping_of_a_tile(a: Layout, b: Layout) -> None:
    """The first mode of A / B is A o B, hence the name."""
    assert logical_divide(a, b)[0] == composition(a, b)


@pytest.mark.parametrize("text", MATRICES[:-1])
def test_the_definition_of_division_by_mode(text: str) -> None:
    """((A0 o B0, A0 o complement(B0, size(A0))), (A1 o B1, A1 o complement(B1, size(A1))))."""
    a, tiler = parse(text), parse("<2:4,4:2>")
    divided = logical_divide(a, tiler)
    assert divided == by_mode(logical_divide(a[0], tiler[0]), logical_divide(a[1], tiler[1]))
    for k in range(2):
        tile, rest = composition(a[k], tiler[k]), composition(a[k], complement(tiler[k], size(a[k])))
        assert divided[k] == make_layout(tile, rest)


@pytest.mark.parametrize("text", MATRICES[:-1])
def test_zipped_division(text: str) -> None:
    """Tiles in the first mode, and their repeats in the second."""
    a, tiler = parse(text), parse("<2:4,4:2>")
    (tile0, rest0), (tile1, rest1) = logical_divide(a, tiler)
    zipped = zipped_divide(a, tiler)
    assert zipped == make_layout(make_layout(tile0, tile1), make_layout(rest0, rest1))
    assert tiled_divide(a, tiler) == make_layout(make_layout(tile0, tile1), rest0, rest1)
    assert flat_divide(a, tiler) == make_layout(tile0, tile1, rest0, rest1)


def test_inner_partition() -> None:
    """Each thread block gets a smaller problem: a tile."""
    x = np.arange(32 * 16).reshape(32, 16)
    divided = zipped_divide(x, (8, 4))
    for block in np.ndindex(4, 4):
        assert local_tile(x, (8, 4), block).tolist() == divided[:, :, block[0], block[1]].tolist()


def test_outer_partition() -> None:
    """Each thread gets one element of every tile."""
    x = np.arange(32 * 16).reshape(32, 16)
    threads = Layout((8, 4))
    for thread in range(32):
        i, j = thread % 8, thread // 8
        assert local_partition(x, threads, thread).tolist() == x[i::8, j::4].tolist()


# --- CuTe logical product ---

PRODUCTS = [("4:1", "3:2"), ("4:1", "3:1"), ("8:1", "2:5"), ("(2,2):(1,2)", "4:3"), ("(2,2):(2,1)", "3:4")]
"""A, whose offsets are 0 to size(A) - 1, and a tiler of one dimension."""
products = pytest.mark.parametrize(
    ("a", "b"), [tuple(map(parse, pair)) for pair in PRODUCTS], ids=map(str, PRODUCTS)
)


@products
def test_a_product_repeats_the_layout(a: Layout, b: Layout) -> None:
    """size(B) times, each time the layout itself."""
    product = logical_product(a, b)
    assert product[0] == a
    assert size(product) == size(a) * size(b)
    assert size(product[1]) == size(b)


@products
def test_the_stride_of_the_tiler_is_the_distance_between_tiles(a: Layout, b: Layout) -> None:
    """size(A) * stride(B) from each to the next."""
    product = logical_product(a, b)
    assert isinstance(b.stride, int)
    starts = [product(0, k) for k in range(size(b))]
    assert np.diff(starts).tolist() == [size(a) * b.stride] * (size(b) - 1)


@products
def test_the_cosize_of_a_product(a: Layout, b: Layout) -> None:
    """M = size(A) * cosize(B): one more than the largest offset."""
    product = logical_product(a, b)
    assert cosize(product) == size(a) * cosize(b) == offsets(product).max() + 1


@products
def test_the_complement_makes_a_bijection(a: Layout, b: Layout) -> None:
    """(A, complement(A, M)) maps [0, M) to itself."""
    m = size(a) * cosize(b)
    whole = make_layout(a, complement(a, m))
    assert sorted(offsets(whole).reshape(-1).tolist()) == list(range(m))


@products
def test_the_complement_alone_repeats_too_often(a: Layout, b: Layout) -> None:
    """Unless size(B) equals cosize(B). Composed with B, it repeats as often as B says."""
    rest = complement(a, size(a) * cosize(b))
    assert (size(rest) > size(b)) == (size(b) != cosize(b))
    assert size(composition(rest, b)) == size(b)


@products
def test_the_definition_of_the_product(a: Layout, b: Layout) -> None:
    """A x B := (A, complement(A, M) o B)."""
    rest = complement(a, size(a) * cosize(b))
    assert logical_product(a, b) == make_layout(a, composition(rest, b))


def test_a_tiler_of_several_dimensions() -> None:
    """It is defined the same way, unlike a tuple of tilers, which repeats each mode along itself."""
    a = parse("(2,5):(5,1)")
    assert logical_product(a, parse("(3,4):(1,3)")) == parse("((2,5),(3,4)):((5,1),(10,30))")
    assert logical_product(a, parse("<3:5,4:6>")) == parse("((2,3),(5,4)):((5,10),(1,30))")


def test_the_modes_of_a_product_may_be_rearranged() -> None:
    """Tiles first, as in divisions; or mode by mode, in blocks or interleaved."""
    a, tiler = parse("(2,2):(1,2)"), (2, 4)
    (tile0, copies0), (tile1, copies1) = logical_product(a, tiler)
    zipped = make_layout(make_layout(tile0, tile1), make_layout(copies0, copies1))
    assert zipped_product(a, tiler) == zipped
    assert tiled_product(a, tiler) == make_layout(zipped[0], copies0, copies1)
    assert flat_product(a, tiler) == make_layout(tile0, tile1, copies0, copies1)
    b = parse("(3,4):(1,3)")
    blocks, rakes = blocked_product(a, b), raked_product(a, b)
    assert [make_layout(mode[1], mode[0]) for mode in blocks] == list(rakes)


def test_products_design_layouts_of_threads_and_values() -> None:
    """4 x 8 threads with 2 x 2 values each: every element of the tile is one value of one thread."""
    threads, values = Layout((4, 8), (8, 1)), Layout((2, 2))
    tiler, layout_tv = make_layout_tv(threads, values)
    assert tiler == (8, 16)
    assert sorted(offsets(layout_tv).reshape(-1).tolist()) == list(range(8 * 16))
    x = np.arange(8 * 16).reshape(8, 16)
    held = partition_tv(x, tiler, layout_tv, 9)
    assert sorted(held.reshape(-1).tolist()) == sorted(x[2:4, 2:4].reshape(-1).tolist())
