"""One line on stderr and an exit code of its own for everything that ends a command early."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from codegen import TilejitError
from tilejit.cli.help import help_text
from tilejit.cli.output import colored

FAILED, INTERRUPTED = 2, 130

_OF_FULL_DISKS = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")}
"""Files that are written have a name in such errors; standard output has none."""

# typer exports no base class of its usage errors, and where it keeps click depends on its version.
_UsageError: Any = typer.BadParameter.__mro__[2]


_CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of (?P<known>'.*')")
"""What typer says of a word that is none of an option's."""


class Group(TyperGroup):
    """A group of commands whose help is as wide as the terminal, and whose mistyped commands are guessed."""

    def get_help(self, ctx: Any) -> str:
        """The help, as wide as the terminal."""
        return help_text(self, ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with.

        Raises:
            UsageError: there is none; the message names the nearest.
        """
        name = args[0] if args else ""
        if not name or name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        ctx.fail(f"there is no command {name[:40]!r}\n{_guess(name, list(self.commands), ctx.command_path)}")


class OneLineErrors(Group):
    """The group of all commands; errors that have an explanation are printed as one line."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """The context of a run, which says whether its output takes colors."""
        extra.setdefault("color", colored(sys.stdout))
        return super().make_context(*args, **extra)

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
            code = fail(usage_text(error))
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


def usage_text(error: Any) -> str:
    """What a mistake in the command line is, and what was probably meant.

    --jsn -> "No such option: --jsn | did you mean --json?"
    """
    context = error.ctx
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        known = [name for p in context.command.get_params(context) for name in p.opts] if context else []
        return f"{error.message}\n{_guess(option, known, context.command_path if context else 'tilejit')}"
    text = str(error.format_message()).replace("Value error, ", "")
    choice = _CHOICE.search(text)
    near = _near(choice["given"], re.findall("'([^']*)'", choice["known"])) if choice else None
    return f"{text}\ndid you mean {near}?" if near else text


def _guess(given: str, known: list[str], command: str) -> str:
    near = _near(given, known)
    return f"did you mean {near}?" if near else f"{command} --help lists what there is"


def _near(given: str, known: list[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(given[:40], known, n=1, cutoff=0.5)), None)


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
    """Print a text as `say` does, and return the exit code of an error."""
    say(text)
    return FAILED


def say(text: str) -> None:
    """Print a text on one line of stderr, "a | b | c", with nothing in it that moves a terminal's cursor."""
    # A caret under a text says nothing once the lines are joined.
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~\t")]
    message = "".join(c if c.isprintable() else "?" for c in " | ".join(lines))
    name = "\x1b[1;31mtilejit:\x1b[0m" if colored(sys.stderr) else "tilejit:"
    if sys.stderr:
        try:
            print(f"{name} {message}", file=sys.stderr, flush=True)
        except OSError:  # a full disk or a closed pipe there, too: the exit code says it
            _to_nowhere(sys.stderr)


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
