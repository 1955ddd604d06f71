"""Only integers from a text reach generated source: not the names in it, nor the names of functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.frontend.python_ast import read_function
from codegen.ir.nodes import ArrayArg, Function
from codegen.pipeline.loops import in_tiles, loops_source
from codegen.runtime.loop_kernel import LoopsSource
from codegen.simd.routines import bound_routines
from tilejit.copies.convert import program_of_pack

HOSTILE = (
    *("__import__", "os", "eval", "exec", "lambda", "def", "import", "None", "True", "raise", "print"),
    *("operands", "scratch", "addresses_2", "results"),
    *("src", "dst", "sizes", "begin", "end", "range", "min", "int64_at", "opaque", "copy_part", "__class__"),
    *("load_f32x16", "stream_fence", "call_kernel", "answered", "self", "builtins", "globals"),
)
PARTS = (
    ast.Module,
    ast.FunctionDef,
    ast.arguments,
    ast.arg,
    ast.Expr,
    ast.Constant,
    ast.Assign,
    ast.AugAssign,
)
FLOW = (ast.For, ast.If, ast.IfExp, ast.While, ast.Pass, ast.Return, ast.Break, ast.Continue)
VALUES = (ast.Name, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Tuple, ast.expr_context)
SIGNS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
BUILTINS = {"range", "min", "max", "abs", "len", "int", "float", "bool"}
"""The Python builtins that kernels call."""


def emitted(function: Function) -> LoopsSource:
    return loops_source(in_tiles(function, ()), (), 64)


def check_source(source: str) -> set[str]:
    """One function with a docstring, made of loops, numbers, known calls and its own names."""
    tree = ast.parse(source)
    *words, function = tree.body
    assert isinstance(function, ast.FunctionDef)
    if not words:  # the docstring is inside the function
        words = [function.body.pop(0)]
    (text,) = words
    assert isinstance(text, ast.Expr)
    assert isinstance(text.value, ast.Constant)
    assert not function.decorator_list
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    known = bound_routines({node.id for node in names})
    own = {a.arg for a in function.args.args} | {n.id for n in names if isinstance(n.ctx, ast.Store)}
    called = {
        n.func.id for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert called <= BUILTINS | set(known), f"unknown calls: {called - BUILTINS - set(known)}"
    assert not own & called, f"names that are called as well: {own & called}"
    read_ = {n.id for n in names if isinstance(n.ctx, ast.Load)} - called
    assert read_ <= own | set(known) | {"inf", "nan"}, f"names from nowhere: {read_ - own}"
    for node in ast.walk(function):
        assert isinstance(node, PARTS + FLOW + VALUES + SIGNS), f"a kernel has a {type(node).__name__}"
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int | float), f"a kernel has the constant {node.value!r}"
    return own


def sources(obj: Any, dims: tuple[int, ...], dtype: str = "float32", **parameters: Any) -> list[str]:
    array = np.zeros(dims, dtype)
    spec = tj.as_layout(obj, dims=dims, dtype=array.dtype, **parameters)
    return [kernel.source for kernel in program_of_pack(array, spec).kernels]


def patterns() -> Iterator[tuple[str, str]]:
    """The same pattern with hostile names and with harmless ones."""
    for k in range(0, len(HOSTILE), 4):
        m, n, o, p = (HOSTILE * 2)[k : k + 4]
        yield f"({m} {n}) ({o} {p}) -> {m} {o} {n} {p}, {n}=8, {p}=16", "(a b) (c d) -> a c b d, b=8, d=16"


@pytest.mark.parametrize(("hostile", "harmless"), list(patterns()))
def test_axes_of_patterns(hostile: str, harmless: str) -> None:
    made = sources(hostile, (33, 100))
    assert made == sources(harmless, (33, 100))
    for source in made:
        check_source(source)


@pytest.mark.parametrize("name", ["import-os", "eval.exec", "x__import__", "lambda", "os.system", "None"])
def test_names_of_formats(name: str) -> None:
    def function(dtype: Any, dims: Any, *, exec: int = 8) -> str:
        return f"(sizes eval) src -> sizes src eval, eval={exec}"

    function.__name__, function.__doc__ = 'x"""\nimport os\n"""', '"""\nimport os'
    tj.register_format(name, function)
    for source in sources(name, (33, 100), exec=16):
        check_source(source)
    assert sources(name, (33, 100), exec=16) == sources("{1,0:T(16,1)}", (33, 100))


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ('/* """ */{1,0:T(8,128)}// import os\n', "{1,0:T(8,128)}"),
        ("{1,0:T(8,128)#(u32)*(u64)S(5)}", "{1,0:T(8,128)}"),
        ("f32[33,/*\n\nimport os\n*/100]{1,0:T(*,7)}", "f32[33,100]{1,0:T(*,7)}"),
    ],
)
def test_comments_and_other_text_of_layouts(text: str, harmless: str) -> None:
    made = sources(text, (33, 100))
    assert made == sources(harmless, (33, 100))
    for source in made:
        check_source(source)


@pytest.mark.parametrize("layout", ["tpu", "morton", "{0,1:T(*,7,2)}", "Sw<2,3,3> o 0 o (64,64):(64,1)"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_check_accepts_kernels_of_many_kinds(layout: str, dtype: str) -> None:
    """The check itself holds for them."""
    for source in sources(layout, (64, 64), dtype):
        check_source(source)


INJECTED = 'a"""\nimport os\nos.abort()\n"""'
NAMES = (INJECTED, "'''\\", '"', "\\", "a\nb", "\0", "é" * 300, "<lambda>", "", "a" * 10_000, "\ud800")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_of_functions(name: str) -> None:
    """A function's name is any text: it must not end the docstring."""

    def add(a, b):  # type: ignore[no-untyped-def]
        for i in range(a.shape[0]):
            a[i] = a[i] + b[i]

    arrays = [ArrayArg("a", "f32", 1, "C"), ArrayArg("b", "f32", 1, "C")]
    typed = read_function(add).typed(arrays)
    made = emitted(Function(name, typed.arguments, typed.body, typed.results))
    assert made.name.isidentifier()
    assert len(made.name) < 120
    made.source.encode()
    check_source(made.source)


def loops_over(names: tuple[str, ...]) -> Callable[..., None]:
    """A function whose arguments and index have these names."""
    a, b, i = names
    namespace: dict[str, Any] = {}
    text = (
        f"def f({a}, {b}):\n    for {i} in range({a}.shape[0]):\n        {a}[{i}] = {a}[{i}] * 2 + {b}[{i}]\n"
    )
    import linecache

    file = f"<hostile {a} {b} {i}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), namespace)
    function: Callable[..., None] = namespace["f"]
    return function


IDENTIFIERS = tuple(
    n for n in HOSTILE if n.isidentifier() and n not in ("lambda", "def", "import", "None", "True")
)


@pytest.mark.parametrize("k", range(0, len(IDENTIFIERS) - 2))
def test_names_of_arguments(k: int) -> None:
    """Builtins, routines and the kernel's own arguments: names that would hide something are changed."""
    names = tuple(n for n in IDENTIFIERS[k : k + 3] if n not in ("range", "raise"))
    a, b, i = (*names, "x", "y", "z")[:3]
    function = loops_over((a, b, i))
    arrays = [ArrayArg(a, "f32", 1, "C"), ArrayArg(b, "f32", 1, "C")]
    made = emitted(read_function(function).typed(arrays))
    own = check_source(made.source)
    assert not own & BUILTINS


MLIR = """func.func @{name}(%{a}: memref<?xf32>, %{n}: index) {{
  affine.for %{i} = 0 to %{n} {{
    %{v} = affine.load %{a}[%{i}] : memref<?xf32>
    affine.store %{v}, %{a}[%{i}] : memref<?xf32>
  }}
  return
}}
"""


@pytest.mark.parametrize(
    "name", ['"a\\22\\22\\22\\0Aimport os\\0A\\22\\22\\22"', '"\\5C"', '"two words"', "x.$", "eval"]
)
def test_names_of_mlir(name: str) -> None:
    pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)
    from tilejit import mlir
    from tilejit.mlir.printing import format_program

    for a, n, i, v in (
        ("__import__", "os", "eval", "exec"),
        ("sizes", "begin", "end", "src"),
        ("a$.-b", "0", "1", "2"),
    ):
        text = MLIR.format(name=name, a=a, n=n, i=i, v=v)
        (program,) = mlir.parse(text).programs
        check_source(emitted(program.function).source)
        printed = format_program(program)
        assert [p.name for p in mlir.parse(printed).programs] == [program.name], "what is printed reads back"
