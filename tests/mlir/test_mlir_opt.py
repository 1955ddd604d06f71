"""The super-vector form beside that of MLIR's own pass, where mlir-opt is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from tests.mlir.opt_cases import CASES, OptCase, modern
from tilejit import mlir

MLIR_OPT = shutil.which("mlir-opt-16")

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None, reason="mlir-opt-16 (Debian's mlir-16-tools) is not installed"
)

TRANSFER = re.compile(r"vector\.transfer_(read|write) .*?(\{.*\})? : (.*)")


def opt(text: str, *options: str) -> str:
    """What mlir-opt makes of a text."""
    done = subprocess.run(
        [str(MLIR_OPT), *options], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def structure(text: str) -> list[tuple[str, ...]]:
    """Loops by their steps, transfers by their vectors and maps, masks of reductions, in order."""
    aliases = dict(re.findall(r"^(#\w+) = (affine_map<.*>)$", text, re.MULTILINE))
    found: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if "affine.for" in line:
            step = re.search(r" step (\d+)", line)
            carried = re.search(r"-> \((.*)\) \{", line)
            found.append(("for", step[1] if step else "1", carried[1] if carried else ""))
        elif transfer := TRANSFER.search(line):
            kind, attributes, types = transfer.groups()
            shape = re.search(r"vector<[^>]*>", types)
            assert shape
            named = re.search(r"permutation_map = (#\w+|affine_map<.*?\)>)", attributes or "")
            found.append((kind, shape[0], aliases.get(named[1], named[1]) if named else ""))
        elif "arith.select" in line and re.search(r"vector<\d+xi1>", line):
            found.append(("select", line.rsplit(":", 1)[1].strip()))
        elif reduction := re.search(r"vector\.reduction <(\w+)>", line):
            found.append(("reduction", reduction[1]))
    return found


def passes(case: OptCase) -> str:
    sizes, fastest = (",".join(map(str, numbers)) for numbers in (case.sizes, case.fastest))
    return (
        f"--affine-super-vectorize=virtual-vector-size={sizes} test-fastest-varying={fastest} "
        f"vectorize-reductions={str(case.reductions).lower()}"
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_mlir_does(case: OptCase) -> None:
    """The same vector shapes, steps, permutation maps, masks of reductions; mlir-opt reads what we print."""
    ours = mlir.super_vectorize(
        case.text,
        virtual_vector_size=case.sizes,
        fastest_varying=case.fastest,
        vectorize_reductions=case.reductions,
    )
    theirs = opt(modern(case.text), passes(case))
    assert structure(opt(ours)) == structure(theirs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stores_are_masked_by_the_loop(case: OptCase) -> None:
    """What MLIR's pass leaves to the array's own size: each store has a mask, unless no lane is left over."""
    ours = mlir.super_vectorize(case.text, virtual_vector_size=case.sizes, fastest_varying=case.fastest)
    stores = re.findall(r"transfer_write [^,]+, [^\]]+\](, %\w+)?", ours)
    assert all(bool(mask) != ("no lane left over" in case.name) for mask in stores)
