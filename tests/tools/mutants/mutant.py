"""A mutant: one small bug, given as a snippet of source and its replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PACKAGES = ("codegen", "tilejit")


class StaleMutantError(Exception):
    """The sources no longer contain a mutant's snippet exactly once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: the only occurrence of `find` in the sources is replaced by `put`.

    Attributes:
        name: short, with hyphens.
        breaks: what goes wrong, in one sentence.
        find: the snippet. Files move and are renamed, so the snippet alone says where it is.
        put: the text that takes its place.
        tests: parts of names of test files that are likely to notice; these files run first.
        own_store: whether kernels that this mutant stores must not reach other mutants.
    """

    name: str
    breaks: str
    find: str
    put: str
    tests: tuple[str, ...] = ()
    own_store: bool = False


def sources(root: Path) -> dict[Path, str]:
    """The text of every module of both packages."""
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
    return {file: file.read_text(encoding="utf-8") for file in files}


def sources_digest(root: Path) -> str:
    """A digest that changes with any file of either package or of the tests, and with pytest's options.

    Golden files, corpora and other data of the tests are included, but not bytecode.
    """
    folders = [root / name for name in (*PACKAGES, "tests")]
    files = [file for folder in folders for file in sorted(folder.rglob("*"))] + [root / "pyproject.toml"]
    digest = sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def locate(mutant: Mutant, texts: dict[Path, str]) -> Path:
    """The module that contains the snippet.

    Raises:
        StaleMutantError: no module contains it, or it occurs more than once.
    """
    counts = {file: text.count(mutant.find) for file, text in texts.items() if mutant.find in text}
    if sum(counts.values()) != 1:
        where = ", ".join(f"{file.name} ({count})" for file, count in counts.items()) or "no module"
        raise StaleMutantError(f"{mutant.name}: the snippet must occur once, but it occurs in {where}")
    return next(iter(counts))


def mutated(mutant: Mutant, text: str) -> str:
    """The module's text with the bug in it."""
    return text.replace(mutant.find, mutant.put)


def by_likelihood(
    mutant: Mutant, module: Path, root: Path, test_files: Sequence[Path]
) -> tuple[list[Path], list[Path]]:
    """Test files that are likely to notice the mutant, best first, and all others.

    Files that the mutant names come first, then those that import the module.
    """
    dotted = ".".join(module.relative_to(root).with_suffix("").parts)
    package, _, stem = dotted.rpartition(".")
    imports = (f"{dotted} ", f"{dotted}\n", f"from {package} import {stem}")
    named = [file for part in mutant.tests for file in test_files if part in str(file.relative_to(root))]
    importing = [file for file in test_files if any(x in file.read_text(encoding="utf-8") for x in imports)]
    first = list(dict.fromkeys([*named, *importing]))
    return first, [file for file in test_files if file not in first]
