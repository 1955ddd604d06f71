"""Explain a copy: its nests, schedule, generated source, LLVM IR and machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from codegen import (
    CopyProgram,
    Kernel,
    LayoutError,
    StagedProgram,
    dataclass,
    thread_count,
)
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import broadcast_strides, c_strides
from tilejit.arrays.values import widens_to
from tilejit.copies.convert import program_of_pack
from tilejit.copies.tiles import gather_program, gather_tiles, scatter_program, scatter_tiles
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike, PrimitiveType, from_numpy
from tilejit.layout.from_parts import make_shape
from tilejit.layout.shape import Shape
from tilejit.programs.compiled import array_element
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.moves import move_for
from tilejit.programs.pack_programs import unpack_program
from tilejit.programs.relayout_programs import relayout_program
from tilejit.programs.stages import Stages, directives_of
from tilejit.programs.tuning import (
    AUTO,
    SAME_KIND,
    STRUCTURE,
    Casting,
    Specialize,
    Tune,
    Tuning,
    VectorSize,
    casting_error,
    check_casting,
    may_cast,
    read_tuning,
)
from tilejit.support.notebook import notebook_html
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.tiled_array import TiledArray

if TYPE_CHECKING:
    from tilejit.programs.compiled import Program


@dataclass(frozen=True)
class Explanation(Stages):
    """One copy in detail: its nests, schedules, generated source and machine code.

    >>> explanation = tilejit.explain("f32[3,5]{0,1}", None)
    >>> len(explanation.steps), "def " in explanation.source
    (1, True)

    `tilejit.explain` creates it. A copy runs one or more boxes of elements; the texts below describe all of
    them.

    Attributes:
        program: the compiled copy.
    """

    program: Program

    @property
    def _compiled(self) -> Program:
        return self.program

    @property
    def kernel(self) -> Kernel:
        """The kernel of the largest box.

        Raises:
            LayoutError: the copy has no elements.
        """
        if not self.steps:
            raise LayoutError("the copy has no elements, so it has no kernel\n  pass arrays with elements")
        return self.steps[0].kernel

    def __repr__(self) -> str:
        """Count boxes and kernels, and show the schedule of the largest box; `report()` shows everything."""
        kernels = len(self.program.kernels)
        lines = [f"<tilejit.Explanation {self._title}, {kernels} kernel{'s' * (kernels != 1)}>"]
        if self.steps:
            lines.append(f"  largest  {self.steps[0].schedule}")
            lines.append(f"  runs by  {directives_of(self.steps[0]) or 'no directives'}")
        if isinstance(self.program, StagedProgram):
            lines.append(f"  blocks   {self.program.staging}")
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        """Render the texts for a notebook."""
        texts = [("nest", self.nest), ("schedule", self.schedule), ("source", self.source)]
        return notebook_html("texts_html", self._title, texts)

    @property
    def _title(self) -> str:
        return f"copy of {len(self.steps)} box{'es' * (len(self.steps) != 1)}"

    def report(self) -> str:
        """Describe the nest, schedule and source of every box.

        >>> "schedule" in tilejit.explain("f32[3,5]{0,1}", None).report()
        True

        Returns:
            Several lines of text.
        """
        return "\n".join([*self._blocks, *(step.report() for step in self.steps), self.source])


@overload
def explain(
    dst: Array | LayoutLike | TiledArray | None,
    src: Array | LayoutLike | TiledArray | None,
    /,
    *,
    casting: Casting | None = None,
    threads: int = 1,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Explanation: ...


@overload
def explain(
    operation: Callable[..., Any], t: TiledArray, /, *arguments: Any, threads: int = 1, **keywords: Any
) -> Explanation: ...


def explain(
    dst: Any,
    src: Any,
    /,
    *arguments: Any,
    casting: Casting | None = None,
    threads: int = 1,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Explanation:
    """Show how TileJIT copies a source to a destination; as in `copyto`, the destination comes first.

    >>> print(tilejit.explain("f32[3,5]{0,1}", None).nest.rstrip())
    src: f32, 32 bits, counted in bytes
    dst: f32, 32 bits, counted in bytes
    for j in 5:
        for i in 3:
            dst[12*j + 4*i] = src[4*j + 20*i]
    >>> x = np.zeros((1000, 300), np.float32)
    >>> len(tilejit.explain("blis-a", x, mr=4).steps) > 0
    True
    >>> relayout = tilejit.explain("blis-a", "tpu", dtype="bf16", dims=(1000, 300), mr=4)
    >>> relayout.source.count("def ") > 0
    True

    `explain(gather_tiles, t, ids)` and `explain(scatter_tiles, t, ids, values)` explain those calls.

    Args:
        dst: an array, a TiledArray, anything that `as_layout` reads, or None for an array in C order; or
            `gather_tiles` or `scatter_tiles`.
        src: the same as for `dst`. From an array to a layout, the copy is a `pack` with zero padding. From a
            layout to an array, it is an `unpack`. Between arrays, it is a `copyto`.
        arguments: after `gather_tiles` or `scatter_tiles`, the rest of its positional arguments.
        casting: NumPy's rule for conversions. None means "same_kind" between arrays and "no" otherwise.
        threads: the number of threads that the copy is planned for.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.
        schedule: directives for the largest part of the copy, as `explain` prints them; see `copyto`.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.
        dtype: the dtype, if neither side has one.
        dims: the dimensions in elements, if neither side has them.
        parameters: keywords of the side that is a named format or a pattern. If both sides are, they apply to
            `dst`; write those of `src` in its text.

    Returns:
        An `Explanation`: the nests, the schedule, the source, LLVM IR and machine code.

    Raises:
        LayoutError: the two sides have different shapes or dtypes, neither side has a shape, or NumPy makes
            this copy; or `gather_tiles` or `scatter_tiles` would raise it.
        KernelValueError: `threads` is less than one.
        TypeError: a side has another type, or neither `explain` nor a layout takes a keyword.
    """
    count, tuning = thread_count(threads, 0), read_tuning(virtual_vector_size, specialize, tune, schedule)
    if dst is gather_tiles or dst is scatter_tiles:
        if (specialize, tune) != (STRUCTURE, False) or (casting, dtype, dims) != (None, None, None):
            raise TypeError(
                f"{dst.__name__} does not take this keyword\n  pass its own arguments, and threads"
            )
        parameters |= {"virtual_vector_size": virtual_vector_size}
        return Explanation(_of_tiles(dst, count, (src, *arguments), parameters))
    if arguments:
        raise TypeError(f"explain: expected a destination and a source, got {2 + len(arguments)} arguments")
    if casting is not None:
        check_casting(casting)
    is_described = (dtype, dims) != (None, None) or bool(parameters)
    if not is_described and _are_arrays(dst, src):
        return Explanation(_between_arrays(dst, src, casting or SAME_KIND, count, tuning))
    element, known = _shape_of(dst, src, dtype, dims)
    target, source = _specs_of(dst, src, element, known, parameters)
    if target is not None:
        refuse_overlaps(target)
    if source is None and target is None:
        array = _strided_source(None, make_shape(element, known).dtype, known)
        return Explanation(_between_arrays(array, array, casting or SAME_KIND, count, tuning))
    casting = casting or "no"
    if source is None and target is not None:
        array = _strided_source(src, target.dtype, target.dimensions)
        return Explanation(program_of_pack(array, target, casting=casting, threads=count, tuning=tuning))
    if source is not None and target is None:
        strides = _strides_of(dst, source)
        return Explanation(unpack_program(source, strides, array_element(source), False, count, tuning))
    assert source
    assert target
    if source.dimensions != target.dimensions:
        sides = f"the source has dimensions {list(source.dimensions)}"
        raise LayoutError(f"{sides}, but the destination has {list(target.dimensions)}")
    if source.primitive_type != target.primitive_type:
        sides = f"the source holds {source.primitive_type}"
        raise LayoutError(f"{sides}, but the destination holds {target.primitive_type}")
    return Explanation(relayout_program(source, target, bytes(max(1, target.bits // 8)), count, tuning))


def _of_tiles(
    function: Callable[..., Any], threads: int, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> CopyProgram:
    """The program that a call of `gather_tiles` or `scatter_tiles` runs."""
    bound = signature(function).bind(*arguments, **keywords)
    bound.apply_defaults()
    given = bound.arguments
    size = given["virtual_vector_size"]
    if function is gather_tiles:
        return gather_program(given["t"], given["ids"], given["out"], threads, size)
    return scatter_program(given["t"], given["ids"], given["values"], given["duplicates"], threads, size)


def _are_arrays(*sides: Any) -> bool:
    """Whether all are arrays or None, with at least one array."""
    arrays = [isinstance(side, np.ndarray) for side in sides]
    return any(arrays) and all(known or side is None for known, side in zip(arrays, sides, strict=True))


def _between_arrays(dst: Any, src: Any, casting: Any, threads: int, tuning: Tuning) -> Program:
    """The program that `copyto` runs; None means an array in C order like the other one."""
    source = _strided_source(src, dst.dtype, dst.shape) if src is None else src
    target = _strided_source(dst, src.dtype, src.shape) if dst is None else dst
    if not may_cast(source.dtype, target.dtype, casting):
        sides = f"the source is {source.dtype}, but the destination is {target.dtype}"
        raise casting_error(source.dtype, target.dtype, casting, sides)
    strides = broadcast_strides(source.shape, source.strides, target.shape)
    if strides is None:
        raise LayoutError(
            f"the source has dimensions {list(source.shape)}, which do not broadcast to the "
            f"destination's {list(target.shape)}"
        )
    move = move_for(source.dtype, target.dtype)
    if move is None:
        raise LayoutError(f"NumPy copies {source.dtype} to {target.dtype}, so the copy has no kernel")
    return copy_program(target.shape, target.strides, strides, move, threads, tuning)


def _shape_of(
    dst: Any, src: Any, dtype: Any, dims: Iterable[int] | None
) -> tuple[PrimitiveType, tuple[int, ...]]:
    """Dtype and dimensions from the first side that has them, the source before the destination."""
    known: Any = next((side for side in (src, dst) if isinstance(side, np.ndarray | TiledArray)), None)
    known = next((side for side in (src, dst) if _is_full(side)), None) if known is None else known
    if known is None:
        if dims is None or dtype is None:
            raise LayoutError(
                "neither side has a shape\n"
                '  write it out, e.g. "f32[1000,300]{1,0:T(8,128)}", or pass dtype and dims'
            )
        known = make_shape(dtype, dims)
        check_packable(known)
    elif dims is not None or dtype is not None:
        raise TypeError("a side already has a shape; pass dtype and dims only if neither side does")
    if isinstance(known, np.ndarray):
        return from_numpy(known.dtype), known.shape
    spec = known.layout if isinstance(known, TiledArray) else as_layout(known)
    return spec.element, spec.dimensions


def _is_full(side: Any) -> bool:
    """Whether a side is the shape of an array, or its text."""
    return isinstance(side, Shape | CuteShape) or (isinstance(side, str) and "[" in side)


def _specs_of(
    dst: Any, src: Any, element: PrimitiveType, dims: tuple[int, ...], parameters: dict[str, Any]
) -> tuple[Spec | None, Spec | None]:
    """The layouts of both sides, None for arrays; parameters go to the side that may take them."""
    to_dst, to_src = (
        not (side is None or isinstance(side, np.ndarray | TiledArray) or _is_full(side))
        for side in (dst, src)
    )
    if parameters and not (to_dst or to_src):
        raise TypeError(
            f"neither side is a format or a pattern with a parameter {next(iter(parameters))[:40]!r}"
        )
    own, others = (parameters, {}) if to_dst else ({}, parameters)
    return _layout_of(dst, element, dims, own), _layout_of(src, element, dims, others)


def _layout_of(
    side: Any, element: PrimitiveType, dims: tuple[int, ...], parameters: dict[str, Any]
) -> Spec | None:
    """The layout of a side that has one; None for arrays."""
    if isinstance(side, TiledArray):
        return side.layout
    if side is None or isinstance(side, np.ndarray):
        return None
    spec = as_layout(side, dtype=element, dims=dims, **parameters)
    check_packable(spec)
    return spec


def _strided_source(side: Any, dtype: np.dtype[Any], dims: tuple[int, ...]) -> Array:
    """The array itself, or one in C order that takes almost no memory."""
    if side is not None:
        return np.asarray(side)
    return np.lib.stride_tricks.as_strided(
        np.empty(1, dtype), dims, c_strides(dims, dtype.itemsize), writeable=False
    )


def _strides_of(side: Any, source: Spec) -> tuple[int, ...]:
    if side is None:
        return c_strides(source.dimensions, source.dtype.itemsize)
    fits = side.dtype == source.dtype or widens_to(source.element, side.dtype)
    if side.shape != source.dimensions or not fits:
        raise LayoutError(
            f"the layout is {source.dtype}{list(source.dimensions)}, "
            f"but the array is {side.dtype}{list(side.shape)}"
        )
    return tuple(side.strides)
