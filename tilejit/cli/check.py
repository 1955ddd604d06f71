"""`tilejit check`: compare files with the layouts that they record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilejit.cli.errors import FAILED, explained, misused
from tilejit.cli.file_report import printable
from tilejit.cli.files import Quiet, Threads
from tilejit.cli.output import print_json
from tilejit.cli.progress import progress
from tilejit.cli.streams import DASH

if TYPE_CHECKING:
    from tilejit.files.check import Checked, Problem

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Packed .npy and .safetensors files, raw bytes with a record, or directories of them.",
        readable=False,  # not a mistake in the command line: it is reported for the file
    ),
]


def check(
    files: Files,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Check packed files against their records.

    Compares the layouts that pack recorded with the sizes and dtypes of the files, and the padding of each
    packed tensor with its recorded value. In a directory, also compares the files with those that its record
    or its index lists. Never writes, and reads large files part by part.

    The exit code is 1 if something differs. --quiet prints only what differs.
    """
    if DASH in files:
        raise misused("check reads files, not standard input\npass the name of a file or a directory")
    found = []
    for path in dict.fromkeys(map(_described, files)):
        with progress(_size(path), path.name, quiet=quiet) as advance:
            found += list(_checked(path, threads, advance))
    wrong = sum(len(one.problems) for one in found)
    if as_json:
        print_json({"ok": not wrong, "files": [_facts(one) for one in found]})
    else:
        for one in found:
            _print(one, quiet=quiet)
        if wrong:
            typer.echo(f"{wrong} problem{'s' * (wrong != 1)}")
    if wrong:
        raise typer.Exit(FAILED)


def _described(path: Path) -> Path:
    """The file or directory that a record describes, because a shell's `packed*` names both; others as is."""
    from tilejit.files.recorded import LAYOUTS_NAME
    from tilejit.files.shards import INDEX_NAME
    from tilejit.files.sidecar import SUFFIX

    if path.name in (LAYOUTS_NAME, INDEX_NAME):
        return path.parent
    return path.with_name(path.name.removesuffix(SUFFIX)) if path.name != SUFFIX else path


def _checked(path: Path, threads: int | None, advance: Callable[[int], None]) -> Iterator[Checked]:
    from tilejit.files.check import Checked, Problem, check_file
    from tilejit.files.check_directory import check_directory

    try:
        if path.is_dir():
            yield from check_directory(path, threads=threads, advance=advance)
        else:
            yield check_file(path, threads=threads, advance=advance)
    except OSError as error:
        yield Checked(str(path), problems=(Problem(explained(error)),))


def _size(path: Path) -> int:
    """Bytes to read, for a progress bar; 0 if they are not known."""
    from tilejit.files.check_directory import files_to_check

    try:
        return sum(one.stat().st_size for one in (files_to_check(path) if path.is_dir() else [path]))
    except OSError:
        return 0


def _print(checked: Checked, *, quiet: bool) -> None:
    """Print a line for a file without problems, or one for each problem."""
    name = printable(checked.path)
    for problem in checked.problems:
        what, *more = problem.text.splitlines()
        typer.echo(printable(f"{name}: {problem.tensor + ': ' if problem.tensor else ''}{what}"))
        index = _padded_index(problem)
        if index is not None:
            typer.echo(f"  in the array padded to {index[1]}, it is element {index[0]}")
        for line in more:
            typer.echo(printable(f"  {line.strip()}"))
    if not checked.problems and not quiet and checked.tensors:
        tensors = f"{checked.tensors} tensor{'s' * (checked.tensors != 1)}"
        typer.echo(f"{name}: ok, {tensors}, {checked.packed} packed, {checked.padding_slots:,} padding slots")


def _facts(checked: Checked) -> dict[str, Any]:
    return {
        "file": checked.path,
        "tensors": checked.tensors,
        "packed": checked.packed,
        "padding_slots": checked.padding_slots,
        "problems": [_problem_facts(problem) for problem in checked.problems],
    }


def _problem_facts(problem: Problem) -> dict[str, Any]:
    what, *more = problem.text.splitlines()
    facts: dict[str, Any] = {
        "tensor": problem.tensor or None,
        "problem": what,
        "fix": " ".join(line.strip() for line in more) or None,
    }
    if problem.padding is not None:
        index = _padded_index(problem)
        facts["padding"] = {
            "slots": problem.padding.slots,
            "differing": problem.padding.differing,
            "first_slot": problem.padding.first,
            "first_byte": problem.byte if problem.byte >= 0 else None,
            "first_index": None if index is None else index[0],
        }
    return facts


def _padded_index(problem: Problem) -> tuple[list[int], list[int]] | None:
    """The index of the first padding slot that differs, and the dimensions with padding; None without one.

    slot 9 of f32[3,5]{1,0:T(2,2)} -> [0, 5], [4, 6]
    """
    from codegen import LayoutError
    from tilejit.layout.indexing import multi_index
    from tilejit.view.boards import padded_shape

    if problem.spec is None or problem.padding is None:
        return None
    try:
        padded = padded_shape(problem.spec)
        if padded.physical_size != problem.spec.physical_size:
            return None
        index = multi_index(padded, problem.padding.first)
    except LayoutError:
        return None
    return None if index is None else (list(index), list(padded.dimensions))
