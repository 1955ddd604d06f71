"""MLIR text in the IR of kernels, and the errors about other text."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.ir.index import Affine, FloorDiv, Mod, index_symbol
from codegen.ir.nodes import ArrayArg, For, Let, ScalarArg, Store
from codegen.ir.values import Const, IndexValue, Load, Local, Op
from codegen.support.errors import KernelError
from tests.mlir.texts import VECRED, VECTOR_ADD_2D
from tilejit import mlir


def loop(text: str) -> For:
    """The loop of a text's only function."""
    (function,) = mlir.parse(text).functions
    (found,) = (node for node in function.body if isinstance(node, For))
    return found


def around(body: str, arguments: str = "%A: memref<?xf32>, %n: index") -> str:
    """A function with one loop."""
    return f"func.func @f({arguments}) {{\n  affine.for %i = 0 to %n {{\n    {body}\n  }}\n  return\n}}\n"


def test_vector_add_2d() -> None:
    program = mlir.parse(VECTOR_ADD_2D)["vector_add_2d"]
    function = program.function
    assert function.arguments == (
        ScalarArg("M", "i64"),
        ScalarArg("N", "i64"),
        *(ArrayArg(name, "f32", 2, "C") for name in "ABC"),
    )
    assert [a.sizes for a in program.allocations] == [(index_symbol("M"), index_symbol("N"))] * 3
    first, _, third, last = function.body
    inner = For(
        "i1",
        (Affine(),),
        (index_symbol("N"),),
        1,
        (Store("A", (index_symbol("i0"), index_symbol("i1")), Const(1.0, "f32")),),
        line=8,
    )
    assert first == For("i0", (Affine(),), (index_symbol("M"),), 1, (inner,), line=7)
    assert isinstance(third, For)
    names = [node.name for node in third.body[0].body if isinstance(node, Let)]  # type: ignore[union-attr]
    assert names == ["a5", "b5", "s5", "s6", "s7", "s8"]
    assert last == Let("res", Load("C", (Affine(7), Affine(42)), "f32"))
    assert function.results == (Local("res", "f32"),)


def test_vecred() -> None:
    (function,) = mlir.parse(VECRED).functions
    assert function.arguments == (ArrayArg("in_", "f32", 1, "C"),)
    node = loop(VECRED)
    assert (node.lower, node.upper, node.step, node.line) == ((Affine(),), (Affine(500),), 1, 3)
    (carried,) = node.carried
    assert (carried.start, carried.update, carried.combiner) == (
        Const(0.0, "f32"),
        Local("add", "f32"),
        "add",
    )
    assert function.results == (Local("part_sum", "f32"),)


@pytest.mark.parametrize(
    ("pretty", "subscript"),
    [
        ("%i", index_symbol("i")),
        ("2 * %i + 3", index_symbol("i") * 2 + Affine(3)),
        ("-%i + 511", Affine(511) - index_symbol("i")),
        ("%i floordiv 2", FloorDiv(index_symbol("i"), 2)),
        ("%i mod 16", Mod(index_symbol("i"), 16)),
        ("%i + symbol(%n)", index_symbol("i") + index_symbol("n")),
        ("7 floordiv 2", Affine(3)),
    ],
    ids=lambda value: str(value),
)
def test_subscripts(pretty: str, subscript: object) -> None:
    (let,) = loop(around(f"%x = affine.load %A[{pretty}] : memref<?xf32>")).body
    assert let == Let("x", Load("A", (subscript,), "f32"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("header", "lower", "upper", "step"),
    [
        ("0 to %n step 2", (Affine(),), (index_symbol("n"),), 2),
        ("-3 to 5", (Affine(-3),), (Affine(5),), 1),
        (
            "max #low(%n) to min #high(%n)[%n]",
            (Affine(1), index_symbol("n") - Affine(9)),
            (index_symbol("n") * 3, Affine(64)),
            1,
        ),
        (
            "affine_map<(d0) -> (d0 floordiv 4)>(%n) to %m",
            (FloorDiv(index_symbol("n"), 4),),
            (index_symbol("n") * 2, Affine(8)),
            1,
        ),
        ("%k to %n", (index_symbol("n") + Affine(4),), (index_symbol("n"),), 1),
    ],
)
def test_bounds(header: str, lower: object, upper: object, step: int) -> None:
    text = f"""
#low = affine_map<(d0) -> (1, d0 - 9)>
#high = affine_map<(d0)[s0] -> (d0 + 2 * s0, 64)>
func.func @f(%n: index) {{
  %m = affine.min affine_map<()[s0] -> (2 * s0, 8)>()[%n]
  %k = affine.apply affine_map<(d0) -> (d0 + 4)>(%n)
  affine.for %i = {header} {{
  }}
  return
}}"""
    node = loop(text)
    assert (node.lower, node.upper, node.step) == (lower, upper, step)


def test_indices_made_by_arith() -> None:
    """Sums, multiples and divisions of nonnegative values stay affine. Casts of arguments are symbols."""
    text = """
func.func @f(%A: memref<?xf32>, %k: i32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %m = arith.index_cast %k : i32 to index
  affine.for %i = 0 to %n {
    %q = arith.divui %i, %c4 : index
    %r = arith.remsi %i, %c4 : index
    %s = arith.muli %q, %c4 : index
    %t = arith.addi %s, %r : index
    %u = arith.subi %t, %m : index
    %x = memref.load %A[%u] : memref<?xf32>
    memref.store %x, %A[%i] : memref<?xf32>
  }
  return
}"""
    node = loop(text)
    assert node.upper == (index_symbol("A.shape[0]"),)
    load = node.body[0]
    assert isinstance(load, Let)
    assert isinstance(load.value, Load)
    assert str(load.value.subscripts[0]) == "4*(i // 4) + i % 4 - k"


def test_stores_under_affine_if() -> None:
    """They run only if all tests around them hold."""
    test = "affine.if affine_set<(d0)[s0] : (d0 - 3 >= 0, s0 - d0 == 1)>(%i)[%n] {"
    store = "affine.store %x, %A[%i] : memref<?xf32>"
    body = f"%x = arith.constant 1.0 : f32\n{test}\n{store}\n}} else {{\n{test}\n}} else {{\n{store}\n}}\n}}"
    stores = [node for node in loop(around(body)).body if isinstance(node, Store)]
    tests = {node.name: node.value for node in loop(around(body)).body if isinstance(node, Let)}
    inside, outside = (tests[store.where.name] for store in stores)  # type: ignore[union-attr]
    low, high = inside.operands  # type: ignore[union-attr]
    assert (low.name, high.name) == ("ge", "eq")
    assert low.operands[0] == IndexValue(index_symbol("i") - Affine(3))
    assert high.operands == (
        IndexValue(index_symbol("n") - index_symbol("i") - Affine(1)),
        IndexValue(Affine()),
    )
    assert outside.name == "and"  # type: ignore[union-attr]


def test_names_are_valid_in_python_and_unique() -> None:
    text = """
func.func @f(%lambda: memref<4xf32>, %0: f32) {
  affine.for %i = 0 to 4 {
    affine.store %0, %lambda[%i] : memref<4xf32>
  }
  affine.for %i = 0 to 4 {
    %a.b = affine.load %lambda[%i] : memref<4xf32>
    affine.store %a.b, %lambda[%i] : memref<4xf32>
  }
  return
}"""
    (function,) = mlir.parse(text).functions
    assert [a.name for a in function.arguments] == ["lambda_", "n"]
    first, second = function.body
    assert isinstance(first, For)
    assert isinstance(second, For)
    assert (first.index, second.index) == ("i", "i_1")
    assert all(name.isidentifier() for name in ("lambda_", second.body[0].name))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        ("arith.addf %x, %x : f32", Op("add", (Local("x", "f32"),) * 2, "f32")),
        ("arith.maxf %x, %x : f32", Op("max", (Local("x", "f32"),) * 2, "f32")),
        ("arith.maximumf %x, %x : f32", Op("max", (Local("x", "f32"),) * 2, "f32")),
        ("arith.negf %x : f32", Op("neg", (Local("x", "f32"),), "f32")),
        ("math.roundeven %x : f32", Op("rint", (Local("x", "f32"),), "f32")),
        ("math.absf %x fastmath<fast> : f32", Op("abs", (Local("x", "f32"),), "f32")),
        ("arith.truncf %x : f32 to bf16", Op("cast", (Local("x", "f32"),), "bf16")),
        ("arith.cmpf ole, %x, %x : f32", Op("le", (Local("x", "f32"),) * 2, "i1")),
        ("arith.index_cast %i : index to i32", Op("cast", (IndexValue(index_symbol("i")),), "i32")),
    ],
)
def test_operations(operation: str, value: object) -> None:
    body = loop(around(f"%x = affine.load %A[%i] : memref<?xf32>\n    %y = {operation}")).body
    assert body[1] == Let("y", value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("yielded", "combiner"),
    [
        ("%t = arith.addf %a, %x : f32", "add"),
        ("%t = arith.addf %x, %a : f32", "add"),
        ("%t = arith.subf %a, %x : f32", "add"),
        ("%t = arith.subf %x, %a : f32", ""),
        ("%t = arith.maximumf %a, %x : f32", "max"),
        ("%t = arith.addf %a, %a : f32", ""),
        ("%s = arith.addf %a, %x : f32\n    %t = arith.addf %s, %x : f32", "add"),
        ("%s = arith.mulf %a, %x : f32\n    %t = arith.addf %s, %x : f32", ""),
        ("%s = arith.addf %a, %x : f32\n    %t = arith.addf %x, %x : f32", ""),
    ],
)
def test_combiners(yielded: str, combiner: str) -> None:
    text = f"""
func.func @f(%A: memref<8xf32>, %z: f32) -> f32 {{
  %r = affine.for %i = 0 to 8 iter_args(%a = %z) -> (f32) {{
    %x = affine.load %A[%i] : memref<8xf32>
    {yielded}
    affine.yield %t : f32
  }}
  return %r : f32
}}"""
    (carried,) = loop(text).carried
    assert carried.combiner == combiner


@pytest.mark.parametrize(
    ("yielded", "combiner", "dtype"),
    [
        ("%t = arith.maxui %a, %x : i8", "max", "u8"),
        ("%t = arith.minui %x, %a : i8", "min", "u8"),
        ("%t = arith.minsi %a, %x : i8", "min", "i8"),
        ("%s = arith.maxui %a, %x : i8\n    %t = arith.maxui %s, %x : i8", "max", "u8"),
        ("%s = arith.maxui %a, %x : i8\n    %t = arith.maxsi %s, %x : i8", "", "i8"),
        ("%s = arith.maxsi %a, %x : i8\n    %t = arith.maxui %s, %x : i8", "", "i8"),
        ("%t = arith.divui %a, %x : i8", "", "i8"),
    ],
)
def test_unsigned_combiners(yielded: str, combiner: str, dtype: str) -> None:
    """Values that are combined as unsigned numbers are carried as unsigned."""
    text = f"""
func.func @f(%A: memref<8xi8>, %z: i8) -> i8 {{
  %r = affine.for %i = 0 to 8 iter_args(%a = %z) -> (i8) {{
    %x = affine.load %A[%i] : memref<8xi8>
    {yielded}
    affine.yield %t : i8
  }}
  return %r : i8
}}"""
    (function,) = mlir.parse(text).functions
    (carried,) = loop(text).carried
    assert (carried.combiner, carried.start.dtype, carried.update.dtype) == (combiner, dtype, dtype)
    assert [value.dtype for value in function.results] == ["i8"]


def test_a_nest_reduces_like_its_inner_loop() -> None:
    text = """
func.func @f(%A: memref<8x8xi32>) -> i32 {
  %z = arith.constant 0 : i32
  %r = affine.for %i = 0 to 8 iter_args(%a = %z) -> (i32) {
    %s = affine.for %j = 0 to 8 iter_args(%b = %a) -> (i32) {
      %x = affine.load %A[%i, %j] : memref<8x8xi32>
      %t = arith.xori %b, %x : i32
      affine.yield %t : i32
    }
    affine.yield %s : i32
  }
  return %r : i32
}"""
    outer = loop(text)
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert (outer.carried[0].combiner, inner.carried[0].combiner) == ("xor", "xor")
    assert outer.carried[0].update == Local("b", "i32")


ERRORS = {
    "a set of other operands": around("affine.if affine_set<(d0) : (d0 >= 0)>(%i, %n) {\n    }"),
    "a map for a set": around("affine.if affine_map<(d0) -> (d0)>(%i) {\n    }"),
    "one side that yields": around(
        "%x = affine.if affine_set<(d0) : (d0 >= 0)>(%i) -> index {\n affine.yield %i : index\n    }"
    ),
    "a tensor": around("%x = arith.constant dense<1.0> : tensor<4xf32>"),
    "data in a subscript": around(
        "%x = affine.load %B[%i] : memref<?xindex>\n    %z = arith.muli %x, %x : index\n"
        "    %y = memref.load %A[%z] : memref<?xf32>",
        "%A: memref<?xf32>, %B: memref<?xindex>, %n: index",
    ),
    "a product of indices": around("%y = affine.load %A[%i * %n] : memref<?xf32>"),
    "a rank": around("%y = affine.load %A[%i, %i] : memref<?xf32>"),
    "a step": "func.func @f() {\n  affine.for %i = 0 to 4 step 0 {\n  }\n  return\n}\n",
    "several bounds": (
        "func.func @f(%n: index) {\n"
        "  affine.for %i = 0 to affine_map<(d0) -> (d0, 4)>(%n) {\n  }\n  return\n}\n"
    ),
    "an unknown name": around("%y = affine.load %Z[%i] : memref<?xf32>"),
    "an unknown operation": around("%y = arith.frobnicate %i : index"),
    "an allocation by an index": around("%y = memref.alloc(%i) : memref<?xf32>"),
    "a call": around("func.call @g() : () -> ()"),
    "a dimension": around("%c = arith.constant 3 : index\n    %y = memref.dim %A, %c : memref<?xf32>"),
    "an 80-bit float": "func.func @f(%x: f80) {\n  return\n}\n",
    "an end": "func.func @f(",
    "nothing": "",
    "a sign that begins nothing": "\0" + VECRED,
    "a string": 'func.func @f() attributes {a = "' + "a" * 100 + "} {\n  return\n}\n",
    "no MLIR": "for i in range(4):\n    pass\n",
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_show_the_place(name: str) -> None:
    """The cause, the line with a caret, and a suggestion."""
    with pytest.raises(KernelError) as caught:
        mlir.parse(ERRORS[name])
    cause, line, caret, fix = str(caught.value).split("\n")
    assert cause
    assert line.startswith("  line ")
    assert caret.strip() == "^"
    assert fix.startswith("  ")
    assert len(caret) <= len(line) + 1


def test_a_complete_error() -> None:
    with pytest.raises(KernelError) as caught:
        mlir.parse(ERRORS["data in a subscript"])
    assert str(caught.value) == (
        "%z is not an affine index: it depends on data, or on more than sums and multiples\n"
        "  line 5: %y = memref.load %A[%z] : memref<?xf32>\n"
        "          ^\n"
        "  compute subscripts, sizes and bounds from loop indices, sizes and index arguments"
    )


def test_functions_by_name() -> None:
    module = mlir.parse(VECTOR_ADD_2D + VECRED)
    assert [f.name for f in module.functions] == ["vector_add_2d", "vecred"]
    assert module["@vecred"].name == "vecred"
    with pytest.raises(KernelError, match="no function 'nothing'"):
        module["nothing"]
    with pytest.raises(TypeError, match="expected the name of a function, got list"):
        mlir.run(VECRED, [1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "head", ["module {", "builtin.module {", "module @all {", "module attributes {a = 1 : i32} {"]
)
def test_functions_inside_a_module(head: str) -> None:
    """As mlir-opt prints them. Errors still show the right line."""
    module = mlir.parse(f"{head}\n{VECRED}{VECTOR_ADD_2D}}}\n")
    assert [f.name for f in module.functions] == ["vecred", "vector_add_2d"]
    bare = mlir.parse(f"\n{VECRED}{VECTOR_ADD_2D}")
    assert module.functions == bare.functions
    with pytest.raises(KernelError, match=r"math\.cosine is not supported\n  line 6: "):
        mlir.parse(f"{head}\n{VECRED}}}\n".replace("math.cos", "math.cosine"))


def test_only_text_is_accepted() -> None:
    with pytest.raises(TypeError, match="got bytes"):
        mlir.parse(b"")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**63 - 1, 2**64, 2**64 - 1, 10**30, 10**4000], ids=int.bit_length)
def test_long_loops(number: int) -> None:
    """Loops may run as often as 64 bits can count. Larger bounds are refused."""
    text = around("%x = affine.load %A[%i] : memref<?xf32>\n    affine.store %x, %A[%i] : memref<?xf32>")
    text = text.replace("= 0 to %n", f"= 0 to {number}")
    if number < 2**64:
        assert str(number) in mlir.super_vectorize(text, virtual_vector_size=4)
        return
    with pytest.raises(KernelError, match="too large for an index"):
        mlir.super_vectorize(text, virtual_vector_size=4)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("%c{next} = arith.muli %c{k}, %c{k} : index", "not an affine index"),
        ("%c{next} = affine.apply affine_map<(d0) -> (d0 * 4294967296)>(%c{k})", "too large for an index"),
        ("%c{next} = affine.apply affine_map<(d0) -> ((d0 + d0) mod 7 + d0)>(%c{k})", "128 divisions"),
        ("%c{next} = affine.apply affine_map<(d0) -> ((d0 floordiv 3) * 5 + d0)>(%c{k})", "128 divisions"),
    ],
    ids=["squares", "multiples", "remainders", "quotients"],
)
def test_exponentially_growing_indices_are_refused(line: str, cause: str) -> None:
    """Each line doubles the previous one: forty lines would take more memory than there is."""
    start = "%c0 = " + (
        "arith.constant 3 : index" if "muli" in line else "affine.apply affine_map<(d0) -> (d0)>(%i)"
    )
    lines = [line.format(next=k + 1, k=k) for k in range(40)]
    body = "\n    ".join([start, *lines, "%x = affine.load %A[%c40] : memref<?xf32>"])
    with pytest.raises(KernelError, match=cause):
        mlir.parse(around(body))


def nested(depth: int) -> str:
    """Nested loops, with one sum of all their indices."""
    indices = [f"%i{k}" for k in range(depth)]
    return "\n".join(
        [
            "func.func @f(%A: memref<?xf32>, %n: index) {",
            *(f"affine.for {i} = 0 to %n {{" for i in indices),
            f"%x = affine.load %A[{' + '.join(indices)}] : memref<?xf32>",
            "affine.store %x, %A[%i0] : memref<?xf32>",
            *"}" * depth,
            "return\n}",
        ]
    )


def test_nested_loops() -> None:
    assert mlir.super_vectorize(nested(8), virtual_vector_size=4).count("affine.for") == 8
    with pytest.raises(KernelError, match=r"more than 8 loops are nested\n.*%i8 = 0 to %n"):
        mlir.parse(nested(9))


def test_too_deep_nesting_is_an_error() -> None:
    deep = "(" * 20000
    with pytest.raises(KernelError):
        mlir.parse(around(f"%y = affine.load %A[{deep}%i] : memref<?xf32>"))


SIGNS = ("", "", *'{}()[]%#:\0é"', "->", "affine.for", "memref<", "0", "-1")


def damaged(rng: random.Random) -> str:
    """A text with one to three places cut out or replaced by a punctuation mark."""
    text = rng.choice((VECTOR_ADD_2D, VECRED))
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(text)), rng.choice((0, 1, 1, 4, 40))
        text = text[:at] + rng.choice(SIGNS) + text[at + length :]
    return text


def refusal(text: str) -> str:
    """The error about a text that cannot be read, or "" if it can."""
    try:
        mlir.parse(text)
    except KernelError as error:
        return str(error)
    return ""


def test_any_text_is_read_or_refused(seed: int) -> None:
    """Damaged texts give functions or a KernelError with a place, nothing else."""
    rng = random.Random(seed)
    said = [refusal(damaged(rng)) for _ in range(300)]
    assert 0 < said.count("") < 300
    assert all(text.count("\n") == 3 for text in said if text)
