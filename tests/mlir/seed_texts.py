"""The seed's texts about super-vectorization in their old spelling, and rules to modernize it."""

from __future__ import annotations

import re

from tests.mlir.texts import VECRED, VECTOR_ADD_2D

ADD_BY_256 = """\
func.func @vector_add_2d(%arg0 : index, %arg1 : index) -> f32 {
  %0 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
  %1 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
  %2 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
  %cst = arith.constant 1.0 : f32
  %cst_0 = arith.constant 2.0 : f32
  affine.for %i0 = 0 to %arg0 {
    affine.for %i1 = 0 to %arg1 step 256 {
      %cst_1 = arith.constant dense<vector<256xf32>, 1.0> : vector<256xf32>
      vector.transfer_write %cst_1, %0[%i0, %i1] : vector<256xf32>, memref<?x?xf32>
    }
  }
  affine.for %i2 = 0 to %arg0 {
    affine.for %i3 = 0 to %arg1 step 256 {
      %cst_2 = arith.constant dense<vector<256xf32>, 2.0> : vector<256xf32>
      vector.transfer_write %cst_2, %1[%i2, %i3] : vector<256xf32>, memref<?x?xf32>
    }
  }
  affine.for %i4 = 0 to %arg0 {
    affine.for %i5 = 0 to %arg1 step 256 {
      %3 = vector.transfer_read %0[%i4, %i5] : memref<?x?xf32>, vector<256xf32>
      %4 = vector.transfer_read %1[%i4, %i5] : memref<?x?xf32>, vector<256xf32>
      %5 = arith.addf %3, %4 : vector<256xf32>
      %cst_3 = arith.constant dense<vector<256xf32>, 1.0> : vector<256xf32>
      %6 = arith.addf %5, %cst_3 : vector<256xf32>
      %cst_4 = arith.constant dense<vector<256xf32>, 2.0> : vector<256xf32>
      %7 = arith.addf %5, %cst_4 : vector<256xf32>
      %8 = arith.addf %7, %6 : vector<256xf32>
      vector.transfer_write %8, %2[%i4, %i5] : vector<256xf32>, memref<?x?xf32>
    }
  }
  %c7 = arith.constant 7 : index
  %c42 = arith.constant 42 : index
  %9 = load %2[%c7, %c42] : memref<?x?xf32>
  return %9 : f32
}
"""

# The seed omits a comma here.
ADD_BY_32X256 = (
    ADD_BY_256.replace("to %arg0 {", "to %arg0 step 32 {")
    .replace("vector<256", "vector<32x256")
    .replace("memref<?x?xf32>, vector", "memref<?x?xf32> vector", 1)
)

VECRED_BY_128 = """\
#map = affine_map<(d0) -> (-d0 + 500)>
func.func @vecred(%arg0: memref<512xf32>) -> f32 {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant dense<0.000000e+00> : vector<128xf32>
  %0 = affine.for %arg1 = 0 to 500 step 128 iter_args(%arg2 = %cst_0) -> (vector<128xf32>) {
    // %2 is the number of iterations left in the original loop.
    %2 = affine.apply #map(%arg1)
    %3 = vector.create_mask %2 : vector<128xi1>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %4 = vector.transfer_read %arg0[%arg1], %cst_1 : memref<512xf32>, vector<128xf32>
    %5 = math.cos %4 : vector<128xf32>
    %6 = arith.addf %arg2, %5 : vector<128xf32>
    // We filter out the effect of last 12 elements using the mask.
    %7 = select %3, %6, %arg2 : vector<128xi1>, vector<128xf32>
    affine.yield %7 : vector<128xf32>
  }
  %1 = vector.reduction <add>, %0 : vector<128xf32> into f32
  return %1 : f32
}
"""

SEED = {
    "256": (VECTOR_ADD_2D, ADD_BY_256, "virtual-vector-size=256 test-fastest-varying=0"),
    "32x256": (VECTOR_ADD_2D, ADD_BY_32X256, "virtual-vector-size=32,256 test-fastest-varying=1,0"),
    "128": (
        VECRED,
        VECRED_BY_128,
        "virtual-vector-size=128 test-fastest-varying=0 \\\n vectorize-reductions=true",
    ),
}
"""Each scalar text, its vectorized text, and the options of the pass."""

SPELLED = (
    (r"dense<vector<[^>]*>, ", "dense<"),
    (r"(?<![\w.])(select|load) ", lambda old: {"select": "arith.select ", "load": "memref.load "}[old[1]]),
    (r"0\.000000e\+00", "0.0"),
    (r"> vector<", ">, vector<"),
    (r"(%\w+) : index", r"\1: index"),
    (r"\s*//[^\n]*", ""),
    (r"#map\(", "affine_map<(d0) -> (-d0 + 500)>("),
    (r"#map = [^\n]*\n", ""),
)
"""Old spellings and current ones."""


def lines(text: str, *, padding: bool = True) -> list[str]:
    """The lines of a text in current spelling, with values numbered in the order of their definition."""
    for old, new in SPELLED:
        text = re.sub(old, new, text)
    if not padding:
        # The seed's first example omits the padding of reads, and its constant.
        text = re.sub(r"(transfer_read [^\n]*\]), %\w+", r"\1", text)
        text = re.sub(r"\n *%\w+ = arith\.constant 0\.0 : f32(?=\n *%\w+ = vector\.transfer_read)", "", text)
    numbers: dict[str, str] = {}
    named = re.sub(r"%[\w.$]+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), text)
    return [line for line in named.splitlines() if line.strip()]
