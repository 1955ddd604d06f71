"""A kernel store under damage and load: `python -m tests.faults.store --flips 10000 --starts 32`.

Every truncation and every random damage of its files must be a miss or give what was written. Processes that
start at once on an empty store, on one that is too small, or on one with only damaged files must compute the
right result. The seed is printed. A failure names the file and the damage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from subprocess import PIPE, Popen
from typing import Any

from codegen.backend.store import KernelStore
from codegen.backend.store_files import UNFINISHED
from codegen.backend.store_key import StoreKey
from tests.tools.oracle import environment

PAGE_BYTES = 4096

PROGRAM = """
import hashlib, json, sys
import numpy as np
import tilejit as tj
from codegen.backend.store import default_store

print("ready", flush=True)
sys.stdin.read()
x = np.arange(40 * 48, dtype=np.uint16).reshape(40, 48)
t = tj.pack(x, "{1,0:T(8,16)(2,1)}")
u = tj.pack(x.T, "{1,0:T(8,8)}")
right = bool((tj.unpack(t) == x).all() and (tj.unpack(u) == x.T).all())
packed = hashlib.sha256(t.buffer.tobytes() + u.buffer.tobytes()).hexdigest()
store = default_store()
facts = dict(right=right, packed=packed, misses=store.misses, hits=store.hits)
print(json.dumps(facts | dict(numba="numba" in sys.modules, reason=store.reason)))
"""
"""A program that waits until its input ends, then packs and unpacks."""


class Fault(Exception):
    """The store gave something that it must not give."""


def main(arguments: list[str] | None = None) -> int:
    """Damage the store, then load it; return 0 if everything holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.store", description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000, help="random damages of files")
    parser.add_argument("--starts", type=int, default=32, help="processes that start at once")
    parser.add_argument("--calls", type=int, default=5, help="processes that start on a damaged store")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    few = -(-options.starts // 4)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cold, small = Path(folder, "cold"), Path(folder, "small")
        try:
            _told("starts on an empty store", lambda: starts(cold, options.starts))
            _told(
                "starts on a store too small",
                lambda: starts(small, few, TILEJIT_CACHE_BYTES="10000"),
            )
            _told("truncations", lambda: truncations(cold))
            _told("damages", lambda: damages(cold, options.flips, options.seed))
            _told("starts on a damaged store", lambda: calls(cold, options.calls, options.seed))
        except Fault as fault:
            print(f"FAILED: {fault}")
            return 1
    return 0


def _told(name: str, run: Any) -> None:
    began = time.monotonic()
    figures = ", ".join(f"{what} {number}" for what, number in sorted(run().items()))
    print(f"{name}: {figures}; {time.monotonic() - began:.1f} s", flush=True)


def contents(directory: Path) -> dict[Path, Any]:
    """The files of a store, with what the store returns for each."""
    store = KernelStore(directory)
    out = {file: read(store, file) for file in [*store.entries(), *store.notes()]}
    if not out or None in out.values():
        raise Fault(f"{directory} holds no sound files: {out}")
    return out


def read(store: KernelStore, file: Path) -> Any:
    """What a store returns for the key, or the name, in one of its files. None is a miss."""
    if file.suffix == ".note":
        return store.get_note(file.stem)
    return store.get(_KEYS[file]) if file in _KEYS else store.get(_key(file))


_KEYS: dict[Path, StoreKey] = {}
"""The results by file, from before any damage."""


def _key(file: Path) -> StoreKey:
    head = json.loads(file.read_bytes().partition(b"\n")[0])
    del head["checksum"]
    _KEYS[file] = StoreKey(**head)
    return _KEYS[file]


def truncations(directory: Path, step: int = 1) -> Counter[str]:
    """Truncate each file at each byte, or at every `step`-th one. All of them are misses."""
    store, counts = KernelStore(directory), Counter[str]()
    for file in contents(directory):
        whole = file.read_bytes()
        for length in reversed(range(0, len(whole), step)):
            os.truncate(file, length)
            if read(store, file) is not None:
                raise Fault(f"{file.name} cut to {length} of {len(whole)} bytes was no miss")
        counts += Counter(files=1, misses=len(range(0, len(whole), step)))
        file.write_bytes(whole)
    return counts


def damages(directory: Path, count: int, seed: int) -> Counter[str]:
    """Damage files at random, half of the time by one bit. Each is a miss or gives what was written."""
    random, store, known = Random(seed), KernelStore(directory), contents(directory)
    wholes = {file: file.read_bytes() for file in known}
    counts: Counter[str] = Counter()
    for number in range(count):
        file = random.choice(list(known))
        kind, data = damaged(random, wholes[file], wholes)
        file.write_bytes(data)
        found = read(store, file)
        if found is not None and found != known[file]:
            raise Fault(f"{file.name} with {kind}, number {number} of seed {seed}, gave something else")
        counts["misses" if found is None else "right"] += 1
        counts["unchanged"] += data == wholes[file]
        file.write_bytes(wholes[file])
    return counts


def damaged(random: Random, whole: bytes, wholes: dict[Path, bytes]) -> tuple[str, bytes]:
    """A file's bytes with a fault as disks, copies or people make it, and the name of the fault."""
    data, kind = (
        bytearray(whole),
        random.choice(("bit", "bit", "bit", "bits", "page", "end", "more", "other")),
    )
    at = random.randrange(len(data))
    match kind:
        case "bit":
            data[at] ^= 1 << random.randrange(8)
        case "bits":
            for _ in range(random.randrange(2, 9)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        case "page":
            begin = at // PAGE_BYTES * PAGE_BYTES
            data[begin : begin + PAGE_BYTES] = bytes(len(data[begin : begin + PAGE_BYTES]))
        case "end":
            del data[at:]
        case "more":
            data += random.randbytes(random.randrange(1, 99))
        case "other":
            data = bytearray(random.choice(list(wholes.values())))
    return kind, bytes(data)


def calls(directory: Path, count: int, seed: int) -> Counter[str]:
    """Start processes on a store with only damaged files.

    All compute the right result and repair the store.
    """
    random, known = Random(seed), contents(directory)
    wholes = {file: file.read_bytes() for file in known}
    (sound,) = together(directory, 1)
    for _ in range(count):
        for file in known:
            file.write_bytes(damaged(random, wholes[file], wholes)[1])
        (facts,) = together(directory, 1)
        _same(facts, sound)
        unsound = [
            file.name
            for file in KernelStore(directory).entries()
            if read(KernelStore(directory), file) is None
        ]
        if unsound:
            raise Fault(f"{unsound} were damaged and not rewritten")
        for file in known:
            file.write_bytes(wholes[file])
    return Counter(processes=count)


def starts(directory: Path, count: int, **settings: str) -> Counter[str]:
    """Start processes at once on an empty store.

    All compute the right result and leave nothing unfinished.
    """
    told = together(directory, count, **settings)
    for facts in told:
        _same(facts, told[0])
    left = [file.name for file in directory.iterdir() if file.name.startswith(UNFINISHED)]
    if left:
        raise Fault(f"{count} processes left {left}")
    if not settings:
        (facts,) = together(directory, 1)
        if facts["misses"] or facts["numba"]:
            raise Fault(f"after {count} processes, the next one says {facts}")
    return Counter(
        processes=count, misses=sum(facts["misses"] for facts in told), files=len(list(directory.iterdir()))
    )


def together(directory: Path, count: int, **settings: str) -> list[dict[str, Any]]:
    """The output of processes that begin to pack at the same time."""
    waited, ended = os.pipe()
    children = [_start(waited, directory, **settings) for _ in range(count)]
    os.close(waited)
    try:
        began = [child.stdout.readline() for child in children]  # type: ignore[union-attr]
    finally:
        os.close(ended)
    told = [child.communicate() for child in children]
    out = []
    for child, line, (text, errors) in zip(children, began, told, strict=True):
        if child.returncode or line != "ready\n":
            raise Fault(f"a process ended with {child.returncode}: {errors}")
        out.append(json.loads(text))
    return out


def _start(waited: int, directory: Path, **settings: str) -> Popen[str]:
    changes = {"TILEJIT_CACHE_DIR": str(directory), "TILEJIT_NO_CACHE": "", **settings}
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]
    return Popen(command, stdin=waited, stdout=PIPE, stderr=PIPE, text=True, env=environment(**changes))


def _same(facts: dict[str, Any], others: dict[str, Any]) -> None:
    if not facts["right"] or facts["packed"] != others["packed"]:
        raise Fault(f"one process computed {facts}, another {others}")


if __name__ == "__main__":
    sys.exit(main())
