"""`InferredLayout`: what probes say about a pack function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen import LayoutError, dataclass
from tilejit.arrays.array_likes import as_numpy
from tilejit.cute.witness import Witness
from tilejit.layout.cute_shape import Spec
from tilejit.layout.helpers import dims_text
from tilejit.layout.padding import PaddingValue
from tilejit.recognize.probes.bit_planes import BitPlane
from tilejit.recognize.probes.placement import Placement
from tilejit.recognize.probes.prober import Counterexample
from tilejit.tiled.buffers import flat_bytes
from tilejit.view.picture import LayoutPicture, show

if TYPE_CHECKING:
    from typing_extensions import Buffer

NO_CLOSED_FORM = "no closed form"
UNINITIALIZED = "uninitialized"
SEVERAL = "several values"
NOT_A_LAYOUT = "not a layout"


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class InferredLayout:
    """The layout of what a function packs, or a counterexample that shows that it is not one.

    `tilejit.infer` returns it; it prints as text.

    >>> found = tilejit.infer(lambda x: x.T.tobytes(), "f32", (300, 200))
    >>> found
    f32[300,200]{0,1}
    pattern   M N -> N M
    cute      (300,200):(1,300)
    elements  32 bits each, in arrays of float32
    buffer    240000 bytes, returned as bytes
    padding   none
    calls     7
    >>> found.is_layout, found.layout.size_in_bytes
    (True, 240000)

    Attributes:
        primitive_type: XLA's name of the element type.
        dimensions: the dimensions of the array in elements.
        text: the shortest text of the layout: XLA's text, a pattern, or CuTe's text. "no closed form" if only
            `slots` describes it, and "not a layout" with a counterexample.
        element_bits: the bits of an element in the buffer.
        array_dtype: the dtype of the arrays that the function took.
        buffer: the dtype and dimensions of the array that the function returned, or its type.
        buffer_bytes: the size of the buffer.
        calls: the number of calls of the function.
        layout: the layout, which `as_layout` reads. None if there is none, or no closed form.
        xla: XLA's text, or "" if tiles cannot express the layout.
        pattern: the layout as a pattern, or "" if there is none.
        cute: CuTe's text of the layout, or "".
        planes: the layouts of parts of the elements, if the bits of an element are not side by side. Each
            has the attributes `low`, the lowest bit of an element in it, `bits`, `layout` and `text`.
        value_map: what the buffer holds for the pattern x of an element, such as "x ^ 8"; "" if it is x.
        untested: the kinds of values that the result does not cover, because the function raises for them:
            "inf", "nan", "denormal" and so on.
        padding_slots: the slots of the buffer that hold no element; bytes, if there are planes.
        padding_value: their value. None without padding; "several values" if they differ, but never change;
            "uninitialized" if the function returned other ones in another call.
        broken: the first element, in C order, that keeps a table of slots from having a closed form.
        counterexample: what the function did that no layout does, or None.
    """

    primitive_type: str
    dimensions: tuple[int, ...]
    text: str
    element_bits: int
    array_dtype: np.dtype[Any]
    buffer: str
    buffer_bytes: int
    calls: int
    layout: Spec | None = None
    xla: str = ""
    pattern: str = ""
    cute: str = ""
    planes: tuple[BitPlane, ...] = ()
    value_map: str = ""
    untested: tuple[str, ...] = ()
    padding_slots: int = 0
    padding_value: PaddingValue | str | None = None
    broken: Witness | None = None
    counterexample: Counterexample | None = None
    _placement: Placement | None = None

    @property
    def is_layout(self) -> bool:
        """Whether each element has a slot of its own, with or without a closed form."""
        return self.counterexample is None

    def slots(self) -> NDArray[np.int64]:
        """Tabulate the slot of each element, in elements of `element_bits` from the start of the buffer.

        >>> tilejit.infer(lambda x: x.T, "f32", (2, 3)).slots()
        array([[0, 2, 4],
               [1, 3, 5]])

        Returns:
            An array of the array's dimensions.

        Raises:
            LayoutError: the function is not a layout, or the bits of an element are not side by side.
        """
        placement = self._placed("slots")
        if self.planes:
            raise LayoutError("slots: the bits of elements are not side by side\n  use .planes")
        return placement.table().reshape(self.dimensions).astype(np.int64)

    def pack(self, x: ArrayLike) -> NDArray[np.uint8]:
        """Pack an array as the function does.

        >>> found = tilejit.infer(lambda x: x.T + np.uint8(1), "uint8", (2, 3))
        >>> found.pack(np.arange(6, dtype=np.uint8).reshape(2, 3))
        array([1, 4, 2, 5, 3, 6], dtype=uint8)

        Args:
            x: an array of the dimensions, with the dtype that the function took.

        Returns:
            The bytes of the buffer. Padding is the function's, or 0 if it has no single value.

        Raises:
            LayoutError: the function is not a layout, or the array has other dimensions or another dtype.
            TypeError: it is not an array.
        """
        placement = self._placed("pack")
        array = np.asarray(as_numpy(x))
        if array.shape != self.dimensions or array.dtype != self.array_dtype:
            raise LayoutError(
                f"expected an array {self.array_dtype}{dims_text(self.dimensions)}, got "
                f"{array.dtype}{dims_text(array.shape)}\n  pass an array like those that the function takes"
            )
        return placement.packed(array)

    def unpack(self, buffer: Buffer | NDArray[Any]) -> NDArray[Any]:
        """Unpack a buffer of the function: its inverse.

        >>> found = tilejit.infer(lambda x: x.T + np.uint8(1), "uint8", (2, 3))
        >>> found.unpack(bytes([1, 4, 2, 5, 3, 6]))
        array([[0, 1, 2],
               [3, 4, 5]], dtype=uint8)

        Args:
            buffer: what the function returned, or other bytes of that size.

        Returns:
            The array, with the dtype that the function took.

        Raises:
            LayoutError: the function is not a layout, or the buffer has another size.
            TypeError: the buffer is not bytes-like.
        """
        placement = self._placed("unpack")
        data = flat_bytes(buffer)
        if data.size != self.buffer_bytes:
            raise LayoutError(
                f"expected a buffer of {self.buffer_bytes} bytes, got {data.size}\n"
                "  pass what the function returns"
            )
        return placement.unpacked(data)

    def show(self) -> LayoutPicture:
        """Draw the layout: `tilejit.show` of it.

        >>> tilejit.infer(lambda x: x.T, "f32", (2, 3)).show().layout.minor_to_major
        (0, 1)

        Returns:
            The picture.

        Raises:
            LayoutError: there is no layout in closed form.
        """
        self._placed("show")
        if self.layout is None:
            fix = "show the layout of one of .planes" if self.planes else "use .slots(), its table"
            raise LayoutError(f"a layout without a closed form cannot be drawn\n  {fix}")
        return show(self.layout)

    def _placed(self, call: str) -> Placement:
        if self._placement is None:
            raise LayoutError(
                f"{call}: the function is not a layout: {self.counterexample}\n  pass another one"
            )
        return self._placement

    def __repr__(self) -> str:
        """The facts, one in each line."""
        array = f"{self.primitive_type}[{','.join(map(str, self.dimensions))}]"
        calls = ("calls", str(self.calls))
        if self.counterexample is not None:
            return _lines(f"{array}: {self.text}", [("because", str(self.counterexample)), calls])
        head = self.text if self.text.startswith(array) else f"{array}: {self.text}"
        if self.planes:
            head = f"{array}: {len(self.planes)} plane{'s' * (len(self.planes) > 1)} of bits"
        unit = "bytes" if self.planes else "slots"
        facts = [
            *(("plane", str(plane)) for plane in self.planes),
            ("xla", self.xla if self.xla != self.text else ""),
            ("pattern", self.pattern if self.pattern != self.text else ""),
            ("cute", self.cute if self.cute != self.text else ""),
            ("broken by", str(self.broken or "")),
            ("elements", f"{self.element_bits} bits each, in arrays of {self.array_dtype}"),
            ("values", self.value_map),
            ("untested", ", ".join(self.untested)),
            ("buffer", f"{self.buffer_bytes} bytes, returned as {self.buffer}"),
            (
                "padding",
                f"{self.padding_slots} {unit}: {self.padding_value}" if self.padding_slots else "none",
            ),
            calls,
        ]
        return _lines(head, [(name, text) for name, text in facts if text])


def _lines(head: str, facts: list[tuple[str, str]]) -> str:
    return "\n".join([head, *(f"{name:<10}{text}" for name, text in facts)])
