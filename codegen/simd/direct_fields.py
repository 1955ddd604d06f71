"""The ABI of direct calls: the fields that machine code reads from an object and from its arguments.

An object that is called directly holds a tuple in its first slot. The tuple holds an array of 64-bit fields:
a head, then one entry for each kind of arguments. `direct_calls` writes them, and `simd.direct` reads them.
"""

from __future__ import annotations

WORD = 8

HEAD = object.__basicsize__
"""Bytes before an object's first field: an array's data, a float's value, a tuple's length, a slot."""

TYPE = HEAD - WORD
"""Offset of an object's type: the last field of its head."""

ITEMS = tuple.__basicsize__
"""Offset of a tuple's first item."""

RANK, SHAPE, STRIDES, DTYPE, FLAGS = (HEAD + WORD * k for k in (1, 2, 3, 5, 6))
"""Offsets of fields after the data in NumPy's array object, from numpy/ndarraytypes.h of NumPy 1 and 2."""

WRITEABLE = 0x400
"""The flag of writeable arrays."""

(
    SLOW,
    COUNT,
    NONE,
    ARRAY_TYPE,
    FLOAT_TYPE,
    NEW_METHOD,
    CALL,
    INCREF,
    DECREF,
    SAVE_THREAD,
    RESTORE_THREAD,
    CLEAR_ERROR,
    NEW_SCALAR,
    NEW_ARRAY,
    SET_BASE,
    BYTES_DTYPE,
    CLEAR_FLAGS,
    TEST_FLAGS,
    THREAD,
    NEW_OBJECT,
    LAST,
) = range(21)
"""The head: the method to call if no entry fits; the number of entries; addresses of objects and functions of
Python, NumPy and C; then LAST_SLOTS times a thread and the number of the entry that fit its last call."""

LAST_SLOTS, SLOT_PROBES, PAGE_BITS, STACK_BITS = 32, 8, 12, 23
"""A thread takes the first of SLOT_PROBES slots that is its own or empty, else the last of them. It begins at
its number >> PAGE_BITS plus >> STACK_BITS: numbers are addresses, about a stack of 8 MiB apart."""

HEAD_WORDS = LAST + 2 * LAST_SLOTS

(
    ENTRY_WORDS,
    ENTRY,
    ARGUMENTS,
    KEYWORD,
    RELEASES,
    WATCHES,
    REFUSES,
    RETURNS,
    RESULT,
    HOLDER_TYPE,
    HOLDER_VALUE,
    ROOM,
    PAIRS,
    CALLS,
    FIRST_ARGUMENT,
) = range(15)
"""An entry: its length; a number that identifies it; the number of arguments, positional and keyword;
the only keyword name, or 0; whether the GIL is released; floating-point flags that no call may raise; how
many calls, from the first on, may refuse values by writing a result other than 0; the return value (an
argument's position, or a code below) and its dtype or field; the class and the value of the holder that an
array is returned in, or 0; the bytes that each call allocates so that it has line-aligned scratch of its own,
or 0; the numbers of array pairs and of calls. The arguments, pairs and calls follow. The position of own
scratch is after that of a new array."""

NOTHING, NUMBER, FRESH, PASSED_ON = -1, -2, -3, -4
"""The result of an entry: None; a number of a dtype, which a kernel writes; a new array; the result of a
Python function that gets the arguments unchanged."""

FRESH_DTYPE, FRESH_RANK, FRESH_BYTES, FRESH_SHAPE = range(4)
"""A new array: its dtype; its rank; the bytes to allocate so that it can be line-aligned (0: NumPy allocates,
at any alignment); its shape. Its position is after the arguments."""

FRESH_FLAGS = 0x1 | 0x100 | WRITEABLE
"""C order, aligned, writeable."""

KIND, IDENTITY, ARRAY_RANK, ARRAY_FLAGS, EXTENTS = range(5)
"""An argument: an array (dtype, rank, flags, shape, strides), the very same object, a float, or a holder."""

ARRAY, SAME, FLOAT, HOLDER = range(4)
PLAIN_WORDS = 2
"""Fields of an argument that is not an array."""

HELD_VALUE, HOLDER_WORDS = 2, 3
"""A holder: its class and its value; then the array that it holds, as an argument of its own.

The first slot of a holder is an array, the second one a value."""

PAIR_WORDS = 5
"""Two positions of arguments, low, high, same. The second address minus the first must be outside of
(low, high), or be 0 if `same` is set."""

FUNCTION, SCRATCH, TABLE, LENGTH, BEGIN, END, OPERANDS, SLOTS, FIRST_OPERAND = range(9)
"""A kernel call: the function; the address of its scratch, or an offset in the call's own; the table of sizes
and its length; the range [begin, end); the numbers of operands and of table fields that hold argument values;
then (position, byte offset) of each operand, and (field, position) of each such value."""

RESULTS = -1
"""Position of the operand that a kernel writes its result to."""

MOST_TABLE = 128
"""Fields of the longest table that is filled in for a call."""

MOST_ARGUMENTS = 65
"""Maximum number of arguments of a call, including a new array and its own scratch."""

MOST_OPERANDS = MOST_ARGUMENTS + 1
"""Maximum number of operands of a kernel, including its result."""
