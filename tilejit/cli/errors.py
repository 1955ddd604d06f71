"""One line on stderr and exit code 2 for every error a user can make."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from codegen.errors import TilejitError

# typer exports no base class of its usage errors, and where it keeps click depends on its version.
_UsageError: Any = typer.BadParameter.__mro__[2]


class OneLineErrors(TyperGroup):
    """The group of commands; errors that have an explanation are printed as one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; ends in SystemExit, whose code is 0, 2 for an error, or 130 after Ctrl-C."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        except _UsageError as error:
            code = _fail(error.format_message())
        except BrokenPipeError:
            code = _leave_pipe()
        except (TilejitError, OSError, MemoryError) as error:
            code = _fail(explained(error))
        sys.exit(code if isinstance(code, int) else 0)


def help_if_alone(context: typer.Context) -> None:
    """Print the help where no command was given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def explained(error: BaseException) -> str:
    """What an exception says.

    FileNotFoundError -> "No such file or directory: 'x.npy'"    MemoryError -> "MemoryError"
    """
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename!r}" if error.filename is not None else ""
        return error.strerror + place
    return str(error) or type(error).__name__


def _fail(text: str) -> int:
    """Print a text on one line, "a | b | c", with nothing in it that moves a terminal's cursor."""
    # A caret under a text says nothing once the lines are joined.
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~\t")]
    message = "tilejit: " + " | ".join(lines)
    print("".join(c if c.isprintable() else "?" for c in message), file=sys.stderr)
    return 2


def _leave_pipe() -> int:
    """The reader has gone, as in `| head`: say nothing, now or when Python flushes at the end."""
    if sys.platform != "win32":
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
