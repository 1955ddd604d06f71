"""Check that stores need no masks: the array ends with the loop, or super-vectors divide the loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen import (
    For,
    Function,
    Index,
    KernelError,
    Statement,
    Store,
    add_indices,
    constant_trips,
    index_symbol,
    scale_index,
)
from tilejit.mlir.program import Program


def check_unmasked(program: Program, wide: Function) -> None:
    """Check that the stores of a super-vectorized function write the same elements without masks.

    MLIR's stores end where their arrays end. A mask is therefore redundant if the loop ends there as well, or
    if the number of its iterations is a multiple of the super-vector's size.

    Raises:
        KernelError: a store needs a mask; the message names its loop and the fixes.
    """
    sizes = {
        memref.name: memref.sizes for memref in (*program.memrefs, *program.allocations) if memref is not None
    }
    for loops, store in _stores(wide.body, ()):
        lanes = [loop for loop in loops if loop.size > 1]
        for loop, dim, step in zip(lanes, store.dims, store.steps, strict=False):
            if step == 1 and not _is_whole(loop) and not _ends_with(loop, store, dim, sizes[store.array]):
                ends = " and ".join(map(str, loop.upper))
                raise KernelError(
                    f"@{program.name} needs masks: the loop {loop.index} of line {loop.line} ends at {ends}, "
                    f"which isn't known to be a multiple of {loop.size}, and {store.array} may be longer\n"
                    f'  write a multiple of {loop.size}, end the loop with the array, or omit masks="none"'
                )


def _stores(body: Sequence[Statement], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Store]]:
    for statement in body:
        match statement:
            case For():
                yield from _stores(statement.body, (*loops, statement))
            case Store() if statement.dims:
                yield loops, statement


def _is_whole(loop: For) -> bool:
    """Whether all lanes are active in every iteration."""
    trips = constant_trips(replace(loop, step=loop.step // loop.size, size=1))
    return trips is not None and trips % loop.size == 0


def _ends_with(loop: For, store: Store, dim: int | None, sizes: tuple[Index, ...]) -> bool:
    """Whether the last iteration of a loop stores the last element of the array's dimension."""
    if dim is None or len(loop.upper) != 1:
        return False
    # i + c of i below n ends with the array if n + c is its size.
    beyond = add_indices(store.subscripts[dim], scale_index(index_symbol(loop.index), -1))
    return add_indices(loop.upper[0], beyond) == sizes[dim]
