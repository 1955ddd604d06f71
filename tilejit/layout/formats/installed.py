"""Formats of other packages, which name them in the entry-point group `tilejit.formats`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from codegen import LayoutError, compiler_lock

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tilejit.formats"
Loaded = TypeVar("Loaded")


@cache
def installed_formats() -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points of the group, by name; several packages may have chosen one name."""
    with compiler_lock:  # imported here, because few programs use a name that TileJIT does not define
        from importlib.metadata import entry_points
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.value):
        if entry not in found.get(entry.name, ()):
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def load_format(name: str, read: Callable[[Any], Loaded]) -> Loaded | None:
    """Return an installed format; None if no package defines it.

    Args:
        name: the name of the format.
        read: read(what the entry point names) -> the format.

    Raises:
        LayoutError: its module cannot be imported, `read` refuses it, or several packages define the name.
    """
    entries = installed_formats().get(name, ())
    if not entries:
        return None
    if len(entries) > 1:
        values = " and ".join(entry.value for entry in entries)
        raise LayoutError(
            f"several packages define the format {name!r}: {values}\n"
            "  uninstall one, or register the function under another name with tilejit.register_format"
        )
    (entry,) = entries
    try:
        return read(entry.load())
    except (Exception, SystemExit) as error:
        raise LayoutError(
            f"the format {name!r} cannot be loaded from {entry.value}: {type(error).__name__}: {error}\n"
            "  reinstall or remove the package that defines it"
        ) from error
