"""The copies of the golden files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

from codegen import CopyOptions, CopyProgram, CopyRequest, StagedProgram, Step, staged_copy
from codegen.pipeline.calibrate import streamed_from
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.observer import Observer, nobody
from codegen.pipeline.steps import first_arguments, kernel_of, source_of_step
from codegen.schedule.machine import Machine
from codegen.schedule.schedule import VectorSize
from tests.codegen.emit.golden_texts import BOX, KERNEL, SCHEDULES, Part, observing
from tests.tools.goldens import MACHINE
from tilejit.arrays.memory import array_map, bytes_map
from tilejit.arrays.strided import c_strides
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map
from tilejit.layout.permuted import permuted_map
from tilejit.programs.compiled import array_element, buffer_element
from tilejit.programs.moves import move_for
from tilejit.tiled.tile_grid import grid_of

CACHED = replace(MACHINE, stream_bytes=1 << 40)
STREAMED = replace(MACHINE, stream_bytes=0)
VBMI = replace(STREAMED, joins_bytes=True)
AVX2 = replace(MACHINE, level="avx2", register_bytes=32)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy with a golden file.

    machine   the machine that it is compiled for
    stages    the arguments of `staged_copy` if it runs in two stages
    in_brief  whether the file has only boxes, decisions and sources, for "auto": another one has such passes
    """

    title: str
    request: CopyRequest
    machine: Machine = CACHED
    stages: Mapping[str, Any] | None = None
    in_brief: bool = False

    def program(self, size: VectorSize | None = None, observe: Observer = nobody) -> CopyProgram:
        """The copy in one pass, with a `virtual_vector_size` or without."""
        options = CopyOptions(stream_bytes=streamed_from(0), virtual_vector_size=size)
        return compile_copy(replace(self.request, options=options), observe)

    def staged(self, direct: CopyProgram) -> StagedProgram | None:
        """The copy in two stages; None if it has one."""
        if self.stages is None:
            return None
        found = staged_copy(direct, self.request.source, self.request.target, **self.stages)
        assert found
        return found

    def parts(self, size: VectorSize | None) -> list[Part]:
        """What the compiler makes of it; copies with a size run in one pass."""
        parts: list[Part] = []
        direct = self.program(size, observing(parts, fallbacks=size is None))
        staged = self.staged(direct) if size is None else None
        if staged:
            schedules = dict.fromkeys(part.text for part in parts if part.heading == SCHEDULES["choose"])
            parts = [Part("one pass, not taken", "\n".join(schedules), is_result=True)]
            parts.append(Part("blocks", str(staged.staging), is_result=True))
            observe = observing(parts)
            for step in staged.steps:
                observe_stage(step, observe)
        program = staged or direct
        steps = [*program.steps]
        if size is None:
            steps += [launch.misaligned.step for launch in program.launches if launch.misaligned]
        for step in {step.kernel: step for step in reversed(steps)}.values():
            parts.append(Part(KERNEL, source_of_step(step), is_result=True))
        return parts


def observe_stage(step: Step, observe: Observer) -> None:
    """Observe the passes of a stage once more."""
    observe(BOX, step.box)
    observe("choose", step.schedule)
    observe("make_nest", step.nest)
    sizes = dict(step.sizes)
    again, _ = kernel_of(step.nest, first_arguments(step.nest), observe, lambda name: name not in sizes)
    assert again == step.kernel


def pack(text: str, machine: Machine = CACHED, padding: int = 0, **array: Any) -> Copy:
    """A pack of an array in C order; `array` has its dims and dtype if the layout does not."""
    spec = as_layout(text, **array)
    plain = bytes_map(spec.dimensions, c_strides(spec.dimensions, spec.dtype.itemsize), spec.dtype.itemsize)
    fill = np.array(padding, spec.dtype).tobytes()
    request = CopyRequest(plain, access_map(spec), array_element(spec), buffer_element(spec), padding=fill)
    return Copy(f"pack {text}, padding {padding}", request, machine)


def unpack(text: str, machine: Machine = CACHED, **array: Any) -> Copy:
    """The reverse, block by block if the layout is swizzled."""
    spec, packed = as_layout(text, **array), pack(text, **array).request
    request = CopyRequest(packed.dst, packed.src, packed.target, packed.source)
    permuted = permuted_map(spec)
    return Copy(f"unpack {text}", request, machine, {"permuted": permuted} if permuted else None)


def copyto(title: str, dst: NDArray[Any], src: NDArray[Any], machine: Machine = CACHED) -> Copy:
    """A copy between arrays of one shape."""
    move = move_for(src.dtype, dst.dtype)
    assert move
    assert move.units == 1
    request = CopyRequest(array_map(src), array_map(dst), move.source, move.target, move.swap)
    return Copy(title, request, machine)


def transpose(
    source: DTypeLike,
    dims: tuple[int, int],
    machine: Machine,
    target: DTypeLike = None,
    pitch: int = 0,
) -> Copy:
    """A transpose of an array in C order, possibly to another dtype, or to rows that are `pitch` apart."""
    rows, columns = dims
    src = virtual(dims, source).T
    dst = virtual((columns, pitch or rows), src.dtype if target is None else target)[:, :rows]
    title = f"{src.dtype}{[*dims]} transposed"
    title += "" if target is None else f" to {dst.dtype}"
    title += f", a row every {pitch} elements" if pitch else ""
    return copyto(title, dst, src, machine)


def permute(dtype: DTypeLike, dims: tuple[int, ...], order: tuple[int, ...], machine: Machine) -> Copy:
    """A copy of an array in C order with its dimensions in another order."""
    src = virtual(dims, dtype).transpose(order)
    return copyto(f"{src.dtype}{[*dims]} permuted by {order}", virtual(src.shape, dtype), src, machine)


def part(dtype: DTypeLike, dims: tuple[int, ...], index: str, machine: Machine) -> Copy:
    """A copy of a part of an array in C order; `index` is written as in Python."""
    array = virtual(dims, dtype)
    src = eval(f"array[{index}]", {"array": array})
    return copyto(f"{array.dtype}{[*dims]}, [{index}] of it", virtual(src.shape, dtype), src, machine)


def relayout(source: str, target: str) -> Copy:
    """A copy from one tiled layout to another, block by block."""
    src, dst = as_layout(source), as_layout(target)
    element = buffer_element(src)
    request = CopyRequest(access_map(src), access_map(dst), element, element)
    return Copy(f"{source} -> {target}", request, STREAMED, {})


def gather_tiles(text: str, ids: list[int]) -> Copy:
    """A copy of some tiles to an array."""
    spec = as_layout(text)
    grid = grid_of(spec)
    tiles = grid.tiles(grid.numbers(ids))
    plain = bytes_map(tiles.dims, c_strides(tiles.dims, spec.dtype.itemsize), spec.dtype.itemsize)
    element = buffer_element(spec)
    return Copy(f"tiles {ids} of {text}", CopyRequest(tiles, plain, element, element))


def in_brief(copy: Copy) -> Copy:
    """The same, whose golden file has only boxes, decisions and sources, for "auto"."""
    return replace(copy, in_brief=True)


def virtual(dims: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array in C order of any size, without its memory."""
    kind = np.dtype(dtype)
    return np.lib.stride_tricks.as_strided(np.empty(1, kind), dims, c_strides(dims, kind.itemsize))


BF16 = ml_dtypes.bfloat16
SWIZZLED = "Sw<3,3,3> o 0 o ((64,16),(8,64)):((1,32768),(64,512))"

COPIES = {
    "pack_f32_8x128": pack("f32[32,256]{1,0:T(8,128)}"),
    "pack_f32_8x128_ragged": pack("f32[16,192]{1,0:T(8,128)}", padding=-1),
    "pack_f32_8x128_streamed": pack("f32[32,256]{1,0:T(8,128)}", STREAMED),
    "pack_f32_transposed": in_brief(pack("f32[256,64]{0,1:T(8,128)}")),
    "pack_f32_with_a_table": pack("f32[10,24,6]{2,0,1:T(*,7,2)}"),
    "pack_bf16_8x128_2x1": pack("bf16[32,256]{1,0:T(8,128)(2,1)}"),
    "pack_bf16_32x16_2x1": in_brief(pack("bf16[64,160]{1,0:T(32,16)(2,1)}")),
    "pack_bf16_tenstorrent": pack("tenstorrent", dims=(64, 64), dtype="bf16"),
    "pack_pred_in_bits": pack("pred[32,128]{1,0:T(32,128)(32,1)E(1)}"),
    "pack_s4_in_nibbles": in_brief(pack("s4[64,256]{1,0:T(64,128)(8,1)E(4)}")),
    "pack_u32_morton_gathered": pack("u32[64,64]{1,0:T(8,8)(4,4)(2,2)}", STREAMED),
    "unpack_bf16_8x128_2x1": in_brief(unpack("bf16[32,256]{1,0:T(8,128)(2,1)}")),
    "unpack_bf16_8x128_2x1_staged": in_brief(unpack("bf16[32,259]{1,0:T(8,128)(2,1)}", STREAMED)),
    "unpack_s8_64x16_4x1": in_brief(unpack("s8[64,160]{1,0:T(64,16)(4,1)}")),
    "unpack_pred_in_bits": in_brief(unpack("pred[32,128]{1,0:T(32,128)(32,1)E(1)}")),
    "unpack_f16_swizzled": unpack(SWIZZLED, STREAMED, dims=(1024, 512), dtype="f16"),
    "relayout_bf16": relayout("bf16[512,1024]{1,0:T(8,128)(2,1)}", "bf16[512,1024]{0,1:T(8,128)(2,1)}"),
    "gather_tiles_f32_8x128": gather_tiles("f32[1000,300]{1,0:T(8,128)}", [4, 0, 4]),
    "transpose_u8_in_cache": transpose("u1", (300, 200), CACHED),
    "transpose_u8_streamed": transpose("u1", (512, 1024), STREAMED),
    "transpose_u8_staged": transpose("u1", (4096, 701), STREAMED, pitch=4099),
    "transpose_u8_carried": transpose("u1", (4096, 701), VBMI, pitch=4099),
    "transpose_u8_short_source_rows": in_brief(transpose("u1", (12000, 13), CACHED)),
    "transpose_u16_short_rows": in_brief(transpose("u2", (12, 4000), STREAMED)),
    "transpose_u32_in_cache": transpose("u4", (300, 200), CACHED),
    "transpose_u32_streamed": transpose("u4", (512, 1024), STREAMED),
    "transpose_u32_staged": transpose("u4", (1024, 701), STREAMED, pitch=1027),
    "transpose_u32_carried": in_brief(transpose("u4", (1024, 701), VBMI, pitch=1027)),
    "transpose_u64_swapped": in_brief(transpose("<u8", (300, 200), CACHED, ">u8")),
    "transpose_f32_to_bf16": transpose("f4", (1920, 3072), STREAMED, BF16),
    "transpose_f32_to_bf16_in_cache": in_brief(transpose("f4", (300, 200), CACHED, BF16)),
    "permute_u16_joined_rows": permute("u2", (36, 500, 363), (2, 1, 0), STREAMED),
    "permute_u16_pairs_staged": permute("u2", (4099, 2), (1, 0), STREAMED),
    "reverse_u32_streamed": in_brief(part("u4", (512, 1024), ":, ::-1", STREAMED)),
    "reverse_u8_pixels": in_brief(part("u1", (300, 400, 3), "..., ::-1", CACHED)),
    "reverse_u64_chunks": in_brief(part("u8", (300, 80, 8), ":, ::-2, ::-1", CACHED)),
    "shuffle_u8_pixels": part("u1", (48, 64, 4), "..., :3", AVX2),
    "shuffle_u8_rows": in_brief(transpose("u1", (5, 4096), AVX2)),
}
"""Copies of every kind by the names of their golden files; nothing is copied."""
