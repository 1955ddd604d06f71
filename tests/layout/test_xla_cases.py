"""Facts from XLA's own tests and from jaxlib 0.10.2, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codegen.support.errors import LayoutError
from tilejit.layout.as_layout import named_format
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.from_parts import make_shape
from tilejit.layout.helpers import byte_strides, reshape_is_bitcast, validate_layout
from tilejit.layout.shape import Layout, Shape, parse_shape

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "xla_cases.json").read_text())

SKIPPED = ("layout_ops", "normalized_logical_transpose", "transpose_errors", "AlignLayouts")
"""Helpers of a graph compiler, which array layouts do not need."""

ELSEWHERE = (
    "transpose_cases",
    "transpose_run_matrix",
    "transpose_benchmarks",
    "transpose_negative_strides_exact",
    "pack_subbyte",
    "pack_subbyte_rule",
    "linear_index_nested_tiling",
    "index_util",
    "index_util_roundtrip",
    "tpu_sync_detile_tests",
)
"""Sections about data and indices, which the tests of packing and indexing replay."""

HERE = (
    "layout_to_string",
    "shape_to_string",
    "shape_parse_tests",
    "shape_parse_observed_jaxlib_0_10_2",
    "validate_layout",
    "is_untiled",
    "sizes",
    "byte_strides",
    "bitcast",
    "primitive_types",
    "tpu_default_layout_rule_observed",
)


def cases(section: str, name: str) -> Any:
    return pytest.mark.parametrize("case", CASES[section], ids=lambda case: repr(case.get(name)))


def test_every_section_is_replayed_or_skipped_by_name() -> None:
    assert set(CASES) == {*HERE, *ELSEWHERE, "meta", *SKIPPED} - {"AlignLayouts"}


@cases("shape_parse_observed_jaxlib_0_10_2", "input")
def test_observed_text(case: dict[str, Any]) -> None:
    if case["tilejit"] == "refuse":
        with pytest.raises(LayoutError, match=r"\n  .*\n +\^\n  \S"):
            parse_shape(case["input"])
        return
    shape = parse_shape(case["input"])
    printed = case.get("tilejit_prints") or case.get("printed")
    assert str(shape) == (printed or case["input"].lower().replace("t(", "T("))
    if "dims" in case:
        assert isinstance(shape, Shape)
        assert shape.layout is not None
        assert list(shape.dimensions) == case["dims"]
        assert list(shape.layout.minor_to_major) == case["m2m"]
        assert [list(tile) for tile in shape.layout.tiles] == case["tiling"]
        assert shape.layout.element_size_in_bits == case["E"]


@cases("shape_parse_tests", "input")
def test_upstream_text(case: dict[str, Any]) -> None:
    if case["ok"]:
        text = str(parse_shape(case["input"]))
        assert str(parse_shape(text)) == text
    else:
        with pytest.raises(LayoutError):
            parse_shape(case["input"])


@cases("shape_to_string", "text")
def test_shape_prints(case: dict[str, Any]) -> None:
    shape = parse_shape(case["text"])
    if "{" not in case["text"]:
        assert isinstance(shape, Shape)
        shape = shape.without_layout()
    assert str(shape) == case["text"]


@cases("layout_to_string", "text")
def test_layout_prints(case: dict[str, Any]) -> None:
    props = case["props"]
    physical = Shape.parse(props["P"]) if "P" in props else None
    layout = Layout(
        tuple(case["m2m"]),
        tuple(tuple(tile) for tile in props.get("tiles", ())),
        index_type=props.get("#"),
        pointer_type=props.get("*"),
        memory_space=props.get("S", 0),
        physical_shape=physical,
    )
    assert str(layout) == case["text"]
    assert Layout.parse(case["text"]) == layout


FAULTS = {
    "f32[8,8] tile (2,-2)": lambda: make_shape("f32", (8, 8), tiles=((2, -2),)),
    "f32[2,3] no layout": lambda: validate_layout(Shape("f32", (2, 3))),
    "order": lambda: Shape("f32", (2, 3), Layout((1, 2))),
    "element_size": lambda: make_shape("f32", (2, 3), element_size_in_bits=-1),
    "split_dimension": lambda: Layout((1, 0), split_configs=((2, (1,)),)),
    "split_twice": lambda: Layout((1, 0), split_configs=((1, (1,)), (1, (2,)))),
    "split_index": lambda: validate_layout(Shape.parse("f32[2,3]{1,0:SC(1:5)}")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", CASES["validate_layout"], ids=lambda c: c.get("shape") or c["fault"])
def test_validate_layout(case: dict[str, Any]) -> None:
    if case["ok"]:
        shape = Shape.parse(case["shape"])
        validate_layout(shape)
    else:
        with pytest.raises(LayoutError, match="\n"):
            FAULTS[case.get("shape") or case["fault"]]()


@cases("is_untiled", "dims")
def test_is_untiled(case: dict[str, Any]) -> None:
    assert make_shape("f32", case["dims"], tiles=case["tiles"]).untiled is case["untiled"]


@cases("sizes", "shape")
def test_sizes(case: dict[str, Any]) -> None:
    shape = Shape.parse(case["shape"])
    assert shape.xla_array_size == case["array_size_bytes"]
    if len(shape.tiles) < 2 or case["shape"].startswith("bf16"):
        assert shape.size_in_bytes == case["array_size_bytes"]


@cases("byte_strides", "shape")
def test_byte_strides(case: dict[str, Any]) -> None:
    shape = Shape.parse(case["shape"])
    assert byte_strides(shape) == (None if case["strides"] is None else tuple(case["strides"]))


@pytest.mark.parametrize(
    "case", [c for c in CASES["bitcast"] if c["op"] not in SKIPPED], ids=lambda c: c["a"]
)
def test_reshape_is_bitcast(case: dict[str, Any]) -> None:
    a, b = Shape.parse(case["a"]), Shape.parse(case["b"])
    assert reshape_is_bitcast(a, b) is case["result"]


def test_primitive_types() -> None:
    arrays = {name: row.bits for name, row in PRIMITIVE_TYPES.items() if row.is_array_element}
    assert arrays == CASES["primitive_types"]["names_bits"]
    assert set(PRIMITIVE_TYPES) - set(arrays) == {"token", "opaque"}


def test_tpu_rule_zero_elements_and_e() -> None:
    rule = CASES["tpu_default_layout_rule_observed"]
    assert rule["zero_elements"] == "no tiles, descending order"
    assert str(named_format("tpu", "bf16", (3, 0, 5))) == "bf16[3,0,5]{2,1,0}"
    assert str(named_format("tpu", "uint4", (64, 256))).endswith("E(4)}")
