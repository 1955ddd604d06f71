"""The printed form: goldens, text that mlir-opt accepts, and the same structure as MLIR's own pass."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from shutil import which
from subprocess import run
from types import SimpleNamespace
from typing import Any

import pytest

from codegen.ir.building import compare, index_of, least, let, quotient, times
from codegen.ir.building import plus as build_plus
from codegen.ir.building import rest as build_rest
from codegen.ir.index import Affine, index_symbol
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import (
    Alloc,
    ArrayArg,
    BufferArg,
    Call,
    Carried,
    Function,
    If,
    Let,
    Prefetch,
    ScalarArg,
    Store,
    View,
)
from codegen.ir.print_index import SsaNames
from codegen.ir.printer import FunctionPrinter, format_function
from codegen.ir.values import Const, Each, Entries, Load, Op
from codegen.pipeline.loops import vectorize_function
from tests.codegen.ir.nests import (
    add,
    function,
    i,
    j,
    load,
    local,
    loop,
    number,
    op,
    over_m,
    over_n,
    plus,
    store,
)
from tests.codegen.ir.printed import check_names
from tests.codegen.passes.table import ROWS, Row

MLIR = which("mlir-opt-16")
needs_mlir = pytest.mark.skipif(MLIR is None, reason="mlir-opt-16 (Debian's mlir-16-tools) is not installed")

ADD_2D = """\
func.func @kernel(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) {
  %cst = arith.constant 0.0 : f32
  %cst_0 = arith.constant dense<1.0> : vector<32x256xf32>
  affine.for %i = 0 to %n step 32 {
    affine.for %j = 0 to %m step 256 {
      %0 = vector.transfer_read %A[%i, %j], %cst : memref<?x?xf32>, vector<32x256xf32>
      %1 = vector.transfer_read %B[%j, %i], %cst {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : \
memref<?x?xf32>, vector<32x256xf32>
      %2 = arith.addf %0, %1 : vector<32x256xf32>
      %3 = arith.addf %2, %cst_0 : vector<32x256xf32>
      %4 = affine.apply affine_map<(d0, d1) -> (-d0 + d1)>(%i, %n)
      %5 = affine.apply affine_map<(d0, d1) -> (-d0 + d1)>(%j, %m)
      %6 = vector.create_mask %4, %5 : vector<32x256xi1>
      vector.transfer_write %3, %C[%i, %j], %6 : vector<32x256xf32>, memref<?x?xf32>
    }
  }
  return
}
"""

VECRED = """\
func.func @kernel(%A: memref<?xf32>) -> f32 {
  %cst = arith.constant dense<-0.0> : vector<128xf32>
  %cst_0 = arith.constant 0.0 : f32
  %s.lanes_0 = affine.for %i = 0 to 500 step 128 iter_args(%s.lanes = %cst) -> (vector<128xf32>) {
    %0 = affine.apply affine_map<(d0) -> (-d0 + 500)>(%i)
    %1 = vector.create_mask %0 : vector<128xi1>
    %2 = vector.transfer_read %A[%i], %cst_0 : memref<?xf32>, vector<128xf32>
    %3 = math.cos %2 : vector<128xf32>
    %4 = arith.addf %s.lanes, %3 : vector<128xf32>
    %5 = arith.select %1, %4, %s.lanes : vector<128xi1>, vector<128xf32>
    affine.yield %5 : vector<128xf32>
  }
  %6 = vector.reduction <add>, %s.lanes_0, %cst_0 : vector<128xf32> into f32
  return %6 : f32
}
"""

SCALAR = """\
func.func @kernel(%A: memref<?xi32>, %C: memref<?xf32>) {
  affine.for %minus_i = -9 to 1 step 2 {
    %i = affine.apply affine_map<(d0) -> (-d0)>(%minus_i)
    %0 = affine.load %A[%i * 2 - 3] : memref<?xi32>
    %1 = arith.sitofp %0 : i32 to f32
    affine.store %1, %C[%i] : memref<?xf32>
  }
  return
}
"""


LOWERED = """\
func.func @kernel(%src: memref<?xi8>, %dst: memref<?xi1>, %table: memref<?xi64>, \
%pitch: index, %begin: index, %end: index) {
  %c4 = arith.constant 4 : index
  %cst = arith.constant 1 : i64
  %held = memref.alloca() {alignment = 64, bytes = 256} : memref<?xi8>
  %panel = memref.alloc() {alignment = 64, bytes = %pitch} : memref<?xi8>
  affine.for %i = %begin to %end step 4 {
    %out = memref.subview %dst[%i * %pitch] {opaque} : memref<?xi1> to memref<?xi8>
    %0 = affine.load %table[%i] : memref<?xi64>
    %1 = arith.index_cast %0 : i64 to index
    %2 = arith.cmpi slt, %1, %c4 : index
    %3 = arith.cmpi slt, %0, %cst : i64
    %4 = arith.andi %2, %3 : i1
    %at_1:2 = scf.if %4 -> (memref<?xi8>, index) {
      %count = affine.min affine_map<(d0, d1) -> (d1, d0 + 1)>(%1, %pitch)
      %at = memref.subview %src[%i] : memref<?xi8>
      scf.yield %at, %count : memref<?xi8>, index
    } else {
      %count_0 = affine.apply affine_map<(d0, d1) -> (d0 floordiv d1)>(%i, %pitch)
      %at_0 = memref.subview %held[0] : memref<?xi8>
      scf.yield %at_0, %count_0 : memref<?xi8>, index
    }
    memref.prefetch %at_1#0[64] {steps = [each %pitch, 1]} : memref<?xi8>, vector<4x16xi8>
    %5 = vector.transfer_read %at_1#0[0] {steps = [low %table[%i + 1], 1], first = %at_1#1} : \
memref<?xi8>, vector<4x16xi8>
    %6 = vector.transpose %5, [1, 0] : vector<4x16xi8> to vector<16x4xi8>
    vector.transfer_write %6, %out[%i * 4 + 8] {steps = [%pitch * 2, 1], nontemporal} : memref<?xi8>, \
vector<16x4xi8>
    %7 = memref.extract_aligned_pointer_as_index %out : memref<?xi8> -> index
    %8 = affine.apply affine_map<(d0) -> ((d0) mod 64)>(%7)
    func.call @copy_part(%out, %at_1#0, %8) : (memref<?xi8>, memref<?xi8>, index) -> ()
  }
  func.call @stream_fence() : () -> ()
  return
}
"""


def lowered() -> Function:
    """A function with every kind of statement that copies and steps have."""
    entry, block = Load("table", (i,), "i64"), Load("at", (Affine(64),), "bits8", (4, 16), (0, 0))
    rows = replace(
        block, subscripts=(), steps=(Entries("table", plus(i, 1), "low"), 1), first=index_of("count")
    )
    value = Op("transposed", (rows,), "bits8", (16, 4))
    tests = compare("entry", "lt", 4), op("lt", local("entry", "i64"), number(1, "i64"), dtype="i1")
    body = (
        View("out", "dst", times("i", "pitch"), opaque=True, unit_bits=8),
        Let("entry", entry),
        If(
            tests,
            (let("count", least("pitch", build_plus("entry", 1))), View("at", "src", i)),
            (let("count", quotient("i", "pitch")), View("at", "held", Affine())),
        ),
        Prefetch(replace(block, steps=(Each("pitch"), 1))),
        Store("out", (i * 4, Affine(8)), value, steps=(index_symbol("pitch") * 2, 1), streamed=True),
        Call("copy_part", ("out", "at", build_rest("out", 64))),
    )
    shared = loop("i", index_symbol(BEGIN), index_symbol(END), *body, step=4)
    arguments = ArrayArg("table", "i64", 1, "C"), ScalarArg("pitch", "i64")
    buffers = BufferArg("src"), BufferArg("dst", 1)
    statements = Alloc("held", 256), Alloc("panel", "pitch", "scratch"), shared, Call("stream_fence")
    return Function("kernel", arguments, statements, buffers=buffers)


def test_lowered_copies_print_every_node() -> None:
    assert format_function(lowered()) == LOWERED
    check_names(LOWERED)


def test_unknown_nodes_are_refused() -> None:
    unknown: Any = Load("A", (i,), "f32")
    with pytest.raises(AssertionError, match="no rule for Load"):
        format_function(Function("kernel", (), (unknown,)))
    unknown = SimpleNamespace(dtype="f32", shape=())
    with pytest.raises(AssertionError, match="no rule for SimpleNamespace"):
        FunctionPrinter(lowered()).value(unknown, SsaNames({}, {}, {}, {}))


def test_the_seeds_sum_with_one_side_transposed() -> None:
    value = add(add(load("A", i, j), load("B", j, i)), number(1))
    kernel = function(over_n("i", over_m("j", store("C", (i, j), value))))
    assert format_function(vectorize_function(kernel, (32, 256)).function) == ADD_2D


def test_the_seeds_reduction() -> None:
    carried = Carried("s", number(0), add(local("s"), op("cos", load("A", i))), "add")
    kernel = function(loop("i", 0, 500, carried=[carried]), results=[local("s")])
    assert format_function(vectorize_function(kernel, (128,), reductions=True).function) == VECRED


def test_a_scalar_loop_that_counts_down() -> None:
    value = op("cast", load("A", plus(i * 2, -3), dtype="i32"), dtype="f32")
    kernel = function(loop("i", 9, -1, store("C", (i,), value), step=-2))
    assert format_function(kernel) == SCALAR


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1, "f32", "1.0 : f32"),
        (1e-05, "f64", "1.0e-05 : f64"),
        (float("inf"), "f32", "0x7F800000 : f32"),
        (float("-inf"), "bf16", "0xFF80 : bf16"),
        (float("nan"), "f16", "0x7E00 : f16"),
        (float("inf"), "f64", "0x7FF0000000000000 : f64"),
        (255, "u8", "255 : i8"),
        (True, "i1", "true"),
    ],
)
def test_numbers(value: float, dtype: str, text: str) -> None:
    kernel = Function("kernel", (), (), (Const(value, dtype),))
    assert f"arith.constant {text}\n" in format_function(kernel)


def forms(row: Row) -> tuple[Function, Function]:
    return row.kernel, vectorize_function(row.kernel, row.sizes, **row.options).function  # type: ignore[arg-type]


def module(kernels: list[Function]) -> str:
    """Kernels with the names f0, f1, …"""
    texts = (format_function(kernel) for kernel in kernels)
    return "".join(text.replace("@kernel", f"@f{number}", 1) for number, text in enumerate(texts))


def mlir_opt(text: str, *options: str) -> str:
    assert MLIR is not None
    command = [MLIR, "-allow-unregistered-dialect", "-mlir-print-local-scope", *options]
    done = run(command, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


@needs_mlir
@pytest.mark.parametrize("form", [0, 1], ids=["scalar", "super-vectors"])
def test_mlir_accepts_the_printed_form(form: int) -> None:
    mlir_opt(module([forms(row)[form] for row in ROWS]))


STRUCTURE = re.compile(
    r"affine\.for (?P<bounds>.*) \{$|vector\.transfer_(?P<transfer>read|write)(?P<rest>.*)"
    r"|vector\.reduction <(?P<reduction>\w+)>|arith\.select .* : (?P<select>vector<\d+xi1>)",
    re.MULTILINE,
)


def structure(text: str) -> list[list[tuple[str, ...]]]:
    """For each function the steps of loops, transfers with maps and shapes, masks, and reductions."""
    functions = []
    for function_text in text.split("func.func")[1:]:
        functions.append([_part(part) for part in STRUCTURE.finditer(function_text)])
    return functions


def _part(part: re.Match[str]) -> tuple[str, ...]:
    if part["bounds"] is not None:
        step = re.search(r" step (\d+)", part["bounds"])
        return ("for", step[1] if step else "1")
    if part["transfer"]:
        walk = re.search(r"permutation_map = (affine_map<.*?>)[,}]", part["rest"])
        return (
            part["transfer"],
            walk[1] if walk else "",
            *re.findall(r"vector<[0-9x]+x[fi]\d+>", part["rest"]),
        )
    return ("reduce", part["reduction"]) if part["reduction"] else ("select", part["select"])


CRASHES = {
    "triangle in 2-D",
    "A[32*i + j] in 2-D",
    "two sizes",
    "sums of rows in memory, 2-D",
    "one iteration, one element",
}
"""Rows for which MLIR fails an assertion, makes IR that does not verify, or refuses the options."""
DIFFERENT = {
    "a size of one lane goes": "a dimension of one lane is omitted here",
    "one lane": "a dimension of one lane is omitted here",
    "A[i // 2]": "wrong there",
    "A[i % 16]": "wrong there",
    "C[i // 2]": "wrong there",
    "C[i % 7] +=": "wrong there",
    "A[j // 2] along j": "wrong there",
    "A[i // 3]": "wrong there",
    "A[(i + 6) // 2] downwards": "wrong there",
    "A[i // 2, j % 4], 2-D": "wrong there",
    "A[j // 2, i] in blocks": "wrong there",
    "sum of A[i % 16]": "wrong there",
    "walks columns only": "a loop of one iteration is not worth eight lanes",
    "one iteration": "a loop of one iteration is not worth lanes",
    "no iteration": "no mask is wanted where there are no iterations",
    "scan, of each row": "MLIR has no scans, and takes the outer loop",
    "all of two dimensions, along the outer": "the outer loop is the contiguous one",
}


def options(row: Row) -> str:
    fastest = row.options.get("fastest_varying")
    given = [f"virtual-vector-size={','.join(map(str, row.sizes))}"]
    if isinstance(fastest, tuple):
        given.append(f"test-fastest-varying={','.join(map(str, fastest))}")
    if row.options.get("reductions"):
        given.append("vectorize-reductions=true")
    return f"-affine-super-vectorize={' '.join(given)}"


@pytest.mark.full
@needs_mlir
def test_the_structure_is_that_of_mlirs_own_pass() -> None:
    """Wherever MLIR vectorizes correctly, loops, transfers, maps and masks are the same."""
    compared = 0
    rows = sorted((row for row in ROWS if row.name not in CRASHES), key=options)
    for asked, group in groupby(rows, key=options):
        members = list(group)
        theirs = structure(mlir_opt(module([forms(row)[0] for row in members]), asked))
        ours = structure(mlir_opt(module([forms(row)[1] for row in members])))
        assert len(theirs) == len(ours) == len(members)
        for row, there, here in zip(members, theirs, ours, strict=True):
            vectorized_there = any(part[0] in ("read", "write", "reduce") for part in there)
            if vectorized_there and row.name not in DIFFERENT:
                compared += 1
                assert here == there, row.name
    assert compared >= 50
