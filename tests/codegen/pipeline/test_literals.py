"""Kernels have sizes of layouts as literals, and sizes of arrays as arguments; readers see names of axes."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import tilejit as tj
from codegen import Step, source_of_step
from tests.tools.named import LAYOUTS
from tilejit.layout.as_layout import as_layout


def steps(name: str, shape: tuple[int, ...]) -> list[Step]:
    """The boxes of a pack and of an unpack; none if the format takes no such array."""
    try:
        plans = tj.plan_pack(name, shape, np.uint16), tj.plan_unpack(name, shape, np.uint16)
    except tj.TilejitError:
        return []
    return [step.compiled for plan in plans for step in plan.steps]


def skeleton(source: str) -> str:
    """A function with numbers in place of its names, and without its docstring."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    function.body = function.body[1:]
    called = {node.func.id for node in ast.walk(function) if isinstance(node, ast.Call)}  # type: ignore[attr-defined]
    names: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id not in called and node.id != "_":
            node.id = names.setdefault(node.id, f"name_{len(names)}")
    return ast.dump(function)


@pytest.mark.parametrize("name", LAYOUTS)
def test_readers_see_the_kernel_with_other_names(name: str) -> None:
    for step in (*steps(name, (128, 512)), *steps(name, (100, 300))):
        shown = source_of_step(step)
        assert skeleton(shown) == skeleton(step.kernel.source)
        for axis in step.nest.around:
            assert f"{axis.axis} ({axis.extent})" in shown.partition("\n")[0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_kernels_of_a_layout_serve_all_shapes(name: str) -> None:
    """The schedule may depend on the shape, but eight shapes have no kernel each."""
    shapes = [(1536 * k, 1024 * (24 - k)) for k in range(4, 12)]
    found = ([x for x in steps(name, shape) if not x.nest.fills] for shape in shapes)
    kernels = [{step.kernel.name for step in each} for each in found]
    assert len(frozenset.union(frozenset(), *kernels)) <= len(kernels[0]) + 5


def test_tiles_are_literals() -> None:
    source = tj.explain("f32[8192,1024]{1,0:T(8,128)}", None).source
    assert "for i in range(8):" in source
    assert "range(0, 512, 64):" in source
    assert "4096 * tile_j" in source
    assert "for tile_j in range(tile_j_extent):" in source


def test_sizes_of_arrays_are_arguments() -> None:
    """Also where dimensions are joined, so that the shape splits them."""
    kernels = set[str]()
    for rows in range(3, 11):
        x = np.zeros((64, 32 * rows, 128), np.float32)
        for dst, src in (
            (np.zeros((64 * 32 * rows, 128), np.float32), x.reshape(-1, 128)),
            (np.zeros((128, 64, 32 * rows), np.float32), x.transpose(2, 0, 1)),
            (as_layout(f"f32[128,{64 * 32 * rows}]{{1,0}}"), x.reshape(-1, 128).T),
        ):
            kernels |= {step.kernel.name for step in tj.explain(dst, src).steps}
    assert len(kernels) <= 6
