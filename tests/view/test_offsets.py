"""The page's script finds the slots of `linear_index` and the elements of `multi_index`, in a browser."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.support.errors import LayoutError
from tests.cute import draw
from tests.tools.strategies import cute_shape, picker, shape
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.view.boards import Tiling
from tilejit.view.coloring import Coloring
from tilejit.view.page import page_data

NAMED = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[4096,4096]{1,0:T(8,128)(2,1)}",
    "bf16[1000,300]{0,1:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)(2,*,4)}",
    "s4[12,3,40]{2,1,0:T(64,128)(8,1)E(4)}",
    "pred[1,1,1,5]{0,1,2,3:T(32,128)(32,1)E(1)}",
    "f32[]",
    "f32[]{:T(256)}",
    "f32[7]{0:T(128)}",
    "f32[5]{0:L(8)}",
    "f32[5,0,3]{2,1,0:T(2,2)}",
    "u8[1000000000,1000000000]",
    "u8[1000000007,1000000009]{0,1:T(8,128)(4,1)}",
    "f32[3,5] (4,8):(8,1)",
    "f32[6,3] ((2,4),(2,2)):((1,4),(2,16))",
    "s4[8,8] Sw<2,0,3> o 0 o (8,8):(8,1) E(4)",
    "u8[100000,100000] Sw<3,4,3> o 0 o (100000,131072):(131072,1)",
    "f32[4,4] Sw<1,2,-3> o 8 o ((2,2),(2,2)):((1,4),(2,8))",
    "u8[10,12] Dg<4:12=(2,0,3,1)> o 0 o ((4,3),12):((12,48),1)",
    "u8[1000000,1000000] Dg<1000:1000-8:1000000> o 0 o (1000000,1000000):(1000000,1)",
]
ALONE = [
    "(4,8):(8,1)",
    "((2,2),(2,4)):((1,4),(2,8))",
    "Sw<3,2,3> o 0 o ((8,125),(32,10)):((32,2560),(1,256))",
    "Sw<1,0,1> o 2 o (2,4):(4,1)",
    "(4,3):(0,5)",
    "(3,4):(5,5)",
    "(6,(2,3)):(7,(1,2))",
    "Sw<2,0,2> o 15 o (4,4):(-4,-1)",
    "Dg<5:1+3:5> o 0 o Dg<2:15^2:1> o 0 o (6,5):(5,1)",
    "12:3",
    "((2,(3,2)),4):((1,(4,12)),24)",
    "(8,8):(1,1000000000000000)",
]
DRAWN = 150
ANSWERS = """
const [cases] = arguments, plain = (n) => String(n);
return cases.map(({data, indices, slots}) => {
  const map = tilejit.layoutMap(data), whole = (index) => index.map(map.N);
  return {
    slots: indices.map((index) => plain(map.linearIndex(index))),
    held: slots.map((slot) => { const at = map.multiIndex(slot); return at && at.map(plain); }),
    tiles: indices.map((index) => Array.from({length: map.depths}, (_, k) => {
      const {key, color} = map.tile(whole(index), k + 1);
      return [plain(key), color];
    })),
    colors: Object.fromEntries(["order", "bank", "row"].filter((by) => data.colorings.includes(by)).map(
      (by) => [by, indices.map((index) => map.colorOfSlot(map.linearIndex(index), by))])),
    sums: indices.map((index) => map.trace(whole(index)).at(-1).text.match(/\\d+$/)[0]),
    digits: indices.map((index) => Math.max(...map.trace(whole(index)).map((line) => line.depth))),
  };
});
"""


def drawn_shapes(seed: int) -> list[Spec]:
    """Random shapes, CuTe layouts and composed layouts."""
    pick = picker(np.random.default_rng(seed))
    out: list[Spec] = [shape(pick, most=500) for _ in range(DRAWN)]
    out += [cute_shape(pick, most=300, swizzled=bool(pick(0, 1))) for _ in range(DRAWN)]
    for _ in range(DRAWN):
        layout = draw.layout(pick)
        if pick(0, 1):
            bits = pick(0, 2)
            swizzle = tj.cute.Swizzle(bits, pick(0, 3), pick(bits, 4))
            layout = tj.cute.ComposedLayout(swizzle, pick(0, 9), layout)
        elif pick(0, 1):
            layout = tj.cute.ComposedLayout(tj.cute.Layout((3, 50), (50, 1)), pick(0, 5), layout)
        try:
            out.append(page_subject(layout))
        except LayoutError:  # offsets below 0, or past the domain of an outer layout
            continue
    return out


def page_subject(layout: Any) -> Spec:
    from tilejit.view.page import subject

    return subject(layout)[0]


def case(spec: Spec, rng: np.random.Generator) -> dict[str, Any]:
    """Random indices and slots to ask for."""
    dims, size = spec.dimensions, spec.physical_size
    count = 0 if 0 in dims else 12
    indices = [[int(rng.integers(n)) for n in dims] for _ in range(count)]
    indices += [[n - 1 for n in dims]] if count else []
    slots = sorted({int(rng.integers(size)) for _ in range(12)} | {size - 1}) if size else []
    return {"spec": spec, "indices": indices, "slots": slots}


def asked(browser: Any, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The script's answers. Integers travel as text, because doubles cannot represent all of them."""
    return browser.execute_script(
        ANSWERS,
        [
            {
                "data": page_data(c["spec"]),
                "indices": [[str(i) for i in index] for index in c["indices"]],
                "slots": [str(slot) for slot in c["slots"]],
            }
            for c in cases
        ],
    )


def check(case: dict[str, Any], answer: dict[str, Any]) -> None:
    spec = case["spec"]
    slots = [tj.linear_index(spec, tuple(index)) for index in case["indices"]]
    assert answer["slots"] == [str(slot) for slot in slots], spec
    assert answer["sums"] == answer["slots"], spec
    held = [tj.multi_index(spec, slot) for slot in case["slots"]]
    assert answer["held"] == [at and [str(i) for i in at] if at != () else [] for at in held], spec
    if not slots:
        return
    levels = Tiling.levels(spec)
    for index, tiles in zip(case["indices"], answer["tiles"], strict=True):
        numbers = [level.number(tuple(index)) for level in levels]
        assert [int(key) for key, _ in tiles] == [number % 2**48 for number in numbers], spec
        colors = [level.color(number) for level, number in zip(levels, numbers, strict=True)]
        assert [color for _, color in tiles] == colors, spec
    for by, colors in answer["colors"].items():
        wanted = Coloring.of(spec, by).numbers(np.asarray(slots, np.int64), np.zeros(len(slots), np.int64))
        assert colors == wanted.tolist(), spec


@pytest.mark.full
@pytest.mark.parametrize("text", [*NAMED, *ALONE])
def test_named_layouts(opened: Any, text: str, seed: int) -> None:
    layout = tj.as_layout(text) if "[" in text else tj.cute.parse(text)
    spec = page_subject(layout)
    asking = case(spec, np.random.default_rng(seed))
    (answer,) = asked(opened(layout), [asking])
    check(asking, answer)


def test_random_layouts(opened: Any, seed: int) -> None:
    specs = drawn_shapes(seed)
    kinds = {type(spec).__name__ for spec in specs}
    assert kinds == {"Shape", "CuteShape"}
    assert any(isinstance(s, CuteShape) and s.function.steps for s in specs)
    rng = np.random.default_rng(seed)
    cases = [case(spec, rng) for spec in specs]
    for asking, answer in zip(cases, asked(opened(tj.as_layout("f32[]")), cases), strict=True):
        check(asking, answer)


@pytest.mark.full
@pytest.mark.parametrize("text", ALONE)
def test_offsets_of_cute_layouts(opened: Any, text: str) -> None:
    """All of them, in CuTe's order: the first mode counts fastest."""
    layout = tj.cute.parse(text)
    count = min(tj.cute.size(layout), 500)
    sizes = page_subject(layout).dimensions
    indices = np.array(np.unravel_index(np.arange(count), sizes, order="F")).T
    asking = {"spec": page_subject(layout), "indices": indices.tolist(), "slots": []}
    (answer,) = asked(opened(tj.as_layout("f32[]")), [asking])
    assert answer["slots"] == [str(n) for n in tj.cute.offsets(layout)[:count]]


def test_answers_that_need_too_large_a_table_are_omitted(opened: Any) -> None:
    """Strides overlap, so a slot's contents need a table of all elements, which only small arrays have."""
    spec = tj.as_layout("u8[5000,5000] (5000,5000):(4999,3)")
    assert prod(spec.dimensions) > 1 << 20
    browser = opened(spec)
    held = browser.execute_script("return tilejit.explorer.map.multiIndex(arguments[0]) === undefined", 14997)
    assert held
    slot = browser.execute_script("return tilejit.explorer.map.linearIndex([7, 11])")
    assert slot == tj.linear_index(spec, (7, 11))
