"""MLIR loops over %A and %C, of 1024 floats each, which a careless pass gets wrong."""

from __future__ import annotations

import numpy as np

SIZE = 1024
HEAD = "func.func @f(%A: memref<1024xf32>, %C: memref<1024xf32>) {\n  %one = arith.constant 1.0 : f32\n"
LOAD = "affine.load %A[{}] : memref<1024xf32>"
STORE = "affine.store {}, %C[{}] : memref<1024xf32>"


def inputs() -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Small integers, whose sums are exact in any order. Elements that nothing writes stay -1."""
    return (np.arange(SIZE) * 37 % 101).astype(np.float32), np.full(SIZE, -1, np.float32)


def copied(header: str, source: str, target: str, *, outer: str = "") -> str:
    """C[target] = A[source] + 1 in one loop or two."""
    lines = [outer, header] if outer else [header]
    for depth, line in enumerate(lines):
        lines[depth] = "  " * (depth + 1) + f"affine.for {line} {{"
    pad = "  " * (len(lines) + 1)
    body = [
        f"%x = {LOAD.format(source)}",
        "%y = arith.addf %x, %one : f32",
        STORE.format("%y", target),
    ]
    lines += [pad + line for line in body]
    lines += ["  " * depth + "}" for depth in range(2 if outer else 1, 0, -1)]
    return HEAD + "\n".join(lines) + "\n  return\n}\n"


LOOPS = {
    "part of an array": copied("%i = 0 to 500", "%i", "%i"),
    "from the middle": copied("%i = 3 to 77", "%i + 5", "%i - 3"),
    "fewer than lanes": copied("%i = 5 to 9", "%i", "%i"),
    "none at all": copied("%i = 9 to 5", "%i", "%i"),
    "every other element": copied("%i = 0 to 500", "%i * 2", "%i"),
    "to every third element": copied("%i = 0 to 300", "%i", "%i * 3 + 1"),
    "backwards": copied("%i = 0 to 500", "-%i + 511", "%i"),
    "pairs": copied("%i = 0 to 500", "%i floordiv 2", "%i"),
    "round and round": copied("%i = 0 to 500", "%i mod 16", "%i"),
    "a step of two": copied("%i = 0 to 501 step 2", "%i", "%i"),
    "a step of five": copied("%i = 2 to 498 step 5", "%i * 2", "%i"),
    "a triangle": copied(
        "%j = 0 to affine_map<(d0) -> (d0 + 1)>(%i)", "%j * 32 + %i", "%i * 32 + %j", outer="%i = 0 to 31"
    ),
    "two bounds": copied(
        "%j = max affine_map<(d0) -> (d0 - 3, 1)>(%i) to min affine_map<(d0) -> (d0 + 9, 27)>(%i)",
        "%i * 32 + %j",
        "%i * 32 + %j",
        outer="%i = 0 to 31",
    ),
    "along the columns": copied("%j = 0 to 20", "%i * 32 + %j", "%j * 32 + %i", outer="%i = 0 to 30"),
    "one element again and again": copied("%i = 0 to 100", "%i", "7"),
    "one element for all": copied("%i = 0 to 100", "7", "%i"),
    "from what the loop wrote": (
        HEAD + "  affine.for %i = 0 to 300 {\n    %x = affine.load %C[%i] : memref<1024xf32>\n"
        "    %y = arith.addf %x, %one : f32\n"
        "    affine.store %y, %C[%i + 1] : memref<1024xf32>\n  }\n  return\n}\n"
    ),
    "from what the loop will write": (
        HEAD + "  affine.for %i = 0 to 300 {\n    %x = affine.load %C[%i + 1] : memref<1024xf32>\n"
        "    %y = arith.addf %x, %one : f32\n"
        "    affine.store %y, %C[%i] : memref<1024xf32>\n  }\n  return\n}\n"
    ),
    "from 64 iterations before": (
        HEAD + "  affine.for %i = 0 to 300 {\n    %x = affine.load %C[%i] : memref<1024xf32>\n"
        "    %y = arith.addf %x, %one : f32\n"
        "    affine.store %y, %C[%i + 64] : memref<1024xf32>\n  }\n  return\n}\n"
    ),
    "a sum into an element": (
        HEAD + "  %s = affine.for %i = 0 to 500 iter_args(%a = %one) -> (f32) {\n"
        f"    %x = {LOAD.format('%i')}\n    %t = arith.addf %a, %x : f32\n    affine.yield %t : f32\n  }}\n"
        f"  {STORE.format('%s', '3')}\n  return\n}}\n"
    ),
    "a store beside a sum": (
        HEAD + "  %s = affine.for %i = 0 to 500 iter_args(%a = %one) -> (f32) {\n"
        f"    %x = {LOAD.format('%i')}\n    {STORE.format('%x', '%i')}\n"
        "    %t = arith.addf %a, %x : f32\n    affine.yield %t : f32\n  }\n"
        f"  {STORE.format('%s', '700')}\n  return\n}}\n"
    ),
    "sums of rows": (
        HEAD + "  %z = arith.constant 0.0 : f32\n  affine.for %i = 0 to 30 {\n"
        "    %s = affine.for %j = 0 to 29 iter_args(%a = %z) -> (f32) {\n"
        f"      %x = {LOAD.format('%i * 32 + %j')}\n      %t = arith.addf %a, %x : f32\n"
        "      affine.yield %t : f32\n    }\n"
        f"    {STORE.format('%s', '%i')}\n  }}\n  return\n}}\n"
    ),
    "stores under a test": (
        HEAD + "  affine.for %i = 0 to 300 {\n"
        f"    %x = {LOAD.format('%i')}\n"
        "    affine.if affine_set<(d0) : (d0 - 20 >= 0, 250 - d0 >= 0)>(%i) {\n"
        "      affine.if affine_set<(d0) : (d0 mod 3 == 0)>(%i) {\n"
        f"        {STORE.format('%x', '%i')}\n      }} else {{\n"
        f"        {STORE.format('%one', '%i + 300')}\n      }}\n    }} else {{\n"
        f"      {STORE.format('%one', '%i')}\n    }}\n  }}\n  return\n}}\n"
    ),
    "values of a test": (
        HEAD + "  affine.for %i = 0 to 300 {\n"
        f"    %x = {LOAD.format('%i')}\n"
        "    %y:2 = affine.if affine_set<(d0) : (d0 mod 3 == 0)>(%i) -> (f32, f32) {\n"
        "      %z = arith.addf %x, %one : f32\n      affine.yield %z, %x : f32, f32\n    } else {\n"
        "      affine.yield %one, %one : f32, f32\n    }\n"
        "    %s = arith.addf %y#0, %y#1 : f32\n"
        f"    {STORE.format('%s', '%i')}\n  }}\n  return\n}}\n"
    ),
    "loops under a test": (
        HEAD + "  affine.for %i = 0 to 30 {\n"
        "    affine.if affine_set<(d0) : (d0 - 7 >= 0)>(%i) {\n      affine.for %j = 0 to 29 {\n"
        f"        %x = {LOAD.format('%i * 32 + %j')}\n"
        f"        {STORE.format('%x', '%i * 32 + %j')}\n      }}\n    }}\n  }}\n  return\n}}\n"
    ),
    "a sum under a test": (
        HEAD + "  %s = affine.for %i = 0 to 300 iter_args(%a = %one) -> (f32) {\n"
        f"    %x = {LOAD.format('%i')}\n"
        "    %t = affine.if affine_set<(d0) : (d0 mod 3 == 0)>(%i) -> f32 {\n"
        "      %z = arith.addf %a, %x : f32\n      affine.yield %z : f32\n    } else {\n"
        "      affine.yield %a : f32\n    }\n    affine.yield %t : f32\n  }\n"
        f"  {STORE.format('%s', '3')}\n  return\n}}\n"
    ),
    "indices as numbers": (
        HEAD + "  affine.for %i = 0 to 300 {\n    %k = arith.index_cast %i : index to i32\n"
        "    %x = arith.sitofp %k : i32 to f32\n"
        f"    {STORE.format('%x', '%i')}\n  }}\n  return\n}}\n"
    ),
}
