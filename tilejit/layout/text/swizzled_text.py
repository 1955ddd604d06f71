"""The text of a swizzle over a layout that is not CuTe's: "Sw<2,3,3> o 0 o {1,0:T(8,128)}".

swizzled := (SHAPE blank)? (SWIZZLE | STEP) "o" (INT "o")? LAYOUT (blank "E(" INT ")")?
LAYOUT is any text that `as_layout` reads. SHAPE is a dtype and dimensions, f32[256,256], to which E belongs.
"""

from __future__ import annotations

import re

from codegen import dataclass, lazy_pattern
from tilejit.cute.text import is_only_cute
from tilejit.support.tokens import mistake

_HEAD = lazy_pattern(
    r"\s*(?:(?P<dtype>[A-Za-z]\w*)\[(?P<dims>[0-9,\s]*)\]\s+)?"
    r"(?P<swizzle>(?:Sw?|Dg)\s*<[^<>]*>)\s*(?P<o>[o∘]\s*(?:_?(?P<offset>-?[0-9]{1,20})\s*[o∘]\s*)?)?",
    re.ASCII,
)
_WIDTH = lazy_pattern(r"\sE\(([0-9]{1,3})\)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class SwizzledText:
    """The parts of a text, and the position at which the inner layout starts.

    "s4[64,64] Sw<2,3,3> o 0 o vnni E(4)" -> "s4", "64,64", "Sw<2,3,3>", 0, "vnni", at 27, width 4
    """

    text: str
    dtype: str | None
    dims: str | None
    swizzle: str
    offset: int
    inner: str
    at: int
    width: int


def split_swizzled(text: str) -> SwizzledText | None:
    """Split the text of a swizzle over a layout; None for CuTe's own text and any other.

    Raises:
        LayoutError: an `o` is missing between the swizzle and the layout.
    """
    head = _HEAD().match(text) if "<" in text else None
    if head is None:
        return None
    inner, width = text[head.end() :].rstrip(), 0
    if head["dtype"] and (end := _WIDTH().search(inner)):
        inner, width = inner[: end.start()].rstrip(), int(end[1])
    if is_only_cute(inner) and "->" not in inner:
        return None
    if not head["o"]:
        raise mistake(text, head.end(), "'o' is missing after a swizzle", "write e.g. Sw<3,4,3> o 0 o tpu")
    offset = int(head["offset"] or 0)
    return SwizzledText(text, head["dtype"], head["dims"], head["swizzle"], offset, inner, head.end(), width)
