"""Turn every error that ends a command into a message on stderr and an exit code.

Mistakes in the command line end with 2, all later failures with 1.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from codegen import LayoutError, TilejitError
from tilejit.cli.help import help_text
from tilejit.cli.output import colored, columns_of

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
CARET = re.compile(r"\s*\^[\^~]*\s*")
NEAR = 0.7
"""The least similarity of a mistyped word and its suggestion, from 0 to 1: "pak" and "pack" have 0.86."""

COMMANDS = {
    r"tilejit\.formats\(\)": "`tilejit formats`",
    r"casting='(\w+)'": r"--casting \1",
    "plan_file_unpack": "`tilejit unpack`",
    "again=True": "--again",
}
"""Calls and keywords that errors suggest to Python code, as regular expressions, and the command line's."""

_OF_FULL_DISKS = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")}
"""Errors of full disks. They name the file that was written, but do not name standard output."""

# typer does not export the base class of its usage errors, and click's module depends on its version.
_UsageError: Any = typer.BadParameter.__mro__[1]

_CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of (?P<known>'.*')")
"""typer's message for a value that is not one of an option's choices."""


class Group(TyperGroup):
    """A group of commands with help as wide as the terminal, and suggestions for mistyped commands."""

    def get_help(self, ctx: Any) -> str:
        """The help, as wide as the terminal."""
        return help_text(self, ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command named by the first argument.

        Raises:
            UsageError: it does not exist; the message suggests the most similar one.
        """
        name = args[0] if args else ""
        if not name or name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        ctx.fail(f"unknown command {name[:40]!r}\n{_guess(name, list(self.commands), ctx.command_path)}")


class Commands(Group):
    """The group of all commands; errors with an explanation are printed without a traceback."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """The context of a run, which records whether its output takes colors."""
        extra.setdefault("color", colored(sys.stdout))
        return super().make_context(*args, **extra)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; ends in SystemExit: 0, 1 for a failure, 2 for misuse, or 130 after Ctrl-C."""
        extra["standalone_mode"] = False
        given = next(iter(args), extra.get("args")) or sys.argv[1:]
        resumes = ""
        try:
            code = super().main(*args, **extra)
            if sys.stdout:
                sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except FilesInterrupted as error:
            code, resumes = INTERRUPTED, _how_to_resume(error.kept, given)
        except _UsageError as error:
            say(usage_text(error))
            code = MISUSED
        except BrokenPipeError:
            code = _leave_pipe()
        # A library that does not fit into memory raises ImportError.
        except (TilejitError, OSError, MemoryError, ImportError) as error:
            _flush_output()
            code = fail(explained(error))
        except Exception as error:
            if not _lacks_memory(error):
                raise
            _flush_output()
            code = fail("out of memory")
        if code == INTERRUPTED:
            say("interrupted")
            if resumes:  # not wrapped, so that the command can be copied
                typer.echo(f"  {resumes}", err=True)
        sys.exit(code if isinstance(code, int) else 0)


class FilesInterrupted(Exception):
    """Ctrl-C while files were written; `kept` if the next run can continue them.

    typer would turn a KeyboardInterrupt into an exit code.
    """

    def __init__(self, *, kept: bool) -> None:
        super().__init__()
        self.kept = kept


def _how_to_resume(kept: bool, given: Sequence[str]) -> str:
    """What to run after Ctrl-C.

    tilejit pack a.npy b.npy --layout tpu --resume -> "continue with: tilejit pack a.npy ..."
    """
    if kept:
        return f"continue with: {shell_line(['tilejit', *given])}"
    line = shell_line(["tilejit", given[0], "--resume", *given[1:]])
    return f"the next run starts again; a run that can be continued: {line}"


def shell_line(words: Sequence[str]) -> str:
    """Words as a line for the shell, without characters that move a terminal's cursor."""
    line = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
    return "".join(c if c.isprintable() else "?" for c in line)


def misused(text: str) -> Exception:
    """The exception for a mistake in the command line."""
    error: Exception = _UsageError(text)
    return error


@contextmanager
def arguments_checked() -> Iterator[None]:
    """Report an unreadable layout or a wrong parameter as a mistake in the command line."""
    try:
        yield
    except (LayoutError, TypeError) as error:
        raise misused(str(error)) from error


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error comes from running out of memory, which may raise SystemError or be wrapped."""
    while error is not None:
        if isinstance(error, MemoryError | SystemError):
            return True
        error = error.__cause__ or error.__context__
    return False


def help_if_alone(context: typer.Context) -> None:
    """Print the help if no command was given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def usage_text(error: Any) -> str:
    r"""The description of a mistake in the command line, with a suggestion.

    --jsn -> "unknown option --jsn\n  did you mean --json?"
    """
    context = error.ctx
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        known = [name for p in context.command.get_params(context) for name in p.opts] if context else []
        guess = _guess(option, known, context.command_path if context else "tilejit")
        return f"unknown option {option[:40]}\n{guess}"
    text = str(error.format_message()).replace("Value error, ", "").removesuffix(".")
    if text.startswith("Missing ") and context is not None:
        return f"{text[0].lower()}{text[1:]}\n{context.command_path} --help shows the usage"
    choice = _CHOICE.search(text)
    near = _near(choice["given"], re.findall("'([^']*)'", choice["known"])) if choice else None
    return f"{text}\ndid you mean {near}?" if near else text


def _guess(given: str, known: list[str], command: str) -> str:
    near = _near(given, known)
    return f"did you mean {near}?" if near else f"{command} --help lists all of them"


def _near(given: str, known: list[str]) -> str | None:
    """The word that was probably meant.

    "pcak" -> "pack"    "convert" -> None
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(given[:40], known, n=1, cutoff=NEAR)), None)


def explained(error: BaseException) -> str:
    """The message of an exception.

    FileNotFoundError -> "No such file or directory: 'x.npy'"    MemoryError -> "out of memory"
    """
    if isinstance(error, OSError) and error.strerror:
        if error.filename is not None:
            return f"{error.strerror}: {error.filename!r}{_missing_directory(error)}"
        return f"{error.strerror}: standard output" if error.errno in _OF_FULL_DISKS else error.strerror
    return str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)


def _missing_directory(error: OSError) -> str:
    """The next line of the message, if the directory of a missing file is missing too."""
    folder = os.path.dirname(os.fspath(error.filename)) if isinstance(error.filename, str) else ""
    if not isinstance(error, FileNotFoundError) or not folder or os.path.lexists(folder):
        return ""
    return f"\n  the directory {folder!r} does not exist"


def fail(text: str) -> int:
    """Print a text as `say` does, and return the exit code of a failure."""
    say(text)
    return FAILED


def say(text: str) -> None:
    """Print a message on stderr, without characters that move a terminal's cursor."""
    name = "\x1b[1;31mtilejit:\x1b[0m" if colored(sys.stderr) else "tilejit:"
    if sys.stderr:
        try:
            print(f"{name} {message(text, columns_of(sys.stderr))}", file=sys.stderr, flush=True)
        except OSError:  # a full disk or a closed pipe; the exit code still reports the error
            _to_nowhere(sys.stderr)


def message(text: str, columns: int) -> str:
    """The lines of a message: the first follows "tilejit: ", the others are indented by two.

    Calls become commands. A line of prose is wrapped; of a long line above a caret, the part around the caret
    is shown.
    """
    for call, command in COMMANDS.items():
        text = re.sub(call, command, text)
    first, *more = (
        "".join(c if c.isprintable() else "?" for c in line) for line in text.splitlines() or [""]
    )
    lines = _wrapped(f"tilejit: {first}", columns, "  ")
    lines[0] = lines[0].removeprefix("tilejit:").lstrip()
    more = textwrap.dedent("\n".join(line for line in more if line.strip())).splitlines()
    for line, below in pairwise([*more, ""]):
        if CARET.fullmatch(line):
            continue
        if CARET.fullmatch(below):
            lines += ["  " + part for part in _around(line, below, columns - 2)]
        else:
            lines += _wrapped("  " + line, columns)
    return "\n".join(lines)


def say_notes(text: str) -> None:
    """Print lines on stderr that fit the terminal, without characters that move its cursor."""
    for line in text.splitlines():
        shown = "".join(c if c.isprintable() else "?" for c in line)
        indent = " " * (2 + len(shown) - len(shown.lstrip()))
        typer.echo("\n".join(_wrapped(shown, columns_of(sys.stderr), indent)), err=True)


def _wrapped(line: str, columns: int, indent: str = "    ") -> list[str]:
    """A line of prose as lines that fit, all but the first indented."""
    fitted = textwrap.wrap(
        line, columns, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return fitted or [line]


def _around(line: str, caret: str, columns: int) -> tuple[str, str]:
    """The part of a long line around its caret, and the caret.

    ("0123456789", "       ^", 5) -> ("56789", "  ^")
    """
    column = caret.index("^")
    start = max(0, min(column - columns // 2, len(line) - columns))
    return line[start : start + columns], caret[start:]


def _flush_output() -> None:
    """Flush as much of the printed text as standard output takes, and drop the rest."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        _to_nowhere(sys.stdout)


def _leave_pipe() -> int:
    """The reader is gone, as in `| head`: print nothing, now or when Python flushes at exit."""
    _to_nowhere(sys.stdout)
    return 1


def _to_nowhere(stream: TextIO) -> None:
    """Drop the unwritten text of a stream, so that Python neither retries nor reports it at exit."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError):  # streams in tests have no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
