"""The public names are imported on first use, and are the same whatever else is imported."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import run_python

MODULES_FOR_NAMES = {"cute", "mlir"}

ALL_MODULES = """
import importlib, pkgutil, random, sys
import tilejit

order = sys.argv[1]
modules = [m.name for m in pkgutil.walk_packages(tilejit.__path__, "tilejit.") if "__main__" not in m.name]
assert len(modules) > 100
if order == "backwards":
    modules.reverse()
elif order == "shuffled":
    random.Random(5).shuffle(modules)
early = {name: getattr(tilejit, name) for name in tilejit.__all__} if order == "names first" else {}
for module in modules:
    try:
        importlib.import_module(module)
    except ImportError as error:  # an extra that is not installed
        assert error.name.split(".")[0] not in ("tilejit", "codegen"), (module, error)
for name in set(tilejit.__all__) - {"cute"}:
    found = getattr(tilejit, name)
    home = tilejit._HOME_OF.get(name, "codegen.support.errors")
    assert found is getattr(sys.modules[home], name), name
    assert found is early.get(name, found), name
assert tilejit.cute is sys.modules["tilejit.cute"]
"""


def child(code: str, *arguments: str) -> str:
    done = run_python(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
@pytest.mark.parametrize("order", ["names first", "forwards", "backwards", "shuffled"])
def test_no_module_replaces_a_public_name(order: str) -> None:
    """An import binds a module in its package, so a module named `relayout` would hide the function."""
    child(ALL_MODULES, order)


def test_type_checkers_see_the_same_modules() -> None:
    tree = ast.parse(Path(tj.__file__).read_text())
    (block,) = [x for x in tree.body if isinstance(x, ast.If) and ast.unparse(x.test) == "_TYPE_CHECKING"]
    seen = {a.name: x.module for x in block.body if isinstance(x, ast.ImportFrom) for a in x.names}
    assert {n: m for n, m in seen.items() if n not in MODULES_FOR_NAMES} == tj._HOME_OF
    assert {n for n, m in seen.items() if m == "tilejit"} == MODULES_FOR_NAMES


def test_every_name_has_a_module() -> None:
    errors = {n for n, x in vars(tj).items() if isinstance(x, type) and x.__module__ == "tilejit"}
    assert {*tj._HOME_OF, *errors, "cute"} == set(tj.__all__)
    assert len(tj.__all__) == len(set(tj.__all__))
    assert list(tj.__all__) == sorted(tj.__all__)


def test_names_are_looked_up_once() -> None:
    code = "import tilejit as t; t.pack; print(vars(t)['pack'] is t.pack, 'unpack' in vars(t))"
    assert child(code).split() == ["True", "False"]


def test_dir_lists_the_public_names() -> None:
    code = "import tilejit as t; t.pack; print(*dir(t))"
    listed = child(code).split()
    assert "__version__" in listed
    assert [name for name in listed if not name.startswith("__")] == sorted({*tj.__all__, "mlir"})


@pytest.mark.full
def test_a_star_import_has_all_names() -> None:
    code = "from tilejit import *; import tilejit; print(all(n in globals() for n in tilejit.__all__))"
    assert child(code).strip() == "True"


def test_other_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'tilejit' has no attribute 'unpakc'"):
        _ = tj.unpakc
    with pytest.raises(ImportError):
        from tilejit import unpakc  # noqa: F401


def test_arguments_have_one_order() -> None:
    """dst comes before src, as in np.copyto, and dtype before dims. NumPy's routines have NumPy's order."""
    names = [getattr(module, name) for module in (tj, tj.cute) for name in module.__all__]
    methods = [m for x in names if isinstance(x, type) for _, m in inspect.getmembers(x)]
    both = 0
    for function in filter(inspect.isroutine, [*names, *methods]):
        if not (getattr(function, "__module__", None) or "").startswith("tilejit"):
            continue
        taken = list(inspect.signature(function).parameters)
        for first, second in (("dst", "src"), ("dtype", "dims")):
            if first in taken and second in taken:
                both += 1
                assert taken.index(first) < taken.index(second), function
    assert both >= 7


def square(x: object) -> object:
    return x * x  # type: ignore[operator]


PICKLED = {
    "shape": lambda: tj.Shape.parse("bf16[10,30]{1,0:T(8,128)(2,1)}"),
    "layout": lambda: tj.Layout((1, 0), ((8, 128),)),
    "cute": lambda: tj.cute.parse("Sw<1,0,1> o 0 o (2,4):(4,1)"),
    "array": lambda: tj.TiledArray.from_buffer(np.arange(12, dtype=np.float32), "f32[3,4]{1,0}"),
    "error": lambda: tj.LayoutError("x"),
    "elementwise": lambda: tj.elementwise(square),
    "functions": lambda: (tj.pack, tj.relayout, tj.explain, tj.elementwise, tj.kernel),
    "plan": lambda: tj.plan_copy(np.zeros((5, 6)), np.zeros((6, 5)).T),
}


@pytest.mark.full
@pytest.mark.parametrize("make", PICKLED.values(), ids=PICKLED)
def test_pickles_are_read_in_a_fresh_process(make: Callable[[], object], tmp_path: Path) -> None:
    value = make()
    path = tmp_path / "pickled"
    path.write_bytes(pickle.dumps(value))
    code = "import pickle, sys; print(type(pickle.load(open(sys.argv[1], 'rb'))).__name__)"
    assert child(code, str(path)).strip() == type(value).__name__


IN_THREADS = """
import os, signal, threading
import tilejit

signal.alarm(60)
names = tilejit.__all__

def look_up(first):
    for name in [*names[first::4], *names]:
        getattr(tilejit, name)

threads = [threading.Thread(target=look_up, args=(k,)) for k in range(4)]
for thread in threads:
    thread.start()
codes = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        for name in names:
            getattr(tilejit, name)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for thread in threads:
    thread.join()
print(codes)
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_during_imports_has_all_names() -> None:
    """A module that another thread was importing is complete in the child, or not begun."""
    assert child(IN_THREADS).strip() == str([0] * 6)


EVERY_ERROR = """
import importlib, pickle, pkgutil
import tilejit

for module in pkgutil.walk_packages(tilejit.__path__, "tilejit."):
    if "__main__" not in module.name:
        try:
            importlib.import_module(module.name)
        except ImportError:  # an extra that is not installed
            pass

def below(kind):
    return {kind}.union(*map(below, kind.__subclasses__()))

for kind in {*below(tilejit.TilejitError), tilejit.KernelWarning}:
    if kind.__name__ not in ("NumberNeeded", "MisfitError", "RefusedError"):  # always caught
        assert pickle.loads(pickle.dumps(kind)) is kind
        print(f"{kind.__module__}.{kind.__qualname__}")
"""


@pytest.mark.full
def test_errors_print_and_pickle_under_their_public_names() -> None:
    printed = set(child(EVERY_ERROR).split())
    assert {"tilejit.LayoutError", "tilejit.ScheduleError", "tilejit.cute.NoLayoutError"} <= printed
    assert {name.rpartition(".")[0] for name in printed} == {"tilejit", "tilejit.cute"}


@pytest.mark.parametrize("function", [tj.kernel, tj.elementwise])
def test_signatures_show_the_keywords(function: Callable[..., object]) -> None:
    """The defaults are those of calls without keywords."""
    parameters = inspect.signature(function).parameters
    keywords = {name: x.default for name, x in parameters.items() if x.kind is x.KEYWORD_ONLY}
    assert {"virtual_vector_size", "tail", "parallel", "tune"} <= keywords.keys()
    assert keywords["vectorize_reductions"] is (function is tj.elementwise)
    function(square, **keywords)
