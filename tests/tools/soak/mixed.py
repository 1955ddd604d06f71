"""The soak's kernels whose numbers change dtype, against Python."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING

import tilejit as tj
from codegen.support.errors import KernelError
from tests.codegen.frontend.mixed import alike, mixed

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

COMPILED_ONE_IN = 40
"""The share of kernels that are compiled. The others are interpreted."""


def mixed_dtypes(case: Case) -> None:
    """A kernel must store Python's bytes, or be refused; nothing is compared where Python raises."""
    drawn = mixed(lambda count: case.pick(0, count - 1))
    case.note(arguments=drawn.arguments, kernel="\n" + drawn.text)
    try:
        wanted = drawn.wanted()
        if wanted is None:
            case.bench.counts["mixed kernels that Python refuses"] += 1
            return
        if case.chance(COMPILED_ONE_IN):
            given = drawn.copied()
            tj.kernel(drawn.python)(*given)
            found = given[3]
        else:
            found = drawn.interpreted()
        case.check(alike(found, wanted), f"Python stores {wanted}, the kernel {found}")
    except KernelError:
        case.bench.counts["mixed kernels refused"] += 1
    finally:
        linecache.cache.pop(drawn.python.__code__.co_filename, None)
