"""Golden files of every stage of some copies: nests, the contents of run-time tables, and kernel sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen import (
    AccessMap,
    CopyOptions,
    CopyRequest,
    Element,
    Function,
    format_function,
    staged_copy,
    strided_map,
)
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.observer import Form, Observer
from codegen.schedule.machine import described
from codegen.schedule.schedule import Schedule
from codegen.schedule.thresholds import Thresholds
from tests.codegen.ir.printed import check_names
from tests.tools.goldens import GOLDEN, MACHINE, check_golden
from tilejit.arrays.memory import bytes_map
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map
from tilejit.layout.permuted import permuted_map

STREAMED, CACHED = Thresholds(0), Thresholds(1 << 40)

TILED = {
    "pack_f32_8x128": ("f32[24,300]{1,0:T(8,128)}", 0),
    "pack_bf16_8x128_2x1": ("bf16[24,300]{1,0:T(8,128)(2,1)}", None),
    "pack_pred_in_bits": ("pred[32,128]{1,0:T(32,128)(32,1)E(1)}", None),
    "pack_f32_uneven_padded": ("f32[13,130]{1,0:T(8,128)}", -1),
    "pack_f32_transposed": ("f32[300,200]{0,1:T(8,128)}", None),
}
"""Packed arrays: the shape, and the padding value; None leaves padding as it is."""

TRANSPOSED = {
    "transpose_u32_in_cache": ("u32", (300, 200), CACHED),
    "transpose_u32_streamed": ("u32", (512, 1024), STREAMED),
    "transpose_u32_staged": ("u32", (1003, 701), STREAMED),
    "transpose_u16_short_rows": ("u16", (12, 4000), STREAMED),
    "transpose_u8_short_source_rows": ("u8", (12000, 13), CACHED),
}
"""Transposed arrays: the element type, and the shape of the source."""

RELAYOUT = "bf16[512,1024]{1,0:T(8,128)(2,1)}", "bf16[512,1024]{0,1:T(8,128)(2,1)}"
CONVERTED = 1920, 3072
PIXELS = 48, 64
HEADINGS = {
    "choose": "schedule",
    "choose_joined": "schedule",
    "misaligned": "schedule where the destination begins inside a line",
}
"""The headings of schedules, by the functions of `schedule/` that choose them."""

SWIZZLED = "Sw<3,3,3> o 0 o ((64,16),(8,64)):((1,32768),(64,512))", (1024, 512)


@pytest.fixture(autouse=True)
def one_machine() -> Iterator[None]:
    """Schedules depend on the machine."""
    with described(MACHINE):
        yield


def joining(parts: list[str]) -> Observer:
    """An observer that appends schedules, and the changes of each pass, to `parts` unless they are there.

    Equal kernels have the same loops, however many boxes they copy.
    """
    known: set[str] = set()
    last = ""

    def observe(name: str, form: Form) -> None:
        nonlocal last
        if isinstance(form, Schedule):
            parts.append(f"--- {HEADINGS[name]}\n{form}\n")
            return
        text = format_function(form) if isinstance(form, Function) else str(form)
        if isinstance(form, Function):
            check_names(text)
        is_known = text in known if isinstance(form, Function) else text == last
        known.add(text)
        last = text
        if not is_known:
            parts.append(f"--- {name}\n{text}")

    return observe


def stages(title: str, src: AccessMap, dst: AccessMap, element: Element, **options: Any) -> str:
    """The nests after each pass, the schedules, and the kernels' sources.

    `options` are those of `CopyRequest`.
    """
    parts = [f"{title}\n"]
    program = compile_copy(CopyRequest(src, dst, element, element, **options), joining(parts))
    parts += [f"--- kernel\n{kernel.source}" for kernel in program.kernels]
    return "\n".join(parts)


def stages_in_blocks(
    title: str, src: AccessMap, dst: AccessMap, source: Element, target: Element, **options: Any
) -> str:
    """A copy in two stages: its one-pass schedules, and the schedule, nest and kernel of each stage.

    All blocks have one kind. The kernels are those that blocks call: the first may prefetch the next block.
    """
    with described(replace(MACHINE, stream_bytes=0)):
        direct = compile_copy(CopyRequest(src, dst, source, target, options=CopyOptions(thresholds=STREAMED)))
        program = staged_copy(direct, source, target, **options)
    assert program
    assert len(program.programs) == 1
    schedules = dict.fromkeys(str(launch.step.schedule) for launch in direct.launches)
    parts = [f"{title}\n", "\n".join(["=== one pass, not taken", *schedules, ""]), f"=== blocks\n{program}\n"]
    for number, step in enumerate(program.steps, 1):
        parts.append(f"=== stage {number}: {step.schedule}\n{step.box}\n{step.nest}\n{step.kernel.source}")
    return "\n".join(parts)


@pytest.mark.parametrize("name", TILED)
def test_stages_of_a_pack(name: str, request: pytest.FixtureRequest) -> None:
    text, value = TILED[name]
    spec = as_layout(text)
    plain = bytes_map(spec.dimensions, np.empty(spec.dimensions, spec.dtype).strides, spec.dtype.itemsize)
    padding = None if value is None else np.array(value, spec.dtype).tobytes()
    bits = access_map(spec).element_bits
    source, target = Element(f"u{plain.element_bits}", plain.element_bits), Element(f"u{bits}", bits)
    element = source if source == target else target
    options = {"padding": padding, "options": CopyOptions(thresholds=CACHED)}
    made = stages(f"pack {text}", plain, access_map(spec), element, **options)
    check_golden(GOLDEN / "stages" / f"{name}.txt", made, request)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_stages_of_a_transpose(name: str, request: pytest.FixtureRequest) -> None:
    kind, (rows, columns), thresholds = TRANSPOSED[name]
    width = int(kind[1:]) // 8
    stop = rows * columns * width
    src = strided_map((columns, rows), (width, columns * width), (0, stop), element_bits=8 * width)
    dst = strided_map((columns, rows), (rows * width, width), (0, stop), element_bits=8 * width)
    title, element = f"{kind}[{rows},{columns}] transposed", Element(kind, 8 * width)
    made = stages(title, src, dst, element, options=CopyOptions(thresholds=thresholds))
    check_golden(GOLDEN / "stages" / f"{name}.txt", made, request)


AVX2 = replace(MACHINE, level="avx2", register_bytes=32)


def test_stages_of_a_shuffle(request: pytest.FixtureRequest) -> None:
    """Three-byte pixels, without the fourth byte, which other pixels follow."""
    (rows, pixels), element = PIXELS, Element("u8", 8)
    src = strided_map((rows, pixels, 3), (4 * pixels, 4, 1), (0, 4 * rows * pixels), element_bits=8)
    dst = strided_map((rows, pixels, 3), (3 * pixels, 3, 1), (0, 3 * rows * pixels), element_bits=8)
    with described(AVX2):
        made = stages(f"u8[{rows},{pixels},3] of u8[{rows},{pixels},4]", src, dst, element)
    check_golden(GOLDEN / "stages" / "shuffle_u8_pixels.txt", made, request)


def test_stages_of_a_shuffle_of_lines(request: pytest.FixtureRequest) -> None:
    """The transpose of five rows of bytes: 16 bytes of each row contain all of its bytes of a line."""
    rows, columns, element = 5, 4096, Element("u8", 8)
    src = strided_map((rows, columns), (columns, 1), (0, rows * columns), element_bits=8)
    dst = strided_map((rows, columns), (1, rows), (0, rows * columns), element_bits=8)
    with described(AVX2):
        made = stages(f"u8[{columns},{rows}] of u8[{rows},{columns}] transposed", src, dst, element)
    check_golden(GOLDEN / "stages" / "shuffle_u8_rows.txt", made, request)


def test_stages_of_a_relayout(request: pytest.FixtureRequest) -> None:
    """From one tiled layout to another, through a block in row-major order."""
    src, dst = (access_map(as_layout(text)) for text in RELAYOUT)
    element = Element("u16", 16)
    made = stages_in_blocks(" -> ".join(RELAYOUT), src, dst, element, element)
    check_golden(GOLDEN / "stages" / "relayout_bf16_through_a_block.txt", made, request)


def test_stages_of_a_converted_transpose(request: pytest.FixtureRequest) -> None:
    """Rows are converted into a block and transposed from there."""
    rows, columns = CONVERTED
    src = strided_map((columns, rows), (4, 4 * columns), (0, 4 * rows * columns), element_bits=32)
    dst = strided_map((columns, rows), (2 * rows, 2), (0, 2 * rows * columns), element_bits=16)
    title, elements = f"f32[{rows},{columns}] to bf16, transposed", (Element("f32", 32), Element("bf16", 16))
    made = stages_in_blocks(title, src, dst, *elements)
    check_golden(GOLDEN / "stages" / "transpose_f32_to_bf16.txt", made, request)


def test_stages_of_a_swizzled_layout(request: pytest.FixtureRequest) -> None:
    """Periods of the storage are permuted into a block, which is unpacked without the swizzle."""
    text, dims = SWIZZLED
    spec, element = as_layout(text, dims=dims, dtype="f16"), Element("u16", 16)
    plain = bytes_map(dims, np.empty(dims, spec.dtype).strides, 2)
    layout = permuted_map(spec)
    made = stages_in_blocks(
        f"unpack f16 {text}", access_map(spec), plain, element, element, unpacked_from=layout
    )
    check_golden(GOLDEN / "stages" / "unpack_f16_swizzled.txt", made, request)
