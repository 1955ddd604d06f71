"""A process imports before its first copies only what they need. Nothing is timed here.

`python -m bench.cold_start` measures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.backend.object_loader import RUNS_HERE
from tests.tools.oracle import printed

NEVER_OF_OTHERS = (
    *("numba", "ml_dtypes", "numpy.ma", "importlib.metadata", "email", "concurrent.futures", "difflib"),
    *("sysconfig", "xdsl", "torch", "jax", "safetensors", "typer", "rich"),
)

NEVER_OF_OURS = (
    *("codegen.backend.build", "codegen.simd.routines", "codegen.runtime.loop_kernel"),
    *("codegen.pipeline.lower_nest", "codegen.passes.lower_copy", "codegen.ir.nodes", "codegen.emit"),
    *("codegen.frontend.python_ast", "codegen.ir.dtypes", "codegen.ir.interpreter"),
    "codegen.analysis.bounds",
    *("codegen.passes.super_vectorize", "codegen.schedule.choose_lanes", "codegen.pipeline.loops"),
    *("codegen.runtime.call_tables", "codegen.pipeline.tune"),
    *("tilejit.kernels", "tilejit.expressions", "tilejit.mlir", "tilejit.files", "tilejit.interop"),
    *("tilejit.view", "tilejit.cli", "tilejit.numpy_api.masked", "tilejit.numpy_api.accelerate"),
    *("tilejit.copies.explanations", "tilejit.copies.relayouts", "tilejit.copies.tiles"),
    *("tilejit.cute.compose", "tilejit.cute.products", "tilejit.layout.bridge"),
    *("codegen.pipeline.copies", "codegen.pipeline.passes", "codegen.passes", "codegen.frontend"),
    *("codegen.schedule.schedule", "codegen.schedule.copy_nest", "codegen.schedule.choose"),
    *("codegen.schedule.vector_size", "codegen.schedule.machine_size"),
    *("codegen.pipeline.staged", "codegen.pipeline.staged_copy", "codegen.pipeline.staged_loops"),
    "codegen.pipeline.block_program",
    *("codegen.schedule.choose_grid", "codegen.schedule.choose_stages", "tilejit.layout.permuted"),
)

COPIES = """
import sys
import numpy as np
import tilejit as tj

x = np.arange(300 * 1000, dtype=np.float32).reshape(300, 1000)
t = tj.pack(x, "{1,0:T(8,128)}")
assert (tj.unpack(t) == x).all()
assert (tj.transpose(x) == x.T).all()
print(*sys.modules)
"""


def child(code: str, store: Path) -> set[str]:
    return set(printed(code, store).split())


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the kernels of the copies."""
    store = tmp_path_factory.mktemp("store")
    assert "numba" in child(COPIES, store)
    return store


def test_import_tilejit_imports_almost_nothing(tmp_path: Path) -> None:
    names = child("import sys, tilejit; print(*sys.modules)", tmp_path)
    ours = {name for name in names if name.split(".")[0] in ("tilejit", "codegen")}
    support = {"codegen.support", "codegen.support.errors", "codegen.support.locks"}
    assert ours == {"tilejit", "codegen", *support}
    assert "numpy" not in names


def test_copies_whose_kernels_are_stored_import_little(warm: Path) -> None:
    loaded = child(COPIES, warm)
    assert not loaded & {*NEVER_OF_OTHERS, *NEVER_OF_OURS}
    if RUNS_HERE:
        assert "llvmlite" not in loaded


RELAYOUT = """
import sys
import numpy as np
import tilejit as tj

t = tj.pack(np.zeros((64, 256), np.float32), "{1,0:T(8,128)}")
tj.relayout(t, "{0,1:T(8,128)}")
print(*sys.modules)
"""


def test_a_small_relayout_loads_nothing_that_chooses_blocks(tmp_path: Path) -> None:
    child(RELAYOUT, tmp_path)
    loaded = child(RELAYOUT, tmp_path)
    assert not loaded & {"codegen.pipeline.copies", "codegen.pipeline.staged", "codegen.schedule.staging"}


def test_imports_compile_no_regular_expressions(warm: Path) -> None:
    """Most processes use few of them. `lazy_pattern` compiles each on first use."""
    count = """
import re, sys
compiled, real = [], re.compile

def compile(*given):
    caller = sys._getframe(1)
    if caller.f_code.co_name == "<module>":
        compiled.append(caller.f_globals["__name__"])
    return real(*given)

re.compile = compile
"""
    code = count + COPIES.replace("print(*sys.modules)", "print(*compiled)")
    assert not {name for name in child(code, warm) if name.split(".")[0] in ("codegen", "tilejit")}


def test_masked_arrays_are_recognized_without_an_import(warm: Path) -> None:
    code = COPIES.replace(
        "print(",
        "m = np.ma.array(x, mask=x > 5)\ntry: tj.pack(m, 'tpu')\n"
        "except TypeError as e: assert 'masked' in str(e)\nelse: raise AssertionError\nprint(",
    )
    assert "numpy.ma" in child(code, warm)


def test_bfloat16_is_recognized_whoever_imports_it(warm: Path) -> None:
    code = """
import numpy as np
import tilejit as tj
shape = tj.Shape.parse("bf16[3,5]")
import sys
assert "ml_dtypes" not in sys.modules
import ml_dtypes
x = np.zeros((3, 5), ml_dtypes.bfloat16)
assert tj.as_layout("tpu", dims=(3, 5), dtype=x.dtype).dtype == x.dtype == shape.dtype
assert tj.as_layout("tpu", dims=(3, 5), dtype="bfloat16").primitive_type == "bf16"
"""
    child(code, warm)
