"""American spelling, in names, messages and docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BRITISH = re.compile(
    r"colour|behaviour|neighbour|favour|honour|labour|licence|catalogue|artefact|judgement|"
    r"(?:travel|model|cancel|(?<!aria-)label|signal|fuel)l(?:ed|ing|er)|"
    r"(?:vector|special|optim|initial|normal|organ|recogn|summar|parallel|serial|quant|minim|maxim|util|"
    r"character|memor|synchron|final|general|local|token)is(?:e[ds]?|ing|ation|able)\b|"
    r"analyse[dr]?\b|\b(?:grey|programme|centre|metre|whilst|amongst|learnt|spelt|burnt|towards|fulfil)\b",
    re.IGNORECASE,
)
"""Stems and words. NumPy's flag `writeable` and HTML's attribute `aria-labelledby` keep their spelling."""
FOLDERS = ("tilejit", "codegen", "bench", "docs")
KINDS = ("*.py", "*.md", "*.js", "*.css", "*.html")


def mistakes(files: list[Path]) -> list[str]:
    """The British words of each file. Each word is judged once, however often it occurs."""
    words = {path: set(re.findall(r"[\w-]+", path.read_text())) for path in files}
    british = {word for word in set().union(*words.values()) if BRITISH.search(word)}
    return [f"{path}: {word}" for path in files for word in sorted(words[path] & british)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_spelling(folder: str) -> None:
    files = sorted(path for kind in KINDS for path in (ROOT / folder).rglob(kind))
    assert files
    assert not mistakes(files)


def test_spelling_of_the_front_pages() -> None:
    pages = sorted(ROOT.glob("*.md"))
    assert len(pages) >= 3
    assert not mistakes(pages)


@pytest.mark.parametrize("word", ["vectorised", "Specialisation", "neighbours", "towards", "grey"])
def test_words_that_are_found(word: str) -> None:
    assert BRITISH.search(f"the {word} of it")


@pytest.mark.parametrize("word", ["vectorized", "parallelism", "colors", "raises", "signaling", "finalist"])
def test_words_that_are_not_found(word: str) -> None:
    assert not BRITISH.search(f"the {word} of it")
