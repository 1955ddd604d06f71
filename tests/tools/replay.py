"""Watch the copies that TileJIT runs, and run their nests again with the slow interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer
from codegen.ir.interpreter import interpret as interpret_function
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import ArrayArg, Function
from codegen.ir.strided_box import StridedBox
from codegen.pipeline.lower_nest import lower_nest
from codegen.pipeline.observer import Form
from codegen.pipeline.passes import function_passes
from codegen.pipeline.program import CopyProgram
from codegen.runtime.copy_calls import TableCalls
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from tests.tools.boxes import Offsets, copy_box
from tilejit.programs.native_calls import NativeCalls

Bytes = NDArray[np.uint8]
INTERPRETED_BYTES = 1500
"""The interpreter runs copies up to this size."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One run of a program: the contents of its two storages before it, and of the destination after it."""

    program: CopyProgram
    src: Bytes
    before: Bytes
    after: Bytes
    addresses: tuple[int, int] = (0, 0)


@contextmanager
def watching(*, snapshots: bool = True) -> Iterator[list[Watched]]:
    """Collect every program that runs inside the block; without `snapshots`, not its contents."""
    seen: list[Watched] = []
    original, repeated = CopyProgram.run, NativeCalls.__call__
    none = np.empty(0, np.uint8)

    def watched(program: CopyProgram, src: int, dst: int, copied: Callable[[], Any]) -> Any:
        if not snapshots:
            seen.append(Watched(program, none, none, none))
            return copied()
        source = _bytes_of(program.src, src) if program.reads else none
        before = _bytes_of(program.dst, dst) if program.steps else none
        result = copied()
        after = _bytes_of(program.dst, dst) if program.steps else none
        seen.append(Watched(program, source, before, after, (src, dst)))
        return result

    def run(self: CopyProgram, src: int, dst: int, *args: Any, **keywords: Any) -> Any:
        return watched(self, src, dst, partial(original, self, src, dst, *args, **keywords))

    def repeat(self: NativeCalls, src: int, dst: int) -> None:
        watched(self.program, src, dst, partial(repeated, self, src, dst))

    CopyProgram.run, NativeCalls.__call__ = run, repeat  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        CopyProgram.run, NativeCalls.__call__ = original, repeated  # type: ignore[method-assign]


def interpreted(watched: Watched) -> Bytes | None:
    """The destination after elements move one by one by the boxes; None if they are converted."""
    program, out = watched.program, watched.before.copy()
    for launch in (*program.first, *program.launches):
        for box in launch.step.boxes:
            if box.converts or not _is_one_element(launch, box):
                return None
            sides = (Buffer(x, box.unit_bits) for x in (watched.src, out))
            lows = (low * 8 // box.unit_bits for low, _ in program.bounds)
            fill = int.from_bytes(_pattern(launch)[: max(1, box.target.bits // 8)], "little")
            src, dst = (side.view(-low) for side, low in zip(sides, lows, strict=True))
            copy_box(box, src, dst, fill, _offsets(launch))
    return out


def _offsets(launch: Launch) -> Offsets | None:
    """The offsets of all entries of a launch with tables."""
    if not isinstance(launch.calls, TableCalls):
        return None
    chunks = list(launch.calls.offsets(0, launch.trips))
    return np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])


def _pattern(launch: Launch) -> bytes:
    """The 16 bytes of padding that a launch repeats."""
    return b"".join((v & (1 << 64) - 1).to_bytes(8, "little") for v in launch.fill or (0, 0))


def _is_one_element(launch: Launch, box: StridedBox) -> bool:
    """Whether the padding repeats one element; complex numbers with swapped halves have a pattern of two."""
    if box.source or box.target.bits < 8:
        return True
    width = box.target.bits // 8
    return _pattern(launch) == _pattern(launch)[:width] * (16 // width)


FormOf = Callable[[Kernel], Function]
"""The function of a kernel after one of the passes that lower it."""


def printed(kernel: Kernel) -> Function:
    """The function that the source of a kernel is printed from."""
    return kernel.function


@cache
def forms(kernel: Kernel) -> dict[str, Function]:
    """The functions of the kernel of a copy, by the pass that they come from."""
    assert isinstance(kernel.lower, partial), "the kernel of a copy is lowered from its nest"
    made: dict[str, Function] = {}

    def observe(name: str, form: Form) -> None:
        assert isinstance(form, Function), "a nest is lowered from functions to functions"
        made[name] = form

    nest, arguments, name = kernel.lower.args
    lower_nest(nest, arguments, observe, name)
    return made


def interpreted_after_passes(watched: Watched) -> Iterator[tuple[str, Bytes]]:
    """The destination after the interpreter runs what each pass makes of the kernels, if it changes any.

    Two kinds of function have no meaning of their own until they are in super-vectors, and are left out: the
    bytes of padding that has several are all its first one, and of staged tiles of transposes those columns
    are missing in which a last block begins earlier.
    """
    program, (_, dst), before = watched.program, watched.addresses, list[Function]()
    launches = (x.serving(dst) for x in (*program.first, *program.launches))
    kernels = {x.runs.kernel for x in launches}
    names = [x.__name__ for x, _ in function_passes()]
    for name in ("lower_copy", *names):
        early = name == "lower_copy" or names.index(name) < names.index("peel_vectors")
        made = {x: x.function if early and _is_partial(x) else forms(x)[name] for x in kernels}
        if list(made.values()) != before:
            yield name, interpreted_when_lowered(watched, made.__getitem__)
        before = list(made.values())


def _is_partial(kernel: Kernel) -> bool:
    assert isinstance(kernel.lower, partial), "the kernel of a copy is lowered from its nest"
    nest, *_ = kernel.lower.args
    return bool(nest.fills or (nest.transposes and nest.staged))


def interpreted_when_lowered(watched: Watched, form: FormOf = printed) -> Bytes:
    """The destination after the interpreter runs the functions of all kernels.

    Each call of a kernel is interpreted on the same arguments, and on storages that begin at the same offset
    in a line.
    """
    program = watched.program
    sides = zip((watched.src, watched.before), watched.addresses, program.bounds, strict=True)
    storages = [aligned_bytes(held, address + low) for held, address, (low, _) in sides]
    src, dst = (storage.ctypes.data - low for storage, (low, _) in zip(storages, program.bounds, strict=True))
    with interpreting(storages, form):
        program.run(src, dst)
    return storages[1]


@contextmanager
def interpreting(storages: list[Bytes], form: FormOf = printed) -> Iterator[None]:
    """Interpret kernels inside the block, on these bytes of source and destination."""
    original = Kernel.call

    def call(self: Kernel) -> Any:
        return partial(_interpret_call, form(self), storages)

    Kernel.call = property(call)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Kernel.call = original  # type: ignore[method-assign]


def aligned_bytes(held: Bytes, address: int) -> Bytes:
    """A copy of bytes at the same offset in a line as an address."""
    room = np.zeros(len(held) + 2 * LINE_BYTES, np.uint8)
    first = (address - room.ctypes.data) % LINE_BYTES
    storage = room[first : first + len(held)]
    storage[:] = held
    return storage


class _Table:
    """64-bit integers in memory."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __getitem__(self, index: int) -> np.int64:
        return np.int64(ctypes.c_int64.from_address(self.address + 8 * index).value)


def _interpret_call(
    function: Function,
    storages: list[Bytes],
    operands: bytes,
    _: int,
    sizes: int,
    begin: int,
    end: int,
) -> None:
    """Interpret one call of a kernel, with the interpreter's own scratch."""
    numbers, addresses = _Table(sizes), np.frombuffer(operands, np.int64).tolist()
    units = {buffer.name: 8 // buffer.unit_bits for buffer in function.buffers}
    buffers = {
        name: Buffer(storage, 8 // units[name], storage.ctypes.data * units[name], address)
        for name, storage, address in zip(function.operands, storages, addresses, strict=True)
    }
    for k, argument in enumerate(function.arguments):
        if argument.name in units:
            buffers[argument.name] = _line(int(numbers[k]))
    given = [
        _Table(int(numbers[k])) if isinstance(argument, ArrayArg) else int(numbers[k])
        for k, argument in enumerate(function.arguments)
    ]
    interpret_function(function, given, buffers, (begin, end))  # type: ignore[arg-type]


def _line(address: int) -> Buffer:
    """The storage that an address argument points to: a line of padding."""
    return Buffer(np.frombuffer(ctypes.string_at(address, LINE_BYTES), np.uint8), 8, address, address)


def _bytes_of(access: Any, address: int) -> Bytes:
    """A copy of the storage's bytes in the part that may be touched."""
    low = access.bounds[0] * access.unit_bits // 8
    stop = -(-access.bounds[1] * access.unit_bits // 8)
    return np.frombuffer(ctypes.string_at(address + low, stop - low), np.uint8).copy()
