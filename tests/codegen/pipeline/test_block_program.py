"""Steps of blocks: which calls a block makes, and where."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from codegen.pipeline.block_program import Block, BlockCopies, BlockKernel

FIRST, LAST = (False,), (True,)
BLOCK, END = Block(FIRST, LAST, 96, (40, 8, 0)), Block(LAST, None, 0, (136, 16, 0))
PROGRAMS: Any = {kind: SimpleNamespace(launches=(name,)) for kind, name in ((FIRST, "full"), (LAST, "short"))}


def test_copies_take_the_program_of_their_block() -> None:
    out = BlockCopies(PROGRAMS, 2, 1)
    assert out.group(BLOCK) == [(("full",), ((2, 0), (1, 8)))]
    assert out.group(END) == [(("short",), ((2, 0), (1, 16)))]


def test_requests_are_those_of_the_next_block() -> None:
    """They have its kind, and count from where it begins; the last block requests nothing."""
    requests = BlockCopies(PROGRAMS, 0, 2, "lines")
    assert requests.group(BLOCK) == [(("short",), ((0, 136), (2, 0)))]
    assert requests.group(END) == []


def test_kernels_have_operands_in_their_own_order() -> None:
    kernel = BlockKernel(cast("Any", {FIRST: ("call", (2, 0, 1))}))
    assert kernel.group(BLOCK) == [(("call",), ((2, 0), (0, 40), (1, 8)))]
