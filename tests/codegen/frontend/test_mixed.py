"""Kernels whose numbers change dtype give Python's bytes, or are refused with the fix."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tilejit as tj
from codegen.support.errors import KernelError
from tests.codegen.frontend.mixed import alike, made, mixed

X = np.array([2, 0, 5, 255, 1, 3])
CASES = {
    "a negated choice": "out[i] = abs(-(x[i] if i % 2 else 2))",
    "a choice of int64 and float64": "out[i] = (y[i] if x[i] > 2 else z[i]) // 2",
    "a choice in a local": "t = x[i] if i % 2 else 300\n        out[i] = t * 2",
    "a local of two branches": (
        "if i % 2:\n            t = x[i]\n        else:\n            t = -2\n        out[i] = t - 3"
    ),
    "the least": "out[i] = -min(x[i], 3)",
    "and, or": "out[i] = -(x[i] and 7) - (y[i] or 0.1)",
    "booleans": "out[i] = (not x[i]) + (not x[i]) + (i < 2 and x[i] > 1)",
    "NumPy's booleans": "out[i] = np.add(True, i % 2 == 1)",
    "a plus": "out[i] = +(i < 3) + x[i]",
    "comparisons": "out[i] = (y[i] if i % 2 else 0.1) < f",
    "a NumPy function": "out[i] = np.negative(x[i] if i % 2 else 2)",
}
CARRIED = {
    "the first iteration": ("s = f", "out[i] = s * 0.1\n        s = s * 0.1 + y[i]", "s"),
    "no iteration": ("s = 0.1", "s = s + y[i]", "s + 0.1"),
    "a mean": ("s = 0.1", "s += y[i]", "s / n"),
    "not in all iterations": ("s = 0.1", "if x[i] > 300:\n            s = y[i]", "s * 0.3"),
    "two loops": ("s = f", "for j in range(n):\n            s += y[j]", "s * 0.3"),
    "reset": ("s = y[0]", "s = s + y[i] if i % 2 else 0.1", "s * 0.3"),
    "counted": ("s = 0", "s = s + x[i]", "-s"),
}


def kernel(body: str, start: str = "pass", end: str = "", length: int = 6):  # type: ignore[no-untyped-def]
    """A kernel with this body in its loop, over arrays of u8, f32 and int64."""
    text = f"def drawn(x, y, z, out, n, f):\n    {start}\n    for i in range({length}):\n        {body}\n"
    text += f"    out[0] = {end}\n" if end else ""
    arrays = [X.astype("u1"), (X * np.float32(0.3)).astype("f4"), X * 2**40 + 1]
    return made(text, arrays, np.zeros(6, "f8"), 3, 0.1)


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_numbers_of_two_dtypes(body: str) -> None:
    """Operations compute in the dtype of the side that Python takes."""
    drawn = kernel(body)
    wanted = drawn.wanted()
    assert wanted is not None
    assert drawn.interpreted().tolist() == wanted.tolist()


@pytest.mark.parametrize("length", [0, 6])
@pytest.mark.parametrize(("start", "body", "end"), CARRIED.values(), ids=CARRIED)
def test_locals_that_begin_as_python_numbers(start: str, body: str, end: str, length: int) -> None:
    """A carried local is a Python number until it is set, also after a loop without iterations."""
    drawn = kernel(body, start, end, length)
    wanted = drawn.wanted()
    assert wanted is not None
    assert drawn.interpreted().tolist() == wanted.tolist()


def test_compiled_kernels_agree() -> None:
    """Two kernels with several of these forms, compiled."""
    for start, body, end in (
        ("s = f", "t = abs(-(x[i] if i % 2 else 2)) - min(x[i], 3)\n        s = s * 0.1 + y[i] + t", "s / n"),
        ("s = 0.1", "if x[i] > 300:\n            s = y[i]\n        out[i] = x[i] and -2", "s * 0.3"),
    ):
        drawn = kernel(body, start, end)
        given, wanted = drawn.copied(), drawn.wanted()
        tj.kernel(drawn.python)(*given)
        assert wanted is not None
        assert given[3].tolist() == wanted.tolist()


@pytest.mark.full
def test_random_kernels() -> None:
    """A fixed set of random kernels; the soak draws others."""
    agreed = 0
    for number in range(250):
        drawn = mixed(Random(number).randrange)
        wanted = drawn.wanted()
        if wanted is None:
            continue
        try:
            found = drawn.interpreted()
        except KernelError:
            continue
        assert alike(found, wanted), f"case {number}\n{drawn.text}"
        agreed += 1
    assert agreed > 80


@pytest.mark.parametrize(
    ("start", "body", "message"),
    [
        (
            "s = 0.0",
            "s = y[i] if i % 2 else s + 0.5",
            "s is a Python number in some iterations and f32 in others",
        ),
        (
            "s = 0.0",
            "out[i] = s\n        s = x[i] if i % 2 else y[i]",
            "s is a Python float before the loop and u8 or f32 after",
        ),
    ],
)
def test_locals_of_changing_dtypes_are_refused(start: str, body: str, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        kernel(body, start).read()
    assert "\n    ^\n" in str(caught.value)
    assert "convert" in str(caught.value).splitlines()[-1]


def test_too_many_dtypes_are_refused() -> None:
    """Each level of nested choices doubles the work of the operations on the result."""
    nested = "x[i]"
    for k in range(18):
        nested = f"({'xy'[k % 2]}[i] if x[i] > {k} else {nested})"
    with pytest.raises(KernelError, match="one of more than 16 dtypes") as caught:
        kernel(f"out[i] = -{nested}").read()
    assert "convert both sides" in str(caught.value)
