"""Names that calls keep for keywords of their own: no axis of a pattern, no parameter of a format has one."""

from __future__ import annotations

from codegen import LayoutError

ELEMENT_SIZE = "element_size_in_bits"
"""What all layouts of blocks take; a format may have it as a parameter of its own, a pattern no such axis."""
RESERVED = (
    *("obj", "layout", "dims", "dtype", "out", "padding", "casting", "threads", "tensors"),
    *("virtual_vector_size", "specialize", "tune"),
)
"""Keywords of the calls that hand all others to a layout."""

_MEND = f"choose another name; the calls keep {', '.join(RESERVED)}"


def reserved_mistake(name: str, what: str) -> tuple[str, str] | None:
    """What is wrong with a name, and what to do; None where it is free.

    ("threads", "an axis") -> ("an axis is named threads, as a keyword of pack, …", "choose another name; …")
    """
    if name not in (*RESERVED, ELEMENT_SIZE):
        return None
    return f"{what} is named {name}, as a keyword of pack, relayout and the like", _MEND


def refuse_reserved(name: str, what: str) -> None:
    """Raise where a parameter could not be told from a call's own keyword.

    Raises:
        LayoutError: it has the name of one.
    """
    wrong = reserved_mistake(name, what) if name != ELEMENT_SIZE else None
    if wrong:
        raise LayoutError("\n  ".join(wrong))
