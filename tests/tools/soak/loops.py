"""The soak's kernels of loops and expressions, against Python and NumPy, in guarded memory."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tests.tools.strategies as random_of
import tilejit as tj
from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import Function
from codegen.passes.name_loops import name_loops
from codegen.passes.tile import tile
from codegen.pipeline.loops import in_tiles, schedule_function, vectorize_function
from codegen.schedule.choose_strips import choose_strips
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.errors import KernelError, ScheduleError
from tests.codegen.passes.random_nests import ARRAYS, Nest, nest
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.loop_schedules import nests_of, random_schedule

if TYPE_CHECKING:
    from tests.tools.soak.cases import Case

Array = NDArray[Any]
COMPILED_ONE_IN = 40
"""The share of nests that are compiled, because each is another kernel. The others are interpreted."""

SIZES = (
    *((4,), (8,), (3,), (64,), (100,), (256,), (1024,), (1 << 20,)),
    *((2, 4), (4, 4), (5, 7), (8, 32), (32, 256), (2, 2, 4), (3, 5, 40)),
)
MACHINE_SIZES = (("2*hw",), ("4", "2*hw"), ("l1/64",), ("2*cores", "hw"))
SIZES_OF_EXPRESSIONS = (3, 100, 1024, (5, 48), (32, 256), "2*hw", "2*cores*hw")
TAILS = ("mask", "scalar", "shift")

DTYPES = ("f4", "f8", "i4", "u1")
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "a * 2 + b": lambda a, b: a * 2 + b,
    "a choice": lambda a, b: np.where(a > b, a, b - a),
    "a quotient": lambda a, b: a / (b * b + 1),
    "a comparison": lambda a, b: (a < b) | (a == b),
    "converted": lambda a, b: a.astype(np.float64) * b,
    "the greater": lambda a, b: np.maximum(a, b),
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sums of rows": lambda a: np.sum(a, axis=-1),
    "sums of columns": lambda a: np.sum(a, axis=0),
    "the sum": lambda a: np.sum(a),
    "greatest of rows": lambda a: a.max(axis=-1),
    "means": lambda a: np.mean(a, axis=0),
}
KERNELS = {
    (name, size): tj.elementwise(f, virtual_vector_size=size)
    for name, f in (EXPRESSIONS | REDUCTIONS).items()
    for size in ("auto", *SIZES_OF_EXPRESSIONS)
}
"""The kernels, made once: the first case with some dtypes and order of dimensions compiles for all."""

NO_ROOM = re.compile(r"(-?\d+) does not fit ([su])(\d+)\n")
"""How a nest is refused that sets an element to what its dtype cannot hold. NumPy refuses it when it comes to
that statement, which it may never do.
"""

MOST_ELEMENTS = 4000
ARENA_BYTES = 1 << 20


def loops(case: Case) -> None:
    """A random nest of loops. Kernels and interpreters must leave in the arrays what Python leaves."""
    drawn = nest(lambda count: case.pick(0, count - 1))
    try:
        _nest(case, drawn)
    except KernelError as error:
        if not _is_too_large(str(error)):
            raise
        case.bench.counts["nests with a number that does not fit"] += 1
    finally:
        linecache.cache.pop(drawn.python.__code__.co_filename, None)


def _is_too_large(message: str) -> bool:
    """Whether an error correctly says that a number does not fit an integer."""
    found = NO_ROOM.match(message)
    if not found:
        return False
    limits = np.iinfo(f"{'i' if found[2] == 's' else 'u'}{int(found[3]) // 8}")
    return not limits.min <= int(found[1]) <= limits.max


def _nest(case: Case, drawn: Nest) -> None:
    sizes, tail = case.one_of(*SIZES), case.one_of(*TAILS)
    case.note(n=drawn.n, sizes=sizes, tail=tail, nest="\n" + drawn.text)
    wanted = drawn.copied()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            drawn.python(*wanted)
    except OverflowError:  # NumPy refuses what such a nest stores
        case.bench.counts["nests NumPy refuses"] += 1
        return
    if case.chance(COMPILED_ONE_IN):
        case.bench.counts["nests compiled"] += 1
        wish = case.one_of(sizes, sizes, *MACHINE_SIZES)
        case.note(virtual_vector_size=wish)
        kernel = tj.kernel(virtual_vector_size=wish, tail=tail)(drawn.python)
        views, rooms = zip(
            *(_guarded(case, case.bench.arena(k), a) for k, a in enumerate(drawn.arrays)), strict=True
        )
        kernel(*views, drawn.n)
        for k, (view, room) in enumerate(zip(views, rooms, strict=True)):
            _beside_untouched(case, case.bench.arena(k), view, *room)
        found: list[Any] = list(views)
    else:
        given = zip([*ARRAYS, "n"], drawn.copied(), strict=True)
        function = read_function(drawn.python).typed([argument(name, value) for name, value in given])
        if case.chance(3):
            function = _scheduled(case, function)
        elif case.chance(2):
            function = vectorize_function(function, sizes, tail=tail).function
            if case.chance(2):
                function = tile(function, LoopSchedule(choose_strips(function, case.one_of(16, 32, 64))))
        found = drawn.copied()
        interpret(function, found)
    for name, mine, right in zip(ARRAYS, found, wanted, strict=False):
        same = np.array_equal(mine, right, equal_nan=right.dtype.kind == "f")
        case.check(same, f"{name} of {right.dtype} differs")


def _scheduled(case: Case, function: Function) -> Function:
    """A function whose loops run by a random schedule, if they may."""
    function = name_loops(function)
    nests = nests_of(function)
    if not nests:
        return function
    text = random_schedule(nests, lambda count: case.pick(0, count - 1))
    case.note(schedule=text)
    try:
        made = schedule_function(function, text)
    except ScheduleError:
        case.bench.counts["schedules refused"] += 1
        return function
    return in_tiles(made.function, made.directives)


def expression(case: Case) -> None:
    """One expression of broadcast arrays with any strides, or a reduction."""
    name = case.one_of(*(EXPRESSIONS if not case.chance(3) else REDUCTIONS))
    function = (EXPRESSIONS | REDUCTIONS)[name]
    dims = (0,)
    while 0 in dims or not dims:
        dims = random_of.extents(case.pick, case.one_of(30, 600, MOST_ELEMENTS))[:4]
    size = case.one_of(*SIZES_OF_EXPRESSIONS) if case.chance(10) else "auto"
    case.note(expression=name, virtual_vector_size=size)
    if name in REDUCTIONS:
        (a,) = _operands(case, dims, 1)
        with np.errstate(all="ignore"):
            got, want = KERNELS[name, size](a), function(a)
        _close(case, np.asarray(got), np.asarray(want), float(np.abs(a.astype("f8")).sum()))
        return
    a, b = _operands(case, dims, 2)
    with np.errstate(all="ignore"):
        want = np.asarray(function(a, b))
    out = room = None
    if not case.chance(4):
        steps = random_of.strides(case.pick, want.shape, want.itemsize, broadcast=False)
        if span_bytes(want.itemsize, want.shape, steps) <= ARENA_BYTES:
            like = np.lib.stride_tricks.as_strided(np.zeros(1, want.dtype), want.shape, steps)
            out, room = _guarded(case, case.bench.arena(2), like, copied=False)
            case.note(out_strides=steps)
    with np.errstate(all="ignore"):
        got = KERNELS[name, size](a, b, out=out)
    case.check(got.dtype == want.dtype and got.shape == want.shape, f"{got.dtype}{got.shape}")
    case.check(np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), "other elements than NumPy's")
    if out is not None and room is not None:
        case.check(got is out, "the result is not out")
        _beside_untouched(case, case.bench.arena(2), out, *room)


def _operands(case: Case, dims: tuple[int, ...], count: int) -> list[Array]:
    found = []
    for k in range(count):
        dtype = np.dtype(case.one_of(*DTYPES))
        own = tuple(1 if case.chance(8) else n for n in dims)[case.pick(0, len(dims) - 1) if k else 0 :]
        steps = random_of.strides(case.pick, own, dtype.itemsize, broadcast=True)
        if span_bytes(dtype.itemsize, own, steps) > ARENA_BYTES:
            steps = np.empty(own, dtype).strides
        like = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), own, steps)
        array, _ = _guarded(case, case.bench.arena(k), like, copied=False)
        array[...] = case.rng.integers(0 if dtype.kind == "u" else -50, 50, own)
        case.note(**{f"operand{k}": f"{dtype} {own} {steps}"})
        found.append(array)
    return found


def _close(case: Case, got: Array, want: Array, magnitude: float) -> None:
    case.check(got.dtype == want.dtype and got.shape == want.shape, f"{got.dtype}{got.shape}")
    if want.dtype.kind != "f":
        case.check(bool((got == want).all()), "other sums than NumPy's")
        return
    most = 64 * float(np.finfo(want.dtype).eps) * magnitude
    case.check(
        bool((np.abs(got.astype("f8") - want.astype("f8")) <= most).all()), "sums too far from NumPy's"
    )


def _guarded(
    case: Case, arena: Guarded, like: Array, *, copied: bool = True
) -> tuple[Array, tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """An array with such strides against a guard page; its bytes, and a copy of them."""
    size = span_bytes(like.itemsize, like.shape, like.strides)
    room = arena.place(size, at_end=case.chance(2))
    room[:] = case.random_bytes(size)
    array = strided_view(room, like.dtype, like.shape, like.strides)
    if copied:
        array[...] = like
    return array, (room, room.copy())


def _beside_untouched(
    case: Case, arena: Guarded, array: Array, room: NDArray[np.uint8], before: NDArray[np.uint8]
) -> None:
    strided_view(before, array.dtype, array.shape, array.strides)[...] = array
    case.check(room.tobytes() == before.tobytes(), "bytes between elements changed")
    case.check(arena.untouched(), "bytes beside an array changed")
