"""Random loops that carry values: super-vectors and registers keep the meaning of the loop."""

from __future__ import annotations

import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import ArrayArg, Function, ScalarArg
from codegen.pipeline.loops import vectorize_function
from codegen.schedule.choose_registers import choose_registers
from codegen.support.errors import KernelError
from tests.codegen.passes.meaning import DTYPES, tails
from tests.codegen.passes.test_lower_vectors import after_passes, run
from tests.conftest import SEED

ARRAYS = "abcd"
FUNCTIONS = 80
DTYPES_OF_ARRAYS = ("i32", "i64", "i16", "u8")


class Writer:
    """Writes functions with one or two carried values among loads and stores of four arrays."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def subscript(self) -> str:
        return self.random.choice(["i", "i", "i", "i + 1", "i - 1", "2 * i", "i + 3"])

    def value(self, names: list[str], depth: int = 0) -> str:
        which = self.random.random()
        if which < 0.45:
            return f"{self.random.choice(ARRAYS)}[{self.subscript()}]"
        if which < 0.6 and names:
            return self.random.choice(names)
        if which < 0.7:
            return str(self.random.randint(-3, 3))
        if depth < 2:
            sign = self.random.choice("+-*&^")
            return f"({self.value(names, depth + 1)} {sign} {self.value(names, depth + 1)})"
        return f"{self.random.choice(ARRAYS)}[i]"

    def update(self, name: str, names: list[str]) -> str:
        value = self.value([other for other in names if other != name or self.random.random() < 0.1])
        return self.random.choice(
            [
                *(f"{name} {sign}= {value}" for sign in "+-*^&|"),
                *(f"{name} = {combine}({name}, {value})" for combine in ("max", "min", "np.maximum")),
                f"{name} = {value} + {name}",
                f"{name} = {name} + {value} if {self.value([])} > 0 else {name}",
                f"{name} = {value} if {value} > {name} else {name}",
            ]
        )

    def function(self, name: str) -> str:
        carried = self.random.sample(["s", "t"], self.random.randint(1, 2))
        lines = [f"def {name}(a, b, c, d, m):"]
        lines += [f"    {each} = a[0] * {self.random.randint(0, 2)}" for each in carried]
        over = self.random.choice(["4, m", "4, m", "4, m, 2", "m - 1, 4, -1"])
        lines.append(f"    for i in range({over}):")
        names = list(carried)
        for _ in range(self.random.randint(2, 6)):
            which, target = self.random.random(), f"{self.random.choice(ARRAYS)}[{self.subscript()}]"
            if which < 0.45:
                lines.append(f"        {self.update(self.random.choice(carried), names)}")
            elif which < 0.8:
                held = self.random.random() < 0.7
                lines.append(
                    f"        {target} = {self.random.choice(carried) if held else self.value(names)}"
                )
            elif which < 0.9:
                lines.append(f"        p = {self.value(names)}")
                names = [*dict.fromkeys([*names, "p"])]
            else:
                lines.append(f"        if {self.value(names)} > {self.random.randint(-2, 2)}:")
                lines.append(f"            {self.update(self.random.choice(carried), names)}")
                lines.append(f"            {target} = {self.random.choice(carried)}")
        return "\n".join([*lines, f"    return {', '.join(carried)}"])


def arguments(dtype: str, m: int, seed: int) -> list[Any]:
    low = 0 if dtype[0] == "u" else -5
    numbers = np.random.default_rng(seed)
    return [*(numbers.integers(low, 6, 100).astype(DTYPES[dtype]) for _ in ARRAYS), np.int64(m)]


def check(function: Function, wide: Function, dtype: str, text: str) -> None:
    """The super-vector form, and the last form for each tail, leave what the scalar form leaves."""
    for m in (3, 5, 23, 40):
        expected = arguments(dtype, m, m)
        results = [int(x) for x in interpret(function, expected)]
        found = arguments(dtype, m, m)
        assert [int(x) for x in interpret(wide, found)] == results, text
        forms = [found]
        for tail in ("mask", "scalar"):
            _, made = after_passes(wide, choose_registers(wide, 16, tails(wide, tail)))[-1]
            forms.append(arguments(dtype, m, m))
            run(made, function, forms[-1])
        for form in forms:
            for one, two in zip(expected[:-1], form[:-1], strict=True):
                assert np.array_equal(one, two), text


@pytest.mark.full
@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_lanes_keep_the_meaning(seed: int, tmp_path: Path) -> None:
    writer = Writer(seed)
    texts = [writer.function(f"f{k}") for k in range(FUNCTIONS)]
    path = tmp_path / "functions.py"
    path.write_text("\n\n".join(["import numpy as np", *texts]))
    spec = spec_from_file_location("functions", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    scans = 0
    for k, text in enumerate(texts):
        dtype = DTYPES_OF_ARRAYS[k % len(DTYPES_OF_ARRAYS)]
        declared = [*(ArrayArg(name, dtype, 1, "C") for name in ARRAYS), ScalarArg("m", "i64")]
        try:
            function = read_function(getattr(module, f"f{k}")).typed(declared)
        except KernelError:  # a negative number for an unsigned dtype, or a local whose dtype changes
            continue
        made = vectorize_function(function, (8,), None, True, "mask", True)
        if any(report.vectorized for report in made.loops):
            scans += any("is scanned by" in report.text for report in made.loops)
            check(function, made.function, dtype, text)
    assert scans
