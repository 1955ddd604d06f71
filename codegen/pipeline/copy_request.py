"""What to copy, and how: everything that the program of a copy depends on."""

from __future__ import annotations

from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap
from codegen.pipeline.copy_options import DEFAULT_OPTIONS, CopyOptions
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """A copy to compile.

    Attributes:
        src: where the elements are.
        dst: where they go.
        source: the element that the source's storage holds.
        target: the element that the destination's storage holds.
        swap: whether to reverse the bytes of source elements.
        padding: one element of the padding value in the destination's bytes (a packed one: its bits in one
            byte), or None to leave padding as it is.
        options: what all boxes of the copy share.
        apart: whether each box and each padding box gets its own launch.
    """

    src: AccessMap
    dst: AccessMap
    source: Element
    target: Element
    swap: bool = False
    padding: bytes | None = None
    options: CopyOptions = DEFAULT_OPTIONS
    apart: bool = False
