"""Rules: the layout of a tensor by its name, and errors that show the place of the mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilejit import LayoutError
from tilejit.files.rules import Conversion, read_rules

GOOD = r"""# layouts of a model
[[rule]]
tensors = 'model\.layers\..*\.weight'
layout = "tenstorrent"
parameters = { tile = [16, 32], face = 8 }

[[rule]]
tensors = ".*norm.*"
skip = true

[[rule]]
tensors = ".*"
layout = "tpu"
dtype = "bf16"
"""


def saved(directory: Path, text: str | bytes) -> Path:
    path = directory / "rules.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_first_rule_that_matches_a_complete_name_wins(tmp_path: Path) -> None:
    rules = read_rules(saved(tmp_path, GOOD), dtype="f16")
    first = rules.conversion("model.layers.3.norm.weight")
    assert first == Conversion("tenstorrent", {"tile": (16, 32), "face": 8}, "f16")
    assert rules.conversion("norm") is None
    assert rules.conversion("model.layers.3.weight.scale") == Conversion("tpu", {}, "bf16")
    assert [rule.line for rule in rules.idle(["model.layers.0.weight", "x"])] == [7]
    assert [rule.line for rule in rules.idle([])] == [2, 7, 11]


@pytest.mark.filterwarnings("error")
def test_a_pattern_that_python_warns_about_is_accepted(tmp_path: Path) -> None:
    rules = read_rules(saved(tmp_path, "[[rule]]\ntensors = '[[a]'\nskip = true\n"), Conversion("tpu"))
    assert (rules.conversion("["), rules.conversion("b")) == (None, Conversion("tpu"))


def test_tensors_without_a_rule_get_the_default(tmp_path: Path) -> None:
    path = saved(tmp_path, "[[rule]]\ntensors = 'a'\nskip = true\n")
    assert read_rules(path).conversion("b") is None
    assert read_rules(path, Conversion("tpu")).conversion("b") == Conversion("tpu")
    assert read_rules(path, Conversion("tpu")).conversion("a") is None


def test_a_rule_for_each_tensor_of_a_large_model(tmp_path: Path) -> None:
    """Thousands are read as fast as a few, because the text is scanned once."""
    text = "".join(f"[[rule]]\ntensors = 'layers\\.{k}\\.w'\nlayout = 'tpu'\n" for k in range(3000))
    rules = read_rules(saved(tmp_path, text))
    assert [rules.rules[k].line for k in (0, 1, 2999)] == [1, 4, 8998]
    with pytest.raises(LayoutError, match="line 9004: unknown dtype"):
        read_rules(saved(tmp_path, text + RULE + "layout = 'tpu'\ndtype = 'f3'\n"))


RULE = "[[rule]]\ntensors = '.*'\n"


@pytest.mark.parametrize(
    ("text", "line", "says", "under"),
    [
        ("[[rule]\n", 1, "not valid TOML", None),
        (RULE + "layout = \n", 3, "not valid TOML", None),
        (RULE + 'layuot = "tpu"\n', 3, "unknown key 'layuot'", "layuot"),
        ('x = 1\n[[rule]]\ntensors = "a"\nskip = true\n', 1, "unknown key 'x'", "x"),
        ("rule = 3\n", 1, "no list of rules", "rule"),
        ("", 1, "no list of rules", None),
        ("[rule]\ntensors = 'a'\n", 1, "no list of rules", "rule"),
        (RULE, 1, "has no layout", "[[rule]]"),
        ('[[rule]]\nlayout = "tpu"\n', 1, "does not name its tensors", "[[rule]]"),
        ("[[rule]]\ntensors = '('\nlayout = 'tpu'\n", 2, "not a valid regular expression", "tensors"),
        ("[[rule]]\ntensors = ['a']\nlayout = 'tpu'\n", 2, "tensors: expected a string", "tensors"),
        (RULE + "skip = 1\n", 3, "skip: expected true or false", "skip"),
        (RULE + "skip = true\nlayout = 'tpu'\n", 4, "so layout has no effect", "layout"),
        (RULE + "layout = 'tpu'\ndtype = 'nope'\n", 4, "unknown dtype 'nope'", "dtype"),
        (
            RULE + "layout = 'tpu'\nparameters = { mr = 'x' }\n",
            4,
            "'mr': expected an integer or a list of integers",
            "mr",
        ),
        (
            RULE + "layout = 'tpu'\nparameters = { mr = true }\n",
            4,
            "'mr': expected an integer or a list of integers",
            "mr",
        ),
        (RULE + "layout = 'tpu'\nparameters = { out = 4 }\n", 4, "the name out", "out"),
        (RULE + "layout = 'tpu'\n" + RULE + "skip = 3\n", 6, "skip: expected", "skip"),
        (RULE + "layout = 'tup'\n", 3, "unknown format 'tup'", "layout"),
        (RULE + "\nlayout = '{1,0:T(8,128}'\n", 4, "tile", "}'"),
        (RULE + "layout = '(4,8):(8'\n", 3, "", None),
        (RULE + "layout = 'tpu'\nparameters = { mr = 4 }\n", 4, "no parameter 'mr'", "parameters"),
        (b"[[rule]]\ntensors = '\xff'\n", 2, "UTF-8", None),
        ("x = " + "[" * 5000, 1, "", None),
    ],
    ids=str,
)
def test_mistakes_are_shown_in_their_line(
    tmp_path: Path, text: str | bytes, line: int, says: str, under: str | None
) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(LayoutError) as caught:
        read_rules(path)
    what, shown, caret, _ = str(caught.value).split("\n")
    assert what.startswith(f"{str(path)!r}, line {line}: ")
    assert says in what
    if under:
        assert shown[caret.index("^") :].startswith(under)


def test_unreadable_and_overlong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="exceeds the limit"):
        read_rules(saved(tmp_path, "#" * (1 << 21)))
    with pytest.raises(LayoutError, match="not a regular file"):
        read_rules(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_rules(tmp_path / "none.toml")
