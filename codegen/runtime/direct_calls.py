"""Objects that are called from Python without a way through Python: machine code looks at the arguments.

A class's `__call__` is replaced, once in a process, by a method of C whose code is compiled and stored like a
kernel's (`simd.direct`). An object of the class holds entries: layouts of arguments that were checked in
Python before, and the calls of kernels that are right for them. Whatever is not just as an entry has it goes
the way in Python, which raises or computes; so a direct call does nothing that the other way would not do.

All this hangs on where CPython and NumPy keep fields; they are read at start-up and compared with what Python
says. Where they lie elsewhere, Python has no global lock, or the system is another than Linux, where nothing
of this was tried, every call goes the way in Python.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from codegen.runtime import float_flags
from codegen.runtime.kernel import native_address
from codegen.simd import direct_fields as words
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock
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
"""METH_FASTCALL | METH_KEYWORDS: four words, the address of an object comes back."""

_SCALAR, _NEW_FROM_DESCR, _SET_BASE_OBJECT = 60, 94, 282
"""PyArray_Scalar and the like in the table of NumPy's C API, at the same places in NumPy 1 and 2."""

MOST_ENTRIES = 8
"""Entries of an object: machine code tries them one after another, about 5 ns each."""

_BYTES_DTYPE = np.dtype(np.uint8)


class Direct:
    """A class whose objects may be called directly; `_native` is what machine code reads, and nothing else.

    It comes first among the bases: the slot stands right behind the object's head. A class gives the way in
    Python two names: `__call__`, which `make_direct` replaces, and `_in_python`.
    """

    __slots__ = ("_native",)

    _native: tuple[Any, ...]
    _in_python: Callable[..., Any]

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        """An object that answers in Python until it is told otherwise."""
        self = super().__new__(cls)
        self._answer_none_directly()
        return self

    def __getstate__(self) -> object:
        """What a copy or a pickle has: addresses are this process's own."""
        return dict(vars(self))

    def _by_name(self) -> str | None:
        """The name by which its module has the object, if it has: a pickle says no more, as of functions."""
        name = str(getattr(self, "__qualname__", ""))
        found: Any = sys.modules.get(str(getattr(self, "__module__", "")))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else None

    def _answer_directly(self, entry: Entry | None) -> None:
        """Have machine code answer calls that fit an entry too, where it can; of many the last few."""
        owner: Any = next(kind for kind in type(self).__mro__ if "_in_python" in vars(kind))
        if entry is not None and entry.fits and make_direct(owner):
            others = [x for x in self._native[2] if x.condition != entry.condition]
            entries = (*others, entry)[-MOST_ENTRIES:]
            with suppress(OverflowError):  # strides beyond any memory: Python refuses such arrays
                self._native = _native_of(owner._in_python, entries)

    def _answer_none_directly(self) -> None:
        """Have every call go through Python again."""
        self._native = _without_entries(type(self)._in_python) if supported() else ()

    def _last_answer(self) -> Entry | None:
        """The entry that answered the last call, None where Python did."""
        native = self._native  # another thread may put others in its place
        if not native:
            return None
        at = int(native[0][words.LAST])
        found: Entry | None = native[2][at] if at >= 0 else None
        return found

    def _answered_in_python(self) -> None:
        native = self._native
        if native and native[2]:
            native[0][words.LAST] = -1


def _native_of(in_python: Callable[..., Any], entries: tuple[Entry, ...]) -> tuple[Any, ...]:
    """Words, and all that they point to."""
    numbers = [*_head(), *(word for entry in entries for word in entry.words)]
    numbers[words.SLOW], numbers[words.COUNT], numbers[words.LAST] = id(in_python), len(entries), -1
    return np.array(numbers, np.int64), in_python, entries


@cache
def _without_entries(in_python: Callable[..., Any]) -> tuple[Any, ...]:
    return _native_of(in_python, ())


@cache
def supported() -> bool:
    """Whether this Python and this NumPy keep their fields where machine code looks for them."""
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return False
    if is_free_threaded():
        return False
    if ctypes.sizeof(ctypes.c_void_p) != words.WORD or sys.byteorder != "little":
        return False
    if np.ndarray.__basicsize__ < words.FLAGS + 4 or float.__basicsize__ != words.HEAD + 8:
        return False
    probe = object.__new__(Direct)
    probe._native = marker = ("x", 2)
    places = (
        (id(probe) + words.HEAD, id(marker)),
        (id(marker) + words.HEAD, 2),
        (id(marker) + words.ITEMS, id(marker[0])),
        (id(marker) + words.TYPE, id(tuple)),
    )
    number = 0.1
    value = ctypes.c_double.from_address(id(number) + words.HEAD).value
    return all(_word_at(at) == wanted for at, wanted in places) and value == number and _arrays_fit()


def _arrays_fit() -> bool:
    base = np.zeros((5, 7, 3), np.int16)
    views = [base, base[1:, ::2], base[::-1, :, 2], base[0, 0, 0, ...], base[5:], base.T, base.view(">f2")]
    views[3].flags.writeable = False
    return all(_as_words_say(view) for view in views)


def _as_words_say(array: NDArray[Any]) -> bool:
    """Whether reading the object gives what its attributes say."""
    at, dtype, rank = id(array), array.dtype, array.ndim
    if _word_at(at + words.TYPE) != id(np.ndarray) or _word_at(at + words.DTYPE) != id(dtype):
        return False
    narrow = [ctypes.c_int32.from_address(at + field).value for field in (words.RANK, words.FLAGS)]
    if narrow != [rank, array.flags.num] or array.flags.writeable != bool(narrow[1] & words.WRITEABLE):
        return False
    places = [(_word_at(at + words.SHAPE), array.shape), (_word_at(at + words.STRIDES), array.strides)]
    extents = all((ctypes.c_int64 * rank).from_address(p)[:] == list(n) for p, n in places) if rank else True
    return extents and _word_at(at + words.HEAD) == array.__array_interface__["data"][0]


def _word_at(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


@cache
def _head() -> tuple[int, ...]:
    """The head's words, but for those of an object's own."""
    api = ctypes.pythonapi
    head = [0] * words.HEAD_WORDS
    head[words.NONE], head[words.ARRAY_TYPE], head[words.FLOAT_TYPE] = map(id, (None, np.ndarray, float))
    for place, function in (
        (words.NEW_METHOD, api.PyMethod_New),
        (words.CALL, api.PyObject_Vectorcall),
        (words.INCREF, api.Py_IncRef),
        (words.DECREF, api.Py_DecRef),
        (words.SAVE_THREAD, api.PyEval_SaveThread),
        (words.RESTORE_THREAD, api.PyEval_RestoreThread),
        (words.CLEAR_ERROR, api.PyErr_Clear),
        (words.CLEAR_FLAGS, float_flags.CLEAR_FLAGS),
        (words.TEST_FLAGS, float_flags.TEST_FLAGS),
    ):
        head[place] = _address(function)
    table = _numpys_functions()
    for place, at in (
        (words.NEW_SCALAR, _SCALAR),
        (words.NEW_ARRAY, _NEW_FROM_DESCR),
        (words.SET_BASE, _SET_BASE_OBJECT),
    ):
        head[place] = _word_at(table + words.WORD * at)
    head[words.BYTES_DTYPE] = id(_BYTES_DTYPE)
    return tuple(head)


def _address(function: Any) -> int:
    """Where a function of C is; 0 of None."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _numpys_functions() -> int:
    """Where the table of NumPy's C API stands."""
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
"""Classes whose calls are direct, and what CPython keeps a pointer to as long as they live; None where the
machine code could not be built."""


def make_direct(owner: type[Direct]) -> bool:
    """Have objects of a class called directly, from now on; whether that can be."""
    if owner not in _definitions:
        with compiler_lock:
            if owner not in _definitions:
                _definitions[owner] = _define(owner) if supported() else None
    return _definitions[owner] is not None


def is_direct(owner: type[Direct]) -> bool:
    """Whether objects of the class are called directly by now."""
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
    """Docstring and signature, in the form in which methods of C have them."""
    signature = inspect.signature(in_python)
    bare = [x.replace(annotation=inspect.Parameter.empty) for x in signature.parameters.values()]
    text = str(inspect.Signature(bare)).replace("(self", "($self", 1)
    return f"__call__{text}\n--\n\n{inspect.getdoc(in_python) or ''}"
