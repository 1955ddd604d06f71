"""The dependencies between packages of codegen and of tilejit, read from the sources with `ast`."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

import codegen
from tests.tools.oracle import environment

ROOT = Path(__file__).resolve().parents[2]

CODEGEN = (
    "support",
    "maps",
    "ir",
    "analysis",
    "frontend",
    "schedule",
    "passes",
    "emit",
    "simd",
    "backend",
    "runtime",
    "pipeline",
)
"""The packages of codegen. Each one imports only itself and packages before it."""

TILEJIT = (
    "support",
    "catalog",
    "cute",
    "layout",
    "arrays",
    "programs",
    "tiled",
    "copies",
    "kernels",
    "expressions",
    "numpy_api",
    "mlir",
    "files",
    "interop",
    "view",
    "recognize",
    "cli",
)
"""The packages of tilejit, ordered alike."""

ORDER = {"codegen": CODEGEN, "tilejit": TILEJIT}

FACADES = ("codegen", "tilejit", "tilejit.cute")
"""The modules that users import: lazy tables of names, which no package needs."""

STARTED = ("tilejit.__main__",)
"""Modules beside the packages, except `__init__.py`: `python -m tilejit` needs them there."""

USERS = ("tilejit.cli", "tilejit.files.resume")
"""The modules that import a facade anyway: the command line, and a journal with TileJIT's version."""

BY_NAME = (*FACADES, "tilejit.support.notebook", "tilejit.catalog.families")
"""Modules that import others by their names: `notebook` finds the pictures of what notebooks show, and
`families` imports the files of its own package one by one, until one has the format."""

BESIDE = {("schedule", "frontend")}
"""(A package, an earlier package that it does not import): schedules don't depend on the origin of loops."""

NUMBA_ALLOWED = ("backend", "simd")
LAZY = ("codegen.backend.build", "codegen.simd")
"""Modules that import Numba; no module imports them at its top level."""
NO_NUMBA = ("codegen.simd.direct_fields", "codegen.simd.vector.math_library")
"""Modules beside those that import Numba, which don't: constants, and names of the C library."""


def modules(root: str = "codegen") -> list[Path]:
    return sorted((ROOT / root).rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for root in ORDER for path in modules(root)}


def package(name: str) -> str:
    return name.split(".")[1]


@cache
def imports(path: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """The import statements of a file, and whether they are outside of functions."""
    tree = ast.parse(path.read_text())
    outside = set(map(id, tree.body))
    return tuple(
        (node, id(node) in outside)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


@cache
def imported(path: Path, *, top_level: bool = False) -> frozenset[str]:
    """Modules and packages that a file imports; with `top_level`, without those that functions import."""
    out: set[str] = set()
    for node in (node for node, outside in imports(path) if outside or not top_level):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            out |= {name if name in NAMES else node.module for name in full}
    return frozenset(out)


@pytest.mark.parametrize("root", ORDER)
def test_every_module_has_a_package(root: str) -> None:
    started = {name.removeprefix(f"{root}.") for name in STARTED if name.startswith(f"{root}.")}
    modules = {path.stem for path in (ROOT / root).glob("*.py")}
    assert modules == {"__init__", *started}
    below = {package(name) for name in NAMES if name.startswith(f"{root}.")}
    assert below == {*ORDER[root], *started}


def importers(root: str, *prefixes: str, top_level: bool = False) -> set[tuple[str, str]]:
    """(A module below `root`, what it imports) for imports of the modules with these names and below them."""
    return {
        (name_of(path), other)
        for path in modules(root)
        for other in imported(path, top_level=top_level)
        if f"{other}.".startswith(tuple(f"{prefix}." for prefix in prefixes))
    }


def test_codegen_never_imports_tilejit() -> None:
    """The dependency has one direction: tilejit imports codegen."""
    assert not importers("codegen", "tilejit")


def test_tilejit_imports_only_the_facade() -> None:
    """A submodule of codegen is private to codegen."""
    assert not {pair for pair in importers("tilejit", "codegen") if pair[1] != "codegen"}


def test_the_facade_has_the_names_that_it_declares() -> None:
    """Type checkers read the imports, programs read the table; only tilejit and bench need the names."""
    tree = ast.parse(NAMES["codegen"].read_text())
    declared = {
        (alias.name, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("codegen.")
        for alias in node.names
    }
    assert {name for name, _ in declared} <= set(dir(codegen))
    for name, home in declared:
        assert getattr(codegen, name) is getattr(import_module(home), name, None), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = codegen.nothing
    users = [path for folder in ("tilejit", "bench") for path in (ROOT / folder).rglob("*.py")]
    used = {
        alias.name
        for path in users
        for node, _ in imports(path)
        if isinstance(node, ast.ImportFrom) and node.module == "codegen"
        for alias in node.names
    }
    assert used == {name for name, _ in declared}


def test_numba_stays_in_backend_and_simd() -> None:
    allowed = tuple(f"codegen.{name}" for name in NUMBA_ALLOWED)
    direct = importers("codegen", "numba")
    early = {pair for pair in importers("codegen", *LAZY, top_level=True) if pair[1] not in NO_NUMBA}
    assert not {pair for pair in direct | early if not pair[0].startswith(allowed)}


def test_packages_import_packages_before_them() -> None:
    for name in sorted({*NAMES} - {*FACADES, *STARTED}):
        root, *_ = name.split(".")
        order, own = ORDER[root], package(name)
        for other in imported(NAMES[name]):
            if other.split(".")[0] == root:
                assert other not in FACADES or name.startswith(USERS), f"{name} imports {other}, for users"
                if "." in other:
                    assert order.index(package(other)) <= order.index(own), f"{name} imports {other}"
                    assert (own, package(other)) not in BESIDE, f"{name} imports {other}"


def test_few_modules_import_by_a_computed_name() -> None:
    """The tests of this file do not see such imports."""
    users = {name_of(path) for path in modules("tilejit") if "import_module" in path.read_text()}
    assert users <= {*BY_NAME}


def test_no_import_cycles() -> None:
    """Packages contain no cycles either. Imports in functions and for type checkers count."""
    edges = {name: {n for n in imported(path) if n in NAMES} - {name} for name, path in NAMES.items()}
    done: set[str] = set()

    def walk(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for other in edges[name]:
                walk(other, (*above, name))
            done.add(name)

    for name in edges:
        walk(name, ())


HEAVY = (
    "numba",
    "llvmlite",
    "jax",
    "torch",
    "zarr",
    "dask",
    "matplotlib",
    "safetensors",
    "typer",
    "rich",
    "pytest",
    "xdsl",
)


def test_import_tilejit_is_light() -> None:
    code = f"import sys, tilejit; print([m for m in {HEAVY!r} if m in sys.modules])"
    child = run([executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "[]"


def test_functions_import_the_compiler_under_its_lock() -> None:
    """A process may fork while a thread imports a module; its child would wait for that import forever."""
    assert not [
        f"{name_of(path)}:{node.lineno}"
        for path in modules("tilejit")
        if not name_of(path).startswith("tilejit.cli.")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in _unlocked(function.body)
        if isinstance(node, ast.ImportFrom) and node.module == "codegen"
    ]


def _unlocked(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function outside `with compiler_lock`; those of nested functions are their own."""
    out: list[ast.stmt] = []
    for node in body:
        out.append(node)
        if isinstance(node, ast.With) and "lock" in ast.unparse(node.items[0].context_expr):
            continue
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                out += _unlocked(getattr(node, part, []))
    return out
