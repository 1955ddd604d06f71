"""Calls from Python that machine code answers: it checks the objects it is given, and calls kernels.

What is read of objects, and where, stands in `direct_fields`. Nothing of them is written but by kernels and
by functions of Python and NumPy. Where the arguments are not those of an entry, the object's way in Python is
called with what came.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from codegen.ir.copies.tiles import LINE_BYTES
from codegen.simd import direct_fields as words
from codegen.simd.register.calls import call_kernel
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I32, I64, pointer, statement


def _function(arguments: int) -> Any:
    """An intrinsic that calls a C function by its address; all it takes and gives are words."""
    kind = ir.FunctionType(I64, [I64] * arguments)
    names = [f"a{k}" for k in range(arguments)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), list(args[1:]))

    namespace = {"signature": types.int64(*[types.int64] * (arguments + 1)), "generate": generate}
    head = f"def ask_{arguments}({', '.join(['typing', 'function', *names])}):"
    exec(f"{head}\n    return signature, generate\n", namespace)
    return intrinsic(namespace[f"ask_{arguments}"])


_ask_0, _ask_1, _ask_2, _ask_3, _ask_4, _ask_8 = (_function(n) for n in (0, 1, 2, 3, 4, 8))


def _tell(builder: Any, function: Any, argument: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [I64])
    builder.call(builder.inttoptr(function, kind.as_pointer()), [argument])


_tell_1 = statement(_tell, 2, "tell_1")
"""tell_1(function, word): a C function that gives nothing, and may take nothing."""


def _reader(name: str, kind: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(pointer(builder, builder.add(*args), kind))
        return value if kind == I64 else builder.sext(value, I64)

    namespace = {"signature": types.int64(types.int64, types.int64), "generate": generate}
    exec(f"def {name}(typing, address, offset):\n    return signature, generate\n", namespace)
    return intrinsic(namespace[name])


_field, _field_32 = _reader("field", I64), _reader("field_32", I32)


def _store(builder: Any, address: Any, index: Any, value: Any) -> None:
    place = builder.add(address, builder.shl(index, ir.Constant(I64, 3)))
    builder.store(value, pointer(builder, place, I64))


_INT = 0xFFFFFFFF
"""The half of a word in which C gives an int."""

_set_word = statement(_store, 3, "set_word")


def _room_of(typing: Any) -> Any:
    """On the stack: the words of a table, one for a result, and what the arguments' first fields hold."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(I64, words.MOST_TABLE + 1 + words.MOST_ARGUMENTS))
        return builder.ptrtoint(room, I64)

    return types.int64(), generate


_room: Any = intrinsic(_room_of)


@for_kernels
def _word(address, index):
    return _field(address, words.WORD * index)


@for_kernels
def _is_array(array, wanted, array_type):
    """Whether it is an array, of no other class, of just the layout that is wanted."""
    if _field(array, words.TYPE) != array_type or _field(array, words.DTYPE) != _word(wanted, words.IDENTITY):
        return False
    rank, flags = _word(wanted, words.ARRAY_RANK), _word(wanted, words.ARRAY_FLAGS)
    if _field_32(array, words.RANK) != rank or _field_32(array, words.FLAGS) & flags != flags:
        return False
    shape, strides, extents = (
        _field(array, words.SHAPE),
        _field(array, words.STRIDES),
        wanted + words.WORD * words.EXTENTS,
    )
    for k in range(rank):
        if _word(shape, k) != _word(extents, k) or _word(strides, k) != _word(extents, rank + k):
            return False
    return True


@for_kernels
def _are_those(args, count, wanted, head):
    """Where the pairs begin, if all arguments are what an entry wants, else 0."""
    for k in range(count):
        given, kind = _word(args, k), _word(wanted, words.KIND)
        if kind == words.ARRAY:
            if not _is_array(given, wanted, _word(head, words.ARRAY_TYPE)):
                return 0
            wanted += words.WORD * (words.EXTENTS + 2 * _word(wanted, words.ARRAY_RANK))
        else:
            if kind == words.SAME and given != _word(wanted, words.IDENTITY):
                return 0
            if kind != words.SAME and _field(given, words.TYPE) != _word(head, words.FLOAT_TYPE):
                return 0
            wanted += words.WORD * words.PLAIN_WORDS
    return wanted


@for_kernels
def _are_apart(args, pairs, count):
    """Whether each pair of arrays is apart, or one, as it has to be."""
    for k in range(count):
        pair = pairs + words.WORD * words.PAIR_WORDS * k
        far = _field(_word(args, _word(pair, 1)), words.HEAD) - _field(
            _word(args, _word(pair, 0)), words.HEAD
        )
        if _word(pair, 4):
            if far != 0:
                return False
        elif _word(pair, 2) < far and far < _word(pair, 3):
            return False
    return True


@for_kernels
def _fits(args, count, names, entry, head):
    """Where the entry's calls begin, if it is one for these arguments, else 0."""
    if _word(entry, words.ARGUMENTS) != count:
        return 0
    keyword = _word(entry, words.KEYWORD)
    if keyword == 0:
        if names != 0:
            return 0
    elif names == 0 or _field(names, words.HEAD) != 1 or _field(names, words.ITEMS) != keyword:
        return 0
    pairs = _are_those(args, count, entry + words.WORD * words.FIRST_ARGUMENT, head)
    if pairs == 0 or not _are_apart(args, pairs, _word(entry, words.PAIRS)):
        return 0
    return pairs + words.WORD * words.PAIR_WORDS * _word(entry, words.PAIRS)


@for_kernels
def _fresh(entry, head):
    """A new array, 0 where there is none; the base of one that begins on a line is all of its memory."""
    wanted = entry + words.WORD * _word(entry, words.RESULT)
    new, kind, size = (
        _word(head, words.NEW_ARRAY),
        _word(head, words.ARRAY_TYPE),
        words.WORD * words.FRESH_BYTES,
    )
    bytes_dtype, dtype = _word(head, words.BYTES_DTYPE), _word(wanted, words.FRESH_DTYPE)
    rank, shape = _word(wanted, words.FRESH_RANK), wanted + words.WORD * words.FRESH_SHAPE
    if _field(wanted, size) == 0:
        _tell_1(_word(head, words.INCREF), dtype)
        return _ask_8(new, kind, dtype, rank, shape, 0, 0, 0, 0)
    _tell_1(_word(head, words.INCREF), bytes_dtype)
    memory = _ask_8(new, kind, bytes_dtype, 1, wanted + size, 0, 0, 0, 0)
    if memory == 0:
        return 0
    data = (_field(memory, words.HEAD) + LINE_BYTES - 1) & -LINE_BYTES
    _tell_1(_word(head, words.INCREF), dtype)
    out = _ask_8(new, kind, dtype, rank, shape, 0, data, words.FRESH_FLAGS, 0)
    if out == 0:
        _tell_1(_word(head, words.DECREF), memory)
        return 0
    if _ask_2(_word(head, words.SET_BASE), out, memory) & _INT:  # it has let go of the memory
        _tell_1(_word(head, words.DECREF), out)
        return 0
    return out


@for_kernels
def _side(places, place, offset, results):
    if place == words.NO_SIDE:
        return 0
    if place == words.RESULTS:
        return results
    return _word(places, place) + offset


@for_kernels
def _run(entry, call, room):
    """The kernels, one after another; no object is looked at, since others may have Python's lock."""
    results = room + words.WORD * words.MOST_TABLE
    places = results + words.WORD
    for _ in range(_word(entry, words.CALLS)):
        table, slots = _word(call, words.TABLE), _word(call, words.SLOTS)
        if slots:
            for k in range(_word(call, words.LENGTH)):
                _set_word(room, k, _word(table, k))
            table = room
            for k in range(slots):
                slot = call + words.WORD * (words.FIRST_SLOT + 2 * k)
                _set_word(room, _word(slot, 0), _word(places, _word(slot, 1)))
        src = _side(places, _word(call, words.SRC), _word(call, words.SRC_AT), results)
        dst = _side(places, _word(call, words.DST), _word(call, words.DST_AT), results)
        begin, end = _word(call, words.BEGIN), _word(call, words.END)
        call_kernel(_word(call, words.FUNCTION), src, dst, table, begin, end)
        call += words.WORD * (words.FIRST_SLOT + 2 * slots)


@for_kernels
def _answer(args, entry, head, room, fresh):
    """What the call gives, a new reference."""
    returns = _word(entry, words.RETURNS)
    if returns == words.FRESH:
        return fresh
    if returns == words.NUMBER:
        number = room + words.WORD * words.MOST_TABLE
        return _ask_3(_word(head, words.NEW_SCALAR), number, _word(entry, words.RESULT), 0)
    out = _word(head, words.NONE) if returns == words.NOTHING else _word(args, returns)
    _tell_1(_word(head, words.INCREF), out)
    return out


@for_kernels
def _directly(args, entry, calls, held, head):
    """The entry's calls and what they give; the words stay alive, since asking for memory may run Python."""
    release = _word(head, words.DECREF)
    _tell_1(_word(head, words.INCREF), held)
    out = _computed(args, entry, calls, head)
    _tell_1(release, held)
    return out


@for_kernels
def _computed(args, entry, calls, head):
    """What the entry's calls give; 0, and no error, where there is no memory for it, or a flag is up."""
    fresh, room, watched = 0, _room(), _word(entry, words.WATCHES)
    if _word(entry, words.RETURNS) == words.FRESH:
        fresh = _fresh(entry, head)
        if fresh == 0:
            _tell_1(_word(head, words.CLEAR_ERROR), 0)
            return 0
    places, count = room + words.WORD * (words.MOST_TABLE + 1), _word(entry, words.ARGUMENTS)
    for k in range(count):
        _set_word(places, k, _field(_word(args, k), words.HEAD))
    if fresh:
        _set_word(places, count, _field(fresh, words.HEAD))
    if watched:
        _ask_1(_word(head, words.CLEAR_FLAGS), watched)
    if _word(entry, words.RELEASES):
        state = _ask_0(_word(head, words.SAVE_THREAD))
        _run(entry, calls, room)
        _tell_1(_word(head, words.RESTORE_THREAD), state)
    else:
        _run(entry, calls, room)
    if watched and _ask_1(_word(head, words.TEST_FLAGS), watched) & _INT:
        if fresh:
            _tell_1(_word(head, words.DECREF), fresh)
        return 0
    return _answer(args, entry, head, room, fresh)


@for_kernels
def _by_python(self, args, count, names, head):
    """The way in Python; it may give the object other entries, and the head is gone when it comes back."""
    release, call = _word(head, words.DECREF), _word(head, words.CALL)
    method = _ask_2(_word(head, words.NEW_METHOD), _word(head, words.SLOW), self)
    if method == 0:
        return 0
    out = _ask_4(call, method, args, count, names)
    _tell_1(release, method)
    return out


@for_kernels
def _head_of(held):
    return _field(_field(held, words.ITEMS), words.HEAD)


@for_kernels
def answered(self, args, count, names):
    """What CPython asks of a method: self, the arguments, how many stand in their places, names of others.

    An object whose slot is empty was never made whole: CPython raises a SystemError, as no error was set.
    """
    held = _field(self, words.HEAD)
    if held == 0:
        return 0
    head = _head_of(held)
    entry = head + words.WORD * words.HEAD_WORDS
    given = count + (_field(names, words.HEAD) if names else 0)
    for k in range(_word(head, words.COUNT)):
        calls = _fits(args, given, names, entry, head)
        if calls:
            _set_word(head, words.LAST, k)
            if _word(entry, words.RETURNS) == words.PASSED_ON:
                return _ask_4(_word(head, words.CALL), _word(entry, words.RESULT), args, count, names)
            out = _directly(args, entry, calls, held, head)
            return out if out else _by_python(self, args, count, names, _head_of(_field(self, words.HEAD)))
        entry += words.WORD * _word(entry, words.ENTRY_WORDS)
    return _by_python(self, args, count, names, head)
