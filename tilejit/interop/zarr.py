"""zarr chunks in tiled layouts: the codec `tilejit.tile` for zarr version 3. Needs the extra `zarr`.

The codec converts a chunk to the bytes of its packed buffer, padding included. Its entry point makes it
available in any process that opens the array, without importing TileJIT first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

if find_spec("zarr") is None:
    raise ImportError("tilejit.interop.zarr needs zarr: pip install 'tilejit[zarr]'", name="zarr")

import zarr
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import RangeByteRequest
from zarr.storage import StorePath

from codegen import LayoutError, cached
from tilejit.arrays.memory import Array
from tilejit.catalog.format import refuse_reserved
from tilejit.copies.convert import pack, unpack
from tilejit.interop.byte_ranges import Ranges, box_ranges, indices_of, slot_ranges
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PrimitiveType, from_numpy, primitive_type, unambiguous_name
from tilejit.layout.indexing import linear_index, shape_name
from tilejit.tiled.buffers import writable_layout
from tilejit.tiled.tiled_array import TiledArray

__all__ = ["TileCodec"]

CODEC_NAME = "tilejit.tile"
KEYS = ("layout", "parameters", "dtype")

Parameters = tuple[tuple[str, int | tuple[int, ...]], ...]


@dataclass(frozen=True)
class TileCodec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """The codec of an array whose chunks are packed in a layout.

    >>> z = zarr.create_array({}, shape=(4096, 4096), chunks=(1024, 1024), dtype="f4",
    ...                       serializer=TileCodec("tpu"), compressors=None)
    >>> z[5:7, :3] = 1

    Without compressors, a selection reads only the bytes of the tiles it needs. With compressors, it reads
    whole chunks.

    Args:
        layout: text that `as_layout` reads: a format, a pattern, an XLA layout or a CuTe layout. Omit
            dimensions after a codec that transposes.
        parameters: the keywords of a format or a pattern.
        dtype: the element dtype if zarr has no name for it, such as "bf16" in uint16 or in raw elements of
            two bytes, or "s4" in int8.

    Raises:
        LayoutError: a field is not valid. Creating or opening an array raises if the layout does not fit its
            chunks. Reading an array raises if a chunk has another size.
        TypeError: a field has the wrong type.
    """

    is_fixed_size = True

    layout: str
    parameters: Parameters = ()
    dtype: str | None = None

    def __init__(
        self, layout: str, parameters: Mapping[str, Any] | Parameters = (), dtype: str | None = None
    ) -> None:
        if not isinstance(layout, str):
            raise TypeError(f"layout: expected a str, got {type(layout).__name__}")
        if not isinstance(dtype, str | None):
            raise TypeError(f"dtype: expected a str, got {type(dtype).__name__}")
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "parameters", _checked_parameters(parameters))
        object.__setattr__(self, "dtype", None if dtype is None else unambiguous_name(primitive_type(dtype)))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TileCodec:
        """Create the codec that a zarr.json describes.

        >>> TileCodec.from_dict({"name": "tilejit.tile", "configuration": {"layout": "tpu"}}).layout
        'tpu'

        Args:
            data: the codec's entry in zarr.json.

        Returns:
            The codec.

        Raises:
            LayoutError: the description is not valid for this codec.
        """
        given = data.get("configuration")
        if data.get("name") != CODEC_NAME or not isinstance(given, Mapping):
            raise LayoutError(
                f"the codec {CODEC_NAME!r} has no configuration\n"
                f'  write {{"name": "{CODEC_NAME}", "configuration": {{"layout": "tpu"}}}}'
            )
        odd = next((key for key in given if key not in KEYS), None)
        if odd is not None or "layout" not in given:
            wrong = "has no layout" if odd is None else f"has the unknown key {str(odd)[:40]!r}"
            raise LayoutError(
                f"the configuration of {CODEC_NAME!r} {wrong}\n"
                "  write layout and, if needed, parameters and dtype"
            )
        try:
            return cls(**given)
        except TypeError as error:
            raise LayoutError(f"the configuration of {CODEC_NAME!r}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Describe the codec for a zarr.json.

        >>> TileCodec("tpu").to_dict()
        {'name': 'tilejit.tile', 'configuration': {'layout': 'tpu'}}

        Returns:
            The codec's entry in zarr.json.
        """
        configuration: dict[str, Any] = {"layout": self.layout}
        if self.parameters:
            configuration["parameters"] = {
                key: list(value) if isinstance(value, tuple) else value for key, value in self.parameters
            }
        if self.dtype is not None:
            configuration["dtype"] = self.dtype
        return {"name": CODEC_NAME, "configuration": configuration}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Check that the layout fits an array's chunks; zarr calls it.

        >>> dtype = zarr.create_array({}, shape=(1000, 300), dtype="f4").metadata.data_type
        >>> TileCodec("tpu").validate(shape=(1000, 300), dtype=dtype, chunk_grid=None)

        Args:
            shape: the dimensions of the array, in elements.
            dtype: zarr's dtype of the array.
            chunk_grid: zarr's grid of chunks; without a chunk shape, the array is a single chunk.

        Raises:
            LayoutError: the layout does not fit.
        """
        self._spec(dtype, tuple(getattr(chunk_grid, "chunk_shape", shape)))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Return the size of a packed chunk in bytes, padding included; zarr calls it.

        >>> from types import SimpleNamespace
        >>> dtype = zarr.create_array({}, shape=(5, 5), dtype="f4").metadata.data_type
        >>> TileCodec("tpu").compute_encoded_size(100, SimpleNamespace(dtype=dtype, shape=(5, 5)))
        4096

        Args:
            input_byte_length: bytes of the chunk as an array; not used.
            chunk_spec: zarr's description of the chunk: its dtype and shape.

        Returns:
            The size of the buffer, in bytes.
        """
        return self._spec(chunk_spec.dtype, chunk_spec.shape).size_in_bytes

    def _spec(self, dtype: Any, dims: tuple[int, ...]) -> Spec:
        return _spec_of(self, _native(dtype), tuple(map(int, dims)))

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        array = chunk_array.as_numpy_array()
        spec = self._spec(chunk_spec.dtype, array.shape)
        native = array.astype(_native(chunk_spec.dtype), copy=False)
        if self.dtype is not None and native.dtype != spec.element.byte_dtype:
            native = native.view(spec.dtype)
        buffer = pack(native, spec).buffer
        return chunk_spec.prototype.buffer.from_array_like(buffer.view(np.uint8))

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        spec = self._spec(chunk_spec.dtype, chunk_spec.shape)
        return _in_zarr(unpack(_tiled(chunk_data, spec)), chunk_spec)

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        spec = self._spec(chunk_spec.dtype, chunk_spec.shape)
        picked = await asyncio.to_thread(_Picked.of, spec, selection)
        # Request ranges only from a store: chunks of a shard are in memory already.
        ranges = picked.ranges if isinstance(byte_getter, StorePath) else None
        if ranges is None:
            data = await byte_getter.get(prototype=chunk_spec.prototype)
            tiled = None if data is None else _tiled(data, spec)
        else:
            tiled = await _fetched(byte_getter, ranges, spec, chunk_spec.prototype)
        if tiled is None:
            return None
        return await asyncio.to_thread(lambda: _in_zarr(picked.elements(tiled), chunk_spec))


@dataclass(frozen=True)
class _Picked:
    """A selection in a chunk (a box, or the slots of single elements), and the bytes that hold it."""

    box: tuple[Any, ...]
    slots: Array | None
    ranges: Ranges | None

    @classmethod
    def of(cls, spec: Spec, selection: Any) -> _Picked:
        parts = selection if isinstance(selection, tuple) else (selection,)
        dims = spec.dimensions
        if len(parts) == len(dims) and all(isinstance(p, int | np.integer | slice) for p in parts):
            box = tuple(p if isinstance(p, slice) else int(p) for p in parts)
            picks = tuple(indices_of(p, n) for p, n in zip(box, dims, strict=True))
            return cls(box, None, box_ranges(spec, picks))
        # Index each dimension's indices with NumPy, which thereby defines the selection.
        counted = np.ix_(*(np.arange(n, dtype=np.int64) for n in dims))
        index = tuple(np.asarray(np.broadcast_to(c, dims)[selection]) for c in counted)
        slots = np.asarray(linear_index(spec, index), np.int64)
        return cls((), slots, slot_ranges(spec, slots))

    def elements(self, tiled: TiledArray) -> Array:
        """The selected elements of a chunk whose other bytes may be missing."""
        if self.slots is None:
            return np.asarray(tiled[self.box])
        if not tiled.layout.packed:
            return np.asarray(tiled.buffer.view(tiled.dtype)[self.slots])
        bits = tiled.layout.bits
        first = self.slots * bits
        raw = tiled.buffer[first // 8] >> (first % 8).astype(np.uint8) & np.uint8((1 << bits) - 1)
        return np.asarray(raw).view(tiled.dtype)


async def _fetched(getter: Any, ranges: Ranges, spec: Spec, prototype: Any) -> TiledArray | None:
    """A chunk with only some ranges of its bytes; None if the store lacks the chunk."""
    buffer = np.zeros(spec.size_in_bytes, np.uint8)
    at_once = asyncio.Semaphore(zarr.config.get("async.concurrency") or len(ranges))

    async def fetch(begin: int, end: int) -> bool:
        async with at_once:
            data = await getter.get(prototype=prototype, byte_range=RangeByteRequest(begin, end))
        if data is None:
            return False
        if len(data) != end - begin:
            raise _of_another_size(spec)
        buffer[begin:end] = data.as_numpy_array().view(np.uint8)
        return True

    # An empty selection only checks whether the chunk exists; reading one byte is enough.
    found = await asyncio.gather(*(fetch(*r) for r in ranges or [(0, min(1, spec.size_in_bytes))]))
    return TiledArray.from_buffer(buffer, spec) if all(found) else None


def _tiled(data: Any, spec: Spec) -> TiledArray:
    raw = data.as_numpy_array()
    if raw.nbytes != spec.size_in_bytes:
        raise _of_another_size(spec)
    return TiledArray.from_buffer(raw, spec)


def _of_another_size(spec: Spec) -> LayoutError:
    return LayoutError(
        f"a chunk does not have the {spec.size_in_bytes} bytes that {shape_name(spec)} takes\n"
        "  it is damaged, or was written with another layout"
    )


def _in_zarr(array: Array, chunk_spec: Any) -> Any:
    """Elements in zarr's dtype."""
    native = _native(chunk_spec.dtype)
    if array.dtype != native:
        narrow = from_numpy(array.dtype).byte_dtype == native
        array = array.astype(native) if narrow else array.view(native)
    return chunk_spec.prototype.nd_buffer.from_numpy_array(array)


def _native(dtype: Any) -> np.dtype[Any]:
    """zarr's dtype as a NumPy dtype, in this machine's byte order."""
    return cast("np.dtype[Any]", dtype.to_native_dtype().newbyteorder("="))


def chunk_spec_of(codec: TileCodec, dtype: Any, dims: tuple[int, ...]) -> Spec:
    """The shape of a codec's chunks, of zarr's dtype.

    Raises:
        LayoutError: the layout does not fit.
    """
    return _spec_of(codec, _native(dtype), dims)


@cached(256)
def _spec_of(codec: TileCodec, native: np.dtype[Any], dims: tuple[int, ...]) -> Spec:
    """A chunk's shape in the codec's layout.

    Raises:
        LayoutError: the layout does not fit.
    """
    try:
        element = _element(codec.dtype, native)
        spec = as_layout(codec.layout, dtype=element, dims=dims, **dict(codec.parameters))
        writable_layout(spec)
    except (LayoutError, TypeError) as error:
        raise LayoutError(
            f"the codec {CODEC_NAME!r} does not fit chunks {native}{list(dims)}: {error}"
        ) from error
    if spec.element != element:
        raise LayoutError(
            f"the layout of the codec {CODEC_NAME!r} is for {spec.primitive_type}, "
            f"but the chunks are {element.name}\n"
            "  omit dtype and dimensions, as in {1,0:T(8,128)}"
        )
    return spec


def _element(dtype: str | None, native: np.dtype[Any]) -> PrimitiveType:
    """The type of the elements: zarr's own, or the codec's, which must have the same width."""
    if dtype is None:
        if native.kind == "V":
            raise LayoutError("they are raw bytes\n  name their dtype, e.g. bf16")
        return from_numpy(native)
    meant = primitive_type(dtype)
    held = meant.byte_dtype if native.kind in "iu" else None
    wide = meant.numpy.itemsize if meant.numpy is not None else 0
    plain = native.kind in "iuV" and native.names is None
    if not plain or (native != held if held else native.itemsize != wide):
        raise LayoutError(
            f"{native} cannot hold elements of {dtype}\n"
            "  omit dtype, or store the elements as integers or raw bytes of the same width"
        )
    return meant


def _checked_parameters(given: Any) -> Parameters:
    """The checked parameters of a format or pattern, sorted by name."""
    try:
        items = dict(given).items()
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters: expected a map, got {type(given).__name__}") from error
    found = []
    for key, value in items:
        numbers = value if isinstance(value, list | tuple) else (value,)
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers)
        if not isinstance(key, str) or not numbers or not whole:
            raise LayoutError(
                f"parameter {str(key)[:40]!r}: expected an integer or a list of integers, "
                f"got {str(value)[:40]!r}\n  write e.g. mr: 8"
            )
        refuse_reserved(key, "a parameter")
        listed = tuple(int(n) for n in numbers)
        found.append((key, listed if isinstance(value, list | tuple) else listed[0]))
    return tuple(sorted(found))
