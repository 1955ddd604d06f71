"""Suggest a fix for text that is not MLIR or has an unsupported operation: a valid example line."""

from __future__ import annotations

import re
from difflib import get_close_matches

from tilejit.mlir.arithmetic import COMPOSED, DIRECT, UNSIGNED

FUNCTION = "func.func @f(%A: memref<?xf32>, %n: index) {"
MAP = "#map = affine_map<(d0)[s0] -> (d0 + s0)>"

FORMS = {
    "builtin.module": "module {",
    "func.func": FUNCTION,
    "func.return": "return %x : f32",
    "affine.for": "affine.for %i = 0 to %n step 1 {",
    "affine.if": "affine.if affine_set<(d0)[s0] : (s0 - d0 - 1 >= 0)>(%i)[%n] {",
    "affine.yield": "affine.yield %x : f32",
    "affine.load": "%x = affine.load %A[%i, 2 * %j + 1] : memref<?x?xf32>",
    "affine.store": "affine.store %x, %A[%i, 2 * %j + 1] : memref<?x?xf32>",
    "affine.apply": "%k = affine.apply affine_map<(d0)[s0] -> (d0 + s0)>(%i)[%n]",
    "affine.min": "%k = affine.min affine_map<(d0) -> (d0, 64)>(%n)",
    "affine.max": "%k = affine.max affine_map<(d0) -> (d0, 64)>(%n)",
    "memref.alloc": "%A = memref.alloc(%n) : memref<?xf32>",
    "memref.alloca": "%A = memref.alloca(%n) : memref<?xf32>",
    "memref.dealloc": "memref.dealloc %A : memref<?xf32>",
    "memref.load": "%x = memref.load %A[%i, %j] : memref<?x?xf32>",
    "memref.store": "memref.store %x, %A[%i, %j] : memref<?x?xf32>",
    "memref.cast": "%B = memref.cast %A : memref<8xf32> to memref<?xf32>",
    "memref.subview": (
        "%B = memref.subview %A[%i][%n][2] : memref<?xf32> to memref<?xf32, strided<[2], offset: ?>>"
    ),
    "memref.reinterpret_cast": (
        "%B = memref.reinterpret_cast %A to offset: [%i], sizes: [%n], strides: [2] "
        ": memref<?xf32> to memref<?xf32, strided<[2], offset: ?>>"
    ),
    "ub.poison": "%x = ub.poison : f32",
    "scf.if": "scf.if %p {",
    "scf.yield": "scf.yield %x : f32",
    "vector.transfer_read": "%v = vector.transfer_read %A[%i], %x : memref<?xf32>, vector<8xf32>",
    "vector.transfer_write": "vector.transfer_write %v, %A[%i] : vector<8xf32>, memref<?xf32>",
    "vector.load": "%v = vector.load %A[%i] : memref<?xf32>, vector<8xf32>",
    "vector.store": "vector.store %v, %A[%i] : memref<?xf32>, vector<8xf32>",
    "vector.maskedload": (
        "%w = vector.maskedload %A[%i], %m, %v "
        ": memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>"
    ),
    "vector.maskedstore": "vector.maskedstore %A[%i], %m, %v : memref<?xf32>, vector<8xi1>, vector<8xf32>",
    "vector.gather": (
        "%w = vector.gather %A[%i] [%k], %m, %v "
        ": memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into vector<8xf32>"
    ),
    "vector.scatter": (
        "vector.scatter %A[%i] [%k], %m, %v : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32>"
    ),
    "vector.create_mask": "%m = vector.create_mask %n : vector<8xi1>",
    "vector.constant_mask": "%m = vector.constant_mask [5] : vector<8xi1>",
    "vector.broadcast": "%v = vector.broadcast %x : f32 to vector<8xf32>",
    "vector.splat": "%v = vector.splat %x : vector<8xf32>",
    "vector.shape_cast": "%w = vector.shape_cast %v : vector<8xf32> to vector<8x1xf32>",
    "vector.transpose": "%w = vector.transpose %v, [1, 0] : vector<4x8xf32> to vector<8x4xf32>",
    "vector.reduction": "%x = vector.reduction <add>, %v : vector<8xf32> into f32",
    "vector.step": "%k = vector.step : vector<8xindex>",
    "vector.fma": "%r = vector.fma %x, %y, %z : vector<8xf32>",
    "memref.dim": "%n = memref.dim %A, %c0 : memref<?xf32>",
    "arith.constant": "%x = arith.constant 1.0 : f32",
    "arith.cmpf": "%p = arith.cmpf olt, %x, %y : f32",
    "arith.cmpi": "%p = arith.cmpi slt, %x, %y : i32",
    "arith.select": "%z = arith.select %p, %x, %y : f32",
    "arith.negf": "%y = arith.negf %x : f32",
    **{f"arith.{name}": f"%k = arith.{name} %i : index to i32" for name in ("index_cast", "index_castui")},
    "arith.extf": "%y = arith.extf %x : f32 to f64",
    "arith.truncf": "%y = arith.truncf %x : f64 to f32",
    **{f"arith.{name}": f"%y = arith.{name} %x : i32 to i64" for name in ("extsi", "extui")},
    **{f"arith.{name}": f"%y = arith.{name} %x : i32 to f32" for name in ("sitofp", "uitofp")},
    **{f"arith.{name}": f"%y = arith.{name} %x : f32 to i32" for name in ("fptosi", "fptoui")},
    "arith.trunci": "%y = arith.trunci %x : i64 to i32",
    **{f"math.{name}": f"%z = math.{name} %x, %y : f32" for name in ("atan2", "copysign", "powf")},
    "math.absi": "%y = math.absi %x : i32",
    "math.fma": "%r = math.fma %x, %y, %z : f32",
}
"""An example of each operation; other arith operations take two operands, other math operations take one."""

ARITHMETIC = ("arith.constant", "arith.cmpf", "arith.cmpi", *DIRECT, *UNSIGNED, *COMPOSED)
SUPPORTED = tuple(dict.fromkeys((*FORMS, *ARITHMETIC)))
"""The supported operations."""

OPERATIONS = (
    "write affine.for, affine.if, affine.load, affine.store, affine.apply, memref.alloc, memref.load, "
    "memref.store, memref.dim, vector.transfer_read, vector.transfer_write, and operations of arith and math"
)

CAUSES = (
    (r"used but not defined", "define the value before it is used, or correct its name"),
    (r"already defined", "give each value its own name"),
    (r"is used with type", "write the type that the value is defined with"),
    (r"undefined symbol alias", f"define it before the functions, as {MAP}"),
    (r"not in space", f"use the dimensions and symbols that the map declares, as {MAP}"),
)
"""Patterns of xdsl's messages, and the fix for each."""


def advice(cause: str, operation: str, line: str) -> str:
    """The fix, for xdsl's cause, the last operation started, and the line.

    "SSA value %x is already defined" -> "give each value its own name"
    "Expected ':'", "affine.load" -> "write it as %x = affine.load %A[%i, 2 * %j + 1] : memref<?x?xf32>"
    """
    for pattern, fix in CAUSES:
        if re.search(pattern, cause):
            return fix
    if line.lstrip().startswith("#"):
        return f"write it as {MAP}"
    return f"write it as {_form(operation)}"


def instead_of(operation: str) -> str:
    """The replacement for an unsupported operation.

    "arith.adf" -> "did you mean arith.addf?"    "define" -> "begin a function as func.func @f(…) {"
    """
    others = [name for name in SUPPORTED if name != operation]
    near = get_close_matches(operation[:80], others, n=1, cutoff=0.8)
    if near:
        return f"did you mean {near[0]}?"
    return OPERATIONS if "." in operation else f"begin a function as {FUNCTION}"


def _form(operation: str) -> str:
    if operation in FORMS:
        return FORMS[operation]
    if operation.startswith("math."):
        return f"%y = {operation} %x : f32"
    if operation.startswith("arith."):
        return f"%z = {operation} %x, %y : {'f32' if operation.endswith('f') else 'i32'}"
    return FUNCTION
