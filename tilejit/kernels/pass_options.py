"""The options of MLIR's `affine-super-vectorize` pass, as one string like that of `mlir-opt`."""

from __future__ import annotations

import re

from codegen import KernelValueError, dataclass

PASS = re.compile(
    r"""\s*-{0,2}affine-super-vectorize\s*=?\s*(?P<quote>["']?)(?P<options>.*?)(?P=quote)\s*""", re.DOTALL
)
SIZES, FASTEST, REDUCTIONS = "virtual-vector-size", "test-fastest-varying", "vectorize-reductions"
TRUTHS = {
    **dict.fromkeys(("", "1", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "false", "False", "FALSE"), False),
}
SIZE = r"(\d{1,18}|[\d*/]*(hw|l1|cores|sockets|warp)[\w*/]*)"
"""A number, or text that looks like a size in terms of the machine."""
EXAMPLE = f"{SIZES}=32,256 {FASTEST}=1,0 {REDUCTIONS}"


@dataclass(frozen=True, slots=True)
class PassOptions:
    """The options in a string; they are checked where they are used."""

    virtual_vector_size: tuple[int | str, ...]
    fastest_varying: tuple[int, ...] | None = None
    vectorize_reductions: bool = False


def read_pass_options(text: str) -> PassOptions:
    """Read the options of a pass, with or without its name, like mlir-opt.

    "virtual-vector-size=32,256 test-fastest-varying=1,0" -> PassOptions((32, 256), (1, 0), False)
    "virtual-vector-size=2*hw" -> PassOptions(("2*hw",), None, False)
    -affine-super-vectorize="virtual-vector-size=128 vectorize-reductions" -> PassOptions((128,), None, True)

    A backslash before a blank, as at the end of a shell line, is read as a blank.

    Raises:
        KernelValueError: an option is unknown, given twice or invalid; or there are no sizes.
        TypeError: it is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"options: expected a str such as {EXAMPLE!r}, got {type(text).__name__}")
    named = PASS.fullmatch(text)
    words = re.sub(r"\\(?=\s)", " ", named["options"] if named else text).split()
    given: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if name in given:
            raise _refused(f"{name[:40]} is given twice")
        if name not in (SIZES, FASTEST, REDUCTIONS) or (sign and not value):
            raise _refused(f"{word[:40]!r} is not an option of affine-super-vectorize")
        given[name] = value
    if SIZES not in given:
        raise _refused(f"the options have no {SIZES}")
    if given.get(REDUCTIONS, "") not in TRUTHS:
        raise _refused(f"{REDUCTIONS}: expected true or false, got {given[REDUCTIONS][:40]!r}")
    sizes = read_size_list(given[SIZES])
    if sizes is None:
        raise _refused(f"{SIZES}: expected a list of numbers, got {given[SIZES][:40]!r}")
    return PassOptions(
        sizes,
        _numbers(FASTEST, given[FASTEST]) if FASTEST in given else None,
        REDUCTIONS in given and TRUTHS[given[REDUCTIONS]],
    )


def read_size_list(text: str) -> tuple[int | str, ...] | None:
    """Read sizes separated by commas, as numbers or in terms of the machine; None for other text.

    "32,256" -> (32, 256)    "cores,2*hw" -> ("cores", "2*hw")    "many" -> None
    """
    if not re.fullmatch(f"{SIZE}(,{SIZE})*", text, re.ASCII):
        return None
    return tuple(int(part) if part.isdigit() else part for part in text.split(","))


def _numbers(name: str, value: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,18}(,\d{1,18})*", value, re.ASCII):
        raise _refused(f"{name}: expected a list of numbers, got {value[:40]!r}")
    return tuple(map(int, value.split(",")))


def _refused(cause: str) -> KernelValueError:
    return KernelValueError(f"{cause}\n  write {EXAMPLE}")
