"""describe_format: its description agrees with the format."""

from __future__ import annotations

import functools
from dataclasses import replace
from math import lcm
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.extent import few_by_default
from tests.tools.named import LAYOUTS
from tilejit.layout.formats.registry import find_format

TAGS = ("aBc8b", "gOIhw8o4i", "OIhw4i16o4i", "nhwc", "ABc4a8b4a", "x")


@pytest.mark.parametrize("name", few_by_default([*tj.formats(), *TAGS], 60))
def test_a_description_is_complete(name: str) -> None:
    found = tj.describe_format(name)
    assert found.name == name
    assert found.description
    assert found.formula
    assert found.source
    assert found.dtypes or found.planes
    assert found.least_rank is not None
    assert found.least_rank <= (found.most_rank or 12)
    text = str(found)
    assert text == repr(found)
    heading, _, facts = text.partition("\nformula ")
    assert " ".join(heading.split()) == f"{name}: {found.description}"
    assert {line[:12].strip() for line in f"formula     {facts.lstrip()}".splitlines() if line[0] != " "} == {
        *("formula", "ranks", "source"),
        *(fact for fact in ("parameters", "dtypes", "planes", "buffers", "padding") if getattr(found, fact)),
        *(["multiples"] if found.constraints else []),
        *(["verified"] if found.verified else []),
        *(["same as"] if found.same_as else []),
    }
    words = " ".join(line[12:] for line in text.splitlines()[1:])
    assert found.formula in words
    assert found.source in words
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.full
@pytest.mark.parametrize("name", [*LAYOUTS, *TAGS])
def test_the_listed_ranks_and_dtypes_are_those_accepted(name: str) -> None:
    found = tj.describe_format(name)
    example = find_format(name).example
    assert example is not None
    for dtype in ("pred", "s4", "s8", "f8e4m3fn", "bf16", "f32", "f64", "c128"):
        assert (dtype in (found.dtypes or ())) == takes(name, dtype, example[0]), dtype
    least, most = found.least_rank or 0, 14 if found.most_rank is None else found.most_rank
    constraints = dict(part.split(" % ") for part in found.constraints.split(", ") if part)
    size = lcm(*map(int, constraints.values()))
    for rank in range(15):
        dims = (1,) * (rank - least) + (size,) * min(rank, least)  # multiples are of the last dimensions
        assert (least <= rank <= most) == takes(name, example[1], dims), rank


def takes(name: str, dtype: str, dims: tuple[int, ...]) -> bool:
    try:
        return tj.named_format(name, dtype, dims).dimensions == dims
    except tj.LayoutError:
        return False


OF_THE_EXAMPLE = ("morton", "morton-2d", "morton-3d", "psvita-swizzled")
"""Formats whose pattern depends on parameters or on the array, and has all sizes."""


def tags_and_patterns() -> list[str]:
    return [name for name in (*LAYOUTS, *TAGS) if "->" in tj.describe_format(name).formula]


@pytest.mark.parametrize("name", few_by_default([*tags_and_patterns()], 30))
def test_a_formula_is_a_pattern_of_the_same_layout(name: str) -> None:
    """Sizes that depend on the dtype or on a parameter are in words; here they are read off the layout."""
    found, example = tj.describe_format(name), find_format(name).example
    assert example is not None
    dims, dtype = example
    spec = tj.named_format(name, dtype, dims)
    pattern = found.formula.partition(";")[0]
    known: dict[str, dict[str, int]] = {
        "tenstorrent": {"mf": 2, "m": 16, "nf": 2, "n": 16},
        "tenstorrent-tile": {"mf": 2, "m": 16, "nf": 2, "n": 16},
        "NC1HWC0": {"c": 16},
        "vnni": {"k": 2},
        "amx-b": {"k": 2},
        "aiter-preshuffle": {"k": 8, "k2": 4},
        "aiter-shuffle-weight": {"n": 16, "k": 8, "k2": 4},
        "tegra-block-linear": {"b": 16, "c": 16},
        "psp-swizzled": {"x": 16},
        "fractal_nz": {"m": 16, "n": 16},
        "ascend-fractal-nz": {"m": 16, "n": 16},
        "crouton": {"w": 8, "w2": 1},
        "blis-a": {"mr": 6},
        "hopper-mx-scale": {"w": 8},
        "trtllm-gen-shuffle-sf-a": {"v": 1, "p": 4},
        "gfx1250-mx-scale": {"k": 4},
        "blackwell-mx4-shuffled": {"s": 2, "k": 128, "n": 256},
        "blis-b": {"nr": 16},
    }
    sizes = known.get(name, {})
    assert bool(sizes) == (";" in found.formula and name not in OF_THE_EXAMPLE)
    width = {"element_size_in_bits": spec.bits} if spec.packed else {}
    read = tj.as_layout(pattern, dtype=spec.element, dims=dims, **sizes, **width)
    assert replace(read, padding_value=spec.padding_value) == spec


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("tpu", "0 or more"), ("vnni", "2 or more"), ("crouton", "4"), ("nChw16c", "4"), ("aBc8b", "3")],
)
def test_readable_ranks(name: str, ranks: str) -> None:
    assert tj.describe_format(name).ranks == ranks


def panels(dtype: Any, dims: Any, *, rows: int = 6) -> str:
    """Panels of a few rows."""
    raise AssertionError("a description must not call the function")


def test_registered_functions() -> None:
    tj.register_format("panels", panels)
    found = tj.describe_format("panels")
    assert str(found) == (f"panels: Panels of a few rows.\nparameters  rows\nsource      {__name__}.panels")
    assert (found.dtypes, found.least_rank, found.most_rank, found.ranks) == (None, None, None, "")
    tj.register_format("fewer", functools.partial(panels, rows=3), "Fewer.")
    assert tj.describe_format("fewer").source == "functools.partial"
    tj.register_format("more", lambda dtype, dims, **more: panels(dtype, dims, **more), "More.")
    assert "parameters  any\n" in str(tj.describe_format("more"))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("tpx", tj.LayoutError),
        ("blis-a, mr=4", tj.LayoutError),
        ("", tj.LayoutError),
        (3, TypeError),
        (np, TypeError),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(name: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tj.describe_format(name)
