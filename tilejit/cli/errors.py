"""One line on stderr and an exit code of its own for everything that ends a command early."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from codegen.errors import TilejitError

FAILED, INTERRUPTED = 2, 130

_OF_FULL_DISKS = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")}
"""Files that are written have a name in such errors; standard output has none."""

# typer exports no base class of its usage errors, and where it keeps click depends on its version.
_UsageError: Any = typer.BadParameter.__mro__[2]


class OneLineErrors(TyperGroup):
    """The group of commands; errors that have an explanation are printed as one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; ends in SystemExit, whose code is 0, 2 for an error, or 130 after Ctrl-C."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
            if sys.stdout:
                sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except _UsageError as error:
            code = fail(error.format_message())
        except BrokenPipeError:
            code = _leave_pipe()
        # Of imports, since a library that memory has no room for is an ImportError.
        except (TilejitError, OSError, MemoryError, ImportError) as error:
            _let_output_go()
            code = fail(explained(error))
        except Exception as error:
            if not _lacks_memory(error):
                raise
            _let_output_go()
            code = fail("out of memory")
        if code == INTERRUPTED:
            fail("interrupted")
        sys.exit(code if isinstance(code, int) else 0)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory that ran out is behind an error: Python loses it (SystemError), libraries wrap it."""
    while error is not None:
        if isinstance(error, MemoryError | SystemError):
            return True
        error = error.__cause__ or error.__context__
    return False


def help_if_alone(context: typer.Context) -> None:
    """Print the help where no command was given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def explained(error: BaseException) -> str:
    """What an exception says.

    FileNotFoundError -> "No such file or directory: 'x.npy'"    MemoryError -> "out of memory"
    """
    if isinstance(error, OSError) and error.strerror:
        if error.filename is not None:
            return f"{error.strerror}: {error.filename!r}"
        return f"{error.strerror}: standard output" if error.errno in _OF_FULL_DISKS else error.strerror
    return str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)


def fail(text: str) -> int:
    """Print a text on one line, "a | b | c", with nothing in it that moves a terminal's cursor."""
    # A caret under a text says nothing once the lines are joined.
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~\t")]
    message = "tilejit: " + " | ".join(lines)
    if sys.stderr:
        try:
            print("".join(c if c.isprintable() else "?" for c in message), file=sys.stderr, flush=True)
        except OSError:  # a full disk or a closed pipe there, too: the exit code says it
            _to_nowhere(sys.stderr)
    return FAILED


def _let_output_go() -> None:
    """Print what standard output takes of what was printed, and forget the rest."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        _to_nowhere(sys.stdout)


def _leave_pipe() -> int:
    """The reader has gone, as in `| head`: say nothing, now or when Python flushes at the end."""
    _to_nowhere(sys.stdout)
    return 1


def _to_nowhere(stream: TextIO) -> None:
    """Let what a stream still holds go, so that Python does not try and report it once more at the end."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError):  # a stream of a test's has no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
