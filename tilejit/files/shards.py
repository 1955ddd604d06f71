"""Directories of shards: checkpoints with an index, or files without one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codegen import LayoutError, dataclass
from tilejit.files.file_types import READERS
from tilejit.files.json_text import parsed, reason
from tilejit.files.whole_file import open_ordinary, replacing

INDEX_NAME = "model.safetensors.index.json"
MAX_INDEX_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Shards:
    """The names of the files in a directory; `index` is the checkpoint's, or None."""

    path: Path
    names: tuple[str, ...]
    index: dict[str, Any] | None = None

    def check(self, name: str, tensors: set[str]) -> None:
        """Raise if a shard lacks a tensor that the index assigns to it.

        Raises:
            LayoutError: a tensor is missing; the message names the tensor and the shard.
        """
        if self.index is None:
            return
        claimed = {tensor for tensor, file in self.index["weight_map"].items() if file == name}
        missing = sorted(claimed - tensors)
        if missing:
            raise LayoutError(f"{INDEX_NAME} says that {name!r} holds {_short(missing[0])}, but it does not")


def read_shards(directory: str | os.PathLike[str]) -> Shards:
    """The shards of a directory: those in its index, or all files that TileJIT converts.

    Raises:
        LayoutError: the directory has no such files, or the index violates the format.
        OSError: the directory cannot be read.
    """
    path = Path(directory)
    if (path / INDEX_NAME).exists():
        index = read_index(path / INDEX_NAME)
        return Shards(path, tuple(sorted(set(index["weight_map"].values()))), index)
    known = [p.name for p in path.iterdir() if p.suffix.lower() in READERS and not p.name.startswith(".")]
    if not known:
        raise LayoutError(f"{str(path)!r} holds neither {' nor '.join(reversed(READERS))} files")
    return Shards(path, tuple(sorted(known)))


def write_index(directory: Path, shards: Shards, total_bytes: int) -> None:
    """Write the index of the converted shards: the same map, and the total size in bytes.

    Raises:
        OSError: the index cannot be written.
    """
    if shards.index is None:
        return
    facts = shards.index.get("metadata")
    metadata = {**(facts if isinstance(facts, dict) else {}), "total_size": total_bytes}
    text = json.dumps({**shards.index, "metadata": metadata}, indent=2, sort_keys=True, ensure_ascii=False)
    with replacing(directory / INDEX_NAME) as file:
        file.write(text.encode() + b"\n")


def read_index(path: Path) -> dict[str, Any]:
    """The index of a checkpoint's shards.

    Raises:
        LayoutError: the index violates the format.
        OSError: it cannot be read.
    """
    with open_ordinary(path) as file:
        raw = file.read(MAX_INDEX_BYTES + 1)
    try:
        if len(raw) > MAX_INDEX_BYTES:
            raise LayoutError(f"it is longer than {MAX_INDEX_BYTES} bytes")
        index = parsed(raw, "it", writable=True)
        if not isinstance(index, dict) or not isinstance(index.get("weight_map"), Mapping):
            raise LayoutError("it has no weight_map")
        for tensor, name in index["weight_map"].items():
            _check_name(tensor, name)
        if not index["weight_map"]:
            raise LayoutError("its weight_map names no tensor")
    except (ValueError, RecursionError) as error:
        raise LayoutError(
            f"{str(path)!r} is not an index of shards: {reason(error)[:200]}\n"
            "  restore it, or remove it to convert all files of the directory"
        ) from error
    return index


def _check_name(tensor: str, name: Any) -> None:
    """Raise for file names outside the directory, or in subdirectories."""
    plain = isinstance(name, str) and name.isprintable() and not any(sign in name for sign in "/\\:")
    if not plain or not name.endswith(".safetensors") or name.startswith("."):
        raise LayoutError(
            f"tensor {_short(tensor)} is in {_short(name)}, which is not a .safetensors file beside the "
            "index\n"
            "  use plain names, such as model-00001-of-00002.safetensors"
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
