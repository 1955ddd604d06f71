"""One target under atheris: `python -m tests.fuzz.guided TARGET FOLDER-OF-FINDS OPTIONS-OF-LIBFUZZER…`.

Finds are written to the folder, and the run goes on. The process that started it tries them again without the
instrumentation, which takes several times as long.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import atheris

INSTRUMENTED = ["tilejit", "codegen"]
SLACK = 3.0
MOST_OF_A_KIND = 3


def main() -> None:
    """Run until libFuzzer ends the process."""
    name, folder, *options = sys.argv[1:]
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.judge import Judge
        from tests.fuzz.targets import TARGETS

        judge = Judge(TARGETS[name], SLACK)
    kinds: dict[str, int] = {}

    def one(data: bytes) -> None:
        wrong = judge(data)
        if wrong is None:
            return
        kind = wrong.partition(":")[0] if wrong.startswith(("slow", "memory")) else wrong[:40]
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= MOST_OF_A_KIND:
            Path(folder, sha256(data).hexdigest()[:16]).write_bytes(data)

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
