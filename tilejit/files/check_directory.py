"""Check a directory: its files, and whether its record, its index and single records list exactly those."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codegen import LayoutError
from tilejit.files.check import Advance, Checked, Problem, check_file
from tilejit.files.directory import DONE_NAME
from tilejit.files.file_types import READERS, open_file
from tilejit.files.recorded import LAYOUTS_NAME, read_layouts
from tilejit.files.shards import INDEX_NAME, read_index
from tilejit.files.sidecar import SUFFIX


def files_to_check(directory: Path) -> list[Path]:
    """The files of a directory that TileJIT converts, and those with a record beside them.

    Raises:
        OSError: the directory cannot be read.
    """
    names = {name for name in os.listdir(directory) if not name.startswith(".")}
    known = {name for name in names if Path(name).suffix.lower() in READERS}
    recorded = {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}
    return [directory / name for name in sorted(known | recorded & names)]


def check_directory(
    directory: str | os.PathLike[str], *, threads: int | None = None, advance: Advance | None = None
) -> Iterator[Checked]:
    """Check a directory, and then each of its files as `check_file` does.

    >>> Path("arrays").mkdir()
    >>> np.save("arrays/x.npy", np.ones((1000, 300), np.float32))
    >>> [Path(checked.path).name for checked in check_directory("arrays")]
    ['arrays', 'x.npy']

    Args:
        directory: the path of the directory.
        threads: the number of threads; None chooses it from the size.
        advance: called with the number of bytes after each part of a file.

    Yields:
        The directory, whose problems are files that a record or the index lists and the directory lacks, or
        the reverse; then the files.

    Raises:
        OSError: a file cannot be read.
    """
    path = Path(directory)
    paths = files_to_check(path)
    problems = [*_of_the_record(path), *_of_lost_files(path), *_of_the_index(path, paths)]
    if not paths:
        problems.append(Problem(f"it holds neither {' nor '.join(reversed(READERS))} files"))
    if (path / DONE_NAME).exists():
        problems.append(
            Problem(f"{DONE_NAME} says that a run with --resume has not ended\n  run its command again")
        )
    yield Checked(str(path), problems=tuple(problems))
    for one in paths:
        yield check_file(one, threads=threads, advance=advance)


def _of_the_record(path: Path) -> Iterator[Problem]:
    """What is wrong with the record of the directory, apart from files that it does not list."""
    try:
        listed = read_layouts(path)
    except LayoutError as error:
        yield Problem(str(error))
        return
    for name in sorted({*listed}.difference(os.listdir(path))):
        yield Problem(f"{LAYOUTS_NAME} lists {name!r}, which is missing\n  restore it, or remove its entry")


def _of_lost_files(path: Path) -> Iterator[Problem]:
    names = {*os.listdir(path)}
    for name in sorted(names):
        if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) not in names:
            yield Problem(
                f"{name!r} is the record of {name.removesuffix(SUFFIX)!r}, which is missing\n"
                "  restore the file, or rename the record as its file, or remove it"
            )


def _of_the_index(path: Path, paths: list[Path]) -> Iterator[Problem]:
    """How the index of a checkpoint differs from its shards."""
    if not (path / INDEX_NAME).exists():
        return
    try:
        index = read_index(path / INDEX_NAME)
    except LayoutError as error:
        yield Problem(str(error))
        return
    shards: Mapping[str, str] = index["weight_map"]
    there = {one.name for one in paths}
    for name in sorted({*shards.values()} - there):
        yield Problem(f"{INDEX_NAME} lists {name!r}, which is missing\n  restore it")
    for name in sorted(name for name in there - {*shards.values()} if name.endswith(".safetensors")):
        yield Problem(f"{INDEX_NAME} does not list {name!r}\n  move it elsewhere, or add it to the index")
    yield from _of_shards(path, index, sorted({*shards.values()} & there))


def _of_shards(path: Path, index: Mapping[str, Any], names: list[str]) -> Iterator[Problem]:
    """The tensors that only the index or only a shard has, and the total size if TileJIT wrote the index."""
    shards, size, packed = index["weight_map"], 0, False
    for name in names:
        try:
            file = open_file(path / name)
        except LayoutError:  # reported for the file
            return
        own = {entry.name for entry in file.entries}
        size += sum(entry.nbytes for entry in file.entries)
        packed = packed or any(map(file.is_packed, file.entries))
        listed = {tensor for tensor, shard in shards.items() if shard == name}
        for tensor in sorted(listed - own):
            yield Problem(f"{INDEX_NAME} says that {name!r} holds this tensor, but it does not", tensor)
        for tensor in sorted(own - listed):
            yield Problem(f"{INDEX_NAME} does not say that {name!r} holds this tensor", tensor)
    facts = index.get("metadata")
    total = facts.get("total_size") if isinstance(facts, dict) else None
    complete = len(names) == len({*shards.values()})
    if packed and complete and total is not None and total != size:
        yield Problem(
            f"{INDEX_NAME}: metadata.total_size: expected {size} bytes, got {str(total)[:40]}\n"
            "  a shard was replaced: pack the directory again"
        )
