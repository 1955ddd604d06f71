"""Replace NumPy's copying routines with TileJIT's, for code that cannot be edited."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from codegen import compiler_lock, hold_in_forks
from tilejit.arrays import numpy_originals
from tilejit.copies.shortcuts import forget_all
from tilejit.copies.sizes import SIZES, are_small, is_small
from tilejit.numpy_api.along_axis import put_along_axis, take_along_axis
from tilejit.numpy_api.copying import ascontiguousarray, asfortranarray
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.joining import concatenate, stack
from tilejit.numpy_api.padding import pad
from tilejit.numpy_api.putting import put
from tilejit.numpy_api.taking import take


def _is_small_or_takes(x: Any) -> bool:
    """Whether it is small, or another type whose `take` method NumPy would call, such as a tensor."""
    return is_small(x) or (not isinstance(x, np.ndarray) and hasattr(x, "take"))


def _is_not_large(x: Any) -> bool:
    """Whether it is small, or another type, which may have methods that NumPy would call."""
    return type(x) is not np.ndarray or is_small(x)


_OURS: dict[Callable[..., Any], Callable[[Any], bool]] = {
    copyto: is_small,
    ascontiguousarray: is_small,
    asfortranarray: is_small,
    concatenate: are_small,
    stack: are_small,
    pad: is_small,
    take: _is_small_or_takes,
    put: _is_not_large,
    take_along_axis: _is_not_large,
    put_along_axis: _is_not_large,
}
"""The routines to replace, each with the test of the first argument that leaves a call to NumPy."""


class _Inside(threading.local):
    """Whether this thread is inside a TileJIT routine, whose own calls go to NumPy's routines."""

    now = False


_inside = _Inside()


def _in_place_of(
    original: Callable[..., Any], ours: Callable[..., Any], leaves_to_numpy: Callable[[Any], bool]
) -> Callable[..., Any]:
    """The replacement of a NumPy routine: TileJIT's, or NumPy's for some arguments and nested calls."""

    @wraps(original)
    def routine(*args: Any, **kwargs: Any) -> Any:
        if (args and leaves_to_numpy(args[0]) and "threads" not in kwargs) or _inside.now:
            return original(*args, **kwargs)
        _inside.now = True
        try:
            return ours(*args, **kwargs)
        finally:
            _inside.now = False

    # The implementation behind NumPy's dispatcher has the signature that inspect reads.
    routine.__wrapped__ = getattr(original, "__wrapped__", original)
    return routine


_ORIGINALS = {ours.__name__: getattr(numpy_originals, f"numpy_{ours.__name__}") for ours in _OURS}
_ACCELERATED = {
    ours.__name__: _in_place_of(_ORIGINALS[ours.__name__], ours, leaves_to_numpy)
    for ours, leaves_to_numpy in _OURS.items()
}

_lock = threading.Lock()
hold_in_forks(_lock)
_open: dict[object, int | None] = {}
"""`smallest` of the open `with` blocks, and of permanent replacements, in all threads, the latest last."""
_outside = SIZES.small_elements
"""The threshold before the first of them."""
_imports = 0
"""The number of Numba modules that are being imported within them."""


class accelerate:  # noqa: N801 - used as a function: `with accelerate():`
    """Replace ten NumPy routines with TileJIT's within a `with` block.

    >>> original = np.ascontiguousarray
    >>> with tilejit.accelerate():
    ...     np.ascontiguousarray is original
    False
    >>> np.ascontiguousarray is original
    True

    The routines are copyto, ascontiguousarray, asfortranarray, concatenate, stack, pad, take, put,
    take_along_axis and put_along_axis.

    Blocks may be nested, and several threads may open blocks at once; NumPy's own routines return when the
    last block exits. A routine that other code has replaced is left alone. Only calls by name in `numpy`
    change: methods such as `x.T.copy()` and names imported from `numpy` before still refer to NumPy's own
    functions.

    The replacements are Python functions that also take `threads=`. Types that look up routines in
    `__array_function__` receive NumPy's own routine, which differs from `np.concatenate` within the block.
    Within the block, a routine that was imported before cannot be pickled.

    Args:
        permanent: True replaces the routines at once and for good, for instance for a test run.
        smallest: the fewest elements that a kernel copies, for all threads, until the block exits. None keeps
            the current number. The most recently entered block wins.

    Raises:
        TypeError: `smallest` is not an integer.
        ValueError: `smallest` is negative.
    """

    def __init__(self, *, permanent: bool = False, smallest: int | None = None) -> None:
        if smallest is not None:
            if isinstance(smallest, bool) or not isinstance(smallest, int | np.integer):
                raise TypeError(f"smallest: expected a number of elements, got {type(smallest).__name__}")
            if smallest < 0:
                raise ValueError(f"smallest={smallest} is negative\n  0 lets kernels make every copy")
        self._smallest = None if smallest is None else int(smallest)
        self._opened: list[object] = []
        if permanent:
            self.__enter__()

    def __enter__(self) -> accelerate:
        global _outside
        # NumPy imports it lazily, and Numba needs it complete: no kernel can be compiled during its import.
        with compiler_lock:
            import numpy.random  # noqa: F401

        with _lock:
            if not _open:
                _outside = SIZES.small_elements
            block = object()
            _open[block] = self._smallest
            self._opened.append(block)
            _set_smallest()
            if len(_open) == 1:
                if not _imports:
                    _replace(_ORIGINALS, _ACCELERATED)
                sys.meta_path.insert(0, _numba_sees_numpy)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            if not self._opened:
                return
            del _open[self._opened.pop()]
            _set_smallest()
            if not _open:
                _replace(_ACCELERATED, _ORIGINALS)
                if _numba_sees_numpy in sys.meta_path:
                    sys.meta_path.remove(_numba_sees_numpy)


class _NumbaSeesNumPy(importlib.abc.MetaPathFinder):
    """Imports Numba's modules with NumPy's own routines in place, because Numba keeps tables of them.

    Many modules are only imported to compile the first function, which may be one of TileJIT's kernels.
    """

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a Numba module; None for all others."""
        if name.partition(".")[0] != "numba":
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _NumbaLoader(spec.loader)
        return spec


class _NumbaLoader(importlib.abc.Loader):
    """Runs a module with its own loader, with NumPy's own routines in place."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Create the module with its own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; afterwards it no longer refers to this loader."""
        global _imports
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with _lock:
            _imports += 1
            _replace(_ACCELERATED, _ORIGINALS)
        try:
            self._loader.exec_module(module)
        finally:
            with _lock:
                _imports -= 1
                if _open and not _imports:
                    _replace(_ORIGINALS, _ACCELERATED)


_numba_sees_numpy = _NumbaSeesNumPy()


def _set_smallest() -> None:
    """Set the threshold of the latest open block, otherwise the one from before all blocks."""
    requested = [smallest for smallest in _open.values() if smallest is not None]
    now = requested[-1] if requested else _outside
    if now != SIZES.small_elements:
        SIZES.small_elements = now
        forget_all()


def _replace(old: dict[str, Callable[..., Any]], new: dict[str, Callable[..., Any]]) -> None:
    """Replace old routines by new ones; other code's replacements stay."""
    for name, routine in new.items():
        if getattr(np, name) is old[name]:
            setattr(np, name, routine)
