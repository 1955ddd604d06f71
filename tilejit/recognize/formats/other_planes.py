"""The planes beside the main one, and the buffers that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, Plane, Sizes, extents
from tilejit.copies.plane_fields import place_fields
from tilejit.copies.planes import unpack_planes
from tilejit.layout.dtypes import PrimitiveType, from_numpy, lookup
from tilejit.layout.formats.packings import elements_of
from tilejit.recognize.formats.compare import Comparison
from tilejit.recognize.formats.orders import Order

FREE = ("f16", "f32")
"""Dtypes of each width that planes which take any often have."""


class Planes(NamedTuple):
    """Buffers, and what is known of the planes beside the main one.

    Attributes:
        buffers: flat bytes by name; a single one may have any name.
        types: the element type of each buffer, as it was given; u8 may be bytes of any type.
        main: the name of the main plane; empty if it is unknown.
        others: the other planes by name; empty if they are unknown.
    """

    buffers: Mapping[str, Array]
    types: Mapping[str, PrimitiveType]
    main: str = ""
    others: Mapping[str, Array] = MappingProxyType({})

    def data_of(self, order: Order) -> Array | None:
        """The bytes of an order's buffer; None if it is not given."""
        if len(self.buffers) == 1:
            return next(iter(self.buffers.values()))
        return self.buffers.get(order.buffer)

    def fits(self, order: Order) -> bool:
        """Whether the format of an order has the planes, and its buffers the names and the sizes."""
        packing = order.packing
        if packing is None:
            return len(self.buffers) == 1 and not self.others
        known = [plane.name for plane in packing.planes]
        if self.main not in ("", known[0]) or not {*self.others} <= {*known[1:]}:
            return False
        sizes = packing.sizes(order.dims, order.candidate.name)
        if not all(_may_be(packing.plane(one), array, sizes) for one, array in self.others.items()):
            return False
        if len(self.buffers) == 1:
            return not packing.steps or len(packing.buffers) == 1
        if order.buffer not in self.buffers or (packing.steps and self._missing(packing)):
            return False
        return any(self._sizes_fit(packing, sizes, lookup(free)) for free in self._free(packing))

    def _free(self, packing: Packing) -> tuple[str, ...]:
        """The dtypes that planes which take any may have."""
        for field in packing.fields:
            for name in field.planes:
                if packing.plane(name).is_free:
                    if name in self.others:
                        return (from_numpy(self.others[name].dtype).name,)
                    if self.types.get(field.buffer, lookup("u8")).name != "u8":
                        return (self.types[field.buffer].name,)
        return FREE

    def _sizes_fit(self, packing: Packing, sizes: Sizes, free: PrimitiveType) -> bool:
        elements = elements_of(packing.planes, free)
        for buffer, data in self.buffers.items():
            fields = place_fields(packing, buffer, sizes, elements)
            if fields and fields[0].records * fields[0].pitch != data.size:
                return False
            dtype = packing.tensors.get(buffer, "").partition(":")[0]
            if dtype not in ("", "any") and not _alike(lookup(dtype), self.types[buffer]):
                return False
        return True

    def missing(self, order: Order) -> int:
        """The number of buffers that only the format has or only the mapping; 0 if one buffer is given."""
        several = order.packing is not None and len(self.buffers) > 1
        return len({*order.packing.buffers} ^ {*self.buffers}) if order.packing and several else 0

    def _missing(self, packing: Packing) -> list[str]:
        """The buffers that are not given, of planes that are not optional."""
        return [name for name in packing.buffers if name in _required(packing) and name not in self.buffers]

    def note(self, order: Order) -> str:
        """The planes that are not compared, the buffers that are missing, and those that the format lacks."""
        packing = order.packing
        if packing is None:
            return ""
        parts = [_listed([p.name for p in packing.planes[1:] if p.name not in self.others], "not compared")]
        if len(self.buffers) > 1:
            parts.append(_listed(self._missing(packing), "missing", "buffer"))
            odd = [name for name in self.buffers if name not in packing.buffers]
            parts.append(_listed(odd, "not explained", "buffer"))
        return "; ".join(filter(None, parts))

    def compared(self, order: Order) -> tuple[Comparison | None, str]:
        """Compare the other planes with those of the buffers.

        Returns:
            The first comparison that fails, and in which plane; or None.

        Raises:
            LayoutError: a buffer holds what the format never stores.
        """
        packing, named, own = order.packing, self.buffers, order.candidate
        assert packing is not None
        if len(named) == 1:
            named = {packing.buffers[0]: next(iter(named.values()))}
        named = {name: data for name, data in named.items() if name in packing.buffers}
        given = (self.others[p.name].dtype for p in packing.planes if p.is_free and p.name in self.others)
        free = next(map(from_numpy, given), None)
        found = unpack_planes(named, own.name, order.dims, free, dict(own.parameters))
        for plane, wanted in self.others.items():
            if isinstance(found, dict) and plane in found:
                result = _equal(found[plane], np.asarray(wanted))
                if result.agreement < 1.0:
                    return result, f"in the plane {plane}"
        return None, ""


def _listed(names: list[str], what: str, kind: str = "") -> str:
    """Names and what is said of them: "buffer scales missing", "zeros and scales not compared"."""
    *rest, last = names or [""]
    kinds = f"{kind}{'s' if rest else ''} " if kind else ""
    return f"{kinds}{' and '.join(filter(None, (', '.join(rest), last)))} {what}" if last else ""


def _required(packing: Packing) -> set[str]:
    """The buffers that hold planes which are not optional."""
    return {f.buffer for f in packing.fields if any(name not in packing.optional for name in f.planes)}


def _alike(own: PrimitiveType, given: PrimitiveType) -> bool:
    """Whether a buffer may have been given in a type: bytes, or both floats or both not."""
    return (
        given.name == "u8" or own.bits == given.bits == 8 or (own.kind == "float") == (given.kind == "float")
    )


def _may_be(plane: Plane, array: Array, sizes: Sizes) -> bool:
    """Whether an array has the dimensions and a dtype of a plane."""
    if array.shape != extents(plane.axes, sizes):
        return False
    own = from_numpy(array.dtype)
    return not plane.dtype or own.name == plane.dtype or own.bits == lookup(plane.dtype).bits == 8


def _equal(found: Array, wanted: Array) -> Comparison:
    """Compare two small arrays bit by bit, integers by their values."""
    if found.dtype.kind in "iu" and wanted.dtype.kind in "iub":
        same = found == wanted
    elif found.dtype.itemsize == wanted.dtype.itemsize:
        size = found.dtype.itemsize
        a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, size) for x in (found, wanted))
        same = (a == b).all(-1)
    else:
        return Comparison(0.0)
    if same.all():
        return Comparison(1.0)
    index = tuple(map(int, np.unravel_index(int(np.argmin(same)), same.shape)))
    return Comparison(float(np.mean(same)), (index, found[index].item(), wanted[index].item()))
