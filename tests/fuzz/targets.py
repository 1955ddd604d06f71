"""The targets: for each, a function that takes one input, and the longest input.

A target raises TilejitError if it refuses its input, and AssertionError if it breaks a promise, such as that
printed text reads back. Any other exception is a find. Modules are imported when a target is opened, because
the guided engine instruments them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

Run = Callable[[bytes], str | None]
"""Takes an input, and may return its outcome."""


@dataclass(frozen=True, slots=True)
class Target:
    """One target.

    Attributes:
        open: imports what it needs, and returns the function that takes an input.
        length: bytes of the longest input.
        share: how many of 100,000 inputs go to this target.
    """

    name: str
    open: Callable[[], Run]
    length: int
    share: int


def _shape() -> Run:
    from tilejit.layout.shape import Layout, Shape, parse_shape

    def run(data: bytes) -> None:
        text = data.decode(errors="surrogateescape")
        read: Any = Layout.parse if text.lstrip().startswith("{") else parse_shape
        value = read(text)
        assert read(str(value)) == value, "printed text reads back"
        if isinstance(value, Shape):
            assert Shape.from_json(value.to_json()) == value
            assert value.size_in_bytes >= 0

    return run


def _cute() -> Run:
    from tilejit import cute

    def run(data: bytes) -> None:
        value = cute.parse(data.decode(errors="surrogateescape"))
        if isinstance(value, cute.Layout | cute.ComposedLayout | cute.Swizzle | cute.Tiler):
            assert cute.parse(str(value)) == value, "printed text reads back"
        if isinstance(value, cute.Layout):
            assert value.cosize >= 0
            assert value.size == 0 or value(0) == 0

    return run


MOST_DIMS = 64


def _array(lines: list[str]) -> tuple[tuple[int, ...], str]:
    """The dimensions and the dtype after a text: "33,300" and "bf16"."""
    numbers = islice(lines[1].split(","), MOST_DIMS) if len(lines) > 1 else ()
    dims = [int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) < 20]
    return tuple(n for n in dims if n < 2**63), lines[2] if len(lines) > 2 else "f32"


def _pattern() -> Run:
    from tilejit.layout.formats.spelling import blocked_shape
    from tilejit.layout.shape import Layout
    from tilejit.layout.text.pattern_text import is_pattern, parse_pattern

    f32 = _element("f32")

    def run(data: bytes) -> None:
        lines = data.decode(errors="surrogateescape").split("\n", 1)
        dims, _ = _array(lines)
        is_pattern(lines[0])
        pattern = parse_pattern(lines[0])
        shape = blocked_shape(pattern.blocking(dims or (32,) * len(pattern.groups), {}), f32)
        assert Layout.parse(str(shape.layout)) == shape.layout

    return run


def _element(name: str) -> Any:
    from tilejit.layout.dtypes import lookup

    return lookup(name)


def _formats() -> Run:
    from tilejit.layout.as_layout import as_layout
    from tilejit.layout.cute_index import refuse_overlaps
    from tilejit.layout.indexing import linear_index
    from tilejit.tiled.buffers import check_packable

    def run(data: bytes) -> None:
        lines = data.decode(errors="surrogateescape").split("\n", 2)
        dims, dtype = _array(lines)
        spec = as_layout(lines[0], dims=dims or (40, 24), dtype=dtype)
        size = check_packable(spec)
        if 0 not in spec.dimensions:
            slot = linear_index(spec, (0,) * len(spec.dimensions))
            assert 0 <= slot * spec.bits < 8 * size, "the first element lies inside the buffer"
        refuse_overlaps(spec)

    return run


def _mlir() -> Run:
    from codegen.support.errors import KernelError
    from tilejit import mlir

    def run(data: bytes) -> None:
        text = data.decode(errors="surrogateescape")
        wide = mlir.super_vectorize(text, virtual_vector_size=(4, 8)[: 1 + len(text) % 2], report=True)
        module = mlir.parse(text)
        names = {program.name for program in module.programs}
        if not names or module.refused:
            return  # a function stayed as it was
        try:
            found = {program.name for program in mlir.parse(wide).programs}
        except KernelError as error:
            raise AssertionError(f"printed text is refused: {error}") from None
        assert names <= found, "printed text is read"

    return run


def _sizes() -> Run:
    from codegen.schedule.vector_size import MOST_ELEMENTS, read_vector_sizes, sizes_in_elements

    def run(data: bytes) -> None:
        texts = tuple(data.decode(errors="surrogateescape").split(",", 3))
        sizes = read_vector_sizes(texts, 3, "write 256")
        again = read_vector_sizes(tuple(map(str, sizes)), 3, "write 256")
        assert again == sizes, "a size prints as it is read"
        for bits in (4, 8, 64):
            found = sizes_in_elements(sizes, bits)
            assert min(found) >= 1
            assert prod(found) <= MOST_ELEMENTS

    return run


def _files() -> Run:
    from tilejit.files import npy, safetensors
    from tilejit.files.conversion import plan_file_pack, plan_file_unpack
    from tilejit.layout.as_layout import as_layout

    folder = tempfile.mkdtemp(prefix="tilejit-fuzz-")
    path = Path(folder, "input")

    def run(data: bytes) -> None:
        path.write_bytes(data)
        if data.startswith(b"\x93NUM"):
            array = npy.read(path).array
            assert array.data.nbytes <= len(data), "no array is larger than its file"
            as_layout("{:T(8)}" if not array.shape else "tpu", dims=array.shape, dtype="f32")
            return
        file = safetensors.read(path)
        try:
            plan_file_unpack(file)
        finally:
            plan_file_pack(file, "tpu-doc")

    return run


def _command_line() -> Run:
    from tests.fuzz.command_line import CommandLine

    return CommandLine()


TARGETS = {
    target.name: target
    for target in (
        Target("shape", _shape, 4096, 30_000),
        Target("sizes", _sizes, 128, 2_000),
        Target("cute", _cute, 4096, 25_000),
        Target("pattern", _pattern, 2048, 15_000),
        Target("formats", _formats, 1024, 12_000),
        Target("files", _files, 4096, 10_000),
        Target("mlir", _mlir, 1536, 3_000),
        Target("command", _command_line, 512, 3_000),
    )
}
