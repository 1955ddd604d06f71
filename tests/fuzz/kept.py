"""The corpus and the dictionaries: files of lines, in folders beside this module.

corpus/TARGET.jsonl       an input per line: a JSON string of its bytes in Latin 1
dictionaries/TARGET.dict  a token per line, in quotation marks, in libFuzzer's format
"""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent


def corpus_file(name: str) -> Path:
    """The file of a target's inputs."""
    return HERE / "corpus" / f"{name}.jsonl"


def dictionary_file(name: str) -> Path:
    """The file of a target's tokens."""
    return HERE / "dictionaries" / f"{name}.dict"


def corpus_of(name: str) -> list[bytes]:
    """A target's inputs."""
    lines = corpus_file(name).read_text().splitlines()
    return [json.loads(line).encode("latin-1") for line in lines if line]


def write_corpus(name: str, inputs: list[bytes]) -> None:
    """Write these inputs, the shortest first, each once."""
    ordered = sorted(set(inputs), key=lambda data: (len(data), data))
    lines = [json.dumps(data.decode("latin-1")) for data in ordered]
    corpus_file(name).write_text("\n".join(lines) + "\n")


def tokens_of(name: str) -> list[bytes]:
    """The tokens of a target's dictionary, escapes such as \\x00 read."""
    found = re.findall(r'^"(.*)"$', dictionary_file(name).read_text(), re.MULTILINE)
    return [text.encode("latin-1").decode("unicode_escape").encode("latin-1") for text in found]
