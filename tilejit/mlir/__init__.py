"""Loops as MLIR's text: read, super-vectorized and printed again, run on arrays. The extra `mlir`, by xdsl.

`parse(text)`, `super_vectorize(text, virtual_vector_size=(32, 256)) -> text`, `run(text, name, *arrays)`, for
affine.for, affine.if, affine.load, affine.store, affine.apply, arith, math and memref. The spelling of years
ago is read too: `func`, `alloc`, `load` without a dialect's name.

A function that can't be read stays as it is, and is refused when it is run. Both sides of affine.if are
computed and only stores depend on the test, so loads must be within their arrays on either side.
"""

from importlib.util import find_spec

if find_spec("xdsl") is None:
    raise ImportError("tilejit.mlir reads texts of MLIR with xdsl: pip install 'tilejit[mlir]'", name="xdsl")

from tilejit.mlir.module import Module, parse
from tilejit.mlir.program import Program
from tilejit.mlir.vectorize import run, super_vectorize

__all__ = ["Module", "Program", "parse", "run", "super_vectorize"]
