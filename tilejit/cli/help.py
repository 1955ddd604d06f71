"""The text of `--help`: as wide as the terminal, with complete examples at the end."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from shutil import get_terminal_size
from typing import Any

import typer
from typer.core import TyperCommand

from tilejit.cli.examples import EXAMPLES
from tilejit.cli.output import colored, table

WIDEST = 80
"""The longest line: longer ones are harder to read, even on a wide terminal."""
LEAST = 20
EXIT_CODES = [
    ("0", "done"),
    ("1", "the command failed, the reader of its output closed the pipe, or `cache verify` left damage"),
    ("2", "the command line is wrong: an option, an argument, or a layout that cannot be read"),
    ("130", "interrupted by Ctrl-C"),
    ("143, 129", "ended by SIGTERM, SIGHUP"),
]
_TYPE = re.compile(r" <[^|>]*>$")
"""Types that typer prints after names that already imply them: "IN <path>"."""
_BRACES = re.compile(r"\{([^{}|]*)\}")
"""The marks that typer puts around the names of required arguments."""
_WORD = re.compile(r"""(?:(?:--?[a-z][-a-z]*|[<>|])\ (?!-))?(?:[^\s"']|"[^"]*"|'[^']*')+""")
"""A word of a command; an option with its value is one word, and so is a redirection."""


class Command(TyperCommand):
    """A command whose help ends with examples."""

    def get_help(self, ctx: Any) -> str:
        """The help, as wide as the terminal."""
        return help_text(self, ctx)


def help_text(command: Any, context: typer.Context) -> str:
    """Usage, description, arguments, options, commands, exit codes, examples; headings bold in color."""
    width = max(LEAST, min(get_terminal_size().columns, WIDEST))
    arguments, options = _records(command, context)
    commands = [
        (name, each.get_short_help_str(limit=1000))
        for name, each in getattr(command, "commands", {}).items()
        if not each.hidden
    ]
    parts = [_usage(command, context, width), *_paragraphs(command.help or "", width)]
    sections = {"Arguments": arguments, "Options": options, "Commands": commands}
    if context.parent is None:
        sections["Exit codes"] = EXIT_CODES
    for name, rows in sections.items():
        if rows:
            parts.append("\n".join([_bold(f"{name}:"), *("  " + line for line in table(rows, width - 2))]))
    examples = EXAMPLES.get(context.command_path, ())
    if examples:
        lines = [line for comment, example in examples for line in _example(comment, example, width)]
        parts.append("\n".join([_bold("Examples:"), *lines]))
    return "\n\n".join(parts)


def _usage(command: Any, context: typer.Context, width: int) -> str:
    pieces = _BRACES.sub(r"\1", " ".join(command.collect_usage_pieces(context))).replace("...]...", "]...")
    lines = textwrap.wrap(f"Usage: {context.command_path} {pieces}", width, subsequent_indent=" " * 7)
    return _bold("Usage:") + "\n".join(lines).removeprefix("Usage:")


def _paragraphs(text: str, width: int) -> list[str]:
    around = {"width": width, "initial_indent": "  ", "subsequent_indent": "  "}
    paragraphs = inspect.cleandoc(text).split("\n\n")
    # Do not break the name of a file or an option at a dash.
    return [textwrap.fill(p, break_on_hyphens=False, **around) for p in paragraphs if p]  # type: ignore[arg-type]


def _records(command: Any, context: typer.Context) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Names and descriptions of arguments, and of options."""
    found: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            found[parameter.param_type_name].append((_TYPE.sub("", record[0]), " ".join(record[1].split())))
    return found["argument"], found["option"]


def _example(comment: str, example: str, width: int) -> list[str]:
    """A comment and a command, continued by backslashes if the terminal is narrow."""
    lines, words = [], _WORD.findall(example)
    line = "  " + words[0]
    for word in words[1:]:
        if len(line) + len(word) + 3 > width:
            lines.append(line + " \\")
            line = "     "
        line += " " + word
    notes = textwrap.wrap(comment, width, initial_indent="  # ", subsequent_indent="  # ")
    return [*notes, *lines, line]


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colored(sys.stdout) else text
