"""Files to convert, one or a directory of them: planned, then reported or written."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from codegen import LayoutError, TilejitError
from tilejit.cli.file_report import Row, print_sizes, printable, some
from tilejit.cli.output import human_bytes, print_json
from tilejit.cli.progress import progress
from tilejit.cli.streams import Source, StandardOutput, Target

if TYPE_CHECKING:
    from tilejit.files.container import Container
    from tilejit.files.directory import Shards
    from tilejit.files.npy import Plan as ArrayPlan
    from tilejit.files.rules import Rules
    from tilejit.files.safetensors import Plan


@dataclass(frozen=True, slots=True)
class Options:
    """How to go about it."""

    done: str
    dry_run: bool = False
    resume: bool = False
    as_json: bool = False
    dtype: str | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One file: its plan; `rows` are its tensors, `left` those that the layout does not fit."""

    source: Source
    target: Target
    plan: Plan | ArrayPlan
    rows: tuple[Row, ...]
    left: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    reason: LayoutError | None = None
    fits: bool = True

    @property
    def converted(self) -> list[Row]:
        """The tensors that change."""
        return [row for row in self.rows if row.spec is not None]


def tensors_job(source: Source, target: Target, plan: Plan) -> Job:
    """The job of a .safetensors file."""
    changed = {c.name: c for c in plan.converted}
    rows = []
    for output in plan.outputs:
        own = changed.get(output.name)
        before = own.source_bytes if own else output.nbytes
        rows.append(Row(source.name, output.name, own.spec if own else None, before, output.nbytes))
    reason = plan.misfits[0][1] if plan.misfits else None
    return Job(source, target, plan, tuple(rows), plan.left, plan.kept, reason, plan.fits)


def array_job(source: Source, target: Target, plan: ArrayPlan, reason: LayoutError | None = None) -> Job:
    """The job of a .npy file; `reason` says why it stays as it is."""
    row = Row(source.name, source.stem, plan.spec, plan.source_bytes, plan.nbytes)
    left = (source.stem,) if reason else ()
    return Job(source, target, plan, (row,), left, (), reason, plan.spec is not None)


def run_file(job: Job, options: Options, *, strictly: bool, rules: Rules | None = None) -> None:
    """Write one file, or say what would be written."""
    _check([job], options, strictly=strictly)
    if options.dry_run:
        print_sizes(list(job.rows), as_json=options.as_json, files=False)
        _notes([job], options, rules)
        return
    write(job, options)
    _notes([job], options, rules)
    _report([job], options, files=False)


def write(job: Job, options: Options) -> None:
    """Write one file, with a bar of its own."""
    with progress(job.plan.nbytes, job.target.name, quiet=options.quiet) as advance:
        job.plan.write(job.target, advance, resume=options.resume, say=_say(job, options))


@dataclass(frozen=True, slots=True)
class Planner:
    """What makes plans of a directory's files: of tensors in .safetensors files, and of .npy files."""

    tensors: Callable[[Container, Collection[str] | None], Plan]
    array: Callable[[Path, str], ArrayPlan | None] | None = None
    """None where .npy files cannot be read without more; its answer None leaves one as it is."""
    named: Collection[str] = field(default_factory=tuple)


def run_directory(
    source: Path, target: Path, planner: Planner, options: Options, rules: Rules | None = None
) -> None:
    """Write the files of a directory into another, each all or nothing, the index last."""
    from tilejit.files.directory import Finished, read_shards, write_index

    shards = read_shards(source)
    _check_directories(shards, target)
    jobs = _jobs(shards, target, planner)
    _check(jobs, options, strictly=bool(planner.named))
    if options.dry_run:
        print_sizes([row for job in jobs for row in job.rows], as_json=options.as_json, files=True)
        _notes(jobs, options, rules)
        return
    target.mkdir(parents=True, exist_ok=True)
    finished = Finished(target) if options.resume else None
    with progress(sum(job.plan.nbytes for job in jobs), target.name, quiet=options.quiet) as advance:
        for job in jobs:
            origin = job.plan.origin()
            assert isinstance(job.target, Path)
            if finished and finished.holds(job.target, origin):
                advance(job.plan.nbytes)
                continue
            job.plan.write(job.target, advance, resume=options.resume, say=_say(job, options))
            if finished:
                finished.add(job.target, origin)
    write_index(target, shards, sum(job.plan.nbytes for job in jobs))
    if finished:
        finished.forget()
    _notes(jobs, options, rules)
    _report(jobs, options, files=True)


def _check_directories(shards: Shards, target: Path) -> None:
    """Refuse to write over what is read, and beside an index of other files."""
    from tilejit.files.directory import INDEX_NAME

    if not target.exists():
        return
    if not target.is_dir():
        raise TilejitError(f"IN is a directory, but {str(target)!r} is a file: give two directories")
    if target.samefile(shards.path):
        raise TilejitError("OUT is the directory of IN; give another, so that no mix of both can be left")
    names = shards.names if shards.index is None else (*shards.names, INDEX_NAME)
    read = {(s.st_dev, s.st_ino) for s in ((shards.path / name).stat() for name in names)}
    for to in (target / name for name in names):
        if to.is_symlink() and to.exists() and (to.stat().st_dev, to.stat().st_ino) in read:
            raise TilejitError(f"{str(to)!r} is a link to a file of IN: remove it, or give another directory")
    if shards.index is None and (target / INDEX_NAME).exists():
        raise TilejitError(
            f"{str(target / INDEX_NAME)!r} is of other files, and IN has none: remove it, "
            "or give another directory"
        )


def _jobs(shards: Shards, target: Path, planner: Planner) -> list[Job]:
    from tilejit.files import container

    open_files: dict[str, Any] = {}
    found: set[str] = set()
    for name in shards.names:
        path = shards.path / name
        if path.suffix.lower() == ".npy":
            if planner.array is None:
                raise TilejitError(
                    f"{name!r} does not hold its layout: convert .npy files one by one, with --shape"
                )
            found.add(path.stem)
            continue
        file = open_files[name] = container.read(path)
        tensors = {entry.name for entry in file.entries}
        shards.check(name, tensors)
        found |= tensors
    unknown = next((name for name in planner.named if name not in found), None)
    if unknown is not None:
        raise LayoutError(f"there is no tensor {unknown!r} in {str(shards.path)!r}")
    jobs = []
    for name in shards.names:
        path, to = shards.path / name, target / name
        if name not in open_files:
            jobs.append(_array_in(path, to, planner))
            continue
        file = open_files[name]
        own = {entry.name for entry in file.entries}
        named = [tensor for tensor in planner.named if tensor in own] if planner.named else None
        jobs.append(tensors_job(path, to, planner.tensors(file, named)))
    return jobs


def _array_in(path: Path, to: Path, planner: Planner) -> Job:
    from tilejit.files import npy

    assert planner.array is not None
    copy = npy.plan_copy(path)  # damaged files are no misfits
    if planner.named and path.stem not in planner.named:
        return array_job(path, to, copy)
    try:
        plan = planner.array(path, path.stem)
    except LayoutError as error:
        return array_job(path, to, copy, LayoutError(f"{path.name!r}: {error}"))
    return array_job(path, to, plan or copy)


def _check(jobs: list[Job], options: Options, *, strictly: bool) -> None:
    """Refuse where the layout fits nothing, or not what was named."""
    reason = next((job.reason for job in jobs if job.reason), None)
    if reason and (strictly or not any(job.fits for job in jobs)):
        raise reason
    if not any(job.converted for job in jobs):
        raise TilejitError(f"there is nothing to be {options.done} in this file" + "s" * (len(jobs) > 1))


def _notes(jobs: list[Job], options: Options, rules: Rules | None) -> None:
    """Say which tensors stayed as they are, and which rules had nothing to do."""
    if options.quiet:
        return
    kept = [name for job in jobs for name in job.kept]
    left = [name for job in jobs for name in job.left]
    note = (
        f"not converted to {options.dtype or 'another dtype'}, since they hold no fractions: {some(kept)}\n"
        if kept
        else ""
    )
    if left:
        reason = next(job.reason for job in jobs if job.reason)
        note += f"not {options.done}, since the layout does not fit: {some(left)}\n"
        note += f"  {str(reason).splitlines()[0]}\n"
        note += "  to give these another layout, name them with --tensor\n"
    for rule in rules.idle(row.tensor for job in jobs for row in job.rows) if rules else ():
        note += f"the rule in line {rule.line} is first to match no tensor: {rule.pattern.pattern[:60]!r}\n"
    typer.echo(note, err=True, nl=False)


def _report(jobs: list[Job], options: Options, *, files: bool) -> None:
    """Say what was done; on stderr where standard output is the file."""
    err = any(isinstance(job.target, StandardOutput) for job in jobs)
    rows = [row for job in jobs for row in job.rows]
    converted = [row for row in rows if row.spec is not None]
    if options.as_json:
        print_json([row.facts(files=files) for row in converted], err=err)
        return
    if options.quiet:
        return
    before, after = sum(row.before for row in converted), sum(row.after for row in converted)
    count = f"{len(converted)} of {len(rows)} tensors"
    typer.echo(f"{options.done} {count}, {human_bytes(before)} -> {human_bytes(after)}", err=err)


def _say(job: Job, options: Options) -> Callable[[str], None]:
    return lambda text: (
        None if options.quiet else typer.echo(printable(f"{job.target.name}: {text}"), err=True)
    )
