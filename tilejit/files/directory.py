"""Convert directories: every shard is planned before any is written, and each is replaced atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from codegen import LayoutError, TilejitError, dataclass
from tilejit.files.file_types import open_file
from tilejit.files.json_text import shortened
from tilejit.files.plan import Plan
from tilejit.files.recorded import LAYOUTS_NAME, check_complete, read_layouts, recording
from tilejit.files.resume import Origin
from tilejit.files.shards import INDEX_NAME, Shards, read_shards, write_index
from tilejit.files.sidecar import lost_records
from tilejit.files.stream import Advance, Say
from tilejit.files.tensor_file import TensorFile
from tilejit.files.whole_file import open_ordinary, refuse_to_clobber, replacing
from tilejit.support.units import listed

DONE_NAME = ".tilejit-done.json"
"""The list of shards that a resumable run has finished; removed when all shards are done."""

Draft: TypeAlias = Callable[[TensorFile, Collection[str] | None], Plan]
"""A function such as `draft_pack` that plans an open file: the tensors with those names, or all for None."""

Skip: TypeAlias = Callable[[str, str], None]
"""A function that is called with a shard's name and a tensor's name."""


@dataclass(frozen=True, slots=True)
class DirectoryPlan:
    """The plan of each shard of a directory, by name."""

    shards: Shards
    target: Path
    plans: dict[str, Plan]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors to write."""
        return sum(plan.nbytes for plan in self.plans.values())

    def write(
        self,
        advance: Advance | None = None,
        *,
        resume: bool = False,
        say: Say | None = None,
        skip: Skip = lambda shard, tensor: None,
        clobber: bool = True,
    ) -> None:
        """Write shard by shard, each atomically; then the index, and the recorded layouts of .npy files.

        After an error, the files and directories that this run added are removed, unless `resume` is True.
        Files that it replaced keep their new contents.

        The arguments are those of `Plan.write`, but `skip` takes the names of a shard and a tensor.

        Raises:
            LayoutError: a value does not fit the packed dtype; the message names its tensor.
            TilejitError: another run is writing a target, or it is not a regular file, or it exists and
                `clobber` is False.
            OSError: a file cannot be written.
        """
        if not clobber:
            for name in (*self.plans, *([] if self.shards.index is None else [INDEX_NAME])):
                refuse_to_clobber(self.target / name)
        arrays = {name: plan for name, plan in self.plans.items() if plan.source.one_array}
        unknown = {name for name, plan in arrays.items() if plan.unexplained}
        records = {name: plan.record for name, plan in arrays.items() if name not in unknown}
        packed = any(plan.holds_layouts for plan in self.plans.values())
        added = [path for path in (self.target, *self.target.parents) if not os.path.lexists(path)][::-1]
        with _removed_after_errors(added):
            self.target.mkdir(parents=True, exist_ok=True)
            finished = _Finished(self.target) if resume else None
            with (
                recording(self.target, records, unknown, keep=packed and bool(arrays)),
                _removed_after_errors(added),  # before entries of these files would be recorded
            ):
                self._write_shards(advance, finished, say, skip, clobber, added)
                write_index(self.target, self.shards, self.nbytes)
            if finished:
                finished.forget()

    def _write_shards(
        self,
        advance: Advance | None,
        finished: _Finished | None,
        say: Say | None,
        skip: Skip,
        clobber: bool,
        added: list[Path],
    ) -> None:
        for name, plan in self.plans.items():
            path = self.target / name
            if finished is None:
                is_new = not os.path.lexists(path)
                plan.write(path, advance, say=say, recorded=False, clobber=clobber)
                added += [path] if is_new else []
                continue
            origin = plan.origin()
            if finished.holds(path, origin):
                if advance:
                    advance(plan.nbytes)
                for output in plan.outputs:
                    skip(name, output.name)
                continue
            plan.write(path, advance, resume=True, say=say, recorded=False, skip=partial(skip, name))
            finished.add(path, origin)


@contextmanager
def _removed_after_errors(added: list[Path]) -> Iterator[None]:
    """Remove files and empty directories after an error, the last one first."""
    try:
        yield
    except BaseException:
        for path in reversed(added):
            with suppress(OSError):  # the first error is more informative
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def plan_directory(source: Path, target: Path, draft: Draft, tensors: Collection[str] = ()) -> DirectoryPlan:
    """Plan the conversion of a directory's shards, whether or not a layout fits any tensor.

    >>> draft = partial(draft_pack, rules=rules_of("tpu", None, {}), threads=None)
    >>> plan_directory(Path("model"), Path("packed"), draft).write()

    Raises:
        LayoutError: a file is damaged, or a requested tensor is in no file.
        TilejitError: the target is a file or the source itself, or it contains the index of other files.
        OSError: a file cannot be read.
    """
    shards = read_shards(source)
    if ".." in target.parts:  # behind a missing directory, it would lead elsewhere once that is created
        target = Path(os.path.realpath(target))
    _check_target(shards, target)
    read_layouts(target)  # raises before anything is written
    if shards.index is None:
        check_complete(shards.path)
    files: dict[str, TensorFile] = {}
    known: set[str] = set()
    for name in shards.names:
        file = files[name] = open_file(shards.path / name)
        own = {entry.name for entry in file.entries}
        shards.check(name, own)
        known |= own
    unknown = next((name for name in tensors if name not in known), None)
    if unknown is not None:
        raise LayoutError(f"tensor {unknown!r} does not exist in {str(shards.path)!r}")
    if lost_records(shards.path):
        _check_not_renamed(files, tensors)
    plans = {name: draft(file, _requested_in(file, tensors)) for name, file in files.items()}
    if not tensors:
        _check_explained(shards.path, plans)
    return DirectoryPlan(shards, target, plans)


def _check_explained(source: Path, plans: Mapping[str, Plan]) -> None:
    """Raise if a file may be a packed buffer whose layout is lost, instead of copying it as a plain array."""
    names = [name for name, plan in plans.items() if plan.unexplained]
    if names:
        named = listed(map(shortened, names))
        raise LayoutError(
            f"no layout is recorded for {named} in {str(source)!r}, which may be packed\n"
            f'  unpack each packed file with --shape; list others in {LAYOUTS_NAME}, as "x.npy": null'
        )


def _check_not_renamed(files: Mapping[str, TensorFile], tensors: Collection[str]) -> None:
    """Raise if a requested array may be a packed file that was renamed without its record."""
    for file in files.values():
        for entry in file.entries:
            if (not tensors or entry.name in tensors) and (why := file.suspected(entry)):
                raise file.named(entry, LayoutError(why))


def _requested_in(file: TensorFile, tensors: Collection[str]) -> Collection[str] | None:
    """The requested tensors in one shard; None if no tensors were requested by name."""
    return {entry.name for entry in file.entries}.intersection(tensors) if tensors else None


def _check_target(shards: Shards, target: Path) -> None:
    """Raise if the target would overwrite the source, or contains the index of other files."""
    if not target.is_file():
        _check_apart(shards.path, target)
    if not target.exists():
        return
    if not target.is_dir():
        raise TilejitError(f"IN is a directory, but {str(target)!r} is a file\n  pass two directories")
    others = (name for name in (INDEX_NAME, LAYOUTS_NAME) if (shards.path / name).exists())
    names = (*shards.names, *others)
    read = {(s.st_dev, s.st_ino) for s in ((shards.path / name).stat() for name in names)}
    written: dict[str, Path] = {}
    for to in (target / name for name in names):
        other = written.setdefault(os.path.realpath(to), to)
        if other is not to:
            raise TilejitError(
                f"{str(other)!r} and {str(to)!r} are the same file\n"
                "  remove the link, or pass another directory"
            )
        if to.is_symlink() and to.exists() and (to.stat().st_dev, to.stat().st_ino) in read:
            raise TilejitError(
                f"{str(to)!r} is a link to a file of IN\n  remove it, or pass another directory"
            )
    if shards.index is None and (target / INDEX_NAME).exists():
        raise TilejitError(
            f"{str(target / INDEX_NAME)!r} is the index of other files, and IN has no index\n"
            "  remove it, or pass another directory"
        )


def _check_apart(source: Path, target: Path) -> None:
    """Raise if one directory is or contains the other, through whatever names and links."""
    fix = "pass another directory for OUT"
    if os.path.exists(target) and os.path.samefile(source, target):
        raise TilejitError(f"OUT and IN are the same directory\n  {fix}")
    for outer, inner, words in ((source, target, "OUT is inside IN"), (target, source, "IN is inside OUT")):
        above = Path(os.path.realpath(inner)).parents
        if os.path.exists(outer) and any(os.path.exists(p) and os.path.samefile(p, outer) for p in above):
            raise TilejitError(f"{words}: {str(inner)!r} is in {str(outer)!r}\n  {fix}")


class _Finished:
    """The files that earlier runs wrote completely to a directory, and their origins.

    Raises:
        TilejitError: the list is a link.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / DONE_NAME
        if self.path.is_symlink():
            raise TilejitError(f"{str(self.path)!r} is a link, whose target would be replaced\n  remove it")
        self.facts: dict[str, Any] = {}
        with suppress(OSError, ValueError, RecursionError), open_ordinary(self.path) as file:
            known = json.loads(file.read())
            self.facts = known if isinstance(known, dict) else {}

    def holds(self, target: Path, origin: Origin) -> bool:
        """Whether the file is unchanged since an earlier run wrote it from the same origin."""
        try:
            return bool(self.facts.get(target.name) == self._fact(target, origin))
        except OSError:
            return False

    def add(self, target: Path, origin: Origin) -> None:
        """Record a complete file."""
        self.facts[target.name] = self._fact(target, origin)
        with replacing(self.path) as file:
            file.write(json.dumps(self.facts).encode())

    def forget(self) -> None:
        """Remove the record after all files are done, so that the next run starts over."""
        with suppress(FileNotFoundError):
            self.path.unlink()

    def _fact(self, target: Path, origin: Origin) -> dict[str, Any]:
        status = target.stat()
        return {"origin": dict(origin), "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
