"""Modules whose library is missing say how to install it, whichever module is imported first."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilejit
from tests.tools.oracle import run_python

NEEDS = {
    "tilejit.interop.dask": ("dask", "dask"),
    "tilejit.interop.jax": ("jax", "jax"),
    "tilejit.interop.tenstorrent": ("torch", "torch"),
    "tilejit.interop.torch": ("torch", "torch"),
    "tilejit.interop.zarr": ("zarr", "zarr"),
    "tilejit.mlir": ("xdsl", "mlir"),
}
"""A module or a package, the library that it needs, and the extra that installs it."""

IMPORTS = """
import importlib.util as u, sys
from importlib import import_module
library, extra, *names = sys.argv[1:]
find = u.find_spec
u.find_spec = lambda name, *a: None if name == library else find(name, *a)
sys.modules[library] = None
for name in names:
    try:
        import_module(name)
    except ImportError as error:
        assert error.name == library, (name, error.name)
        assert str(error).endswith(f": pip install 'tilejit[{extra}]'"), (name, error)
    else:
        raise AssertionError(f"{name} was imported")
"""


@pytest.mark.full
@pytest.mark.parametrize("needy", NEEDS)
def test_a_failed_import_says_what_to_install(needy: str) -> None:
    library, extra = NEEDS[needy]
    folder = Path(tilejit.__path__[0], *needy.split(".")[1:])
    names = [f"{needy}.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))]
    child = run_python(IMPORTS, library, extra, *names, needy)
    assert child.returncode == 0, child.stderr
