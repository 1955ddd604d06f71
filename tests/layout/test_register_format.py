"""Formats that users register."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.support.errors import LayoutError
from tilejit.layout.as_layout import recipe_of
from tilejit.layout.formats import describe_format


def panels(dtype: Any, dims: tuple[int, ...], *, rows: int = 6) -> str:
    """Panels of a few rows.

    More.
    """
    assert isinstance(dtype, np.dtype)
    return f"{{1,0:T({rows},1)}}"


@pytest.mark.parametrize(
    "answer",
    [
        lambda dtype, dims: tj.make_shape(dtype, dims, tiles=[(8, 4)]),
        lambda dtype, dims: tj.Layout((1, 0), ((8, 4),)),
        lambda dtype, dims: "{1,0:T(8,4)}",
        lambda dtype, dims: "f32[20,30]{1,0:T(8,4)}",
        lambda dtype, dims: "(m mi) (n ni) -> m n mi ni, mi=8, ni=4",
        lambda dtype, dims: tj.as_layout("m n -> m n", dims=dims, dtype=dtype) and "{1,0:T(8,4)}",
    ],
)
def test_valid_results_of_a_function(answer: Any) -> None:
    tj.register_format("mine", answer)
    assert "mine" in tj.formats()
    want = tj.Shape.parse("f32[20,30]{1,0:T(8,4)}")
    assert tj.named_format("mine", "f32", (20, 30)) == want
    assert tj.as_layout(" mine ", dims=(20, 30), dtype=np.float32) == want
    source: dict[str, Any] = {}
    exec(recipe_of("mine", "f32", (20, 30)), source)
    x = np.arange(600).reshape(20, 30)
    assert np.array_equal(
        source["pack"](x), np.pad(x, ((0, 4), (0, 2))).reshape(3, 8, 8, 4).swapaxes(1, 2).ravel()
    )


def test_parameters_and_description() -> None:
    tj.register_format("panels", panels)
    assert describe_format("panels").description == "Panels of a few rows."
    assert describe_format("panels").parameters == ("rows",)
    assert str(tj.named_format("panels", "bf16", (5, 5), rows=4)) == "bf16[5,5]{1,0:T(4,1)}"
    with pytest.raises(TypeError, match="it takes rows"):
        tj.named_format("panels", "bf16", (5, 5), columns=4)
    tj.register_format("needy", lambda dtype, dims, rows: panels(dtype, dims, rows=rows))
    assert describe_format("needy").parameters == ("rows",)
    assert str(tj.named_format("needy", "bf16", (5, 5), rows=4).layout) == "{1,0:T(4,1)}"
    with pytest.raises(TypeError, match="rows"):
        tj.named_format("needy", "bf16", (5, 5))
    tj.register_format("any", lambda dtype, dims, **more: f"{{1,0:T({more['k']},1)}}", "said\nhere")
    assert describe_format("any").description == "said"
    assert str(tj.named_format("any", "bf16", (5, 5), k=3).layout) == "{1,0:T(3,1)}"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tpu", "already"),
        ("nChw16c", "already"),
        ("nhwc", "oneDNN tag"),
        ("aBc8b", "oneDNN tag"),
        ("f32", "dtype"),
        ("BF16", "dtype"),
        ("C", "order of elements"),
        ("Row-Major", "order of elements"),
        ("", "start with a letter"),
        ("8x8", "start with a letter"),
        ("my format", "start with a letter"),
        ("é", "start with a letter"),
        ("a" * 65, "up to 64"),
        ("a->b", "start with a letter"),
        ("mine\n", "start with a letter"),
    ],
    ids=repr,
)
def test_bad_names(name: str, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        tj.register_format(name, panels)
    assert len(name) == 0 or name not in tj.formats() or name in ("tpu", "nChw16c")


@pytest.mark.parametrize("name", ["x1", "nChw16", "aBc8d"])
def test_a_name_like_a_wrong_tag_can_be_registered(name: str) -> None:
    tj.register_format(name, lambda dtype, dims: "{0,1}")
    assert str(tj.named_format(name, "f32", (2, 3))) == "f32[2,3]{0,1}"


def test_a_name_can_be_registered_once() -> None:
    tj.register_format("mine", panels)
    with pytest.raises(LayoutError, match="already"):
        tj.register_format("mine", panels)


@pytest.mark.parametrize(
    "function",
    [None, 3, "tpu", lambda: None, lambda dtype: None, lambda dtype, *, dims: None],
    ids=["None", "number", "text", "no arguments", "dtype only", "dims by keyword"],
)
def test_other_objects_are_refused_as_functions(function: Any) -> None:
    with pytest.raises(TypeError):
        tj.register_format("mine", function)
    assert "mine" not in tj.formats()


@pytest.mark.parametrize(("name", "description"), [(3, None), (None, None), ("mine", 3)], ids=str)
def test_wrong_types(name: Any, description: Any) -> None:
    with pytest.raises(TypeError):
        tj.register_format(name, panels, description)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "expected a layout, got NoneType"),
        (3, "expected a layout, got int"),
        ((1, 0), "expected a layout, got tuple"),
        ("tpu", "returns a name, 'tpu'"),
        ("mine", "returns a name"),
        ("{1,0:T(8,", "missing"),
        ("{0}", "not return a layout of the array"),
        ("f32[3,3]", "not return a layout of the array"),
        ("s8[20,30]{1,0}", "of s8, but the array is of f32"),
        ("(f32[2])", "tuple"),
        ("m n -> n", "missing right"),
        (tj.Shape.parse("f32[2]"), "not return a layout of the array"),
        (tj.Layout((0,)), "not return a layout of the array"),
    ],
    ids=str,
)
def test_invalid_results_of_a_function(answer: Any, says: str) -> None:
    tj.register_format("mine", lambda dtype, dims: answer)
    with pytest.raises(LayoutError, match="'mine'") as caught:
        tj.named_format("mine", "f32", (20, 30))
    assert says.strip("'") in str(caught.value)


@pytest.mark.parametrize(
    "fault", [ZeroDivisionError("why"), IndexError("why"), TypeError("why"), SystemExit("why")], ids=repr
)
def test_errors_of_a_function_name_the_format(fault: BaseException) -> None:
    def fails(dtype: Any, dims: Any) -> None:
        raise fault

    tj.register_format("mine", fails)
    with pytest.raises(LayoutError, match=f"'mine' fails for f32.2.: {type(fault).__name__}: why") as caught:
        tj.as_layout("mine", dims=(2,), dtype="f32")
    assert caught.value.__cause__ is fault


def test_a_format_that_refers_to_itself_is_an_error() -> None:
    tj.register_format("itself", lambda dtype, dims: tj.named_format("itself", dtype, dims))
    with pytest.raises(LayoutError, match="'itself' calls itself"):
        tj.pack(np.ones((2, 3), np.float32), "itself")


def test_a_format_is_removed_and_registered_again() -> None:
    tj.register_format("mine", lambda dtype, dims: "{1,0:T(3,5)}")
    t = tj.pack(np.ones((2, 3), np.float32), "mine")
    tj.unregister_format("mine")
    assert "mine" not in tj.formats()
    assert (t.unpack() == 1).all()
    with pytest.raises(LayoutError, match="mine"):
        tj.as_layout("mine", dims=(2, 3), dtype="f32")
    tj.register_format("mine", lambda dtype, dims: "{1,0:T(7,5)}")
    assert tj.as_layout("mine", dims=(2, 3), dtype="f32") == tj.as_layout("f32[2,3]{1,0:T(7,5)}")


def test_only_registered_formats_can_be_removed() -> None:
    with pytest.raises(LayoutError, match="TileJIT itself defines the format 'tpu'\n  name one that you"):
        tj.unregister_format("tpu")
    with pytest.raises(LayoutError, match="unknown format 'nope'"):
        tj.unregister_format("nope")
    with pytest.raises(TypeError, match="expected the name of a format, got int"):
        tj.unregister_format(3)  # type: ignore[arg-type]
