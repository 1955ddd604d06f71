"""Vector operations that make no sense: each raises an error with its line and a caret."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

import tilejit as tj
from tests.mlir.opt_texts import OPT
from tests.mlir.seed_texts import ADD_BY_32X256, ADD_BY_256, VECRED_BY_128
from tests.mlir.test_vectors import function
from tilejit import mlir

READ = "%x = vector.transfer_read %A[%n], %z"
HEAD = """  %z = arith.constant 1.0 : f32
  %k = arith.constant 3 : i32
  %p = arith.constant true
  %v = arith.constant dense<1.0> : vector<8xf32>
  %w = arith.constant dense<1> : vector<8xi32>
  %m = vector.create_mask %n : vector<8xi1>
"""


def own_read(
    operands: str = "%A, %m, %n",
    kinds: str = "memref<?xf32>, vector<8xi1>, index",
    *,
    lists: str = "dims = [0], steps = [1]",
    result: str = "vector<8xf32>",
) -> str:
    """TileJIT's own read operation, which is valid with the defaults."""
    return f'%x = "tilejit.transfer_read"({operands}) {{{lists}}} : ({kinds}) -> {result}'


HOSTILE = {
    "a padding of another type": "%x = vector.transfer_read %A[%n], %k : memref<?xf32>, vector<8xf32>",
    "elements of another type": f"{READ} : memref<?xf32>, vector<8xi32>",
    "a memref of another type": f"{READ} : memref<?xf64>, vector<8xf64>",
    "no vector": f"{READ} : memref<?xf32>, f32",
    "no memref": f"{READ} : f32, vector<8xf32>",
    "a tensor": f"{READ} : tensor<?xf32>, vector<8xf32>",
    "two subscripts": "%x = vector.transfer_read %A[%n, %n], %z : memref<?xf32>, vector<8xf32>",
    "no subscripts": "%x = vector.transfer_read %A[], %z : memref<?xf32>, vector<8xf32>",
    "a subscript that is a number": "%x = vector.transfer_read %A[%k], %z : memref<?xf32>, vector<8xf32>",
    "more dimensions than the memref": f"{READ} : memref<?xf32>, vector<2x8xf32>",
    "no lanes": f"{READ} : memref<?xf32>, vector<0xf32>",
    "a vector without dimensions": f"{READ} : memref<?xf32>, vector<f32>",
    "lanes of no number": f"{READ} : memref<?xf32>, vector<[8]xf32>",
    "lanes that fill the memory": f"{READ} : memref<?xf32>, vector<1073741824xf32>",
    "lanes that fill no memory": f"{READ} : memref<?xf32>, vector<{10**30}xf32>",
    "a constant that fills the memory": "%x = arith.constant dense<1.0> : vector<1000000000000xf32>",
    "a tensor that fills the memory": "%x = arith.constant dense<1> : tensor<1000000x1000000xi1>",
    "negative lanes": f"{READ} : memref<?xf32>, vector<-8xf32>",
    "a mask of other lanes": f"{READ}, %m : memref<?xf32>, vector<4xf32>",
    "a mask of numbers": f"{READ}, %w : memref<?xf32>, vector<8xf32>",
    "a mask of one bit": f"{READ}, %p : memref<?xf32>, vector<8xf32>",
    "a map of other dimensions": f"{READ} {{permutation_map = affine_map<(d0, d1) -> (d1)>}} "
    ": memref<?xf32>, vector<8xf32>",
    "a map of multiples": f"{READ} {{permutation_map = affine_map<(d0) -> (2 * d0)>}} "
    ": memref<?xf32>, vector<8xf32>",
    "a map to a number": f"{READ} {{permutation_map = affine_map<(d0) -> (1)>}} "
    ": memref<?xf32>, vector<8xf32>",
    "a map with a symbol": f"{READ} {{permutation_map = affine_map<(d0)[s0] -> (s0)>}} "
    ": memref<?xf32>, vector<8xf32>",
    "a map that repeats a dimension": f"{READ} {{permutation_map = affine_map<(d0) -> (d0, d0)>}} "
    ": memref<?xf32>, vector<8x8xf32>",
    "a map that is no map": f"{READ} {{permutation_map = 3 : i64}} : memref<?xf32>, vector<8xf32>",
    "promises of two dimensions": f"{READ} {{in_bounds = [true, true]}} : memref<?xf32>, vector<8xf32>",
    "a promise that is no list": f"{READ} {{in_bounds = true}} : memref<?xf32>, vector<8xf32>",
    "a promise that is a word": f'{READ} {{in_bounds = ["yes"]}} : memref<?xf32>, vector<8xf32>',
    "a write along a repeated dimension": "vector.transfer_write %v, %A[%n] "
    "{permutation_map = affine_map<(d0) -> (0)>} : vector<8xf32>, memref<?xf32>",
    "a write of numbers": "vector.transfer_write %w, %A[%n] : vector<8xi32>, memref<?xf32>",
    "a mask of two numbers": "%x = vector.create_mask %n, %n : vector<8xi1>",
    "a mask of floats": "%x = vector.create_mask %n : vector<8xf32>",
    "a mask of negative lanes": "%x = vector.constant_mask [-1] : vector<8xi1>",
    "a mask of too many lanes": "%x = vector.constant_mask [9] : vector<8xi1>",
    "other sums": "%x = vector.reduction <sum>, %v : vector<8xf32> into f32",
    "a sum of signed floats": "%x = vector.reduction <minsi>, %v : vector<8xf32> into f32",
    "a sum of another type": "%x = vector.reduction <add>, %v : vector<8xf32> into f64",
    "shapes that differ": "%a = arith.constant dense<1.0> : vector<4xf32>\n"
    "  %x = arith.addf %v, %a : vector<8xf32>",
    "a number and a vector": "%x = arith.addf %v, %z : vector<8xf32>",
    "floats as integers": "%x = arith.addi %v, %v : vector<8xf32>",
    "a comparison of floats as integers": "%x = arith.cmpi slt, %v, %v : vector<8xf32>",
    "a choice by numbers": "%x = arith.select %w, %v, %v : vector<8xi32>, vector<8xf32>",
    "a choice of lanes by fewer": "%a = vector.create_mask %n : vector<4xi1>\n"
    "  %x = arith.select %a, %v, %v : vector<4xi1>, vector<8xf32>",
    "a broadcast to fewer": "%x = vector.broadcast %v : vector<8xf32> to vector<4xf32>",
    "a broadcast of another type": "%x = vector.broadcast %k : i32 to vector<4xf32>",
    "a broadcast to a number": "%x = vector.broadcast %z : f32 to f32",
    "a shape of other lanes": "%x = vector.shape_cast %v : vector<8xf32> to vector<2x4xf32>",
    "an order of other dimensions": "%x = vector.transpose %v, [1] : vector<8xf32> to vector<8xf32>",
    "a constant of other lanes": "%x = arith.constant dense<[1.0, 2.0]> : vector<8xf32>",
    "a constant that is a number": "%x = arith.constant 1.0 : vector<8xf32>",
    "steps of floats": "%x = vector.step : vector<8xf32>",
    "a cast to fewer dimensions": "%x = memref.cast %A : memref<?xf32> to memref<?x?xf32>",
    "a cast to another type": "%x = memref.cast %A : memref<?xf32> to memref<?xi32>",
    "an operation of another dialect": "%x = vector.contract %v : vector<8xf32>",
    "quotation marks": '%x = "vector.transfer_read"() : () -> vector<8xf32>',
    "an operation of TileJIT's without operands": '%x = "tilejit.asin"() : () -> vector<8xf32>',
    "an operation of TileJIT's with several": '%x = "tilejit.asin"(%v, %v) '
    ": (vector<8xf32>, vector<8xf32>) -> vector<8xf32>",
    "an access of TileJIT's without operands": own_read("", ""),
    "an access of TileJIT's without a mask": own_read("%A", "memref<?xf32>"),
    "an access of TileJIT's without a mask of bits": own_read(
        "%A, %w, %n", "memref<?xf32>, vector<8xi32>, index"
    ),
    "an access of TileJIT's without dimensions": own_read(lists="steps = [1]"),
    "an access of TileJIT's without a dimension": own_read(lists="dims = [1], steps = [1]"),
    "an access of TileJIT's without a step": own_read(lists="dims = [0], steps = []"),
    "an access of TileJIT's without numbers": own_read(lists='dims = ["0"], steps = [1]'),
    "an access of TileJIT's without a subscript": own_read("%A, %m", "memref<?xf32>, vector<8xi1>"),
    "an access of TileJIT's without a result": own_read(result="f32"),
    "a write of TileJIT's without operands": '"tilejit.transfer_write"() {dims = [0], steps = [1]} '
    ": () -> ()",
    "a gather of TileJIT's without a mask": '%x = "tilejit.gather"(%A, %n) {dims = [0]} '
    ": (memref<?xf32>, index) -> vector<8xf32>",
    "a gather by data": "%a = arith.constant dense<0> : vector<8xi64>\n"
    "  %y = arith.divsi %a, %a : vector<8xi64>\n"
    "  %x = vector.gather %A[%n] [%y], %m, %v : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> "
    "into vector<8xf32>",
    "a loop that carries another shape": "%a = arith.constant dense<1.0> : vector<4xf32>\n"
    "  %x = affine.for %i = 0 to 4 iter_args(%b = %v) -> (vector<8xf32>) {\n"
    "    affine.yield %a : vector<4xf32>\n  }",
}


def check_place(error: str) -> None:
    """An error says what is wrong, shows the line with a caret, and says what to write."""
    lines = error.splitlines()
    assert len(lines) >= 4, lines
    assert re.match(r"  line \d+: ", lines[1]), lines
    assert lines[2].strip() == "^"
    assert "Error" not in lines[0]
    assert "object" not in lines[0]


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_with_a_place(name: str) -> None:
    text = function(HEAD + "  " + HOSTILE[name])
    with pytest.raises(tj.TilejitError) as caught:
        mlir.run(text, "f", np.zeros(9, np.float32), np.zeros(9, np.float32), 1)
    check_place(str(caught.value))


TEXTS = (ADD_BY_256, ADD_BY_32X256, VECRED_BY_128, *OPT[16].values(), *OPT[22].values())


@pytest.mark.parametrize("turn", range(40))
def test_mistakes_in_texts(turn: int, seed: int) -> None:
    """Words are omitted, doubled and exchanged: errors have a place, and what is read prints and parses."""
    rng = random.Random(seed * 1000 + turn)
    words = re.split(r"(\s+|[,:<>{}()\[\]])", rng.choice(TEXTS))
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(3):
            case 0:
                words[at] = ""
            case 1:
                words[at] *= 2
            case _:
                words[at] = words[other]
    text = "".join(words)
    try:
        module = mlir.parse(text)
        printed = mlir.parse(mlir.super_vectorize(text, virtual_vector_size=8))
    except tj.TilejitError as error:
        check_place(str(error))
        return
    for cause in module.refused.values():
        check_place(cause)
    assert [p.name for p in printed.programs] == [p.name for p in module.programs]
    assert [p.function.arguments for p in printed.programs] == [p.function.arguments for p in module.programs]
