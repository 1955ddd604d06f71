"""The programs of relayout: in one pass, or block by block if that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen import CopyProgram, LayoutError, cached
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, shape_name
from tilejit.programs.compiled import buffer_element, chosen, compiled
from tilejit.programs.tuning import DEFAULT, Tuning

if TYPE_CHECKING:
    from tilejit.programs.compiled import Program


@cached(256)
def single_pass_relayout(
    source: Spec,
    target: Spec,
    fill: bytes | None,
    threads: int,
    tuning: Tuning = DEFAULT,
) -> CopyProgram:
    """The program that copies between two tiled buffers of the same array in one pass.

    Raises:
        LayoutError: the dimensions differ.
    """
    if source.dimensions != target.dimensions:
        raise LayoutError(f"{shape_name(source)} and {shape_name(target)} have different dimensions")
    return compiled(
        access_map(source),
        access_map(target),
        buffer_element(source),
        buffer_element(target),
        threads=threads,
        tuning=tuning,
        padding=fill,
    )


@cached(256)
def relayout_program(source: Spec, target: Spec, fill: bytes | None, threads: int, tuning: Tuning) -> Program:
    """The program that copies between two tiled buffers, block by block if that is faster.

    It runs in one pass if a keyword sets the sizes. With `tune`, both methods are tried.
    """
    program = single_pass_relayout(source, target, fill, threads, tuning)
    elements = buffer_element(source), buffer_element(target)
    return chosen(program, *elements, padding=fill, threads=threads, tuning=tuning)
