"""Axes of patterns and parameters of formats must not have names that calls reserve."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tilejit.catalog.format import ELEMENT_SIZE, RESERVED
from tilejit.files.conversion import plan_file_pack, plan_file_relayout
from tilejit.layout.as_layout import recipe_of

X = np.arange(40 * 6, dtype=np.float32).reshape(40, 6)
CALLS: tuple[Callable[..., Any], ...] = (
    *(tj.pack, tj.unpack, tj.relayout, tj.explain, tj.as_layout, tj.named_format, tj.TiledArray.from_buffer),
    *(recipe_of, plan_file_pack, plan_file_relayout),
)


def test_the_reserved_names_are_the_keywords_of_calls() -> None:
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    taken = {p.name for call in CALLS for p in signature(call).parameters.values() if p.kind in kinds}
    assert taken == set(RESERVED)


@pytest.mark.parametrize("name", [*RESERVED, ELEMENT_SIZE])
def test_axes(name: str) -> None:
    pattern = f"({name} b) n -> b {name} n"
    with pytest.raises(tj.LayoutError, match=f"an axis has the name {name}, .*\n.*\n.*\n.*choose another"):
        tj.as_layout(f"{pattern}, b=10", dims=X.shape, dtype="f32")


def test_a_size_is_never_taken_for_another_argument() -> None:
    pattern = "(threads b) n -> b threads n"
    t = tj.pack(X, "{1,0}")
    for call in (
        lambda: tj.pack(X, pattern, threads=4, b=10),
        lambda: tj.relayout(t, pattern, threads=4, b=10),
        lambda: tj.unpack(t, pattern, threads=4, b=10),
        lambda: tj.explain(pattern, X, threads=4, b=10),
    ):
        with pytest.raises(tj.LayoutError, match="the name threads"):
            call()


@pytest.mark.parametrize("name", ["x", "t", "src", "dst", "buffer", "name", "source", "target"])
def test_names_of_positional_arguments_are_free(name: str) -> None:
    """Positional arguments reserve no name: the axes t and x are common."""
    pattern, sizes = f"({name} b) n -> b {name} n", {name: 4, "b": 10}
    want = X.reshape(4, 10, 6).swapaxes(0, 1).ravel()
    t = tj.pack(X, pattern, **sizes)
    assert (t.buffer == want).all()
    assert (tj.relayout(tj.pack(X, "{1,0}"), pattern, **sizes).buffer == want).all()
    assert (tj.unpack(t, pattern, **sizes) == X).all()
    again = tj.TiledArray.from_buffer(want, pattern, dims=X.shape, dtype="f32", **sizes)
    assert (again.unpack() == X).all()
    assert tj.explain(pattern, X, **sizes).nest == tj.explain(t.layout, X).nest


@pytest.mark.parametrize("name", [n for n in RESERVED if n not in ("dims", "dtype")])
def test_parameters_of_formats(name: str) -> None:
    functions: dict[str, Any] = {}
    exec(f"def f(dtype, dims, *, {name}=3): return '{{1,0}}'", functions)
    with pytest.raises(tj.LayoutError, match=f"'mine' has the name {name}"):
        tj.register_format("mine", functions["f"])
    assert "mine" not in tj.formats()


def test_a_format_may_have_a_width_parameter() -> None:
    tj.register_format(
        "mine", lambda dtype, dims, element_size_in_bits=0: f"{{1,0:E({element_size_in_bits})}}"
    )
    assert str(tj.as_layout("mine", dims=(2, 4), dtype="s4", element_size_in_bits=4).layout) == "{1,0:E(4)}"
