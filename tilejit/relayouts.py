"""relayout: from one tiled buffer to another, at once or block by block, without the array in between."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from codegen.errors import LayoutError
from codegen.pipeline import CopyProgram
from codegen.threads import thread_count
from tilejit.blocks import BlockProgram, in_blocks
from tilejit.buffers import check_packable
from tilejit.convert import of_the_layout, padding_of
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, shape_name
from tilejit.outputs import output_tiled
from tilejit.programs import buffer_element, compiled
from tilejit.tiled_array import TiledArray, address_of
from tilejit.tuning import AUTO, DEFAULT, STRUCTURE, Tuning, read_tuning


def relayout(
    t: TiledArray,
    /,
    obj: Any,
    *,
    out: Any = None,
    padding: Any = None,
    threads: int | None = None,
    virtual_vector_size: Any = AUTO,
    specialize: str = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> TiledArray:
    """Bring a tiled array into another layout.

    >>> u = tilejit.relayout(t, "{1,0:T(32,32)(16,16)}")
    >>> u = tilejit.relayout(t, "blis-a", mr=4)
    >>> u = tilejit.relayout(t, "(m mi) (n ni) -> m n mi ni", mi=8, ni=128)

    Equal to pack(unpack(t), obj), without the whole array in row-major order. Most layouts go straight into
    each other; where that would move a few bytes at a time, blocks of at most 384 KiB, and of less than half
    the second cache, go through a buffer of that size: memory is read once and written once either way. t: a
    TiledArray.
    obj, parameters: whatever `as_layout` reads, of the same dimensions and dtype, and the keywords of a
    format or a pattern, as in `pack`. out: a flat array of the element dtype, a uint8 array or a TiledArray,
    of the right size, apart from t. padding: None for the new layout's own padding value, else 0; a number;
    or "keep" to leave what `out` holds; t's own padding is not read. The other keywords are those of
    `copyto`; given `virtual_vector_size`, `specialize` or `tune`, there are no blocks.

    Raises:
        LayoutError: layout, padding, `out` or a keyword are wrong; nothing has been written.
        TypeError: an argument is of a wrong type, or a keyword neither of relayout's nor of the layout's.
    """
    tuning = read_tuning(virtual_vector_size, specialize, tune)
    if not isinstance(t, TiledArray):
        raise TypeError(
            f"relayout takes a TiledArray, not {type(t).__name__}\n"
            "  pack an array; put a buffer into TiledArray.from_buffer"
        )
    own = of_the_layout(parameters, "relayout", "the tiled array")
    spec = as_layout(obj, dims=t.shape, dtype=t.spec.primitive_type, **own)
    check_packable(spec)
    refuse_overlaps(spec)
    if spec.primitive_type != t.spec.primitive_type:
        raise LayoutError(
            f"the tiled array is {t.spec.primitive_type}, the layout {spec.primitive_type}\n"
            "  give the layout of the same dtype; to convert, pack(unpack(t), ..., casting=...)"
        )
    fill = padding_of(padding, spec, out)
    source = address_of(t)
    target = output_tiled(out, spec, t.buffer)
    count = thread_count(threads, t.nbytes + spec.size_in_bytes)
    program = copy_or_blocks(t.spec, spec, fill, count, tuning)
    program.run(source, address_of(target), count, alive=(t, target))
    return target


@lru_cache(maxsize=256)
def relayout_program(
    source: Spec,
    target: Spec,
    fill: bytes | None,
    threads: int,
    tuning: Tuning = DEFAULT,
    apart: bool = False,
) -> CopyProgram:
    """The copy between two tiled buffers of the same array; `apart`: padding has launches of its own.

    Raises:
        LayoutError: the dimensions differ.
    """
    if source.dimensions != target.dimensions:
        raise LayoutError(f"{shape_name(source)} and {shape_name(target)} are not of the same array")
    return compiled(
        access_map(source),
        access_map(target),
        buffer_element(source),
        buffer_element(target),
        threads=threads,
        tuning=tuning,
        padding=fill,
        apart=apart,
    )


@lru_cache(maxsize=256)
def copy_or_blocks(
    source: Spec, target: Spec, fill: bytes | None, threads: int, tuning: Tuning
) -> CopyProgram | BlockProgram:
    """The copy itself, or block by block where that is faster; never the latter where a keyword says how."""
    program = relayout_program(source, target, fill, threads, tuning)
    if tuning != DEFAULT:
        return program

    def pads() -> CopyProgram:
        return relayout_program(source, target, fill, threads, tuning, apart=True).pads_only()

    return in_blocks(program, pads, source, target) or program
