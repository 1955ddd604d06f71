# ruff: noqa: F821, F841, N803
"""Errors of Python functions that kernels do not support: each text, with the caret under the place."""

from __future__ import annotations

import importlib
import inspect
import linecache
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.support.errors import KernelError
from tests.codegen.frontend.kernels import parallel, reduction
from tests.tools.oracle import run_python

TABLE = np.arange(4)
A1 = np.zeros(4, "f4")
A2 = np.zeros((4, 4), "f4")
I1 = np.zeros(4, "i4")
U1 = np.zeros(4, np.uint8)
REFUSED: list[tuple[Any, tuple[Any, ...]]] = []


def refused(*arguments: Any) -> Any:
    """Register a function whose docstring is the error that it must raise with these arguments."""

    def keep(function: Any) -> Any:
        REFUSED.append((function, arguments))
        return function

    return keep


@refused(A1, I1)
def gathered(A, B):
    """
    a subscript that depends on data is not an index expression
      FILE, line N
        A[i] = A[B[i] + 1]
                 ^
      those are sums of multiples of loop indices, sizes and integer arguments,
      //, %, << and >> of them by positive numbers, and &, | and ^ of them
      elements of integer arrays are also subscripts: x[idx[i]]
      convert those that are not int64 before arithmetic: x[int(idx[i]) + 1]
    """
    for i in range(4):
        A[i] = A[B[i] + 1]


@refused(A1)
def product(A):
    """
    expected an index expression
      FILE, line N
        A[i * j] = 0
          ^
      those are sums of multiples of loop indices, sizes and integer arguments,
      //, %, << and >> of them by positive numbers, and &, | and ^ of them
    """
    for i in range(2):
        for j in range(2):
            A[i * j] = 0


@refused(A1)
def clamped(A):
    """
    min() and max() may be bounds of range(), but not subscripts
      FILE, line N
        A[i] = A[max(i - 1, 0)]
                 ^
      those are sums of multiples of loop indices, sizes and integer arguments,
      //, %, << and >> of them by positive numbers, and &, | and ^ of them
    """
    for i in range(4):
        A[i] = A[max(i - 1, 0)]


@refused(A1)
def shifted_by_index(A):
    """
    a subscript shifts by constants from 0 to 61, not by i
      FILE, line N
        A[(1 << i) - 1] = 0
          ^
      write 3, or a global
    """
    for i in range(2):
        A[(1 << i) - 1] = 0


@refused(A1)
def shifted_too_far(A):
    """
    a bound shifts by constants from 0 to 61, not by 62
      FILE, line N
        for i in range(A.shape[0] >> 62):
                       ^
      write 3, or a global
    """
    for i in range(A.shape[0] >> 62):
        A[i] = 0


@refused(A1)
def bits_of_conditions(A):
    """
    a subscript is an integer, not i1
      FILE, line N
        A[(i > 1) & (i > 2)] = 0
          ^
    """
    for i in range(2):
        A[(i > 1) & (i > 2)] = 0


@refused(A1)
def bits_of_products(A):
    """
    expected an index expression
      FILE, line N
        A[(i * i) ^ 1] = 0
          ^
      those are sums of multiples of loop indices, sizes and integer arguments,
      //, %, << and >> of them by positive numbers, and &, | and ^ of them
    """
    for i in range(2):
        A[(i * i) ^ 1] = 0


@refused(A1)
def fraction(A):
    """
    a subscript is an integer, not f64
      FILE, line N
        A[i / 2] = 0
          ^
    """
    for i in range(4):
        A[i / 2] = 0


@refused(A1)
def printed(A):
    """
    kernels do not support expressions as statements
      FILE, line N
        print(A[i])
        ^
      use for loops over range(), assignments and `x if c else y`
    """
    for i in range(4):
        print(A[i])


@refused(A2)
def row(A):
    """
    A has 2 dimensions, got 1 subscript
      FILE, line N
        A[i] = 0
        ^
    """
    for i in range(4):
        A[i] = 0


@refused(A1)
def sliced(A):
    """
    kernels compute element by element
      FILE, line N
        A[1:] = 0
          ^
      write loops around A[i]
    """
    A[1:] = 0


@refused(A1)
def whole(A):
    """
    A is an array
      FILE, line N
        return A + 1
               ^
      give it subscripts: A[i]
    """
    return A + 1


@refused(A1)
def while_loop(A):
    """
    kernels do not support while
      FILE, line N
        while True:
        ^
      use for loops over range(), assignments and `x if c else y`
    """
    while True:
        A[0] = 1


@refused(A1)
def over_array(A):
    """
    loops of kernels must be over range(…)
      FILE, line N
        for _ in A:
                 ^
      write for i in range(A.shape[0]), and A[i] in it
    """
    for _ in A:
        pass


@refused(A1)
def left_early(A):
    """
    kernels do not support break
      FILE, line N
        break
        ^
      use for loops over range(), assignments and `x if c else y`
    """
    for i in range(4):
        if A[i] > 0:
            break


@refused(A1)
def counts_down_from_the_largest(A):
    """
    a loop that counts down must start at an index expression or the min() of several
      FILE, line N
        for i in range(max(A.shape[0], 3), 0, -1):
                       ^
    """
    for i in range(max(A.shape[0], 3), 0, -1):
        A[i] = 1


@refused(A1)
def unknown_call(A):
    """
    kernels cannot call np.sort
      FILE, line N
        A[0] = np.sort(1)
               ^
      use elementwise functions of math and NumPy, abs, min, max, int, float and bool
    """
    A[0] = np.sort(1)


@refused(A1)
def undefined(A):
    """
    factor is not defined
      FILE, line N
        A[i] = A[i] * factor
                      ^
    """
    for i in range(4):
        A[i] = A[i] * factor


@refused(A2)
def largest(A):
    """
    kernels compute element by element, without A.max
      FILE, line N
        A[0, 0] = A.max()
                  ^
      write a loop:
        s = A[0, 0]
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                s = max(s, A[i, j])
      or pass np.max(A) to the kernel, or use tilejit.elementwise
    """
    A[0, 0] = A.max()


@refused(A1)
def summed(A):
    """
    kernels compute element by element, without np.sum
      FILE, line N
        A[0] = np.sum(A, axis=0)
               ^
      write a loop:
        s = 0.0
        for i in range(A.shape[0]):
            s += A[i]
      or pass np.sum(A) to the kernel, or use tilejit.elementwise
    """
    A[0] = np.sum(A, axis=0)


@refused(A1)
def method(A):
    """
    kernels do not support the method item
      FILE, line N
        A[0] = A[1].item()
               ^
      the only one is astype; write functions, such as np.exp(a[i]), abs(a[i]) and int(a[i])
    """
    A[0] = A[1].item()


@refused(A1)
def global_array(A):
    """
    TABLE: expected a number defined outside the kernel, got ndarray
      FILE, line N
        A[i] = TABLE
               ^
      pass arrays as arguments
    """
    for i in range(4):
        A[i] = TABLE


@refused(A1)
def before_its_value(A):
    """
    t has no value here yet
      FILE, line N
        A[i] = t
               ^
    """
    for i in range(4):
        A[i] = t
        t = A[i]


@refused(A1)
def leaks(A):
    """
    t has a value only inside of the loop above
      FILE, line N
        return t
               ^
    """
    for i in range(4):
        t = A[i]
    return t


@refused(A1)
def leaked_index(A):
    """
    i has a value only inside of the loop above
      FILE, line N
        A[i] = 1
          ^
    """
    for i in range(4):
        A[i] = 2
    A[i] = 1


@refused(A1)
def step_of_data(A, n):
    """
    step_of_data takes 2 arguments, got 1
      FILE, line N
        def step_of_data(A, n):
        ^
    """


@refused(A1, 2)
def variable_step(A, n):
    """
    expected a nonzero constant as the step
      FILE, line N
        for i in range(0, 4, n):
                             ^
    """
    for i in range(0, 4, n):
        A[i] = 0


@refused(I1)
def bound_of_data(A):
    """
    a bound that depends on data is not an index expression
      FILE, line N
        for i in range(A[0] // 2):
                       ^
      those are sums of multiples of loop indices, sizes and integer arguments,
      //, %, << and >> of them by positive numbers, and &, | and ^ of them
      elements of integer arrays are also bounds of loops that count up: range(ptr[i], ptr[i + 1])
    """
    for i in range(A[0] // 2):
        A[i] = 0


@refused(A1)
def wrong_end(A):
    """
    here a bound is the least of index expressions: min() of them
      FILE, line N
        for i in range(max(2, A.shape[0])):
                       ^
    """
    for i in range(max(2, A.shape[0])):
        A[i] = 0


@refused(A1)
def endless(A):
    """
    a bound of more than 62 bits
      FILE, line N
        for _ in range(1, 10**30):
                          ^
      write the size of an array, A.shape[0]
    """
    for _ in range(1, 10**30):
        A[0] = 1


@refused(A1)
def set_index(A):
    """
    i is the index of a loop
      FILE, line N
        i = 2
        ^
      use another name for the result
    """
    for i in range(4):
        i = 2


@refused(A1, A1)
def swapped(A, B):
    """
    only names can be assigned together, not elements
      FILE, line N
        B[i], A[i] = A[i], B[i]
        ^
      assign one by one: t = x; a[i] = t
    """
    for i in range(4):
        B[i], A[i] = A[i], B[i]


@refused(A1)
def walrus(A):
    """
    kernels do not support assignments in expressions
      FILE, line N
        A[0] = (t := 2.0)
                ^
      write t = x on a separate line before
    """
    A[0] = (t := 2.0)


@refused(A1)
def contained(A):
    """
    kernels do not support is and in
      FILE, line N
        A[0] = 1 if A[1] in (1, 2) else 0
                    ^
      write x == a, or x == a or x == b
    """
    A[0] = 1 if A[1] in (1, 2) else 0


@refused(np.zeros((), "f4"))
def without_dimensions(n):
    """
    n has no dimensions, and no sizes
      FILE, line N
        for _ in range(n.shape[0]):
                               ^
      its one element is n[()]
    """
    for _ in range(n.shape[0]):
        n[()] = 1


@refused(A1)
def returned_array(A):
    """
    A is written in place
      FILE, line N
        return A
               ^
      kernels return numbers, or nothing
    """
    return A


@refused(A1)
def early(A):
    """
    return must be the last statement of a kernel, after its loops
      FILE, line N
        return A[i]
        ^
    """
    for i in range(4):
        return A[i]


@refused(A1)
def not_parallel(A):
    """
    last is carried from one iteration to the next, so the loop is not parallel
      FILE, line N
        for i in parallel(range(4)):
                 ^
    """
    last = 0.0
    for i in parallel(range(4)):
        A[i] = last
        last = A[i] * 2


@refused(A1)
def no_reduction(A):
    """
    nothing is reduced in this loop
      FILE, line N
        for i in reduction(range(4)):
                 ^
      write acc += x, or C[i] += x, in it
    """
    for i in reduction(range(4)):
        A[i] = 1


@refused(U1)
def too_large(A):
    """
    300 does not fit u8
      FILE, line N
        A[i] = A[i] + 300
               ^
      u8 holds 0 to 255
    """
    for i in range(4):
        A[i] = A[i] + 300


@refused(A1)
def by_zero(A):
    """
    Python itself raises here: division by zero
      FILE, line N
        A[i] = A[i] + 1 // 0
                      ^
      constants are computed while the source is read: change them, or pass them as arguments
    """
    for i in range(4):
        A[i] = A[i] + 1 // 0


@refused(A1)
def bits_of_floats(A):
    """
    shl of f32 and weak_int
      FILE, line N
        A[i] = A[i] << 1
               ^
      bit operations need integers of one signedness
    """
    for i in range(4):
        A[i] = A[i] << 1


@refused(A1)
def huge(A):
    """
    a number of more than 4096 bits is too large
      FILE, line N
        A[0] = 10**10**10
               ^
    """
    A[0] = 10**10**10


@refused(np.zeros(4, "i4"))
def negative_power(A):
    """
    Integers to negative integer powers are not allowed.
      FILE, line N
        A[i] = A[i] ** -1
               ^
      make the base a float: float(x) ** -1, or np.float64(x) ** -1
    """
    for i in range(4):
        A[i] = A[i] ** -1


@refused(np.zeros(4, "i4"))
def power_of_numpy(A):
    """
    Integers to negative integer powers are not allowed.
      FILE, line N
        A[i] = np.power(i, -2)
               ^
      make the base a float: float(x) ** -1, or np.float64(x) ** -1
    """
    for i in range(4):
        A[i] = np.power(i, -2)


@refused(A1, np.zeros(4, "f8"))
def changing(A, B):
    """
    t is f64 before the loop and f32 after an iteration
      FILE, line N
        for i in range(4):
        ^
      start with that dtype, or convert the new value
    """
    t = B[0]
    for i in range(4):
        B[i] = t
        t = A[i]


@refused(A1)
def ünïcode(A):
    """
    π is not defined
      FILE, line N
        ä, bö = 1.0, π
                     ^
    """
    ä, bö = 1.0, π


@refused(A1)
def taken(A):
    """
    i is already used; use another name for this index
      FILE, line N
        for i in range(2):
            ^
    """
    for i in range(4):
        for i in range(2):
            A[i] = 0


@pytest.mark.parametrize(("function", "arguments"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_refused(function: Any, arguments: tuple[Any, ...]) -> None:
    """The error is the docstring, and its line is the line of the file."""
    names = function.__code__.co_varnames
    with pytest.raises(KernelError) as caught:
        read_function(function).typed([argument(n, a) for n, a in zip(names, arguments, strict=False)])
    found = str(caught.value)
    number = re.search(re.escape(__file__) + r", line (\d+)\n *(.*)\n", found)
    assert number is not None
    assert Path(__file__).read_text().splitlines()[int(number[1]) - 1].strip() == number[2]
    shown = found.replace(f"{__file__}, line {number[1]}", "FILE, line N")
    assert shown == dedent(function.__doc__).strip()


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda A: A, "a lambda cannot be a kernel"),
        (eval("lambda A: A"), "no source|a lambda"),
        (type("K", (), {"f": lambda self: 0}).f, "a lambda"),
    ],
    ids=["lambda", "no source", "lambda in a class"],
)
def test_objects_without_readable_source_are_refused(function: Any, match: str) -> None:
    with pytest.raises(KernelError, match=match):
        read_function(function)


def test_functions_made_by_exec_are_refused() -> None:
    names: dict[str, Any] = {}
    exec("def f(A):\n    A[0] = 1\n", names)
    with pytest.raises(KernelError, match="f has no source to read"):
        read_function(names["f"])


def test_exec_within_a_command() -> None:
    """Python 3.13 keeps the text of `python -c`, which is not the text of a function made by exec there."""
    code = (
        "def f(A):\n    A[0] = 1\nnames = {}\nexec('def f(A):\\n    A[0] = 2\\n', names)\n"
        "from codegen.frontend.python_ast import read_function\nread_function(names['f'])\n"
    )
    child = run_python(code)
    assert "f has no source to read" in child.stderr


@pytest.mark.parametrize("thing", [1, "f", len, np.sin, None], ids=str)
def test_objects_that_are_not_functions_are_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="expected a Python function"):
        read_function(thing)


def test_star_arguments() -> None:
    def many(*A):
        pass

    with pytest.raises(KernelError, match="positional arguments only"):
        read_function(many)


def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    """The function `f` from a file with this text."""
    path = tmp_path / "some_kernels.py"
    path.write_text(text, encoding="utf-8", newline="")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "some_kernels", raising=False)
    linecache.clearcache()
    return importlib.import_module("some_kernels").f


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\x85", "\u2028"], ids=ascii)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_text_after_a_comment_mark_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, end: str
) -> None:
    """A comment ends only where Python ends lines; text after other line separators is not run."""
    lines = ["def f(A):", f"    A[0] = 2  # note{mark}    A[0] = 1", "    A[i] = 3", ""]
    f = loaded(tmp_path, monkeypatch, end.join(lines))
    with pytest.raises(KernelError, match=r"i is not defined\n.*line 3\n    A\[i\] = 3\n      \^"):
        read_function(f).typed([argument("A", A1)])
    f = loaded(tmp_path, monkeypatch, end.join([*lines[:2], ""]))
    assert len(read_function(f).typed([argument("A", A1)]).body) == 1


def test_comments_at_the_margin_do_not_end_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested functions are read wherever their comments begin, and errors show the right place."""
    text = "if True:\n    def f(A):\n# a note\n        A[0] = 2\n        A[j] = 3\n"
    f = loaded(tmp_path, monkeypatch, text)
    with pytest.raises(KernelError, match=r"line 5\n    A\[j\] = 3\n      \^"):
        read_function(f).typed([argument("A", A1)])


def test_deep_nesting_is_a_kernel_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum with many terms raises an error about the kernel, not a RecursionError."""
    path = tmp_path / "deep_kernel.py"
    path.write_text("def deep(A):\n    A[0] = A[0]" + " + A[1]" * 600 + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import deep_kernel

    sys.modules.pop("deep_kernel")
    source, limit = read_function(deep_kernel.deep), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    try:
        with pytest.raises(KernelError, match="nested too deep"):
            source.typed([argument("A", A1)])
    finally:
        sys.setrecursionlimit(limit)
