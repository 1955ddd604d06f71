"""Whatever a process remembers is bounded: by a number of entries, or by what there is to be remembered."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.support.caching import MOST_BOUND, remember

ROOT = Path(__file__).parents[1]

ONE = (
    *(
        "_ir_generator",
        "cpu_level",
        "supported",
        "_head",
        "machine",
        "settings",
        "routines",
    ),
    *(
        "_versions",
        "compiler_digest",
        "lowering_digest",
        "default_store",
        "default_threads",
        "_same",
    ),
    *("_of_ml_dtypes", "cpu_name", "_system", "_llvm_engine"),
)
FINITE = {
    **dict.fromkeys(ONE, "one in all"),
    **dict.fromkeys(("_natives", "_loaded", "_in_use"), "a kernel, whose machine code stays in memory"),
    **dict.fromkeys(("_BY_NUMPY", "_BY_NUMPY_NAME"), "a dtype"),
    "conversion": "two dtypes",
    "_declared": "a dtype and a number of lanes that a kernel names",
    **dict.fromkeys(("_without_entries", "_definitions"), "a class"),
    **dict.fromkeys(("address_of", "_routine", "vector_routine"), "a function that a kernel calls"),
    "_open": "a block that is open",
    "_INSTRUCTIONS": "an instruction that is declared",
    "_library": "a library of functions",
    "package_version": "a package",
    "_FORMATS": "a format that was registered",
    **dict.fromkeys(("_winners", "_by_structure"), "`remember`"),
}
"""Caches without a number, and what they have an entry for."""


def sources() -> list[Path]:
    return sorted([*(ROOT / "codegen").rglob("*.py"), *(ROOT / "tilejit").rglob("*.py")])


def is_cache(node: ast.expr) -> bool:
    """functools.cache, bare or called."""
    return ast.unparse(node).split("(")[0] in ("cache", "functools.cache")


def limit(node: ast.Call) -> Any:
    """The maxsize of a call of lru_cache; None if it has none."""
    return next((ast.literal_eval(k.value) for k in node.keywords if k.arg == "maxsize"), None)


def without_number(path: Path) -> set[str]:
    """Functions with `cache`, and dicts of a module that begin empty; tables written out are complete."""
    tree, found = ast.parse(path.read_text()), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found |= {node.name for d in node.decorator_list if is_cache(d)}
    for node in tree.body:
        value = node.value if isinstance(node, ast.AnnAssign) else None
        if isinstance(value, ast.DictComp) or (isinstance(value, ast.Dict) and not value.keys):
            found.add(ast.unparse(node.target))
    return found


def test_caches_have_a_number_or_a_reason() -> None:
    """What is missing here: bound it, or say in FINITE what it has an entry for."""
    names = {str(path.relative_to(ROOT)): without_number(path) for path in sources()}
    found = {file: own - set(FINITE) for file, own in names.items()}
    assert {file: own for file, own in found.items() if own} == {}


def test_every_lru_cache_has_a_number() -> None:
    count = 0
    for path in sources():
        text = path.read_text()
        calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        limits = [limit(n) for n in calls if ast.unparse(n.func) in ("lru_cache", "functools.lru_cache")]
        assert all(type(n) is int and 0 < n <= 4096 for n in limits), path
        assert text.count("lru_cache(") == len(limits), f"{path}: without a number"
        assert "@lru_cache\n" not in text.replace("functools.", "")
        count += len(limits)
    assert count > 20


def test_remember_never_holds_more() -> None:
    held: dict[int, int] = {}
    for k in range(3 * MOST_BOUND):
        assert remember(held, k, -k) == -k
        assert held[k] == -k
        assert len(held) <= MOST_BOUND
    remember(held, 3 * MOST_BOUND - 1, 5)
    assert held[3 * MOST_BOUND - 1] == 5
    few: dict[str, int] = {"a": 1, "b": 2}
    remember(few, "c", 3, most=2)
    assert few == {"c": 3}


def entries(thing: Any) -> dict[str, int]:
    """How many entries each dict of an object has."""
    return {name: len(value) for name, value in vars(thing).items() if isinstance(value, dict)}


@pytest.mark.rotated
def test_kernels_and_expressions_of_many_shapes_forget() -> None:
    scale, twice = tj.kernel(_scale), tj.elementwise(lambda a, k: a * k)
    total = tj.elementwise(lambda a: a.sum(axis=0))
    x = np.ones((40, 60), np.float32)
    for k in range(MOST_BOUND + 200):
        part = x[: 1 + k % 40, : 1 + k // 40]
        scale(part, k)
        twice(part, k)
        total(part)
    for thing in (scale, twice, total):
        found = entries(thing)
        assert found
        assert max(found.values()) <= MOST_BOUND, found
    assert max(entries(scale).values()) > 1
    assert (x[0, :3] > 0).all()


def _scale(a: Any, k: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 1.0 + k


def test_threads_share_what_is_known_of_cute_layouts() -> None:
    """More layouts than are remembered: what one thread finds out, others forget."""

    def sizes(first: int) -> list[int]:
        layouts = [tj.cute.Layout((4, 8), (1, 4 + (first + k) % 1500)) for k in range(1500)]
        return [tj.cute.CuteShape("u8", (4, 8), layout).physical_size for layout in layouts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(sizes, range(0, 1500, 375)))
    for first, own in zip(range(0, 1500, 375), found, strict=True):
        assert own == [4 + 7 * (4 + (first + k) % 1500) for k in range(1500)]
