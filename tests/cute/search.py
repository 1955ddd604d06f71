"""Random cases against the definitions: `python -m tests.cute.search --cases 1000000 --seed 1`.

Each case depends only on the seed and its number. A failure names both.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import numpy as np

from tests.cute.judge import OPERATIONS, any_operation, judged
from tests.tools.strategies import picker


def main(arguments: list[str] | None = None) -> int:
    """Run cases; return 0 if all hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.cute.search", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--operation", choices=list(OPERATIONS), help="one operation alone")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    began = time.monotonic()
    counts: Counter[str] = Counter()
    for number in range(options.first, options.first + options.cases):
        pick = picker(np.random.default_rng((options.seed, number)))
        operation = options.operation or any_operation(pick)
        try:
            counts[f"{operation} {judged(operation, pick)}"] += 1
        except Exception as error:
            print(f"case {number} of seed {options.seed}: {operation}: {type(error).__name__}: {error}")
            only = f" --operation {options.operation}" if options.operation else ""
            print(f"  python -m tests.cute.search --seed {options.seed} --first {number} --cases 1{only}")
            return 1
    seconds = time.monotonic() - began
    print(f"{options.cases} cases in {seconds:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
