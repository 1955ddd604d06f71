"""The native fast path for calls from Python: it checks the arguments and calls kernels.

`direct_fields` defines the fields that it reads. Only kernels and functions of Python and NumPy write to
objects. If no entry fits the arguments, the object's Python method gets the call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from codegen.ir.lines import LINE_BYTES
from codegen.simd import direct_fields as fields
from codegen.simd.register.calls import call_kernel
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.intrinsics import statement, typed_routine
from codegen.simd.register.memory import I32, I64, pointer


def _function(arguments: int) -> Any:
    """A routine that calls a C function by address; arguments and result are 64-bit words."""
    kind = ir.FunctionType(I64, [I64] * arguments)

    def emit(builder: Any, function: Any, *words: Any) -> Any:
        return builder.call(builder.inttoptr(function, kind.as_pointer()), words)

    return typed_routine(f"ask_{arguments}", types.int64(*[types.int64] * (arguments + 1)), emit)


_ask_0, _ask_1, _ask_2, _ask_3, _ask_4, _ask_8 = (_function(n) for n in (0, 1, 2, 3, 4, 8))


def _tell(builder: Any, function: Any, argument: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [I64])
    builder.call(builder.inttoptr(function, kind.as_pointer()), [argument])


_tell_1 = statement(_tell, 2, "tell_1")
"""tell_1(function, word): call a C function that returns nothing and may take no argument."""


def _reader(name: str, kind: Any) -> Any:
    def emit(builder: Any, address: Any, offset: Any) -> Any:
        value = builder.load(pointer(builder, builder.add(address, offset), kind))
        return value if kind == I64 else builder.sext(value, I64)

    return typed_routine(name, types.int64(types.int64, types.int64), emit)


_field, _field_32 = _reader("field", I64), _reader("field_32", I32)


def _store(builder: Any, address: Any, index: Any, value: Any) -> None:
    target = builder.add(address, builder.shl(index, ir.Constant(I64, 3)))
    builder.store(value, pointer(builder, target, I64))


_INT = 0xFFFFFFFF
"""The half of a word in which C returns an int."""

_set_word = statement(_store, 3, "set_word")


def _room(builder: Any) -> Any:
    with builder.goto_entry_block():
        words = fields.MOST_TABLE + 1 + fields.MOST_ARGUMENTS + fields.MOST_OPERANDS
        space = builder.alloca(ir.ArrayType(I64, words))
    return builder.ptrtoint(space, I64)


_stack_space = typed_routine("stack_space", types.int64(), _room)
"""Stack space: a table's words, one result, the values of the arguments' first fields, and operands."""


@for_kernels
def _word(address, index):
    return _field(address, fields.WORD * index)


@for_kernels
def _addresses(space):
    """The address of the table of the arguments' first fields, a new array, and the call's own scratch."""
    return space + fields.WORD * (fields.MOST_TABLE + 1)


@for_kernels
def _is_array(array, expected, array_type):
    """Whether it is an array, not of a subclass, with exactly the expected layout."""
    if _field(array, fields.TYPE) != array_type or _field(array, fields.DTYPE) != _word(
        expected, fields.IDENTITY
    ):
        return False
    rank, flags = _word(expected, fields.ARRAY_RANK), _word(expected, fields.ARRAY_FLAGS)
    if _field_32(array, fields.RANK) != rank or _field_32(array, fields.FLAGS) & flags != flags:
        return False
    shape, strides, extents = (
        _field(array, fields.SHAPE),
        _field(array, fields.STRIDES),
        expected + fields.WORD * fields.EXTENTS,
    )
    for k in range(rank):
        if _word(shape, k) != _word(extents, k) or _word(strides, k) != _word(extents, rank + k):
            return False
    return True


@for_kernels
def _are_those(args, count, expected, head, addresses):
    """The address of the entry's pairs if all arguments are as expected, else 0.

    `addresses` gets the first field of each: where an array's elements are, or a float's value.
    """
    for k in range(count):
        given, kind = _word(args, k), _word(expected, fields.KIND)
        if kind == fields.HOLDER:
            if _field(given, fields.TYPE) != _word(expected, fields.IDENTITY):
                return 0
            if _field(given, fields.HEAD + fields.WORD) != _word(expected, fields.HELD_VALUE):
                return 0
            given = _field(given, fields.HEAD)
            if given == 0:
                return 0
            expected += fields.WORD * fields.HOLDER_WORDS
            kind = _word(expected, fields.KIND)
        if kind == fields.ARRAY:
            if not _is_array(given, expected, _word(head, fields.ARRAY_TYPE)):
                return 0
            expected += fields.WORD * (fields.EXTENTS + 2 * _word(expected, fields.ARRAY_RANK))
        else:
            if kind == fields.SAME and given != _word(expected, fields.IDENTITY):
                return 0
            if kind != fields.SAME and _field(given, fields.TYPE) != _word(head, fields.FLOAT_TYPE):
                return 0
            expected += fields.WORD * fields.PLAIN_WORDS
        _set_word(addresses, k, _field(given, fields.HEAD))
    return expected


@for_kernels
def _are_apart(addresses, pairs, count):
    """Whether each pair of arrays is disjoint or identical, as the entry requires."""
    for k in range(count):
        pair = pairs + fields.WORD * fields.PAIR_WORDS * k
        distance = _word(addresses, _word(pair, 1)) - _word(addresses, _word(pair, 0))
        if _word(pair, 4):
            if distance != 0:
                return False
        elif _word(pair, 2) < distance and distance < _word(pair, 3):
            return False
    return True


@for_kernels
def _fits(args, count, names, entry, head, addresses):
    """The address of the entry's calls if it fits these arguments, else 0."""
    if _word(entry, fields.ARGUMENTS) != count:
        return 0
    keyword = _word(entry, fields.KEYWORD)
    if keyword == 0:
        if names != 0:
            return 0
    elif names == 0 or _field(names, fields.HEAD) != 1 or _field(names, fields.ITEMS) != keyword:
        return 0
    pairs = _are_those(args, count, entry + fields.WORD * fields.FIRST_ARGUMENT, head, addresses)
    if pairs == 0 or not _are_apart(addresses, pairs, _word(entry, fields.PAIRS)):
        return 0
    return pairs + fields.WORD * fields.PAIR_WORDS * _word(entry, fields.PAIRS)


@for_kernels
def _bytes(head, size):
    """A new array of as many bytes as the word at `size` says, or 0 if out of memory."""
    dtype = _word(head, fields.BYTES_DTYPE)
    _tell_1(_word(head, fields.INCREF), dtype)
    return _ask_8(_word(head, fields.NEW_ARRAY), _word(head, fields.ARRAY_TYPE), dtype, 1, size, 0, 0, 0, 0)


@for_kernels
def _first_line(memory):
    """The address of the first line of an array of bytes."""
    return (_field(memory, fields.HEAD) + LINE_BYTES - 1) & -LINE_BYTES


@for_kernels
def _fresh(entry, head):
    """A new array, or 0 if out of memory; the base of a line-aligned one is its entire allocation."""
    expected = entry + fields.WORD * _word(entry, fields.RESULT)
    new, kind, size = (
        _word(head, fields.NEW_ARRAY),
        _word(head, fields.ARRAY_TYPE),
        fields.WORD * fields.FRESH_BYTES,
    )
    dtype = _word(expected, fields.FRESH_DTYPE)
    rank, shape = _word(expected, fields.FRESH_RANK), expected + fields.WORD * fields.FRESH_SHAPE
    if _field(expected, size) == 0:
        _tell_1(_word(head, fields.INCREF), dtype)
        return _ask_8(new, kind, dtype, rank, shape, 0, 0, 0, 0)
    memory = _bytes(head, expected + size)
    if memory == 0:
        return 0
    data = _first_line(memory)
    _tell_1(_word(head, fields.INCREF), dtype)
    out = _ask_8(new, kind, dtype, rank, shape, 0, data, fields.FRESH_FLAGS, 0)
    if out == 0:
        _tell_1(_word(head, fields.DECREF), memory)
        return 0
    if _ask_2(_word(head, fields.SET_BASE), out, memory) & _INT:  # it has released the memory
        _tell_1(_word(head, fields.DECREF), out)
        return 0
    return out


@for_kernels
def _run(entry, call, space):
    """Run the kernels in order, without reading any object: other threads may hold the GIL.

    Return whether a kernel has refused the values of the arguments; the kernels after it do not run.
    """
    results, addresses = space + fields.WORD * fields.MOST_TABLE, _addresses(space)
    refusing = _word(entry, fields.REFUSES)
    if refusing:
        _set_word(results, 0, 0)
    operands, own = addresses + fields.WORD * fields.MOST_ARGUMENTS, 0
    if _word(entry, fields.ROOM):
        own = _word(addresses, _word(entry, fields.ARGUMENTS) + 1)
    for number in range(_word(entry, fields.CALLS)):
        function, scratch = _word(call, fields.FUNCTION), own + _word(call, fields.SCRATCH)
        table, length = _word(call, fields.TABLE), _word(call, fields.LENGTH)
        begin, end = _word(call, fields.BEGIN), _word(call, fields.END)
        count, slots = _word(call, fields.OPERANDS), _word(call, fields.SLOTS)
        call += fields.WORD * fields.FIRST_OPERAND
        for k in range(count):
            position = _word(call, 0)
            operand = results if position == fields.RESULTS else _word(addresses, position) + _word(call, 1)
            _set_word(operands, k, operand)
            call += 2 * fields.WORD
        if slots:
            for k in range(length):
                _set_word(space, k, _word(table, k))
            table = space
            for _ in range(slots):
                _set_word(space, _word(call, 0), _word(addresses, _word(call, 1)))
                call += 2 * fields.WORD
        call_kernel(function, operands, scratch, table, begin, end)
        if number < refusing and _word(results, 0) != 0:
            return True
    return False


@for_kernels
def _answer(args, entry, head, space, fresh):
    """The result of the call, a new reference."""
    returns = _word(entry, fields.RETURNS)
    if returns == fields.FRESH:
        return fresh
    if returns == fields.NUMBER:
        number = space + fields.WORD * fields.MOST_TABLE
        return _ask_3(_word(head, fields.NEW_SCALAR), number, _word(entry, fields.RESULT), 0)
    out = _word(head, fields.NONE) if returns == fields.NOTHING else _word(args, returns)
    _tell_1(_word(head, fields.INCREF), out)
    return out


@for_kernels
def _held(array, entry, head):
    """A new holder of the array, whose reference it takes; 0, with no error set, if out of memory."""
    value = _word(entry, fields.HOLDER_VALUE)
    holder = _ask_2(_word(head, fields.NEW_OBJECT), _word(entry, fields.HOLDER_TYPE), 0)
    if holder == 0:
        _tell_1(_word(head, fields.CLEAR_ERROR), 0)
        _tell_1(_word(head, fields.DECREF), array)
        return 0
    _tell_1(_word(head, fields.INCREF), value)
    _set_word(holder + fields.HEAD, 0, array)
    _set_word(holder + fields.HEAD, 1, value)
    return holder


@for_kernels
def _directly(args, entry, calls, held, head, space):
    """Run the entry's calls. A reference keeps `held` alive, because allocation may run Python code."""
    release = _word(head, fields.DECREF)
    _tell_1(_word(head, fields.INCREF), held)
    out = _computed(args, entry, calls, head, space)
    if out and _word(entry, fields.HOLDER_TYPE):
        out = _held(out, entry, head)
    _tell_1(release, held)
    return out


@for_kernels
def _computed(args, entry, calls, head, space):
    """The result of the entry's calls.

    0, with no error set, if out of memory, if a watched flag is set, or if a kernel refuses the values.
    """
    fresh, room, watched = 0, 0, _word(entry, fields.WATCHES)
    addresses, count = _addresses(space), _word(entry, fields.ARGUMENTS)
    if _word(entry, fields.RETURNS) == fields.FRESH:
        fresh = _fresh(entry, head)
        if fresh == 0:
            _tell_1(_word(head, fields.CLEAR_ERROR), 0)
            return 0
        _set_word(addresses, count, _field(fresh, fields.HEAD))
    if _word(entry, fields.ROOM):
        room = _bytes(head, entry + fields.WORD * fields.ROOM)
        if room == 0:
            _tell_1(_word(head, fields.CLEAR_ERROR), 0)
            if fresh:
                _tell_1(_word(head, fields.DECREF), fresh)
            return 0
        _set_word(addresses, count + 1, _first_line(room))
    if watched:
        _ask_1(_word(head, fields.CLEAR_FLAGS), watched)
    if _word(entry, fields.RELEASES):
        state = _ask_0(_word(head, fields.SAVE_THREAD))
        refused = _run(entry, calls, space)
        _tell_1(_word(head, fields.RESTORE_THREAD), state)
    else:
        refused = _run(entry, calls, space)
    if room:
        _tell_1(_word(head, fields.DECREF), room)
    if refused or (watched and _ask_1(_word(head, fields.TEST_FLAGS), watched) & _INT):
        if fresh:
            _tell_1(_word(head, fields.DECREF), fresh)
        return 0
    return _answer(args, entry, head, space, fresh)


@for_kernels
def _by_python(self, args, count, names, head):
    """Call the Python method. It may replace the entries, so the head is invalid when it returns."""
    release, call = _word(head, fields.DECREF), _word(head, fields.CALL)
    method = _ask_2(_word(head, fields.NEW_METHOD), _word(head, fields.SLOW), self)
    if method == 0:
        return 0
    out = _ask_4(call, method, args, count, names)
    _tell_1(release, method)
    return out


@for_kernels
def _note_last(head, number):
    """Record the number of the entry that answers this thread's call."""
    thread = _ask_0(_word(head, fields.THREAD))
    first, slot = (thread >> fields.PAGE_BITS) + (thread >> fields.STACK_BITS), 0
    for probe in range(fields.SLOT_PROBES):
        slot = fields.LAST + 2 * ((first + probe) & (fields.LAST_SLOTS - 1))
        found = _word(head, slot)
        if found == thread or found == 0:
            break
    _set_word(head, slot, thread)
    _set_word(head, slot + 1, number)


@for_kernels
def _head_of(held):
    return _field(_field(held, fields.ITEMS), fields.HEAD)


@for_kernels
def answered(self, args, count, names):
    """A METH_FASTCALL | METH_KEYWORDS method: self, arguments, number of positional ones, keyword names.

    An object with an empty slot was never initialized: CPython raises a SystemError, as no error was set.
    """
    held = _field(self, fields.HEAD)
    if held == 0:
        return 0
    head, space = _head_of(held), _stack_space()
    entry = head + fields.WORD * fields.HEAD_WORDS
    given = count + (_field(names, fields.HEAD) if names else 0)
    for _ in range(_word(head, fields.COUNT)):
        calls = _fits(args, given, names, entry, head, _addresses(space))
        if calls:
            _note_last(head, _word(entry, fields.ENTRY))
            if _word(entry, fields.RETURNS) == fields.PASSED_ON:
                return _ask_4(_word(head, fields.CALL), _word(entry, fields.RESULT), args, count, names)
            out = _directly(args, entry, calls, held, head, space)
            return out if out else _by_python(self, args, count, names, _head_of(_field(self, fields.HEAD)))
        entry += fields.WORD * _word(entry, fields.ENTRY_WORDS)
    return _by_python(self, args, count, names, head)
