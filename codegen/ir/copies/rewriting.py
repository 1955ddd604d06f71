"""Queries and rewrites of scalar copy nests, shared by passes and schedules."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import Convert, Expr, Fill, For, Load, LoopNest, Ref, Store, wrap


def rebuilt(nest: LoopNest, loops: tuple[For, ...], store: Store) -> LoopNest:
    """The nest with new loops and a new store; its table loop is kept."""
    return replace(nest, body=wrap(loops, nest.table_loop, store))


def scalar(nest: LoopNest) -> Store:
    """The store of a nest that has not been vectorized yet."""
    if not isinstance(nest.innermost, Store):
        raise AssertionError(f"expected a scalar nest, got one with {type(nest.innermost).__name__}")
    return nest.innermost


def int_size(size: object) -> int:
    """The size, which must be an int; sizes are parameters only after `parametrize`."""
    if not isinstance(size, int):
        raise AssertionError(f"expected an int size, got {size}; run this pass before parametrize")
    return size


def map_refs(store: Store, change: object) -> Store:
    """The store with `change` applied to the Ref of each side."""
    if not callable(change):
        raise AssertionError("expected `change` to be a function of a Ref")
    value: Expr = store.value
    match value:
        case Load(ref):
            value = Load(change(ref))
        case Convert(Load(ref), source, target):
            value = Convert(Load(change(ref)), source, target)
        case Fill():
            pass
    return Store(change(store.ref), value)


def keep_only(store: Store, axes: set[str]) -> Store:
    """The store with only the terms of these axes."""
    return map_refs(store, lambda ref: replace(ref, terms=tuple(t for t in ref.terms if t[0] in axes)))


def cut_axis(nest: LoopNest, axis: str, block: int) -> tuple[LoopNest, ...]:
    """Split a loop into full blocks, and a nest for the remainder.

    before:  for i in 5: for j in 20:                   dst[64*j + i] = src[20*i + j]
    after:   for i in 5: for long_j in 2: for j in 8:   dst[512*long_j + 64*j + i] = src[8*long_j + 20*i + j]
             for i in 5: for j in 4:                    dst[1024 + 64*j + i] = src[16 + 20*i + j]
    """
    store = scalar(nest)
    at, loop = next((k, x) for k, x in enumerate(nest.loops) if x.axis == axis)
    extent = int_size(loop.extent)
    if extent <= 2 * block:
        return (nest,)
    full, rest = divmod(extent, block)
    outer = long_axis(axis)

    def blocked(ref: Ref) -> Ref:
        return replace(ref, terms=((outer, int_size(ref.stride(axis)) * block), *ref.terms))

    def after_blocks(ref: Ref) -> Ref:
        return replace(ref, const=int_size(ref.const) + int_size(ref.stride(axis)) * full * block)

    before, after = nest.loops[:at], nest.loops[at + 1 :]
    loops = (*before, For(outer, full, store), replace(loop, extent=block), *after)
    # The parts are no longer a product of the box's digits, so the verifier cannot check them.
    out = [replace(rebuilt(nest, loops, map_refs(store, blocked)), digits=())]
    if rest:
        loops = (*before, replace(loop, extent=rest), *after)
        out.append(replace(rebuilt(nest, loops, map_refs(store, after_blocks)), digits=()))
    return tuple(out)


def long_axis(axis: str) -> str:
    """The name of the loop over full blocks of an axis that is split."""
    return f"long_{axis}"
