"""Texts that MLIR's own pass vectorizes correctly, each with the options for both passes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.mlir.texts import VECRED, VECTOR_ADD_2D


@dataclass(frozen=True)
class OptCase:
    """A text, and the options of the pass."""

    name: str
    text: str
    sizes: tuple[int, ...]
    fastest: tuple[int, ...]
    reductions: bool = False

    def __str__(self) -> str:
        return self.name


OLD_NAMES = {"func": "func.func", "alloc": "memref.alloc", "load": "memref.load"}


def modern(text: str) -> str:
    """The text with the dialect names that mlir-opt expects."""
    return re.sub(r"(?<![\w.%@])(func|alloc|load) (?=[@(%])", lambda old: OLD_NAMES[old[1]] + " ", text)


ONE_LOOP = """
func.func @f(%A: memref<?xf32>, %C: memref<?xf32>, %s: f32, %n: index) {
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xf32>
    %y = arith.mulf %x, %s : f32
    affine.store %y, %C[%i] : memref<?xf32>
  }
  return
}
"""

BROADCASTS = """
func.func @f(%A: memref<?x?xf64>, %b: memref<?xf64>, %c: memref<?xf64>, %D: memref<?x?xf64>,
             %m: index, %n: index) {
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %x = affine.load %A[%i, %j] : memref<?x?xf64>
      %y = affine.load %b[%i] : memref<?xf64>
      %z = affine.load %c[%j] : memref<?xf64>
      %s = arith.mulf %x, %y : f64
      %t = arith.addf %s, %z : f64
      affine.store %t, %D[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
"""

STENCIL = """
func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
  affine.for %i = 1 to %n {
    %x = affine.load %A[%i - 1] : memref<?xf32>
    %y = affine.load %A[%i] : memref<?xf32>
    %z = affine.load %A[%i + 1] : memref<?xf32>
    %s = arith.addf %x, %y : f32
    %t = arith.addf %s, %z : f32
    affine.store %t, %B[%i] : memref<?xf32>
  }
  return
}
"""

SELECT = """
func.func @f(%A: memref<?xi32>, %B: memref<?xi32>, %n: index) {
  %zero = arith.constant 0 : i32
  %ten = arith.constant 10 : i32
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xi32>
    %p = arith.cmpi sgt, %x, %zero : i32
    %y = arith.muli %x, %ten : i32
    %z = arith.select %p, %y, %zero : i32
    affine.store %z, %B[%i] : memref<?xi32>
  }
  return
}
"""

WIDEN = """
func.func @f(%A: memref<64xf32>, %B: memref<64xf64>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %A[%i] : memref<64xf32>
    %y = arith.extf %x : f32 to f64
    %z = math.exp %y : f64
    affine.store %z, %B[%i] : memref<64xf64>
  }
  return
}
"""

THREE_LOOPS = """
func.func @f(%A: memref<?x?x?xf32>, %B: memref<?x?x?xf32>, %l: index, %m: index, %n: index) {
  affine.for %i = 0 to %l {
    affine.for %j = 0 to %m {
      affine.for %k = 0 to %n {
        %x = affine.load %A[%i, %j, %k] : memref<?x?x?xf32>
        %y = arith.negf %x : f32
        affine.store %y, %B[%i, %j, %k] : memref<?x?x?xf32>
      }
    }
  }
  return
}
"""

TRANSPOSED = """
func.func @f(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %m: index, %n: index) {
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %x = affine.load %A[%j, %i] : memref<?x?xf32>
      affine.store %x, %B[%j, %i] : memref<?x?xf32>
    }
  }
  return
}
"""

IMPERFECT = """
func.func @f(%A: memref<?x?x?xf32>, %B: memref<?x?x?xf32>, %l: index, %m: index, %n: index) {
  affine.for %i = 0 to %l {
    affine.for %j = 0 to %m {
      affine.for %k = 0 to %n {
        %x = affine.load %A[%k, %j, %i] : memref<?x?x?xf32>
        affine.store %x, %B[%k, %j, %i] : memref<?x?x?xf32>
      }
    }
    affine.for %j = 0 to %m {
      affine.for %k = 0 to %n {
        %x = affine.load %A[%j, %k, %i] : memref<?x?x?xf32>
        affine.store %x, %B[%j, %k, %i] : memref<?x?x?xf32>
      }
      affine.for %k = 0 to %n {
        %x = affine.load %A[%j, %k, %i] : memref<?x?x?xf32>
        affine.store %x, %A[%j, %k, %i] : memref<?x?x?xf32>
      }
    }
  }
  return
}
"""

TWO_NESTS = """
#shift = affine_map<(d0) -> (d0 + 4)>
func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %C: memref<?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xf32>
    affine.store %x, %B[%i] : memref<?xf32>
  }
  affine.for %i = #shift(%n) to 1024 {
    %x = affine.load %B[%i] : memref<?xf32>
    %y = math.sqrt %x : f32
    affine.store %y, %C[%i] : memref<?xf32>
  }
  return
}
"""


def reduction(operation: str, dtype: str, neutral: str) -> str:
    """A loop that combines a whole array."""
    return f"""
func.func @f(%A: memref<1024x{dtype}>, %n: index) -> {dtype} {{
  %z = arith.constant {neutral} : {dtype}
  %r = affine.for %i = 0 to %n iter_args(%a = %z) -> ({dtype}) {{
    %x = affine.load %A[%i] : memref<1024x{dtype}>
    %t = {operation} %a, %x : {dtype}
    affine.yield %t : {dtype}
  }}
  return %r : {dtype}
}}
"""


CASES = (
    OptCase("vector_add_2d by 256", VECTOR_ADD_2D, (256,), (0,)),
    OptCase("vector_add_2d by 32x256", VECTOR_ADD_2D, (32, 256), (1, 0)),
    OptCase("vecred by 128", VECRED, (128,), (0,), True),
    OptCase("one loop", ONE_LOOP, (128,), (0,)),
    OptCase("broadcasts", BROADCASTS, (64,), (0,)),
    OptCase("stencil", STENCIL, (32,), (0,)),
    OptCase("select", SELECT, (16,), (0,)),
    OptCase("conversion, no lane left over", WIDEN, (16,), (0,)),
    OptCase("three loops by 8", THREE_LOOPS, (8,), (0,)),
    OptCase("three loops by 4x8", THREE_LOOPS, (4, 8), (1, 0)),
    OptCase("three loops by 2x4x8", THREE_LOOPS, (2, 4, 8), (2, 1, 0)),
    OptCase("rows as columns", TRANSPOSED, (8, 16), (0, 1)),
    OptCase("imperfect nest, rows inside", IMPERFECT, (32, 256), (0, 1)),
    OptCase("imperfect nest, planes inside", IMPERFECT, (32, 256), (0, 2)),
    OptCase("imperfect nest by rows", IMPERFECT, (32,), (0,)),
    OptCase("two nests", TWO_NESTS, (64,), (0,)),
    OptCase("product", reduction("arith.mulf", "f64", "1.0"), (64,), (0,), True),
    OptCase("sum of integers", reduction("arith.addi", "i32", "0"), (64,), (0,), True),
    OptCase("largest", reduction("arith.maxf", "f32", "0xFF800000"), (64,), (0,), True),
    OptCase("least integer", reduction("arith.minsi", "i64", "0"), (64,), (0,), True),
    OptCase("least unsigned integer", reduction("arith.minui", "i64", "-1"), (64,), (0,), True),
    OptCase("largest unsigned integer", reduction("arith.maxui", "i8", "0"), (64,), (0,), True),
    OptCase("all bits", reduction("arith.andi", "i32", "-1"), (64,), (0,), True),
    OptCase("any bit", reduction("arith.ori", "i32", "0"), (64,), (0,), True),
    OptCase("reductions not asked for", reduction("arith.addi", "i32", "0"), (64,), (0,), False),
)
