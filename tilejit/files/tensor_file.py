"""The interface of file types; `file_types` lists the subclass of `TensorFile` for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from codegen import LayoutError, dataclass
from tilejit.files.json_text import shortened
from tilejit.files.packings import Packings
from tilejit.files.resume import Identity
from tilejit.files.stream import Made, Output
from tilejit.files.windows import FileArray, FileBytes, FileTiles
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Layout, Shape
from tilejit.support.units import listed


class MisfitError(LayoutError):
    """The layout does not fit this tensor, but may fit others."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file.

    dtype       the format's name of the dtype
    begin, end  its bytes, counted from the first byte of tensor data
    """

    name: str
    dtype: Any
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class TensorFile(ABC):
    """An open file: its identity, and its tensors in byte order."""

    one_array: ClassVar[bool]
    """Whether a file holds a single unnamed array and no layout, which a record beside it holds."""

    path: str
    entries: tuple[Entry, ...]
    data: FileBytes
    identity: Identity

    @abstractmethod
    def named(self, entry: Entry, error: Exception) -> LayoutError:
        """An error that names the tensor."""

    @abstractmethod
    def element_type(self, entry: Entry, dtype: str | None) -> str:
        """XLA's name of a tensor's element type.

        Args:
            entry: the tensor.
            dtype: the type to convert to; elements of unknown type are read as this type.

        Raises:
            MisfitError: elements of this type cannot be packed.
        """

    @abstractmethod
    def elements(self, entry: Entry, element_type: str) -> FileArray | FileTiles:
        """A tensor as an array in the file, tiled if its elements share bytes.

        Raises:
            LayoutError: NumPy does not support such an array.
        """

    @abstractmethod
    def order(self, entry: Entry) -> str:
        """The order of the elements of a tensor that is not packed: row-major or column-major."""

    @abstractmethod
    def is_packed(self, entry: Entry) -> bool:
        """Whether a tensor's layout is known."""

    @abstractmethod
    def packings(self, entry: Entry) -> Packings:
        """What the record of a tensor says; () if it is not packed.

        Raises:
            LayoutError: the record is damaged.
        """

    @abstractmethod
    def tiled(self, entry: Entry) -> FileTiles:
        """A packed tensor in its layout.

        Raises:
            LayoutError: the tensor is not packed, or its layout belongs to another tensor.
        """

    @abstractmethod
    def stored(self, entry: Entry) -> Made:
        """The unchanged bytes of a tensor."""

    @abstractmethod
    def packed_as(self, spec: Spec) -> tuple[Any, tuple[int, ...]]:
        """The dtype and shape with which a file stores a packed buffer."""

    @abstractmethod
    def unpacked_as(self, spec: Spec) -> tuple[Any, Shape]:
        """The dtype with which a file stores unpacked elements, and their layout.

        Raises:
            LayoutError: the format does not support such elements.
        """

    @abstractmethod
    def header_of(
        self, outputs: Iterable[Output], records: Mapping[str, Packings]
    ) -> tuple[bytes, Sequence[Output]]:
        """The header of the file to write, and its tensors in byte order.

        Args:
            outputs: the tensors to write.
            records: the packings of the converted tensors, by name; () for an unpacked tensor. The metadata
                of all other tensors is kept.

        Raises:
            LayoutError: the header exceeds the format's limit.
        """

    def suspected(self, entry: Entry) -> str:
        """Why a tensor without a record may be packed, and what to do; "" if nothing suggests it."""
        return ""

    def unexplained(self, *, packed: bool) -> tuple[str, ...]:
        """The names of the tensors that may be packed buffers although no layout is known for them.

        Args:
            packed: whether the file is read as a packed one, so that a layout is expected.
        """
        return ()

    def missing(self) -> tuple[str, ...]:
        """The names of the packed tensors that the file describes and does not hold."""
        return ()

    def chosen(self, names: Collection[str] | None) -> set[str]:
        """The names of the tensors to convert: the given names, or all names for None.

        Raises:
            LayoutError: the file lacks one of them, or one that it describes.
        """
        known = {entry.name for entry in self.entries}
        if names is None:
            if lost := self.missing():
                more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                raise LayoutError(
                    f"{self.path!r} lacks the packed tensor {shortened(lost[0])}{more}, whose layout its "
                    "metadata describes\n  the file was changed after it was packed: restore it, or name the "
                    "tensors to convert with --tensor"
                )
            return known
        unknown = [name for name in names if name not in known]
        if unknown:
            some = listed(sorted(known)) or "none"
            raise LayoutError(f"tensor {unknown[0]!r} does not exist\n  the file has {some}")
        return set(names)


def row_major(dtype: str, dims: tuple[int, ...], bits: int = 0) -> Shape:
    """The shape of an array in a file, in C order.

    Args:
        dtype: the element type, by XLA's name.
        dims: the dimensions, in elements.
        bits: the bits of an element if elements share bytes; 0 for whole bytes.
    """
    return Shape(dtype, dims, Layout(tuple(reversed(range(len(dims)))), element_size_in_bits=bits))
