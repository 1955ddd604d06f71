"""The arrows between the layers, read from the sources with `ast`."""

from __future__ import annotations

import ast
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from tests.tools.oracle import environment

ROOT = Path(__file__).resolve().parents[2]

ORDER = (
    ("errors", "settings", "locks", "lazy", "bounded", "digit_trees", "access", "element_types", "versions"),
    ("store_files",),
    ("elf",),
    (
        "tiles",
        "stretches",
        "ir",
        "object_symbols",
        "cpu",
        "math_library",
        "float_flags",
        "direct_words",
        "direct_entries",
    ),
    ("schedule", "windows"),
    ("refine", "padding"),
    ("lower_copy", "printer", "interpret", "passes"),
    (
        "verify",
        "choose_interleave",
        "choose_order",
        "transpose_box",
        "choose_transpose",
        "choose_stretches",
        "choose",
    ),
    ("choose_places",),
    ("loops",),
    ("frontend", "emit"),
    ("simd",),
    ("build", "store", "store_check", "object_loader"),
    ("kernel", "threads"),
    ("calls", "direct_calls", "launch", "loop_kernel"),
    ("steps", "gather", "call_tables"),
    ("pipeline",),
    ("calibrate", "tune"),
)
"""Inside codegen each layer imports what stands in a row above, or in its own package or row."""

NUMBA_ALLOWED = ("build", "simd")


def modules() -> list[Path]:
    return sorted((ROOT / "codegen").rglob("*.py"))


def layer(path: Path) -> str:
    """The module or package right below codegen."""
    return path.relative_to(ROOT / "codegen").parts[0].removesuffix(".py")


def imported(path: Path, *, top_level: bool = False) -> set[str]:
    """Full names that a file imports; with `top_level` only those that importing the file imports."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return out


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_codegen_never_looks_up(path: Path) -> None:
    """One arrow: tilejit imports codegen."""
    assert not {name for name in imported(path) if name.split(".")[0] == "tilejit"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_numba_stays_in_build_and_simd(path: Path) -> None:
    if layer(path) not in NUMBA_ALLOWED:
        assert not {name for name in imported(path) if name.split(".")[0] == "numba"}
        lazily = {"codegen.build", "codegen.simd"}
        assert not {n for n in imported(path, top_level=True) if ".".join(n.split(".")[:2]) in lazily}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_layers_import_downwards(path: Path) -> None:
    rows = {name: k for k, row in enumerate(ORDER) for name in row}
    own = layer(path)
    if own == "__init__":
        assert not {n for n in imported(path) if n.startswith("codegen")}
        return
    assert own in rows, f"{own} stands in no row of ORDER"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "codegen" and len(parts) > 1 and parts[1] != own:
            assert rows[parts[1]] <= rows[own], f"{own} imports {parts[1]}, which stands below it"


def test_no_import_cycles() -> None:
    """Rows allow neighbours to import each other; a cycle they may not make."""
    edges: dict[str, set[str]] = {}
    for path in modules():
        names = {n.split(".")[1] for n in imported(path) if n.startswith("codegen.")}
        edges.setdefault(layer(path), set()).update(names - {layer(path)})
    done: set[str] = set()

    def walk(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for other in edges.get(name, set()):
                walk(other, (*above, name))
            done.add(name)

    for name in list(edges):
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
