"""Native fast paths for objects called from Python: native code checks the arguments.

Once per process, a class's `__call__` is replaced by a C method whose code is compiled and stored like a
kernel's (`simd.direct`). An object of the class holds entries: argument layouts that Python checked before,
and the kernel calls that fit them. Calls that match no entry go through Python, which raises or computes. So
a direct call does only what the Python path would do.

This depends on where CPython and NumPy keep fields. These are read at startup and compared with the values
that Python returns. Every call goes through Python if they differ, if Python has no GIL, or if the system is
not Linux, because nothing was tested elsewhere.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from codegen.runtime import float_flags
from codegen.runtime.kernel import native_address
from codegen.simd import direct_fields as words
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock, hold_in_forks
from codegen.support.lookups import expect
from codegen.support.settings import settings
from codegen.support.versions import is_free_threaded

if TYPE_CHECKING:
    from codegen.runtime.direct_entries import Entry

_NAME = "direct_call"
_SOURCE = f'''"""{_NAME}

for objects of {words.HEAD} bytes before their fields, tuples of {words.ITEMS} before their items
"""

def {_NAME}(self, args, count, names) -> int:
    return answered(self, args, count, names)
'''

_FASTCALL_WITH_KEYWORDS = 0x80 | 0x02
"""METH_FASTCALL | METH_KEYWORDS: takes four words, returns the address of an object."""

_SCALAR, _NEW_FROM_DESCR, _SET_BASE_OBJECT = 60, 94, 282
"""Indices of PyArray_Scalar and others in the table of NumPy's C API, the same in NumPy 1 and 2."""

TESTED_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
"""The versions of CPython on which the tests of direct calls have run."""

MOST_ENTRIES = 8
"""The most entries of an object: native code tries them in turn, about 5 ns each."""

_BYTES_DTYPE = np.dtype(np.uint8)
_entries_lock = RLock()
"""Held while an object gets an entry."""
hold_in_forks(_entries_lock)

_LAST_CALLS = slice(words.LAST, words.HEAD_WORDS)
_FIRST_SLOT, _SLOT_MASK = words.LAST, words.LAST_SLOTS - 1
_PAGE_BITS, _STACK_BITS = words.PAGE_BITS, words.STACK_BITS


class Direct:
    """A class whose objects may be called directly; machine code reads only `_native`.

    It must be the first base, because the slot directly follows the object's head. A class gives its Python
    path two names: `__call__`, which `make_direct` replaces, and `_in_python`.
    """

    __slots__ = ("_native",)

    _native: tuple[Any, ...]
    _in_python: Callable[..., Any]

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        """An object that answers in Python until it gets an entry."""
        self = super().__new__(cls)
        self._answer_none_directly()
        return self

    def __getstate__(self) -> object:
        """The state without `_native`, whose addresses are valid only in this process."""
        return dict(vars(self))

    def _by_name(self) -> str | None:
        """The object's name in its module, or None; a pickle needs only the name, as for functions."""
        name = str(getattr(self, "__qualname__", ""))
        found: Any = sys.modules.get(str(getattr(self, "__module__", "")))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else None

    def _answer_directly(self, entry: Entry | None) -> None:
        """Let native code also answer calls that fit an entry, if it can; the latest entries are kept."""
        kinds = (kind for kind in type(self).__mro__ if "_in_python" in vars(kind))
        owner: Any = expect(kinds, "_in_python", type(self).__mro__)
        if entry is None or not entry.fits or not make_direct(owner):
            return
        if not all(map(holds_in_slots, entry.holders)):
            return
        with _entries_lock, suppress(OverflowError):  # strides beyond any memory: Python refuses such arrays
            numbers, _, known = self._native
            others = [x for x in known[: numbers[words.COUNT]] if x.condition != entry.condition]
            native = _native_of(owner._in_python, (*others, entry)[-MOST_ENTRIES:], self._native)
            # Nothing is called between these statements, so no other thread makes a direct call.
            native[0][_LAST_CALLS] = self._native[0][_LAST_CALLS]
            self._native = native

    def _answer_none_directly(self) -> None:
        """Let every call go through Python again."""
        self._native = _without_entries(type(self)._in_python) if supported() else ()

    def _last_answer(self) -> Entry | None:
        """The entry that answered this thread's last call, or None if Python answered it."""
        native = self._native  # another thread may replace it
        at = _slot_of(native[0]) if native else 0
        number = native[0][at + 1] if at else 0
        return next((x for x in native[2] if id(x) == number), None) if number else None

    def _answered_in_python(self) -> None:
        """Record that native code did not answer this thread's last call."""
        native: tuple[Any, ...] | None = None
        while native is not self._native:  # another thread may replace it before the note is in it
            native = self._native
            at = _slot_of(native[0]) if native and native[2] else 0
            if at:
                native[0][at + 1] = 0


def _native_of(
    in_python: Callable[..., Any], entries: tuple[Entry, ...], before: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """The words, and the objects that they point to.

    Last come the entries of `before` that are replaced: those that answered the last call of a thread, and
    those that still may.
    """
    body = [word for entry in entries for word in entry.words]
    numbers = np.concatenate((_head(), np.array(body, np.int64)))
    numbers[words.SLOW], numbers[words.COUNT] = id(in_python), len(entries)
    replaced: list[Entry] = []
    if before:
        noted = {*before[0][words.LAST + 1 : words.HEAD_WORDS : 2].tolist()}
        still = {id(x) for x in before[2][: before[0][words.COUNT]]}
        current = {id(x) for x in entries}
        replaced = [x for x in before[2] if id(x) in (noted | still) - current]
    return numbers, in_python, (*entries, *replaced)


def _slot_of(numbers: NDArray[np.int64]) -> int:
    """Where machine code notes this thread's last call; 0 if it has answered none."""
    thread, get = get_ident(), numbers.item
    first = (thread >> _PAGE_BITS) + (thread >> _STACK_BITS)
    at = _FIRST_SLOT + 2 * (first & _SLOT_MASK)
    if get(at) == thread:
        return at
    for probe in range(1, words.SLOT_PROBES):
        if not get(at):
            return 0
        at = _FIRST_SLOT + 2 * (first + probe & _SLOT_MASK)
        if get(at) == thread:
            return at
    return 0


@cache
def _without_entries(in_python: Callable[..., Any]) -> tuple[Any, ...]:
    return _native_of(in_python, ())


@cache
def supported() -> bool:
    """Whether this Python and this NumPy keep their fields where machine code looks for them."""
    if sys.platform != "linux" or sys.implementation.name != "cpython" or not settings().direct_calls:
        return False
    if sys.version_info[:2] not in TESTED_PYTHONS:
        return False
    if is_free_threaded():
        return False
    if ctypes.sizeof(ctypes.c_void_p) != words.WORD or sys.byteorder != "little":
        return False
    if np.ndarray.__basicsize__ < words.FLAGS + 4 or float.__basicsize__ != words.HEAD + 8:
        return False
    probe = object.__new__(Direct)
    probe._native = marker = ("x", 2)
    fields = (
        (id(probe) + words.HEAD, id(marker)),
        (id(marker) + words.HEAD, 2),
        (id(marker) + words.ITEMS, id(marker[0])),
        (id(marker) + words.TYPE, id(tuple)),
    )
    number = 0.1
    value = ctypes.c_double.from_address(id(number) + words.HEAD).value
    return all(_word_at(at) == wanted for at, wanted in fields) and value == number and _arrays_fit()


@cache
def holds_in_slots(kind: type) -> bool:
    """Whether the first two slots of a class are where machine code looks for them."""
    probe: object = object.__new__(kind)
    values = [object(), object()]
    for name, value in zip(kind.__slots__, values, strict=True):  # type: ignore[attr-defined]
        setattr(probe, name, value)
    at = id(probe) + words.HEAD
    return [_word_at(at), _word_at(at + words.WORD)] == [*map(id, values)]


def _arrays_fit() -> bool:
    base = np.zeros((5, 7, 3), np.int16)
    views = [base, base[1:, ::2], base[::-1, :, 2], base[0, 0, 0, ...], base[5:], base.T, base.view(">f2")]
    views[3].flags.writeable = False
    return all(_fields_match(view) for view in views)


def _fields_match(array: NDArray[Any]) -> bool:
    """Whether the fields in memory equal the array's attributes."""
    at, dtype, rank = id(array), array.dtype, array.ndim
    if _word_at(at + words.TYPE) != id(np.ndarray) or _word_at(at + words.DTYPE) != id(dtype):
        return False
    narrow = [ctypes.c_int32.from_address(at + field).value for field in (words.RANK, words.FLAGS)]
    if narrow != [rank, array.flags.num] or array.flags.writeable != bool(narrow[1] & words.WRITEABLE):
        return False
    tables = [(_word_at(at + words.SHAPE), array.shape), (_word_at(at + words.STRIDES), array.strides)]
    extents = all((ctypes.c_int64 * rank).from_address(p)[:] == list(n) for p, n in tables) if rank else True
    return extents and _word_at(at + words.HEAD) == array.__array_interface__["data"][0]


def _word_at(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


@cache
def _head() -> NDArray[np.int64]:
    """The words of the head, except those that differ between objects."""
    api = ctypes.pythonapi
    head = [0] * words.HEAD_WORDS
    head[words.NONE], head[words.ARRAY_TYPE], head[words.FLOAT_TYPE] = map(id, (None, np.ndarray, float))
    for index, function in (
        (words.NEW_METHOD, api.PyMethod_New),
        (words.CALL, api.PyObject_Vectorcall),
        (words.INCREF, api.Py_IncRef),
        (words.DECREF, api.Py_DecRef),
        (words.SAVE_THREAD, api.PyEval_SaveThread),
        (words.RESTORE_THREAD, api.PyEval_RestoreThread),
        (words.CLEAR_ERROR, api.PyErr_Clear),
        (words.CLEAR_FLAGS, float_flags.CLEAR_FLAGS),
        (words.TEST_FLAGS, float_flags.TEST_FLAGS),
        (words.THREAD, api.PyThread_get_thread_ident),
        (words.NEW_OBJECT, api.PyType_GenericAlloc),
    ):
        head[index] = _address(function)
    table = _numpy_functions()
    for index, at in (
        (words.NEW_SCALAR, _SCALAR),
        (words.NEW_ARRAY, _NEW_FROM_DESCR),
        (words.SET_BASE, _SET_BASE_OBJECT),
    ):
        head[index] = _word_at(table + words.WORD * at)
    head[words.BYTES_DTYPE] = id(_BYTES_DTYPE)
    return np.array(head, np.int64)


def _address(function: Any) -> int:
    """The address of a C function; 0 for None."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _numpy_functions() -> int:
    """The address of the table of NumPy's C API."""
    try:
        core = import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        core = import_module("numpy.core._multiarray_umath")
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return int(get(("PyCapsule_GetPointer", ctypes.pythonapi))(core._ARRAY_API, None))


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_definitions: dict[type, _MethodDefinition | None] = {}
"""Method definitions of classes with direct calls; None if the machine code could not be built.

CPython keeps a pointer to a definition as long as its class lives.
"""


def make_direct(owner: type[Direct]) -> bool:
    """Let objects of a class be called directly from now on; return whether that is possible."""
    if owner not in _definitions:
        with compiler_lock:
            if owner not in _definitions:
                _definitions[owner] = _define(owner) if supported() else None
    return _definitions[owner] is not None


def is_direct(owner: type[Direct]) -> bool:
    """Whether objects of the class are already called directly."""
    return _definitions.get(owner) is not None


def _define(owner: type[Direct]) -> _MethodDefinition | None:
    try:
        address = native_address(_NAME, _SOURCE)
    except KernelError:
        return None
    doc = _documented(owner._in_python).encode()
    definition = _MethodDefinition(b"__call__", address, _FASTCALL_WITH_KEYWORDS, doc)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    method = new(("PyDescr_NewMethod", ctypes.pythonapi))(owner, ctypes.addressof(definition))
    type.__setattr__(owner, "__call__", method)
    return definition


def _documented(in_python: Callable[..., Any]) -> str:
    """Docstring and signature, in the form that C methods use."""
    signature = inspect.signature(in_python)
    bare = [x.replace(annotation=inspect.Parameter.empty) for x in signature.parameters.values()]
    text = str(inspect.Signature(bare)).replace("(self", "($self", 1)
    return f"__call__{text}\n--\n\n{inspect.getdoc(in_python) or ''}"
