"""Right bytes of shipped formats: inputs by rule, and the SHA-256 of the packed bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import tilejit as tj

Array = np.ndarray[Any, np.dtype[Any]]
Case = dict[str, Any]
CASES: dict[str, Case] = {
    case["name"]: case for case in json.loads(Path(__file__).with_name("cases.json").read_text())
}


def mix(shape: tuple[int, ...], modulus: int, seed: int = 0) -> Array:
    """Pseudo-random integers: unlike arange mod 16, all rows differ."""
    i = np.arange(prod(shape), dtype=np.uint64) + np.uint64(seed)
    return ((i * 2654435761 % 2**32 >> 16) % modulus).astype(np.int64).reshape(shape)


def given(name: str) -> Array:
    """The input of a case whose rule is arange, or mix with a number added or subtracted."""
    own = CASES[name]["input"]
    shape, rule = tuple(own["shape"]), own["rule"].partition(",")[0]
    if rule.startswith("arange"):
        return np.arange(prod(shape)).reshape(shape)
    values = mix(shape, own["modulus"], own.get("seed", 0))
    if "+ mix" in rule:
        return values + int(rule.split()[0])
    return values - int(rule.split()[2]) if rule.startswith("mix -") else values


def check_bytes(name: str, packed: Any) -> None:
    """Compare a buffer, or bytes, with the case."""
    data = packed.tobytes() if isinstance(packed, np.ndarray) else bytes(packed)
    case = CASES[name]
    assert len(data) == case["bytes"]
    assert data[:16].hex() == case["expected_first_16_bytes"][:32]
    assert hashlib.sha256(data).hexdigest() == case["sha256"]


def check_case(case: str, x: Array | Mapping[str, Array], layout: str, **parameters: Any) -> Any:
    """Pack a case's input, compare the bytes, unpack them, and compare the planes."""
    packed = tj.pack(x, layout, **parameters)
    check_bytes(case, packed.buffer)
    again = packed.unpack()
    main = next(iter(x.values())) if isinstance(x, Mapping) else x
    own = {} if isinstance(packed, tj.PackedPlanes) else {"dtype": packed.layout.element}
    for found in (again, tj.unpack(packed.buffer, layout, dims=np.shape(main), **own, **parameters)):
        if isinstance(x, Mapping):
            assert set(found) == set(x)
            for plane, values in x.items():
                np.testing.assert_array_equal(np.asarray(found[plane]), values, err_msg=plane)
        else:
            np.testing.assert_array_equal(np.asarray(found).astype(x.dtype), x)
    return packed
