"""What a function of elements does with arguments of certain dtypes and ranks: it is called once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from codegen.errors import KernelError, LayoutError
from codegen.frontend.operands import Operand
from codegen.loops import typing
from codegen.loops.ir import Local, ScalarArg
from tilejit.array_likes import as_numpy
from tilejit.memory import Array
from tilejit.traced import Recording, Stage, Traced, operand_of


class Shaped(Protocol):
    """An array, plain or tiled."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a function made of its arguments, for their dtypes and ranks.

    names    the arrays that each output is made of
    stages   the reductions, in their order
    bare     for each output the reduction that it is, "" where it is an expression
    simple   whether there are no reductions, and every output is made of all arrays
    """

    outputs: tuple[Any, ...]
    dtypes: tuple[np.dtype[Any], ...]
    several: bool
    names: tuple[frozenset[str], ...]
    stages: tuple[Stage, ...]
    bare: tuple[str, ...]
    simple: bool


def record(python: Callable[..., Any], given: Sequence[Any]) -> Recorded:
    """Call the function once, with stand-ins for elements and for floats.

    Raises:
        KernelError: it does what cannot be recorded, or kernels do not compute in a dtype.
    """
    arrays = {array_name(k): x for k, x in enumerate(given) if isinstance(x, np.ndarray)}
    recording = Recording({name: x.ndim for name, x in arrays.items()})
    made = python(*(_stand_in(array_name(k), x, recording) for k, x in enumerate(given)))
    several = isinstance(made, tuple)
    results = made if several else (made,)
    outputs = tuple(operand_of(each) for each in results)
    if not outputs:
        raise KernelError(f"{python.__name__} returns nothing")
    dtypes = tuple(typing.numpy_dtype(typing.concrete(x.dtype)) for x in outputs)
    names = tuple(x.names if isinstance(x, Traced) else frozenset() for x in results)
    known = {stage.name for stage in recording.stages}
    values = [x.value for x in outputs]
    bare = tuple(x.name if isinstance(x, Local) and x.name in known else "" for x in values)
    wanted = _wanted(recording.stages, names)
    simple = not wanted and all(n <= frozenset() or n == arrays.keys() for n in names)
    return Recorded(outputs, dtypes, several, names, wanted, bare, simple)


def _stand_in(name: str, x: Any, recording: Recording) -> Any:
    """What the function gets for an argument."""
    if isinstance(x, np.ndarray):
        dtype = typing.dtype_name(x.dtype)
        return Traced(Operand(dtype, Local(name, dtype)), frozenset({name}), recording)
    if isinstance(x, float | np.floating):
        scalar = typing.argument(name, x)
        return Traced(
            Operand(scalar.dtype, Local(name, typing.concrete(scalar.dtype))), frozenset(), recording
        )
    return x


def recording_key(given: Sequence[Any]) -> tuple[Any, ...]:
    """What a recording hangs on: dtypes and ranks, and what numbers there are but floats.

    Floats are arguments of the kernel; integers and booleans stand in it.
    """
    return tuple([(x.dtype, x.ndim) if isinstance(x, np.ndarray) else _constant(x) for x in given])


def _constant(value: Any) -> Any:
    return type(value) if isinstance(value, float | np.floating) else (type(value), value)


def _wanted(stages: Sequence[Stage], outputs: Sequence[frozenset[str]]) -> tuple[Stage, ...]:
    """The reductions that results hang on."""
    names = frozenset[str]().union(*outputs)
    kept: list[Stage] = []
    for stage in reversed(stages):
        if stage.name in names:
            kept.append(stage)
            names |= stage.names
    return tuple(reversed(kept))


def is_number(value: Any) -> bool:
    """Whether an argument is a number, of Python or of NumPy."""
    return isinstance(value, bool | int | float | np.generic)


def plain(x: Any, what: str) -> Array:
    """The argument as an array whose elements mean just what they are.

    Raises:
        TypeError: it has a mask, or rules of its own.
    """
    if isinstance(x, np.ndarray) and not _is_plain(x):
        raise TypeError(f"{what} is a {type(x).__name__}; expressions take plain arrays of NumPy")
    return np.asarray(as_numpy(x))


def refuse_other_outputs(out: Any) -> None:
    """Results go to plain arrays.

    Raises:
        TypeError: it is no array, or has a mask or rules of its own.
    """
    if not _is_plain(out):
        raise TypeError(f"out is an array, plain or tiled, not {type(out).__name__}")


def _is_plain(x: Any) -> bool:
    return type(x) in (np.ndarray, np.memmap)


def array_name(k: int) -> str:
    """What an argument is called in kernels, by its place."""
    return f"x{k}"


def broadcast_shape(arrays: Iterable[Shaped]) -> tuple[int, ...]:
    """The shape that arrays, plain or tiled, have together.

    Raises:
        LayoutError: they do not broadcast.
    """
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError as error:
        raise LayoutError(f"the arguments do not broadcast: {error}") from None


def scalars_of(given: Sequence[Any]) -> list[ScalarArg]:
    """The floats among the arguments, as arguments of kernels."""
    return [
        ScalarArg(array_name(k), "f64" if isinstance(x, float) else typing.dtype_name(x.dtype))
        for k, x in enumerate(given)
        if isinstance(x, float | np.floating)
    ]


def numbers_of(given: Sequence[Any]) -> list[Any]:
    """The floats among the arguments."""
    return [x for x in given if isinstance(x, float | np.floating)]
