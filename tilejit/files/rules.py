"""The layout of each tensor: a single one for all, or that of the first rule in a TOML file that matches.

    [[rule]]
    tensors = 'model\\.layers\\..*\\.weight'
    layout = "tenstorrent"
    parameters = { tile = 16 }

    [[rule]]
    tensors = ".*norm.*"
    skip = true

The key `tensors` is a regular expression that matches complete names. `layout`, `parameters` and `dtype` have
the same meaning as on the command line. `skip` leaves tensors unchanged.
"""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

from codegen import LayoutError, dataclass
from tilejit.catalog.format import refuse_reserved
from tilejit.files.whole_file import open_ordinary
from tilejit.layout.check_layout import check_layout
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.text.pattern_text import spelled_out

MAX_RULES_BYTES = 1 << 20
KEYS = ("tensors", "layout", "parameters", "dtype", "skip")
_TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("tensors", "layout", "dtype"), (str, "a string")),
    "skip": (bool, "true or false"),
    "parameters": (dict, "a table"),
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """The layout and the dtype for a tensor; the dtype None keeps the tensor's own.

    `is_general` says that the dtype is that of all tensors, not of a rule; it does not turn integers into
    floating-point numbers. `origin` is the file and the line of the rule's layout, for errors; "" without a
    file. `given` is the layout as it was written, if `layout` spells it out.
    """

    layout: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    is_general: bool = field(default=False, compare=False)
    origin: str = field(default="", compare=False)
    given: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of tensor names, and the conversion of these tensors; None leaves them unchanged."""

    pattern: re.Pattern[str]
    conversion: Conversion | None
    line: int


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in file order, and the conversion of all other tensors.

    >>> plan_file_pack("model.safetensors", read_rules("rules.toml")).write("packed.safetensors")

    Attributes:
        rules: the rules.
        default: the conversion of tensors without a rule; None leaves them unchanged.
        dtype: the dtype of rules without one; None keeps the dtype of each tensor.
    """

    rules: tuple[Rule, ...]
    default: Conversion | None = None
    dtype: str | None = None

    def conversion(self, name: str) -> Conversion | None:
        """The conversion of one tensor.

        >>> read_rules("rules.toml").conversion("model.layers.0.mlp.weight").layout
        'tenstorrent'

        Args:
            name: the name of the tensor.

        Returns:
            Its layout, parameters and dtype; None leaves it unchanged.
        """
        rule = next((rule for rule in self.rules if rule.pattern.fullmatch(name)), None)
        if rule is None:
            return self.default
        if rule.conversion is None or rule.conversion.dtype is not None:
            return rule.conversion
        return replace(rule.conversion, dtype=self.dtype, is_general=True)

    def idle(self, names: Iterable[str]) -> tuple[Rule, ...]:
        """The rules that are not the first to match any of these names."""
        applied = {
            next((k for k, rule in enumerate(self.rules) if rule.pattern.fullmatch(name)), -1)
            for name in names
        }
        return tuple(rule for k, rule in enumerate(self.rules) if k not in applied)


def rules_of(layout: Any, dtype: str | None, parameters: Mapping[str, Any]) -> Rules:
    """The given rules, or rules that apply a single layout to every tensor.

    Raises:
        TypeError: both rules and parameters are given.
    """
    if not isinstance(layout, Rules):
        return Rules((), Conversion(layout, parameters, dtype, is_general=True), dtype)
    if parameters:
        raise TypeError(
            f"unexpected keyword {next(iter(parameters))[:40]!r}: rules contain their own parameters\n"
            "  write it in the parameters of a rule"
        )
    return layout


def read_rules(
    path: str | os.PathLike[str], default: Conversion | None = None, dtype: str | None = None
) -> Rules:
    """Read the rules of a TOML file.

    >>> read_rules("rules.toml").conversion("model.layers.0.mlp.weight").layout
    'tenstorrent'

    Args:
        path: the path of the file.
        default: the conversion of tensors without a rule; None leaves them unchanged.
        dtype: the dtype of rules without one.

    Returns:
        The rules, in file order.

    Raises:
        LayoutError: the file is not valid TOML, or is not a valid list of rules; the message names the line.
        OSError: the file cannot be read.
    """
    with open_ordinary(path) as file:
        raw = file.read(MAX_RULES_BYTES + 1)
    source = _Source(str(path), raw)
    if len(raw) > MAX_RULES_BYTES:
        raise LayoutError(f"{str(path)!r} exceeds the limit of {MAX_RULES_BYTES} bytes for rules")
    table = source.table()
    odd = next((key for key in table if key != "rule"), None)
    if odd is not None:
        source.refuse(source.line_of(odd), odd, f"unknown key {odd[:40]!r} outside rules", "write [[rule]]")
    listed = table.get("rule")
    if not isinstance(listed, list) or not all(isinstance(rule, dict) for rule in listed):
        source.refuse(source.line_of("rule"), "rule", "the file has no list of rules", "write [[rule]]")
    return Rules(tuple(_rule(source, k, rule) for k, rule in enumerate(listed)), default, dtype)


def _rule(source: _Source, number: int, given: dict[str, Any]) -> Rule:
    """A rule of the file, checked."""
    start = source.start(number)
    for key, value in given.items():
        line = source.line_of(key, start)
        if key not in KEYS:
            fix = f"write one of {', '.join(KEYS)}"
            source.refuse(line, key, f"unknown key {key[:40]!r} in a rule", fix)
        kind, called = _TYPES[key]
        if not isinstance(value, kind):
            source.refuse(line, key, f"{key}: expected {called}, got {str(value)[:40]!r}", f"write {called}")
    if "tensors" not in given:
        source.refuse(start, "[[rule]]", "the rule does not name its tensors", 'write tensors = ".*"')
    pattern = source.pattern(given["tensors"], source.line_of("tensors", start))
    if given.get("skip"):
        other = next((key for key in ("layout", "parameters", "dtype") if key in given), None)
        if other:
            line = source.line_of(other, start)
            source.refuse(line, other, f"the rule skips its tensors, so {other} has no effect", "omit it")
        return Rule(pattern, None, start)
    if "layout" not in given:
        source.refuse(start, "[[rule]]", "the rule has no layout", 'write layout = "tpu", or skip = true')
    dtype = given.get("dtype")
    try:
        if dtype is not None:
            primitive_type(dtype)
    except LayoutError as error:
        source.refuse(source.line_of("dtype", start), "dtype", str(error).splitlines()[0], "e.g. bf16")
    parameters = {}
    if "parameters" in given:
        parameters = _parameters(source, given["parameters"], source.line_of("parameters", start))
    line = source.line_of("layout", start)
    try:
        check_layout(given["layout"], parameters)
    except LayoutError as error:
        source.refuse_layout(line, str(error))
    except TypeError as error:
        at = source.line_of("parameters", start)
        source.refuse(
            at, "parameters", str(error).splitlines()[0], "write only parameters that the layout takes"
        )
    place = source.place(line)
    text = given["layout"]
    conversion = Conversion(spelled_out(text), parameters, dtype, origin=place, given=text)
    return Rule(pattern, conversion, start)


def _parameters(source: _Source, given: dict[str, Any], line: int) -> dict[str, Any]:
    """The checked parameters of a layout; lists of numbers become tuples."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        numbers = value if isinstance(value, list) else [value]
        if not numbers or any(type(n) is not int for n in numbers):
            cause = (
                f"parameter {key[:40]!r}: expected an integer or a list of integers, got {str(value)[:40]!r}"
            )
            source.refuse(line, key, cause, "write e.g. { mr = 8 }")
        try:
            refuse_reserved(key, "a parameter")
        except LayoutError as error:
            source.refuse(line, key, str(error).splitlines()[0], "choose another name")
        found[key] = tuple(numbers) if isinstance(value, list) else value
    return found


@dataclass(frozen=True)
class _Source:
    """The text of the file, for messages with a position."""

    path: str
    raw: bytes

    @cached_property
    def lines(self) -> list[str]:
        return self.raw.decode("utf-8", "replace").split("\n")

    @cached_property
    def heads(self) -> list[int]:
        """The lines at which rules start."""
        head = re.compile(r"\s*\[\[\s*[\"']?rule[\"']?\s*\]\]")
        return [k for k, line in enumerate(self.lines, 1) if head.match(line)]

    def table(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.raw.decode())
        except UnicodeDecodeError as error:
            line = self.raw.count(b"\n", 0, error.start) + 1
            self.refuse(line, "", "the file is not UTF-8 text", "save it as UTF-8")
        except tomllib.TOMLDecodeError as error:
            text, _, place = str(error).rpartition(" (at ")
            numbers = re.findall(r"\d+", place)
            line, column = map(int, numbers) if len(numbers) == 2 else (len(self.lines), 1)
            self.refuse(
                line, column - 1, f"this is not valid TOML: {text or str(error)}", "fix it, see toml.io"
            )
        except RecursionError:
            self.refuse(
                1, "", "the file is nested too deeply", "write rules one after the other, without nesting"
            )

    def start(self, number: int) -> int:
        """The line of the rule of that number, from 0."""
        return self.heads[number] if number < len(self.heads) else 1

    def line_of(self, key: str, start: int = 1) -> int:
        """The line of a key, from the rule's first line on."""
        word = re.compile(rf"\s*[\[{{]*\s*[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
        found = (k for k in range(start, len(self.lines) + 1) if word.match(self.lines[k - 1]))
        return next(found, start)

    def pattern(self, text: str, line: int) -> re.Pattern[str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # for "[[a]", whose meaning may change
                return re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            cause = f"tensors is not a valid regular expression: {str(error)[:80]}"
            self.refuse(line, "tensors", cause, "write e.g. '.*\\.weight', a dot as \\. in single quotes")

    def place(self, number: int) -> str:
        """The file and a line."""
        return f"{self.path!r}, line {number}"

    def refuse_layout(self, number: int, message: str) -> NoReturn:
        """Raise the error for the layout in a line, with its caret under the same character."""
        what, *more = message.splitlines()
        fix = more[-1].strip() if more else 'write e.g. layout = "tpu"'
        at: str | int = "layout"
        for text, caret in pairwise(more):
            start = self.lines[number - 1].find(text.strip())
            if caret.strip() == "^" and start >= 0:
                at = start + caret.index("^") - (len(text) - len(text.lstrip()))
        self.refuse(number, at, what, fix)

    def refuse(self, number: int, at: str | int, what: str, fix: str) -> NoReturn:
        """Raise an error that shows a line, with a caret under a word or under a column counted from 0."""
        line = self.lines[number - 1] if number <= len(self.lines) else ""
        column = max(0, line.find(at)) if isinstance(at, str) else at
        shown, caret = line[max(0, column - 60) : column + 60], min(column, 60)
        raise LayoutError(f"{self.place(number)}: {what}\n  {shown}\n  {' ' * caret}^\n  {fix}")
