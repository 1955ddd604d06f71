"""Formats of several planes: pack a mapping of arrays into buffers, and unpack them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from codegen import LayoutError, check_threads, dataclass, shown
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.catalog.packing import Packing
from tilejit.copies.plane_arrays import (
    check_plane_out,
    checked_plane,
    decoded_codes,
    named_arrays,
    one_dtype,
    plane_dtype,
)
from tilejit.copies.plane_buffers import named_buffers, place_buffers, stored_dtype
from tilejit.layout.as_layout import ArrayUnknownError, is_name
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import array_dtype, from_numpy, lookup, primitive_type
from tilejit.layout.formats.packings import elements_of, find_packing
from tilejit.layout.formats.packings import names_planes as of_planes
from tilejit.programs.tuning import is_plain
from tilejit.support.tokens import MAX_INT64
from tilejit.tiled.outputs import checked_outs
from tilejit.tiled.tiled_array import TiledArray

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class PackedPlanes:
    """Planes of an array, packed into one buffer or several.

    >>> codes = np.arange(64, dtype=np.uint8).reshape(2, 32) % 16
    >>> d = np.ones((2, 1), np.float16)
    >>> packed = tilejit.pack({"codes": codes, "d": d}, "ggml-q4_0")
    >>> packed
    PackedPlanes(ggml-q4_0 of [2, 32], buffer: 36 bytes)
    >>> np.array_equal(packed.unpack()["codes"], codes)
    True

    Attributes:
        format: the name of the format.
        parameters: its parameters.
        dtype: XLA's name of the dtype of the planes that take any; empty if there are none.
        dims: the dimensions of the main plane, in elements.
        buffers: the arrays of bytes or words, by name.
    """

    format: str
    parameters: Parameters
    dtype: str
    dims: tuple[int, ...]
    buffers: Mapping[str, Array]

    @property
    def buffer(self) -> Array:
        """The buffer, if there is one.

        Raises:
            LayoutError: there are several.
        """
        if len(self.buffers) != 1:
            raise LayoutError(
                f"{self.format} has the buffers {', '.join(self.buffers)}\n  name one, as .buffers[name]"
            )
        return next(iter(self.buffers.values()))

    @property
    def layouts(self) -> dict[str, CuteShape]:
        """The layout of each plane in its buffer, for planes that strides describe.

        >>> codes, d = np.zeros((2, 32), np.uint8), np.ones((2, 1), np.float16)
        >>> print(tilejit.pack({"codes": codes, "d": d}, "ggml-q4_0").layouts["d"])
        f16[2,1] (2,1):(9,0)

        A field that holds some bits of each code has the name of its plane and the bits, "codes[0:4]".
        Planes that a field stacks along a last dimension have one layout, "scales, mins".
        """
        packing = find_packing(self.format, self.parameters)[2]
        if packing.steps:
            return {}
        sizes = packing.sizes(self.dims, f"the format {self.format!r}")
        found = {}
        for buffer in place_buffers(packing, sizes, elements_of(packing.planes, lookup(self.dtype or "u8"))):
            for placed in buffer.fields if buffer.name in self.buffers else ():
                spec, take = placed.layout, placed.field.take
                if spec is not None:
                    bits = f"[{take[0]}:{take[0] + take[1]}]" if take else ""
                    found[", ".join(placed.field.planes) + bits] = spec
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers.values())

    def unpack(self, *, out: Any = None, threads: int | None = None) -> Array | dict[str, Array]:
        """Return the planes by name, or the array if the format has one plane.

        >>> codes = np.arange(32, dtype=np.uint8).reshape(1, 32) % 16
        >>> packed = tilejit.pack({"codes": codes, "d": np.ones((1, 1), np.float16)}, "ggml-q4_0")
        >>> list(packed.unpack())
        ['codes', 'd']

        Args:
            out: where to write: a mapping of planes to arrays of their dimensions, with any strides and byte
                order; an array alone if the format has one plane. None allocates them.
            threads: the number of threads; None chooses it from the size.

        Returns:
            The arrays of `out`, or new ones; codes are uint8, or int8 if the format stores signed ones.

        Raises:
            LayoutError: the buffers do not have the sizes of the format, or `out` does not fit.
            TypeError: `out` is not a mapping of planes to arrays.
        """
        found: Array | dict[str, Array] = unpack_planes(
            self.buffers,
            self.format,
            self.dims,
            self.dtype or None,
            self.parameters,
            out=out,
            threads=threads,
        )
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Refuse to become an array, because the planes of most formats are several."""
        raise TypeError("expected an array, got PackedPlanes\n  unpack it first")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {buffer.nbytes} bytes" for name, buffer in self.buffers.items())
        return f"PackedPlanes({self.format} of {list(self.dims)}, {sizes})"


def names_planes(x: Any, layout: Any, parameters: Parameters) -> bool:
    """Whether a layout names a format that is not a layout of one array, or planes are given."""
    if isinstance(x, Mapping):
        return True
    return isinstance(layout, str) and is_name(layout) and of_planes(layout, parameters)


def reads_planes(t: Any, layout: Any, parameters: Parameters) -> bool:
    """Whether `unpack` reads planes."""
    if layout is None or isinstance(t, PackedPlanes | TiledArray):
        return isinstance(t, PackedPlanes | Mapping)
    return names_planes(t, layout, {key: value for key, value in parameters.items() if key != "dims"})


def unpack_given(
    t: Any, layout: Any, dtype: Any, parameters: Parameters, *, out: Any, threads: int | None
) -> Any:
    """`unpack` for planes; `out` is an array, or a mapping of arrays by the names of planes.

    Raises:
        LayoutError: the buffers or `out` do not fit; nothing has been written.
        TypeError: an argument has the wrong type, or dims is missing.
    """
    if isinstance(t, PackedPlanes):
        if layout is not None or parameters or dtype is not None:
            raise TypeError("unpack of PackedPlanes takes no layout, dtype or parameters\n  omit them")
        return t.unpack(out=out, threads=threads)
    if layout is None:
        raise TypeError("buffers need the name of their format: unpack(buffers, 'ggml-q4_0', dims=(…))")
    own = dict(parameters)
    if "dims" not in own:
        raise ArrayUnknownError(
            f"the format {layout!r} does not specify the dimensions of its main plane\n  pass dims="
        )
    dims = int_tuple(own.pop("dims"), "dims")
    if dtype is not None:
        _check_dtype(dtype, layout, own)
    return unpack_planes(t, layout, dims, dtype, own, out=out, threads=threads)


def refuse_options(
    call: str,
    padding: Any,
    casting: Any,
    virtual_vector_size: Any,
    specialize: Any,
    tune: Any,
    schedule: Any,
) -> None:
    """Refuse keywords that planes do not take.

    Raises:
        LayoutError: one has another value than its default.
    """
    if (
        padding is not None
        or not is_plain(casting, None, virtual_vector_size, specialize, tune, schedule)
        or casting != "no"
    ):
        raise LayoutError(
            f"{call} of a format of planes takes only out, threads and the format's parameters\n"
            "  omit padding, casting, virtual_vector_size, specialize, tune and schedule"
        )


def pack_planes(
    given: Any, layout: Any, parameters: Parameters, *, out: Any = None, threads: int | None = None
) -> PackedPlanes:
    """Pack arrays into the buffers of a format.

    Args:
        given: an array for each plane by name; an array alone for a format of one plane.
        layout: the name of the format, with parameters or without.
        parameters: the format's parameters.
        out: where to write: a mapping of buffers to arrays, of their dtype and dimensions in checkpoints, or
            of bytes; an array alone for a format of one buffer.
        threads: the number of threads; None chooses it from the size.

    Raises:
        LayoutError: a plane is missing or has other dimensions or values, or `out` does not fit; nothing has
            been written.
        TypeError: an argument has the wrong type.
    """
    name, own, packing = _packing_of(layout, parameters, threads)
    sources = named_arrays(given, packing, name)
    dims = sources[packing.main.name].shape
    sizes = packing.sizes(dims, f"the format {name!r}")
    arrays = {plane: checked_plane(packing.plane(plane), x, sizes, name) for plane, x in sources.items()}
    planes = [packing.plane(plane) for plane in arrays]
    free = one_dtype({plane.name: from_numpy(arrays[plane.name].dtype) for plane in planes if plane.is_free})
    placed = place_buffers(packing, sizes, elements_of(planes, free))
    targets = checked_outs(out, {buffer.name: buffer.check for buffer in placed}, sources.values())
    if packing.steps:
        arrays = packing.steps.encode(arrays, sizes)
    encoded = [[field.encoded(arrays, threads) for field in buffer.fields] for buffer in placed]
    buffers = {
        buffer.name: buffer.write(parts, arrays, targets.get(buffer.name), threads)
        for buffer, parts in zip(placed, encoded, strict=True)
    }
    return PackedPlanes(name, own, free.name if free else "", dims, buffers)


def buffer_sizes(layout: str, dims: tuple[int, ...], dtype: Any, parameters: Parameters) -> dict[str, int]:
    """The bytes of each buffer for an array.

    Raises:
        LayoutError: the format is not of planes, or does not take the dimensions.
    """
    name, _, packing = find_packing(layout, parameters)
    elements = elements_of(packing.planes, lookup("u8") if dtype is None else primitive_type(dtype))
    placed = place_buffers(packing, packing.sizes(dims, f"the format {name!r}"), elements)
    return {buffer.name: buffer.nbytes for buffer in placed}


def unpack_planes(
    given: Any,
    layout: Any,
    dims: tuple[int, ...],
    dtype: Any,
    parameters: Parameters,
    *,
    out: Any = None,
    threads: int | None = None,
) -> Any:
    """Return the planes of buffers, or the array if the format has one plane.

    Args:
        given: the buffer, or buffers by name.
        layout: the name of the format, with parameters or without.
        dims: the dimensions of the main plane, in elements.
        dtype: the dtype of the planes that take any; None is that of their buffers.
        parameters: the format's parameters.
        out: where to write: an array for each plane by name; an array alone for a format of one plane.
        threads: the number of threads; None chooses it from the size.

    Raises:
        LayoutError: a buffer is missing or has another size, dtype or shape, or holds what the format never
            stores, or `out` does not fit; nothing has been written.
        TypeError: an argument has the wrong type.
    """
    name, _, packing = _packing_of(layout, parameters, threads)
    for size in dims:
        if not 0 <= size <= MAX_INT64:
            raise LayoutError(f"a dimension is {shown(size)}\n  pass a size from 0 to 2^63-1")
    sizes = packing.sizes(dims, f"the format {name!r}")
    arrays = named_buffers(given, packing, name)
    missing = {plane for field in packing.fields if field.buffer not in arrays for plane in field.planes}
    held = [plane for plane in packing.planes if plane.name not in missing]
    free = stored_dtype(arrays, packing) if dtype is None else primitive_type(dtype)
    elements = elements_of(held, free)
    placed = [buffer for buffer in place_buffers(packing, sizes, elements) if buffer.name in arrays]
    for buffer in placed:
        buffer.check(arrays[buffer.name], f"{buffer.name} of {name} of {list(dims)}")
    checks = {p.name: partial(check_plane_out, p, elements[p.name], sizes) for p in held}
    targets = checked_outs(out, checks, arrays.values())
    planes: dict[str, Array] = {}
    flat = {name: np.ascontiguousarray(array).reshape(-1).view(np.uint8) for name, array in arrays.items()}
    fields = [field for buffer in placed for field in buffer.fields]
    # Fields that write to `out` follow those that fail if a buffer holds what the format never stores.
    for field in sorted(fields, key=lambda field: (bool(field.field.uses), field.is_plane)):
        into = targets.get(field.field.planes[0]) if field.is_plane else None
        for key, values in field.read(flat[field.field.buffer], planes, threads, into).items():
            planes[key] = planes[key] | values if key in planes else values
    if packing.steps:
        planes = packing.steps.decode(planes, sizes)
    found = {plane.name: decoded_codes(plane, planes[plane.name]) for plane in held}
    for key, target in targets.items():
        if not np.may_share_memory(found[key], target):
            numpy_copyto(target, found[key])
        found[key] = target
    return found if len(packing.planes) > 1 else found[packing.main.name]


def _check_dtype(dtype: Any, layout: Any, parameters: Parameters) -> None:
    """Raise a LayoutError if a format has no planes that take any dtype, and its main plane has another."""
    name, _, packing = _packing_of(layout, parameters, None)
    found, main = primitive_type(dtype), packing.main
    own = plane_dtype(main, lookup(main.dtype or "u8"))
    takes_bytes = main.bits and own.kind == "u"  # codes of 1 to 256 are given and returned as uint16
    is_known = array_dtype(found) == own or (takes_bytes and found.name == "u8")
    if not is_known and not any(plane.is_free for plane in packing.planes):
        raise LayoutError(f"dtype is {found.name}, but {main.name} of {name} is {own}\n  omit dtype")


def _packing_of(layout: Any, parameters: Parameters, threads: int | None) -> tuple[str, Parameters, Packing]:
    """The name of a format, its parameters and its packing.

    Raises:
        LayoutError: it is not a format of planes.
        TypeError: the layout is not the name of a format, or the format does not take a parameter.
    """
    check_threads(threads)
    fix = "pass a name such as 'ggml-q4_0'; other layouts take one array"
    if not isinstance(layout, str):
        raise TypeError(f"expected the name of a format for planes, got {type(layout).__name__}\n  {fix}")
    if not is_name(layout):
        raise LayoutError(f"expected the name of a format for planes, got {layout[:40]!r}\n  {fix}")
    return find_packing(layout, parameters)
