"""The common part of `pack`, `unpack` and `relayout`: plan a file or a directory, then report or write it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from codegen import LayoutError, TilejitError, dataclass
from tilejit.cli.errors import FilesInterrupted, misused, say_notes, shell_line
from tilejit.cli.file_report import Row, facts, print_sizes, printable, rows_of, some
from tilejit.cli.output import print_json
from tilejit.cli.progress import progress
from tilejit.cli.streams import DASH, Source, StandardOutput, Target, ends
from tilejit.support.units import human_bytes

if TYPE_CHECKING:
    import numpy as np

    from tilejit.files.directory import Draft, Skip
    from tilejit.files.plan import Plan
    from tilejit.files.rules import Rules
    from tilejit.files.stream import Advance
    from tilejit.files.tensor_file import TensorFile
    from tilejit.layout.cute_shape import Spec


LOSSES = {
    "zero": "became 0",
    "inf": "became inf",
    "nan": "became NaN",
    "overflowed": "overflowed",
    "imaginary": "lost an imaginary part",
}
"""What happened to the values that `files.casts.Losses` counts."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a conversion; `done` is the participle in reports, such as "packed"."""

    done: str
    tensors: Collection[str]
    raw: bool
    dry_run: bool
    resume: bool
    clobber: bool
    quiet: bool
    as_json: bool
    dtype: str | None = None
    shape: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """The plans of one file or of a directory's files by name, and the function that writes them.

    Attributes:
        plans: the plans.
        write: writes the files, as `DirectoryPlan.write` does.
        strictly: whether every requested tensor must fit.
        files: whether reports name files.
        array: whether the plan is for one array, whose shape the report prints.
        err: whether reports go to stderr, because standard output is the file.
        raw: whether it writes raw bytes, which have no dtype.
    """

    plans: Mapping[str, Plan]
    write: Callable[..., None]
    strictly: bool
    files: bool = False
    array: bool = False
    err: bool = False
    raw: bool = False


def convert(source: Path, target: Path, draft: Draft, options: Options, rules: Rules | None = None) -> None:
    """Write a file or the files of a directory, or report what would be written."""
    if options.resume and not options.clobber:
        raise misused("--resume continues files that exist, and --no-clobber keeps them\npass one of the two")
    from tilejit.files.whole_file import refuse_to_clobber

    came, goes = ends(
        source,
        target,
        dry_run=options.dry_run,
        resume=options.resume,
        raw=options.raw,
        may_be_raw=options.shape is not None,
    )
    _check_other_file(came, goes)
    if not options.clobber and isinstance(goes, Path) and not source.is_dir():
        refuse_to_clobber(goes)
    if source.is_dir():
        job = _directory_job(source, target, draft, options)
    else:
        job = _file_job(came, goes, draft, options)
    _check(job, options, rules)
    earlier: set[tuple[str, str]] = set()
    if not options.dry_run:
        nbytes = sum(plan.nbytes for plan in job.plans.values())
        with progress(nbytes, goes.name, quiet=options.quiet) as advance, _counted_casts():
            write = partial(job.write, advance, say=partial(_say, options), clobber=options.clobber)
            try:
                write(resume=options.resume, skip=lambda file, name: earlier.add((file, name)))
            except KeyboardInterrupt:
                if DASH in (source, target):  # streams can't be resumed
                    raise
                raise FilesInterrupted(kept=options.resume) from None
    rows = [
        row
        for name, plan in job.plans.items()
        for row in rows_of(name, plan, earlier if options.resume else None)
    ]
    if options.dry_run:
        print_sizes(rows, as_json=options.as_json, files=job.files)
    _notes(job, options, rules)
    if not options.dry_run:
        _report(job, rows, goes, options)


def _check_other_file(source: Source, target: Target) -> None:
    """Raise if the file to write is the one to read, or a record; directories are compared when planned."""
    if source.is_dir() or isinstance(target, StandardOutput):
        return
    from tilejit.files.recorded import LAYOUTS_NAME
    from tilejit.files.shards import INDEX_NAME
    from tilejit.files.sidecar import SUFFIX
    from tilejit.files.whole_file import would_replace

    name = os.path.basename(os.path.realpath(target))
    if name in (LAYOUTS_NAME, INDEX_NAME) or name.endswith(SUFFIX):
        raise TilejitError(
            f"OUT: {printable(name)!r} is the name of a record of tensors\n  give another name for OUT"
        )

    if would_replace(target, source):
        raise TilejitError(
            f"IN and OUT are the same file, {printable(str(target))!r}\n  give another name for OUT"
        )


def _directory_job(source: Path, target: Path, draft: Draft, options: Options) -> _Job:
    from tilejit.files.directory import plan_directory

    given = {"--shape": options.shape, "--raw": options.raw, "--offset": options.offset}
    for name in (name for name, value in given.items() if value):
        raise misused(f"{name} is for one file\nomit it: IN is a directory")
    found = plan_directory(source, target, draft, options.tensors)
    return _Job(found.plans, found.write, bool(options.tensors), files=True)


def _file_job(source: Source, target: Target, draft: Draft, options: Options) -> _Job:
    from tilejit.files.conversion import requested_names

    file, raw = _opened(source, target, options)
    plan = draft(file, requested_names(file, options.tensors))
    strictly = bool(options.tensors) or file.one_array
    err = isinstance(target, StandardOutput)

    def write(advance: Advance, *, skip: Skip, **more: Any) -> None:
        plan.write(target, advance, raw=raw, skip=partial(skip, source.name), **more)

    return _Job({source.name: plan}, write, strictly, array=file.one_array, err=err, raw=raw)


def _opened(source: Source, target: Target, options: Options) -> tuple[TensorFile, bool]:
    """The file to convert, and whether to write raw bytes, after checking that the options apply to both."""
    from tilejit.files.file_types import RAW, file_type, input_type, open_file

    try:
        kind = input_type(source, source.suffix, raw=options.raw, offset=options.offset)
        other = file_type(target, target.suffix, raw=options.raw, written=True)
    except TilejitError as error:
        raise misused(str(error)) from error
    if (kind == ".safetensors") != (other == ".safetensors"):
        names = ("raw bytes" if name == RAW else f"a {name} file" for name in (kind, other))
        raise misused("IN is {} and OUT is {}\npass two files of the same kind".format(*names))
    if kind == ".safetensors" and options.shape:
        raise misused("--shape is for .npy files\nomit it: a packed .safetensors file holds the shapes")
    if options.offset and kind != RAW:
        raise misused(f"--offset is for raw bytes, but IN is {kind}\nomit it, or pass --raw")
    file = open_file(source, shape=options.shape, extension=kind, name=source.stem, offset=options.offset)
    if file.one_array and options.tensors:
        raise misused("--tensor is for .safetensors files\nomit it: this file has one array")
    return file, other == RAW


@contextmanager
def _counted_casts() -> Iterator[None]:
    """Silence NumPy's warnings about casts, because the report counts what they lose."""
    import numpy as np

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        yield


def _check(job: _Job, options: Options, rules: Rules | None) -> None:
    """Raise if the layout fits no tensor or not a named one, or if there is nothing to convert."""
    from tilejit.files.plan import check_fits

    plans = job.plans.values()
    check_fits(plans, strictly=job.strictly)
    if not any(plan.converted for plan in plans):
        files = repr(printable(next(iter(job.plans)))) if len(plans) == 1 else "these files"
        why = ", because no rule gives a tensor a layout" if rules else ""
        fix = "" if options.done == "packed" else f"\n  {_why_unpacked(plans)}"
        raise TilejitError(f"nothing in {files} can be {options.done}{why}{fix}")


def _why_unpacked(plans: Iterable[Plan]) -> str:
    if any(plan.source.one_array for plan in plans):
        return "no layout is recorded for the .npy files: pass each file's shape with --shape"
    return "no tensor records a layout: none was packed, or all are unpacked already"


def _still_packed(plans: Iterable[Plan]) -> str:
    """The lines about unpacked tensors that had been packed more than once; "" if there are none."""
    left = [(c.name, record) for plan in plans for c in plan.converted if (record := plan.records[c.name])]
    if not left:
        return ""
    names, layout = some(name for name, _ in left), left[0][1][-1]
    return f"still packed, because pack was applied more than once: {names}, in {layout}\n"


def _notes(job: _Job, options: Options, rules: Rules | None) -> None:
    """Report which tensors were left unchanged, and which rules had no effect."""
    from tilejit.layout.indexing import padding_note

    if options.quiet:
        return
    plans = job.plans.values()
    kept = [name for plan in plans for name in plan.kept]
    misfits = [misfit for plan in plans for misfit in plan.misfits]
    note = ""
    if kept:
        dtype = options.dtype or "another dtype"
        note += f"not converted to {dtype}, because they are not floating-point: {some(kept)}\n"
        note += (
            f"  to convert these too, name them {'in a rule with a dtype' if rules else 'with --tensor'}\n"
        )
    if misfits:
        left = some(name for name, _ in misfits)
        note += f"not {options.done}, because the layout does not fit: {left}\n"
        note += f"  {str(misfits[0][1]).splitlines()[0]}\n"
        note += "  to give these another layout, name them with --tensor\n"
    note += _still_packed(plans) if options.done == "unpacked" else ""
    packed = [change for plan in plans for change in plan.converted if options.done != "unpacked"]
    packed.sort(key=lambda change: change.spec.size_in_bytes * change.spec.padding_fraction, reverse=True)
    if empty := [f"{c.name} ({padding_note(c.spec)})" for c in packed if padding_note(c.spec)]:
        note += f"tiles are mostly empty: {some(empty)}\n  a layout with smaller tiles takes less space\n"
    note += "" if options.dry_run or job.raw else _raw_elements(job.plans)
    names = (output.name for plan in plans for output in plan.outputs)
    for rule in rules.idle(names) if rules and not job.array else ():
        pattern = rule.pattern.pattern[:60]
        note += f"the rule in line {rule.line} never applies: no tensor matches {pattern!r} first\n"
    say_notes(note + _losses(job) + ("" if options.dry_run else _uncounted(job)))


def _losses(job: _Job) -> str:
    """What casts lost, and where most; "" if nothing."""
    found = [(name, tensor, x) for name, plan in job.plans.items() for tensor, x in plan.losses.items()]
    if not found:
        return ""
    casts = [c.cast for plan in job.plans.values() for c in plan.converted if c.cast is not None]
    (want, *others), values = {cast.want for cast in casts}, sum(cast.losses.values for cast in casts)
    lost = [(sum(getattr(x, key) for *_, x in found), words) for key, words in LOSSES.items()]
    parts = ", ".join(f"{count:,} {words}" for count, words in lost if count)
    dtype = "several dtypes" if others else want
    total = sum(count for count, _ in lost)
    name, tensor, most = max(found, key=lambda item: item[2].total)
    text = f"lost in the cast to {dtype}: {total:,} of {values:,} values ({parts})\n"
    if len(found) > 1:
        where = printable(f"{name}: {tensor}" if job.files else tensor)
        text += f"  most in {where}: {most.total:,} of {most.values:,}\n"
    elif not job.array:
        text += f"  in {printable(tensor)}\n"
    return text


def _uncounted(job: _Job) -> str:
    """The line about values that an earlier run converted, whose losses are not known; "" if none."""
    changes = [c for plan in job.plans.values() for c in plan.converted if c.cast is not None]
    left = sum(prod(c.spec.dimensions) - c.cast.losses.values for c in changes if c.cast is not None)
    return f"an earlier run converted {left:,} values; their losses are not counted\n" if left else ""


def _raw_elements(plans: Mapping[str, Plan]) -> str:
    """The lines about unpacked .npy files of ml_dtypes' types, which NumPy reads as raw bytes."""
    from tilejit.layout.dtypes import from_numpy

    found: dict[np.dtype[Any], list[str]] = {}
    for name, plan in plans.items():
        dtype = plan.outputs[0].dtype if plan.converted and plan.source.one_array else None
        if dtype is not None and dtype.isbuiltin == 2 and plan.layout is None:  # 2: a type of another library
            found.setdefault(dtype, []).append(name)
    note = ""
    for dtype, names in found.items():
        files = f" ({some(names)})" if len(plans) > 1 else ""
        note += f"np.load returns {from_numpy(dtype).name} as '|V{dtype.itemsize}', raw bytes{files}\n"
        note += f"  view them: np.load(...).view(ml_dtypes.{dtype.name})\n"
    return note


def _report(job: _Job, rows: list[Row], goes: Target, options: Options) -> None:
    """Report which tensors are converted."""
    converted = [row for row in rows if row.spec is not None]
    if job.array:
        (plan,), (row,) = job.plans.values(), rows
        _report_array(plan, row, goes, options, err=job.err)
    elif options.as_json:
        print_json([row.facts(files=job.files) for row in converted], err=job.err)
    elif not options.quiet:
        before, after = sum(row.before for row in converted), sum(row.after for row in converted)
        count = f"{len(converted)} of {len(rows)} tensors"
        sizes = f"{human_bytes(before)} -> {human_bytes(after)}"
        earlier = sum(row.written_earlier is True for row in converted)
        parts = f"; {earlier} by an earlier run, {len(converted) - earlier} now" if earlier else ""
        typer.echo(f"{options.done} {count}, {sizes}{parts}", err=job.err)


def _report_array(plan: Plan, row: Row, goes: Target, options: Options, *, err: bool) -> None:
    """Report the shape of an array, and how to unpack it if it is packed."""
    converted, packed = plan.converted[0], plan.layout
    spec = converted.spec
    undo = None if packed is None else unpack_command(goes, packed)
    if options.as_json:
        found = facts(spec, converted.cast, row.written_earlier)
        print_json(found | ({} if undo is None else {"unpack": undo}), err=err)
    elif not options.quiet:
        typer.echo(converted.unpacked if packed is None else packed, err=err)
        if undo is not None:
            _say(options, f"unpack it with: {undo}")


def unpack_command(packed: Target, spec: Spec) -> str | None:
    """The command that unpacks a file, for the shell.

    Standard output has no record, so its command has the shape, and is None if the layout has no text form.

    y.npy -> "tilejit unpack y.npy y.unpacked.npy"
    standard output in f32[6,8]{0,1} -> "tilejit unpack - unpacked.npy --shape 'f32[6,8]{0,1}'"
    """
    from tilejit.files.file_types import HINTS
    from tilejit.layout.as_layout import as_layout

    if isinstance(packed, StandardOutput):
        try:
            if as_layout(str(spec)) != spec:
                return None
        except LayoutError:
            return None
        return shell_line(["tilejit", "unpack", "-", "unpacked.npy", "--shape", str(spec)])
    files = [str(packed), str(packed.with_name(f"{packed.stem}.unpacked.npy"))]
    # A file name that starts with a dash must not become an option.
    files = [f"./{name}" if name.startswith("-") else name for name in files]
    words = ["tilejit", "unpack", *files]
    if packed.suffix.lower() in HINTS:
        words.append("--raw")
    return shell_line(words)


def _say(options: Options, text: str) -> None:
    if not options.quiet:
        typer.echo(printable(text), err=True)
