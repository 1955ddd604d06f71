"""Read, super-vectorize, print and run MLIR loops. Needs xdsl, the extra `mlir`.

`parse(text)`, `super_vectorize(text, virtual_vector_size=(32, 256)) -> text`, `run(text, name, *arrays)` and
`check(scalar, vectorized)` support affine.for, affine.if, affine.load, affine.store, affine.apply, scf.if,
arith, math, memref, and the operations of super-vectorized text: vector.transfer_read, vector.transfer_write,
vector.create_mask, vector.reduction and others. Older spellings also work: `func`, `alloc` and `load` without
a dialect's name, and `dense<vector<256xf32>, 1.0>`.

A function that cannot be read stays unchanged, and running it raises an error. Both sides of affine.if are
computed and only stores depend on the condition, so loads must be within their arrays on either side.

A function with vectors also stays unchanged, and runs in super-vectors of their shape. A transfer accesses
only the lanes that its mask selects and that are inside the array. A transfer with in_bounds is proven to be
inside before the call; otherwise the call raises an error.
"""

from importlib.util import find_spec

if find_spec("xdsl") is None:
    raise ImportError("tilejit.mlir reads MLIR text with xdsl: pip install 'tilejit[mlir]'", name="xdsl")

from tilejit.mlir.checking import Checked, check
from tilejit.mlir.module import Module, parse
from tilejit.mlir.program import Program
from tilejit.mlir.vectorize import run, super_vectorize

__all__ = ["Checked", "Module", "Program", "check", "parse", "run", "super_vectorize"]
