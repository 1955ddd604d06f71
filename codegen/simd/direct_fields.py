"""How the words of a direct call lie: what machine code reads of it, and of the objects that it is given.

An object that is called directly holds a tuple in its first slot, and the tuple an array of 64-bit words: a
head, then one entry for each sort of arguments. `direct_calls` writes them, `simd.direct` reads them.
"""

from __future__ import annotations

WORD = 8

HEAD = object.__basicsize__
"""Bytes in front of an object's first field: an array's data, a float's value, a tuple's length, a slot."""

TYPE = HEAD - WORD
"""Where an object's type stands: last in its head."""

ITEMS = tuple.__basicsize__
"""Where a tuple's first item stands."""

RANK, SHAPE, STRIDES, DTYPE, FLAGS = (HEAD + WORD * k for k in (1, 2, 3, 5, 6))
"""Fields of NumPy's array object behind its data, as numpy/ndarraytypes.h has them in NumPy 1 and 2."""

WRITEABLE = 0x400
"""The flag of arrays that may be written."""

(
    SLOW,
    COUNT,
    LAST,
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
    HEAD_WORDS,
) = range(20)
"""The head: what is called where no entry fits, how many entries there are, which one did last; objects and
functions of Python, NumPy and C by their addresses."""

(
    ENTRY_WORDS,
    ARGUMENTS,
    KEYWORD,
    RELEASES,
    WATCHES,
    RETURNS,
    RESULT,
    PAIRS,
    CALLS,
    FIRST_ARGUMENT,
) = range(10)
"""An entry: its length; how many arguments there are, by place and by name; the one name, or 0; whether
Python's lock is given away; flags of floating point that none of the calls may raise; what comes back (an
argument's place, or one of the following) and of what dtype or in which word it stands; how many pairs of
arrays, and calls. Behind it arguments, pairs, calls."""

NOTHING, NUMBER, FRESH, PASSED_ON = -1, -2, -3, -4
"""What an entry returns: None; a number of a dtype, which a kernel writes; a new array; what a function of
Python's returns that gets the arguments as they came."""

FRESH_DTYPE, FRESH_RANK, FRESH_BYTES, FRESH_SHAPE = range(4)
"""A new array: its dtype, rank, the bytes to ask for so that it can begin on a line (0: NumPy's own memory,
wherever that begins), and its shape. Its place is behind the arguments'."""

FRESH_FLAGS = 0x1 | 0x100 | WRITEABLE
"""C order, aligned, writeable."""

KIND, IDENTITY, ARRAY_RANK, ARRAY_FLAGS, EXTENTS = range(5)
"""An argument: an array (dtype, rank, flags, shape, strides), the very same object, or a float."""

ARRAY, SAME, FLOAT = range(3)
PLAIN_WORDS = 2
"""Words of an argument that is no array."""

PAIR_WORDS = 5
"""Two places, low and high: the second address less the first lies outside of (low, high); or, where the
last word says so, both are one."""

FUNCTION, SRC, SRC_AT, DST, DST_AT, TABLE, LENGTH, SLOTS, BEGIN, END, FIRST_SLOT = range(11)
"""A call of a kernel: the function; source and destination as places of arguments and bytes from there; its
table of sizes, how long it is, and how many words of it are the values of arguments: (word, place) each."""

NO_SIDE, RESULTS = -1, -2
"""What stands for a side that a kernel does not have, or is where it writes its result."""

MOST_TABLE = 128
"""Words of the longest table that is filled in for a call."""

MOST_ARGUMENTS = 65
"""Arguments of a call at most; a new array is one of them."""
