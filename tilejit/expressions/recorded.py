"""Record a function of elements by calling it once for arguments of certain dtypes and ranks."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from codegen import (
    Cache,
    KernelError,
    LayoutError,
    Local,
    Operand,
    ScalarArg,
    TilejitError,
    dataclass,
    dtypes,
    pointed,
)
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.expressions.memory_orders import Form
from tilejit.expressions.recording import Part, Recording, Stage
from tilejit.expressions.traced import Integer, Traced, operand_of
from tilejit.kernels.direct_loops import Number, function_name

MOST_DIMENSIONS = 32
"""The most dimensions of an argument."""

OWN_NAME = re.compile(
    r"([ijklmnpq]|i\d+)(_block)?|panel|where|(out|new|near|far|rest|error|total|old)_?\d*|[rx]\d+"
    r"|.*_[a-z]+\d+"
)
"""The names of a kernel's loops, results, locals and converted integers, which arguments do not get."""

NO_ARRAYS = "expected an array among the arguments; elementwise computes over arrays"
"""The error of a call without arrays."""


class Shaped(Protocol):
    """An array, plain or tiled."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions in elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A function's recorded expressions, for arguments of certain dtypes and ranks.

    arguments     the names of the arguments in kernels
    names         the arrays that each output depends on
    stages        the reductions, in order
    bare          the name of each output that is itself a reduction; "" for an expression
    simple        whether there are no reductions, and every output depends on all arrays
    numbers       the arguments of the kernels that are numbers
    forms         the memory orders of the expressions, by number
    output_forms  the number of each output's form; None if it depends on no array
    """

    arguments: tuple[str, ...]
    outputs: tuple[Any, ...]
    dtypes: tuple[np.dtype[Any], ...]
    several: bool
    names: tuple[frozenset[str], ...]
    stages: tuple[Stage, ...]
    bare: tuple[str, ...]
    simple: bool
    numbers: tuple[Number, ...]
    forms: tuple[Form, ...]
    output_forms: tuple[int | None, ...]

    @property
    def scalars(self) -> list[ScalarArg]:
        """The arguments of kernels that are numbers."""
        return [number.scalar for number in self.numbers]

    def arrays(self, given: Sequence[Any]) -> dict[str, Array]:
        """The arrays among the arguments, by name."""
        named = zip(self.arguments, given, strict=True)
        return {name: x for name, x in named if isinstance(x, np.ndarray)}

    def inputs(
        self, given: Sequence[Any], arrays: Mapping[str, Array] | None, which: Sequence[int]
    ) -> dict[str, Array]:
        """The arrays that all outputs depend on, or those in `arrays`, which includes reductions."""
        if arrays is None:
            return self.arrays(given)
        used = frozenset[str]().union(*(self.names[k] for k in which))
        return {name: x for name, x in arrays.items() if name in used}

    def values(self, given: Sequence[Any]) -> list[Any]:
        """The numbers among the arguments as kernels take them, with integers in the dtype of their use.

        Raises:
            OverflowError: an integer does not fit that dtype.
        """
        return [_value(given[number.at], number.scalar.dtype) for number in self.numbers]


def record(python: Callable[..., Any], given: Sequence[Any], *, known: bool) -> Recorded:
    """Call the function once, with stand-ins for elements, floats, and integers that are not `known`.

    Raises:
        KernelError: an operation cannot be recorded, or kernels do not compute in a dtype.
        Exception: the function's own error for a stand-in of an integer whose value it needs.
    """
    arguments = _argument_names(python, len(given))
    ranks = {name: x.ndim for name, x in zip(arguments, given, strict=True) if isinstance(x, np.ndarray)}
    recording = Recording(dict(ranks))
    named = zip(arguments, given, strict=True)
    stand_ins = [_stand_in(k, name, x, recording, known=known) for k, (name, x) in enumerate(named)]
    made = _called(python, stand_ins)
    if recording.unknown:
        raise recording.needed()
    several = isinstance(made, tuple)
    results = made if several else (made,)
    outputs = tuple(operand_of(each) for each in results)
    if not outputs:
        raise KernelError(f"{function_name(python)}: expected at least one result, got an empty tuple")
    result_dtypes = tuple(dtypes.numpy_dtype(dtypes.concrete(x.dtype)) for x in outputs)
    names = tuple(x.names if isinstance(x, Traced) else frozenset() for x in results)
    reductions = {stage.name for stage in recording.stages}
    values = [x.value for x in outputs]
    bare = tuple(x.name if isinstance(x, Local) and x.name in reductions else "" for x in values)
    wanted = _wanted(recording.stages, names)
    simple = not wanted and all(n == ranks.keys() for n in names)
    output_forms = tuple(x.form if isinstance(x, Traced) else None for x in results)
    numbers, forms = tuple(recording.numbers.values()), tuple(recording.forms.made)
    return Recorded(
        arguments, outputs, result_dtypes, several, names, wanted, bare, simple, numbers, forms, output_forms
    )


class Recordings:
    """A function's recordings for each combination of dtypes and ranks; the latest ones are cached."""

    def __init__(self, python: Callable[..., Any]) -> None:
        self._python = python
        self._made: Cache[tuple[Any, ...], Recorded | None] = Cache()

    def __len__(self) -> int:
        return len(self._made)

    def of(self, given: Sequence[Any]) -> tuple[Recorded, list[Any]]:
        """The recording for such arguments, and the numbers for its kernels.

        Integers are arguments of kernels if the function permits it. Otherwise, or if one does not fit its
        dtype, the kernel is compiled for their values.

        Raises:
            KernelError: as `record`.
        """
        key = recording_key(given, known=False)
        found = self._made.get(key, "unknown")
        if isinstance(found, str):
            found = self._made.keep(key, self._freely(given))
        if found is not None:
            try:
                return found, found.values(given)
            except OverflowError:
                pass
        key = "known", *recording_key(given, known=True)
        made = self._made.get(key)
        if made is None:
            made = record(self._python, given, known=True)
            self._made.keep(key, made)
        return made, made.values(given)

    def _freely(self, given: Sequence[Any]) -> Recorded | None:
        """The recording for any integers; None if the function needs their values."""
        if not any(map(is_integer, given)):
            return record(self._python, given, known=True)
        try:
            return record(self._python, given, known=False)
        except Exception:  # the function's own error, so call it again with the integers
            return None


def _called(python: Callable[..., Any], stand_ins: Sequence[Any]) -> Any:
    """Call the function; errors of stand-ins show the line that caused them."""
    try:
        return python(*stand_ins)
    except TilejitError as error:
        error.args = (_located(str(error), error.__traceback__),)
        raise


def _located(message: str, at: TracebackType | None) -> str:
    """The message with the last line outside TileJIT and NumPy, and a caret."""
    last = None
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__", ""))
        last = last if module.partition(".")[0] in ("tilejit", "codegen", "numpy") else at
        at = at.tb_next
    if last is None:
        return message
    code = last.tb_frame.f_code
    text = linecache.getline(code.co_filename, last.tb_lineno, last.tb_frame.f_globals).rstrip()
    if not text:
        return message
    positions = list(code.co_positions())[last.tb_lasti // 2]
    column = positions[2] if positions[0] == last.tb_lineno else None
    cause, *details = message.split("\n")
    text_of_error = "\n".join([cause, *(line.removeprefix("  ") for line in details)])
    return pointed(text_of_error, code.co_filename, last.tb_lineno, text, column or 0)


def _stand_in(k: int, name: str, x: Any, recording: Recording, *, known: bool) -> Any:
    """The stand-in for an argument."""
    if isinstance(x, np.ndarray):
        dtype = dtypes.dtype_name(x.dtype, f"argument {k}")
        operand = Operand(dtype, Local(name, dtype))
        return Traced(Part(operand, frozenset({name}), recording.forms.array(name)), recording)
    if isinstance(x, float | np.floating):
        number = recording.number(k, name, dtypes.argument(name, x).dtype)
        return Traced(Part(number, frozenset(), None), recording)
    return Integer(name, k, x, recording) if is_integer(x) and not known else x


def recording_key(given: Sequence[Any], *, known: bool) -> tuple[Any, ...]:
    """The key of a recording: dtypes and ranks, and the numbers that are constants of the kernel.

    Floats are arguments of the kernel, and so are integers unless their values must be `known`; others are
    constants.
    """
    return tuple(
        [(x.dtype, x.ndim) if isinstance(x, np.ndarray) else _number_key(x, known=known) for x in given]
    )


def _number_key(value: Any, *, known: bool) -> Any:
    free = isinstance(value, float | np.floating) or (is_integer(value) and not known)
    return type(value) if free else (type(value), value)


def is_integer(value: Any) -> bool:
    """Whether an argument is an integer that kernels take as an argument: not a bool or a subclass."""
    return type(value) is int or isinstance(value, np.integer)


def _value(value: Any, dtype: str) -> Any:
    """A number in a kernel's dtype; floats stay as they are until the kernel's argument table is written."""
    if not is_integer(value):
        return value
    with np.errstate(all="ignore"):
        return dtypes.numpy_dtype(dtype).type(value)


def _wanted(stages: Sequence[Stage], outputs: Sequence[frozenset[str]]) -> tuple[Stage, ...]:
    """The reductions that results depend on, and those that check for errors."""
    names = frozenset[str]().union(*outputs, (x.name for x in stages if x.how == "exponent"))
    kept: list[Stage] = []
    for stage in reversed(stages):
        if stage.name in names:
            kept.append(stage)
            names |= stage.names
    return tuple(reversed(kept))


def is_number(value: Any) -> bool:
    """Whether an argument is a Python or NumPy number."""
    return isinstance(value, bool | int | float | np.generic)


def plain(x: Any, what: str) -> Array:
    """The argument as an array with plain elements in the machine's byte order.

    Raises:
        KernelError: the argument has more than MOST_DIMENSIONS dimensions.
        TypeError: it is an instance of a subclass, such as a masked array.
    """
    if type(x) is np.ndarray and x.dtype.isnative and x.ndim <= MOST_DIMENSIONS:
        return x
    if isinstance(x, np.ndarray) and not is_plain(x):
        raise TypeError(f"{what}: expected a plain NumPy array, got {type(x).__name__}")
    array = np.asarray(as_numpy(x))
    if array.ndim > MOST_DIMENSIONS:
        raise KernelError(
            f"{what}: expected at most {MOST_DIMENSIONS} dimensions, got {array.ndim}\n"
            "  pass a view with fewer dimensions, x.reshape(…)"
        )
    if array.dtype.isnative:
        return array
    # Convert one element along each broadcast dimension, so that strides of 0 stay 0.
    held = array[tuple(slice(None) if step else slice(1) for step in array.strides)]
    return np.broadcast_to(held.astype(array.dtype.newbyteorder("=")), array.shape)


def check_mask(mask: Any) -> None:
    """Check that the mask of `where=` is boolean.

    Raises:
        TypeError: it is not.
    """
    if mask.dtype != np.bool_:
        raise TypeError(f"where: expected an array of bool, got {mask.dtype}")


def is_plain(x: Any) -> bool:
    """Whether an object is an array without a subclass's own behavior."""
    return type(x) in (np.ndarray, np.memmap)


def _argument_names(python: Callable[..., Any], count: int) -> tuple[str, ...]:
    """The names of the arguments in kernels: those of the parameters, or x0, x1, … where these do not fit.

    lambda a, b: … -> a, b    lambda a, i: … -> a, x1    lambda a, *more: … -> a, x1, x2
    """
    try:
        parameters = [*inspect.signature(python).parameters.values()]
    except (TypeError, ValueError):  # a function in C
        parameters = []
    named = (x.name for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD))
    fitting = [f"x{k}" if OWN_NAME.fullmatch(name) else name for k, name in enumerate(named)]
    return tuple((*fitting, *(f"x{k}" for k in range(len(fitting), count)))[:count])


def broadcast_shape(arrays: Iterable[Shaped]) -> tuple[int, ...]:
    """The common shape of arrays, plain or tiled.

    Raises:
        LayoutError: they do not broadcast.
    """
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError as error:
        raise LayoutError(f"the arguments do not broadcast: {error}") from None
