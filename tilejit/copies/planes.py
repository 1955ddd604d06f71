"""Formats of several planes: pack a mapping of arrays into buffers, and unpack them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing
from tilejit.copies.plane_arrays import checked_plane, free_dtype, given_codes, named_arrays
from tilejit.copies.plane_buffers import (
    buffer_bytes,
    buffer_dtype,
    check_length,
    copy_to,
    named_buffers,
    shaped,
    targets_of,
    written,
)
from tilejit.copies.plane_fields import element_of, place_fields
from tilejit.layout.as_layout import ArrayUnknownError, is_name
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PrimitiveType, lookup, primitive_type
from tilejit.layout.formats.packings import find_packing
from tilejit.layout.formats.packings import names_planes as of_planes
from tilejit.programs.tuning import is_plain
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
        dims: the dimensions of the main plane, in elements.
        dtype: XLA's name of the dtype of the planes that take any; empty if there are none.
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
        elements = _elements(packing, self._element)
        found = {}
        for buffer in self.buffers:
            for placed in place_fields(packing, buffer, sizes, elements):
                spec, take = placed.layout, placed.field.take
                if spec is not None:
                    bits = f"[{take[0]}:{take[0] + take[1]}]" if take else ""
                    found[", ".join(placed.field.planes) + bits] = spec
        return found

    @property
    def _element(self) -> PrimitiveType | None:
        return lookup(self.dtype) if self.dtype else None

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers.values())

    def unpack(self, *, threads: int | None = None) -> Array | dict[str, Array]:
        """Return the planes by name, or the array if the format has one plane.

        >>> codes = np.arange(32, dtype=np.uint8).reshape(1, 32) % 16
        >>> packed = tilejit.pack({"codes": codes, "d": np.ones((1, 1), np.float16)}, "ggml-q4_0")
        >>> list(packed.unpack())
        ['codes', 'd']

        Args:
            threads: the number of threads; None chooses it from the size.

        Returns:
            New arrays; codes are uint8, or int8 if the format stores signed ones.

        Raises:
            LayoutError: the buffers do not have the sizes of the format.
        """
        return unpack_planes(
            self.buffers, self.format, self.dims, self._element, self.parameters, threads=threads
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {buffer.nbytes} bytes" for name, buffer in self.buffers.items())
        return f"PackedPlanes({self.format} of {list(self.dims)}, {sizes})"


def names_planes(x: Any, layout: Any, parameters: Parameters) -> bool:
    """Whether a layout names a format that is not a layout of one array, or planes are given."""
    if isinstance(x, Mapping):
        if not isinstance(layout, str):
            raise TypeError(f"expected the name of a format for planes, got {type(layout).__name__}")
        return True
    return isinstance(layout, str) and is_name(layout) and of_planes(layout, parameters)


def is_packed_planes(t: Any, layout: Any, dtype: Any, parameters: Parameters) -> bool:
    """Whether `unpack` reads planes."""
    if isinstance(t, PackedPlanes):
        if layout is not None or parameters or dtype is not None:
            raise TypeError("unpack of PackedPlanes takes no layout, dtype or parameters\n  omit them")
        return True
    if layout is None and isinstance(t, Mapping):
        raise TypeError("buffers need the name of their format: unpack(buffers, 'ggml-q4_0', dims=(…))")
    own = {key: value for key, value in parameters.items() if key != "dims"}
    return layout is not None and not isinstance(t, TiledArray) and names_planes(t, layout, own)


def unpacked_planes(
    t: Any, layout: Any, dtype: Any, parameters: Parameters, *, out: Any, threads: int | None
) -> Any:
    """`unpack` for planes; `out` is an array, or a mapping of arrays by the names of planes.

    Raises:
        LayoutError: the buffers or `out` do not fit; nothing has been written.
        TypeError: an argument has the wrong type, or dims is missing.
    """
    if isinstance(t, PackedPlanes):
        found: Any = t.unpack(threads=threads)
    else:
        own = dict(parameters)
        if "dims" not in own:
            raise ArrayUnknownError(
                f"the format {layout!r} does not specify the dimensions of its main plane\n  pass dims="
            )
        dims = int_tuple(own.pop("dims"), "dims")
        found = unpack_planes(t, layout, dims, dtype, own, threads=threads)
    if out is None:
        return found
    single = not isinstance(found, Mapping)
    source, target = ({"out": found}, {"out": out}) if single else (found, out)
    copy_to(source, target)
    return out


def refuse_options(
    call: str, padding: Any, casting: Any, virtual_vector_size: Any, specialize: Any, tune: Any
) -> None:
    """Refuse keywords that planes do not take.

    Raises:
        LayoutError: one has another value than its default.
    """
    if (
        padding is not None
        or not is_plain(casting, None, virtual_vector_size, specialize, tune)
        or casting != "no"
    ):
        raise LayoutError(
            f"{call} of a format of planes takes only out, threads and the format's parameters\n"
            "  omit padding, casting, virtual_vector_size, specialize and tune"
        )


def pack_planes(
    given: Any, layout: str, parameters: Parameters, *, out: Any = None, threads: int | None = None
) -> PackedPlanes:
    """Pack arrays into the buffers of a format.

    Args:
        given: an array for each plane by name; an array alone for a format of one plane.
        layout: the name of the format, with parameters or without.
        parameters: the format's parameters.
        out: where to write: an array of bytes for a format of one buffer, or a mapping of them by name.
        threads: the number of threads; None chooses it from the size.

    Raises:
        LayoutError: a plane is missing or has other dimensions or values; nothing has been written.
        TypeError: an argument has the wrong type.
    """
    name, own, packing = find_packing(layout, parameters)
    arrays = named_arrays(given, packing, name)
    sizes = packing.sizes(arrays[packing.main.name].shape, f"the format {name!r}")
    arrays = {
        plane: checked_plane(packing.plane(plane), array, sizes, name) for plane, array in arrays.items()
    }
    dims = arrays[packing.main.name].shape
    dtype = free_dtype(packing, arrays)
    if packing.steps:
        arrays = packing.steps.encode(arrays, sizes)
    elements = {plane: element_of(packing.plane(plane), array) for plane, array in arrays.items()}
    placed = {buffer: place_fields(packing, buffer, sizes, elements) for buffer in packing.buffers}
    placed = {buffer: fields for buffer, fields in placed.items() if fields}
    targets = targets_of(placed, out, arrays)
    stored = {
        buffer: [field.encoded(arrays, threads) for field in fields] for buffer, fields in placed.items()
    }
    for buffer, fields in placed.items():
        for field, encoded in zip(fields, stored[buffer], strict=True):
            field.write(targets[buffer], encoded, threads)
    if out is None:
        given = {buffer: shaped(data, packing, buffer, sizes, dtype) for buffer, data in targets.items()}
    else:
        given = written(targets, out)
    return PackedPlanes(name, own, dtype, dims, given)


def buffer_sizes(layout: str, dims: tuple[int, ...], dtype: Any, parameters: Parameters) -> dict[str, int]:
    """The bytes of each buffer for an array.

    Raises:
        LayoutError: the format is not of planes, or does not take the dimensions.
    """
    name, _, packing = find_packing(layout, parameters)
    sizes = packing.sizes(dims, f"the format {name!r}")
    elements = _elements(packing, dtype)
    return {
        buffer: buffer_bytes(place_fields(packing, buffer, sizes, elements)) for buffer in packing.buffers
    }


def _elements(packing: Packing, dtype: Any) -> dict[str, PrimitiveType]:
    """The element type of each plane; `dtype` is that of planes which take any, None for bytes."""
    free = lookup("u8") if dtype is None else primitive_type(dtype)
    return {p.name: free if p.is_free else element_of(p, None) for p in packing.planes}


def unpack_planes(
    given: Any,
    layout: str,
    dims: tuple[int, ...],
    dtype: Any,
    parameters: Parameters,
    *,
    threads: int | None = None,
) -> Array | dict[str, Array]:
    """Return the planes of buffers, or the array if the format has one plane.

    Args:
        given: the buffer, or buffers by name.
        layout: the name of the format, with parameters or without.
        dims: the dimensions of the main plane, in elements.
        dtype: the dtype of the planes that take any; None is that of their buffer.
        parameters: the format's parameters.
        threads: the number of threads; None chooses it from the size.

    Raises:
        LayoutError: a buffer is missing or has another size, or holds what the format never stores.
        TypeError: an argument has the wrong type.
    """
    if isinstance(given, PackedPlanes):
        given, dtype = given.buffers, dtype or given._element
    name, _, packing = find_packing(layout, parameters)
    element = buffer_dtype(given, packing) if dtype is None else primitive_type(dtype)
    sizes = packing.sizes(dims, f"the format {name!r}")
    buffers = named_buffers(given, packing, name)
    planes: dict[str, Array] = {}
    held = {plane for field in packing.fields if field.buffer in buffers for plane in field.planes}
    elements = {
        p.name: element if p.is_free and element else element_of(p, None)
        for p in packing.planes
        if p.name in held
    }
    for buffer, data in buffers.items():
        fields = place_fields(packing, buffer, sizes, elements)
        check_length(fields, data, f"{buffer} of {name} of {list(dims)}")
        for field in sorted(fields, key=lambda placed: len(placed.field.uses)):
            for plane, values in field.read(data, planes, threads).items():
                planes[plane] = planes[plane] | values if plane in planes else values
    if packing.steps:
        planes = packing.steps.decode(planes, sizes)
    found = {p.name: given_codes(p, planes[p.name]) for p in packing.planes if p.name in planes}
    return found if len(packing.planes) > 1 else found[packing.main.name]
