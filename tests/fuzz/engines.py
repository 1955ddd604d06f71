"""The two engines: atheris, which is guided by coverage, and a plain one without dependencies."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.fuzz.judge import Judge
from tests.fuzz.kept import corpus_of, dictionary_file, tokens_of, write_corpus
from tests.fuzz.mutate import Mutator
from tests.fuzz.targets import TARGETS, Target

SEED = 20_250_801
MEMORY_PART = 50
"""Memory is traced for one input in 50 of the corpus, because tracing takes as long as 50 inputs."""
MOST_FINDS = 40
"""The number of different finds after which the plain engine ends."""


@dataclass(slots=True)
class Found:
    """The result of a run: the number of inputs, and what is wrong with those that fail."""

    runs: int = 0
    finds: dict[bytes, str] = field(default_factory=dict)
    seconds: float = 0.0


def is_guided() -> bool:
    """Whether atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def plain(target: Target, runs: int, seconds: float | None = None, seed: int = SEED) -> Found:
    """Run the corpus, then inputs derived from it. They are the same each time, unless time runs out."""
    judge, corpus, found = Judge(target), corpus_of(target.name), Found()
    mutator = Mutator(seed, corpus, tokens_of(target.name), target.length)
    kinds: set[str] = set()
    in_memory = min(len(corpus), runs // MEMORY_PART)
    begin = time.monotonic()
    for number in range(runs):
        if seconds is not None and number % 64 == 0 and time.monotonic() - begin > seconds:
            break
        data = corpus[number] if number < len(corpus) else mutator.make()
        wrong = judge(data)
        if wrong is None and number < in_memory:
            wrong = judge.of_memory(data)
        found.runs += 1
        if wrong is None:
            mutator.note(data, judge.outcome)
        elif wrong.partition(":")[0] not in kinds:
            kinds.add(wrong.partition(":")[0])
            found.finds[data] = wrong
            if len(kinds) == MOST_FINDS:
                break
    found.seconds = time.monotonic() - begin
    return found


def guided(target: Target, runs: int, seconds: float | None, seed: int, *, keep: bool = False) -> Found:
    """Run atheris in a separate process, and try its finds again here.

    Args:
        keep: whether to add the shortest input for each new outcome to the corpus.
    """
    found, begin = Found(runs), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tilejit-fuzz-") as folder:
        corpus, finds = Path(folder, "corpus"), Path(folder, "finds")
        corpus.mkdir()
        finds.mkdir()
        _unpack(target, corpus)
        options = [f"-runs={runs}", f"-seed={seed % 2**32}", f"-max_len={target.length}"]
        options += [f"-dict={dictionary_file(target.name)}", "-print_final_stats=1"]
        options += [f"-max_total_time={max(1, round(seconds))}"] if seconds else []
        said = _child(target, finds, [*options, str(corpus)])
        found.runs = _number_behind("stat::number_of_executed_units:", said, runs)
        judge = Judge(target)
        for path in sorted(finds.iterdir()):
            wrong = judge(path.read_bytes())
            if wrong:
                found.finds[path.read_bytes()] = wrong
        if keep:
            write_corpus(target.name, _least(judge, [p.read_bytes() for p in corpus.iterdir()]))
    found.seconds = time.monotonic() - begin
    return found


def _least(judge: Judge, inputs: list[bytes]) -> list[bytes]:
    """The unchanged corpus, and the shortest input for each outcome that the corpus lacks."""
    kept, outcomes = corpus_of(judge.target.name), set()
    for data in (*kept, *sorted(inputs, key=lambda x: (len(x), x))):
        wrong = judge(data)
        if wrong is None and judge.outcome not in outcomes:
            outcomes.add(judge.outcome)
            kept.append(data)
    return kept


def _unpack(target: Target, folder: Path) -> None:
    for data in corpus_of(target.name):
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)


def _child(target: Target, finds: Path, options: list[str]) -> str:
    """The output of libFuzzer, which ends the process itself."""
    command = [sys.executable, "-m", "tests.fuzz.guided", target.name, str(finds), *options]
    done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stderr


def _number_behind(label: str, text: str, otherwise: int) -> int:
    _, _, rest = text.partition(label)
    words = rest.split()
    return int(words[0]) if words else otherwise


def fuzz(name: str, runs: int, seconds: float | None, seed: int, *, plainly: bool, keep: bool) -> Found:
    """Try that many inputs of a target, with atheris if it is installed."""
    target = TARGETS[name]
    if plainly or not is_guided():
        return plain(target, runs, seconds, seed)
    return guided(target, runs, seconds, seed, keep=keep)
