"""Tile nests before their loops become super-vectors: `vectorize_at="after_tile"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.analysis.dependence import goes_back
from codegen.ir.index import Affine, index_symbol, index_symbols
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.visit import Loop, accesses_of, loops_of
from codegen.passes.new_names import fresh_name
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect


@dataclass(frozen=True, slots=True)
class TiledLoops:
    """A function whose nests run tile by tile. tiles: iterations per tile of each loop of each tiled nest."""

    function: Function
    tiles: tuple[tuple[int, ...], ...]


def tile_loops(function: Function, sizes_of: Mapping[int, int]) -> TiledLoops:
    """Tile perfectly nested loops; each tile runs as a nest of its own.

    before:  for i in 0..n: for j in 0..m:  C[i, j] = A[j, i]
    after:   for i_tile in 0..n step 32: for j_tile in 0..m step 256:
               for i in i_tile..min(i_tile + 32, n): for j in j_tile..min(j_tile + 256, m):  C[i, j] = A[j, i]

    sizes_of: iterations per tile, by loop number, as `choose_tiles` returns them. A single loop is not tiled.
    Neither are loops that carry a local, whose bounds use each other's indices, or along which a dependence
    points backward.
    """
    roots = loops_of(function.body)
    accesses = accesses_of(function.body, roots)
    taken = {argument.name for argument in function.arguments}
    taken |= {loop.node.index for root in roots for loop in root.all()}
    tiles: list[tuple[int, ...]] = []

    def cut(body: tuple[Statement, ...], loops: Sequence[Loop]) -> tuple[Statement, ...]:
        following = iter(loops)
        return tuple(
            nest(expect(following, f"another loop for {node.index}", "a tiled nest"))
            if isinstance(node, For)
            else node
            for node in body
        )

    def nest(loop: Loop) -> For:
        band = _band(loop)
        if len(band) < 2 or goes_back(accesses, band):
            return replace(loop.node, body=cut(loop.node.body, loop.inside))
        sizes = tuple(sizes_of[each.number] for each in band)
        tiles.append(sizes)
        names = [fresh_name(f"{each.node.index}_tile", taken) for each in band]
        return _in_tiles(band, sizes, names)

    return TiledLoops(replace(function, body=cut(function.body, roots)), tuple(tiles))


def _band(loop: Loop) -> list[Loop]:
    """The loop and the loops perfectly nested in it whose bounds do not depend on the band's indices."""
    band: list[Loop] = []
    while not loop.node.carried:
        used = set[str]().union(*map(index_symbols, (*loop.node.lower, *loop.node.upper)))
        if used & {outer.node.index for outer in band}:
            break
        band.append(loop)
        if len(loop.node.body) != 1 or not loop.inside:
            break
        (loop,) = loop.inside
    return band


def _in_tiles(band: Sequence[Loop], sizes: Sequence[int], names: Sequence[str]) -> For:
    """The loops over tiles around the loops of one tile."""
    body = band[-1].node.body
    for loop, size, name in reversed(list(zip(band, sizes, names, strict=True))):
        node = loop.node
        end = index_symbol(name) + Affine(size * node.step)
        body = (replace(node, lower=(index_symbol(name),), upper=(end, *node.upper), body=body),)
    for loop, size, name in reversed(list(zip(band, sizes, names, strict=True))):
        step = size * loop.node.step
        body = (replace(loop.node, index=name, step=step, body=body, min_distance=1),)
    (outermost,) = body
    assert isinstance(outermost, For), "a band has a loop"
    return outermost
