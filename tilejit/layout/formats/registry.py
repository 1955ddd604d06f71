"""The registry of formats: TileJIT's own, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from codegen import LayoutError, lazy_pattern
from tilejit.catalog.families import families, find_in_catalog
from tilejit.catalog.format import ELEMENT_SIZE, Dims, Format, keywords_of, refuse_reserved
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType
from tilejit.layout.formats.calls import read_call
from tilejit.layout.formats.installed import installed_formats, load_format
from tilejit.layout.formats.pattern import cut
from tilejit.layout.text.tags import is_tag, parse_tag, tag_format

if TYPE_CHECKING:
    from tilejit.catalog.entries import Family

MAX_NAME = 64
SHOWN = 6
"""The number of formats that a message names."""
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = ("c", "f", "row-major", "column-major")
"""Names of orders, which commands and reports use, in lower case."""
_registered: dict[str, Format] = {}


def register_format(name: str, function: Callable[..., object], description: str | None = None) -> None:
    """Register a named format for this process.

    >>> def panels(dtype, dims, *, rows=6):
    ...     "Panels of a few rows, column by column."
    ...     return f"{{1,0:T({rows},1)}}"
    >>> tilejit.register_format("panels", panels)
    >>> print(tilejit.named_format("panels", "f32", (10, 5), rows=4))
    f32[10,5]{1,0:T(4,1)}

    A package can offer formats without this call: an entry point of the group `tilejit.formats` names the
    function, as `panels = "my_package.layouts:panels"` under `[project.entry-points."tilejit.formats"]` in
    its pyproject.toml. Commands know such formats too.

    Args:
        name: the name, a plain word.
        function: called with the array's NumPy dtype, its dimensions in elements, and the parameters of the
            format as keywords. It returns a Shape, a Layout, or any text that `as_layout` reads except a
            format's name.
        description: one line. None takes the first line of the function's docstring.

    Raises:
        LayoutError: the name is taken, is a oneDNN tag, a dtype or an order such as "row-major", or is not a
            plain word; or a parameter has the name of a keyword of the calls, such as threads.
        TypeError: the name is not a str, or the function cannot be called with dtype and dims.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a format, got {type(name).__name__}")
    if not _NAME().fullmatch(name) or len(name) > MAX_NAME:
        raise LayoutError(
            f"{cut(name)!r} cannot be the name of a format\n"
            f"  start with a letter and continue with letters, digits, - _ and . up to {MAX_NAME}"
        )
    known = _find(name) is not None
    if known or _spells_a_tag(name):
        kind = "a format" if known else "a oneDNN tag"
        raise LayoutError(f"{kind} named {name!r} already exists\n  choose another name")
    if name.lower() in PRIMITIVE_TYPES:
        raise LayoutError(f"{name!r} is a dtype\n  choose another name")
    if name.lower() in _WORDS:
        raise LayoutError(f"{name!r} is a word for an order of elements\n  choose another name")
    if description is not None and not isinstance(description, str):
        raise TypeError(f"description: expected a str, got {type(description).__name__}")
    _registered[name] = _function_format(name, function, description)


def _function_format(name: str, function: Callable[..., object], description: str | None) -> Format:
    """The format of a function of dtype and dims.

    Whatever the function raises becomes a LayoutError.

    Raises:
        LayoutError: a parameter has the name of a keyword of the calls.
        TypeError: the function cannot be called with dtype and dims.
    """
    parameters = keywords_of(function)
    for parameter in parameters or ():
        refuse_reserved(parameter, f"a parameter of the format {name!r}")
    lines = (function.__doc__ if description is None else description) or ""
    text = next((line.strip() for line in lines.splitlines() if line.strip()), "")

    called_as = signature(function)

    def build(element: PrimitiveType, dims: Dims, **given: Any) -> object:
        called_as.bind(element.numpy, dims, **given)
        try:
            return function(element.numpy, dims, **given)
        except LayoutError:
            raise
        except RecursionError as error:
            raise LayoutError(
                f"the function of the format {name!r} calls itself endlessly\n"
                "  return a layout, or one of another format"
            ) from error
        except (Exception, SystemExit) as error:
            raise LayoutError(
                f"the function of the format {name!r} fails for {element.name}{list(dims)}: "
                f"{type(error).__name__}: {error}\n"
                "  pass an array that the format takes, or correct its function"
            ) from error

    own = getattr(function, "__qualname__", type(function).__qualname__)
    source = ".".join(filter(None, (getattr(function, "__module__", None), own)))
    return Format(name, text, build, parameters, source=source)


def unregister_format(name: str) -> None:
    """Remove a format that `register_format` added; its name can then be registered again.

    >>> tilejit.register_format("mine", lambda dtype, dims: "{1,0:T(3,5)}")
    >>> tilejit.unregister_format("mine")
    >>> "mine" in tilejit.formats()
    False

    Layouts that were made from the format stay valid.

    Args:
        name: the name.

    Raises:
        LayoutError: no format has this name, or TileJIT itself defines it.
        TypeError: the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a format, got {type(name).__name__}")
    find_format(name)
    if _registered.pop(name, None) is None:
        raise LayoutError(f"TileJIT itself defines the format {name!r}\n  name one that you registered")


def formats(family: str | None = None) -> tuple[str, ...]:
    """List the names of the formats.

    >>> tilejit.formats()[:3]
    ('tpu', 'tpu-doc', 'tpu-int4')
    >>> tilejit.formats("cpu")
    ('vnni', 'amx-b', 'blis-a', 'blis-b')

    `describe_format` describes each. oneDNN's blocked tags, such as "nChw16c", are formats as well but are
    not listed.

    Args:
        family: the name of a family, such as "ggml"; None lists all families, then the formats of installed
            packages and registered ones.

    Returns:
        The names.

    Raises:
        LayoutError: the family does not exist; the message names those that do.
        TypeError: the family is not a str.
    """
    if family is not None:
        return tuple(row.name for row in find_family(family).formats)
    own = [row.name for known in families() for row in known.formats]
    return (*own, *(name for name in installed_formats() if name not in own), *_registered)


def find_family(name: str) -> Family:
    """Return the family with that name.

    Raises:
        LayoutError: the family does not exist.
        TypeError: the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a family, got {type(name).__name__}")
    found = next((family for family in families() if family.name == name), None)
    if found is None:
        names = ", ".join(family.name for family in families())
        raise LayoutError(f"unknown family {cut(name)!r}\n  write one of {names}")
    return found


def find_format(name: str) -> Format:
    """Return the format with that name, or for a blocked tag such as aBcd16b.

    Raises:
        LayoutError: the format does not exist (the message names the nearest), or the tag has a mistake.
        TypeError: the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a format, got {type(name).__name__}")
    found = _find(name)
    if found is not None:
        return found
    if is_tag(name):
        parse_tag(name)
        return tag_format(name)
    words = len(name.split()) > 1
    near = _nearest(name)
    names = formats()
    some = ", ".join(names[:SHOWN])
    fix = (
        f"write {near!r}"
        if near
        else f"write one of {some} and {len(names) - SHOWN} more, which tilejit.formats() lists, "
        "or a layout such as {1,0:T(8,128)}"
    )
    if words and not near:
        fix = f"a pattern has an arrow before the memory order: write e.g. {cut(name) + ' -> …'!r}"
    raise LayoutError(f"unknown format {cut(name)!r}\n  {fix}")


def called(text: str, parameters: Mapping[str, Any]) -> tuple[Format, dict[str, Any]]:
    """Return a format, and its parameters from both a text and keywords.

    ("blis-a, mr=8", {}) -> the format blis-a, {"mr": 8}

    Raises:
        LayoutError: the format does not exist, does not take a parameter of the text, or takes one twice.
    """
    name, given = read_call(text)
    found = find_format(name)
    taken = found.parameters
    odd = next((key for key in given if taken is not None and key not in (*taken, ELEMENT_SIZE)), None)
    if odd:
        takes = f"it takes {', '.join(taken)}" if taken else "it takes none"
        raise LayoutError(f"the format {name!r} has no parameter {odd[:40]!r}\n  {takes}")
    twice = next((key for key in given if key in parameters), None)
    if twice:
        raise LayoutError(f"{twice[:40]} is given both in the text and as a keyword\n  pass it once")
    return found, {**given, **parameters}


def _nearest(name: str) -> str | None:
    """The format whose name starts like this one or differs slightly; None if there is none.

    "nvfp4" -> "nvfp4-scales"    "tenstorent" -> "tenstorrent"    "marlin" -> None
    """
    import difflib

    lowered = name[:MAX_NAME].lower().replace(" ", "-")
    names = {known.lower(): known for known in formats()}
    longer = [known for known in names if len(lowered) > 1 and known.startswith(lowered)]
    close = longer or difflib.get_close_matches(lowered, names, n=1, cutoff=0.65)
    return names[close[0]] if close else None


def _find(name: str) -> Format | None:
    """The format that is registered, in the catalog, or installed; None if there is none."""
    found = _registered.get(name) or find_in_catalog(name)
    if found is not None and found.name != name and _spells_a_tag(found.name):
        found = None  # tags depend on case: nchw16c is a mistake for nChw16c
    if found is None and not is_tag(name):
        found = load_format(name, lambda function: _function_format(name, function, None))
    return found


def _spells_a_tag(name: str) -> bool:
    """Whether a name is a correct tag."""
    if not is_tag(name):
        return False
    try:
        parse_tag(name)
    except LayoutError:
        return False
    return True
