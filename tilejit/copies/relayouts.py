"""relayout: from one tiled buffer to another, at once or block by block, without the array in between."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from codegen import CopyProgram, LayoutError, StagedProgram, thread_count
from tilejit.arrays.memory import Array
from tilejit.copies.convert import of_the_layout, padding_of
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, shape_name
from tilejit.programs.compiled import buffer_element, compiled, staged
from tilejit.programs.tuning import AUTO, DEFAULT, STRUCTURE, Tuning, VectorSize, read_tuning
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.outputs import output_tiled
from tilejit.tiled.tiled_array import TiledArray, address_of


def relayout(
    t: TiledArray,
    /,
    obj: LayoutLike,
    *,
    out: Array | TiledArray | None = None,
    padding: int | float | complex | str | None = None,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    specialize: str = STRUCTURE,
    tune: bool = False,
    **parameters: Any,
) -> TiledArray:
    """Copy a tiled array into another layout.

    >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
    >>> t = tilejit.pack(x, "{1,0:T(2,2)}")
    >>> u = tilejit.relayout(t, "{0,1}")
    >>> u.buffer
    array([ 0.,  5., 10.,  1.,  6., 11.,  2.,  7., 12.,  3.,  8., 13.,  4.,
            9., 14.], dtype=float32)
    >>> np.array_equal(tilejit.unpack(u), x)
    True

    The result equals `pack(unpack(t), obj)`, and the whole array never exists in row-major order. Most
    layouts are copied directly into each other. Where that would move only a few bytes at a time, blocks of
    at most 384 KiB, and of less than half the second-level cache, go through a buffer of that size. Memory is
    read once and written once either way. With `virtual_vector_size` or `specialize`, every copy is
    direct.

    Args:
        t: a TiledArray. Its padding is not read.
        obj: the new layout, of the same dimensions and dtype: anything that `as_layout` reads.
        out: where to write: a flat array of the element dtype, a uint8 array or a TiledArray, of the right
            size. It must not overlap `t`. None allocates a buffer.
        padding: the value of padding elements. None takes the new layout's own, or 0; "keep" leaves what
            `out` holds.
        threads: how many threads to use; None lets the size decide.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels once and keeps the fastest.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The tiled array in the new layout.

    Raises:
        LayoutError: the layout, `padding`, `out` or a keyword is wrong; nothing has been written.
        TypeError: an argument has the wrong type, or neither `relayout` nor the layout knows a keyword.
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
) -> CopyProgram:
    """The copy between two tiled buffers of the same array, in one pass.

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
    )


@lru_cache(maxsize=256)
def copy_or_blocks(
    source: Spec, target: Spec, fill: bytes | None, threads: int, tuning: Tuning
) -> CopyProgram | StagedProgram:
    """The copy itself, or block by block where that is faster.

    Never the latter where a keyword says how; with `tune`, where it was measured to be.
    """
    program = relayout_program(source, target, fill, threads, tuning)
    elements = buffer_element(source), buffer_element(target)
    return staged(program, *elements, padding=fill, threads=threads, tuning=tuning)
