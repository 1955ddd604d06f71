"""Errors about the extra `mlir` if it is not installed."""

from __future__ import annotations

from pathlib import Path

from tests.tools.oracle import run_python

WITHOUT = """
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, *more: None if name == "xdsl" else found(name, *more)
import tilejit
try:
    tilejit.mlir
except ImportError as error:
    print(error)
from tilejit.cli import main
import sys
sys.argv = ["tilejit", "vectorize", sys.argv[1]]
main()
"""


def test_without_xdsl_it_says_what_to_install(tmp_path: Path) -> None:
    """In Python an ImportError, on the command line a failure."""
    file = tmp_path / "x.mlir"
    file.write_text("")
    child = run_python(WITHOUT, str(file))
    said = "tilejit.mlir reads MLIR text with xdsl: pip install 'tilejit[mlir]'\n"
    assert (child.stdout, child.stderr, child.returncode) == (said, f"tilejit: {said}", 1)
