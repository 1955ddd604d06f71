"""`infer`: find the layout of what a function packs, by calling it.

How it works, for an array of n elements of b bits:

1. A call with equal elements, and then about log2(n) / b calls in which each element carries its own number,
   b bits at a time, tell which element each slot of the buffer holds. Slots that never change are padding.
   Only differences from the first call count, so values may be XORed or offset by a constant.
2. If a number is missing, log2(n) more calls send one bit each, as one of two values. These are told apart
   whatever the function does to values, such as swapping the bytes of each. After that, every bit of every
   element carries a number of its own, which shows codes whose bits lie in several planes.
3. If a number is still missing, calls that differ in a single element show what becomes of it: it is lost, it
   is in two slots, its slot depends on another element, and so on. That is the counterexample.
4. Otherwise, each element has a slot of its own. The slots become digits with strides, perhaps after an XOR
   swizzle. If that is impossible, the table of slots is the result.
5. Random elements must be in these slots, bit for bit, and the first call is repeated. So must values that
   functions clip or flush. So a result agrees with all calls that were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, shown
from tilejit.cute.int_tuple import as_integer
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import ElementLike, PrimitiveType, array_dtype, primitive_type
from tilejit.layout.helpers import dims_text
from tilejit.layout.padding import PaddingValue
from tilejit.recognize.probes.bit_patterns import (
    Bounds,
    Patterns,
    array_of,
    code_type,
    extreme_patterns,
    pattern_dtype,
    patterns_of,
    unusual_patterns,
)
from tilejit.recognize.probes.bit_planes import planes_of
from tilejit.recognize.probes.closed_form import Buffer, best_spellings, contradiction
from tilejit.recognize.probes.inferred import (
    NO_CLOSED_FORM,
    NOT_A_LAYOUT,
    SEVERAL,
    UNINITIALIZED,
    InferredLayout,
)
from tilejit.recognize.probes.locate import Located, locate
from tilejit.recognize.probes.prober import Prober, RefutedError, dtypes_of
from tilejit.recognize.probes.refute import Inquiry, Suspect, Trial, altered, bit_positions, dependence
from tilejit.recognize.probes.slots import Bytes, slot_values
from tilejit.recognize.probes.value_map import ValueMap

MAX_ELEMENTS = 1 << 27
SEED = 143
LEAST_BITS, MOST_ROUNDS = 256, 16
"""The random bits that a result must agree with, and the most arrays of them."""


def infer(
    function: Callable[[Any], Any],
    dtype: ElementLike,
    dims: Iterable[int],
    *,
    element_size_in_bits: int | None = None,
    value_range: tuple[int, int] | None = None,
) -> InferredLayout:
    """Find the layout of what a function packs, by calling it with arrays of known elements.

    >>> def pack(x):  # GPTQ: eight codes of a column in a word of 32 bits
    ...     words = x.reshape(-1, 8, x.shape[1]).astype(np.uint32)
    ...     return np.bitwise_or.reduce(words << np.arange(0, 32, 4, dtype=np.uint32)[:, None], axis=1)
    >>> found = tilejit.infer(pack, "uint4", (64, 16))
    >>> found.pattern
    '(M m) N -> M N m, m=8'
    >>> codes = np.arange(1024, dtype=np.uint8).reshape(64, 16) % 16
    >>> np.array_equal(found.unpack(pack(codes)), codes)
    True

    A function that is not a layout is refuted by what it did:

    >>> tilejit.infer(lambda x: x + np.roll(x, 1), "uint8", (8,)).counterexample
    slot 0 depends on elements (0,) and (7,): it changes with either of them

    The function gets all values of at most 8 bits and, of wider integers, the smallest and the largest, and
    once an array of small ones, 0 to 3. Of floating-point numbers it gets random ones of magnitudes from
    1/256 to 256, and then the largest, infinities, a NaN, -0, denormals and the smallest normal numbers. All
    must keep their bits; only a NaN may become another NaN. The attribute `untested` of the result names the
    kinds of values for which the function raises.

    The function is called about log2(n) / b + 6 times for n elements of b bits, and about 3 log2(n) + 60
    times more if it changes values or is not a layout. Small arrays need more calls to contain all bytes. The
    function must return the whole buffer, and the same bytes for the same array. Memory that it does not
    write may differ: such padding is "uninitialized".

    Args:
        function: called with an array of `dims`; returns an array, bytes, a tensor that NumPy can read, or a
            TiledArray. Arrays are read in C order.
        dtype: the dtype of the arrays. The name of a type narrower than a byte, such as "uint4" or "s4",
            stands for codes: the function gets uint8 or int8 arrays with one code in each byte, or, if it
            raises for those, arrays of ml_dtypes' type. A dtype such as ml_dtypes.uint4 is used as it is.
        dims: the dimensions of the arrays in elements.
        element_size_in_bits: the bits of a code, 1 to 7, if the arrays hold codes as uint8 or int8.
        value_range: the smallest and the largest integer that the function takes, if it refuses others.

    Returns:
        An `InferredLayout`: the layout with its texts, padding, inverse and picture; a table of slots if
        there is no closed form; or a counterexample.

    Raises:
        LayoutError: the function raises, a dimension is negative, or there are no elements, or more than
            2^27.
        TypeError: the function is not callable or returns something without bytes, or an argument has the
            wrong type.
    """
    if not callable(function):
        raise TypeError(f"expected a function of one array, got {type(function).__name__}")
    sizes = int_tuple(dims, "dims")
    probe = _prober(function, dtype, sizes, element_size_in_bits, value_range)
    if min(sizes, default=1) < 0:
        raise LayoutError(f"a dimension is {shown(min(sizes))}\n  pass sizes of 1 or more")
    if not 0 < prod(sizes) <= MAX_ELEMENTS:
        raise LayoutError(
            f"an array {dims_text(sizes)} has no elements, or more than 2^27\n  pass dims with fewer elements"
        )
    try:
        return _layout_of(probe)
    except RefutedError as error:
        facts = {"text": NOT_A_LAYOUT, "counterexample": error.counterexample}
        return _result(probe, probe.widths[0], probe.element.bits, **facts)


def _prober(
    function: Callable[[Any], Any],
    dtype: ElementLike,
    dims: tuple[int, ...],
    size: int | None,
    bounds: object,
) -> Prober:
    """The function with the element type of its arrays, which may hold codes.

    Raises:
        LayoutError: arrays cannot have the dtype, or codes do not fit it.
        TypeError: the number of bits or a bound is not an integer.
    """
    element = primitive_type(dtype)
    if not element.is_array_element:
        raise LayoutError(f"arrays cannot have dtype {element.name}\n  pass the dtype of an array")
    dtypes = dtypes_of(dtype, element)
    widths: set[int] = set()
    if size is not None:
        width = as_integer(size, "element_size_in_bits")
        if element.name not in ("u8", "s8"):
            raise LayoutError(
                f"element_size_in_bits is for uint8 and int8 arrays of codes, not {element.name}\n  omit it"
            )
        if not 1 <= width <= 7:
            raise LayoutError(f"element_size_in_bits is {shown(width)}\n  pass a width of codes from 1 to 7")
        dtypes, element = (array_dtype(dtype),), code_type(width, signed=element.name == "s8")
        widths.add(width)
    if bounds is None:
        return Prober(function, element, dims, dtypes)
    low, high = _bounds(bounds, primitive_type(dtype))
    if element.storage_bits == 8:
        bits = max(high.bit_length(), (-low - 1).bit_length()) + (element.kind == "signed")
        element = code_type(max(bits, 1), signed=element.kind == "signed")
        widths |= {element.bits, (high - low).bit_length()}
    if (low, high) == element.integer_range and max(widths, default=0) <= element.bits:
        return Prober(function, element, dims, dtypes)
    return Prober(function, element, dims, dtypes, (low, high), tuple(sorted(widths, reverse=True)))


def _bounds(bounds: object, element: PrimitiveType) -> Bounds:
    """The smallest and the largest value.

    Raises:
        LayoutError: they are not two integers of the type, in ascending order.
        TypeError: they are not integers.
    """
    pair = int_tuple(bounds, "value_range")  # type: ignore[arg-type]
    whole = element.integer_range
    if whole is None or element.kind == "pred":
        raise LayoutError(f"value_range is for integers, not for {element.name}\n  omit it")
    if len(pair) != 2 or not whole[0] <= pair[0] < pair[1] <= whole[1]:
        raise LayoutError(
            f"value_range is {str(pair)[:60]}\n"
            f"  pass the smallest and the largest value, between {whole[0]} and {whole[1]}"
        )
    return pair[0], pair[1]


def _layout_of(probe: Prober) -> InferredLayout:
    """The result for a function, unless a call refutes it."""
    located = locate(probe)
    _verify(probe, located)
    untested = _verify_unusual(probe, located)
    padding_slots, padding_value, template = _padding(probe, located)
    placement = replace(located.placement, padding=template)
    width, size, table = placement.width, placement.size_bytes, placement.table()
    facts: dict[str, Any] = {
        "value_map": _value_text(probe, placement.value_map),
        "untested": untested,
        "padding_slots": padding_slots,
        "padding_value": padding_value,
    }
    if placement.apart:
        planes = planes_of(table, probe.element, probe.dims, size)
        facts |= {"planes": planes, "text": "; ".join(map(str, planes))}
        return _result(probe, width, probe.element.bits, **facts, _placement=placement)
    spelled = best_spellings(table.reshape(probe.dims), Buffer(probe.stored(width), probe.dims, width, size))
    if spelled is None:
        facts |= {"text": NO_CLOSED_FORM, "broken": contradiction(table.reshape(probe.dims))}
    else:
        spec = spelled.layout
        placement = replace(placement, slots=None, spec=spec)
        if padding_value and not isinstance(padding_value, str):
            spec = replace(spec, padding_value=padding_value)
        facts |= spelled._asdict() | {"layout": spec}
    return _result(probe, width, width, **facts, _placement=placement)


def _result(probe: Prober, width: int, element_bits: int, **facts: Any) -> InferredLayout:
    """The result for a function whose slots have a width."""
    return InferredLayout(
        primitive_type=probe.stored(width).name,
        dimensions=probe.dims,
        element_bits=element_bits,
        array_dtype=probe.dtype,
        buffer=probe.result,
        buffer_bytes=0 if probe.first is None else probe.first.size,
        calls=probe.calls,
        **facts,
    )


def _value_text(probe: Prober, value_map: ValueMap | None) -> str:
    """What the buffer holds for a pattern; bytes of ml_dtypes' signed types always extend the sign."""
    if value_map is None or (value_map.extends_sign and probe.result_dtype == probe.element.numpy):
        return ""
    return value_map.text


def _verify(probe: Prober, located: Located) -> None:
    """Compare buffers of random elements with what the slots say, and repeat the first call.

    Raises:
        RefutedError: an element's bits differ.
    """
    width = located.placement.width
    for number in range(_rounds(probe)):
        patterns = probe.random(SEED + number)
        trial = Trial(patterns, probe(patterns, "random elements"))
        wrong = (located.packed(patterns) ^ trial.data) & located.own
        if wrong.any():
            element, _ = _first_wrong(probe, located, wrong)
            inquiry = Inquiry.of(probe, width, [*located.trials, trial])
            raise RefutedError(inquiry.counterexample([Suspect(element)]))
    first = located.trials[0]
    wrong = (probe(first.patterns, "the array of the first call") ^ first.data) & located.own
    if wrong.any():
        raise RefutedError(Inquiry(probe, width, first, ~wrong).unstable())


def _verify_unusual(probe: Prober, located: Located) -> tuple[str, ...]:
    """Compare buffers of unusual values with what the slots say.

    Returns:
        The kinds of values that the function refuses.

    Raises:
        RefutedError: an element's bits differ, and it is not a NaN that became another NaN.
    """
    kinds = unusual_patterns(probe.element, probe.bounds)
    value_map = located.placement.value_map
    if not kinds or (value_map and value_map.partial):
        return tuple(kinds)
    try:
        _verify_values(probe, located, np.concatenate([*kinds.values()]))
    except LayoutError:
        return tuple(kind for kind, values in kinds.items() if not _takes(probe, located, values))
    return ()


def _takes(probe: Prober, located: Located, values: Patterns) -> bool:
    """Whether the function takes some values without raising."""
    try:
        _verify_values(probe, located, values)
    except LayoutError:
        return False
    return True


def _verify_values(probe: Prober, located: Located, values: Patterns) -> None:
    """Compare buffers that hold only some values with what the slots say.

    Raises:
        RefutedError: an element's bits differ, and it is not a NaN that became another NaN.
        LayoutError: the function raises, or returns no buffer of that size.
    """
    rounds = -(-values.size // probe.count)
    order = np.random.default_rng(SEED).permutation(np.resize(values, rounds * probe.count))
    is_float = probe.element.kind in ("float", "complex")
    for sent in order.reshape(rounds, -1):
        with np.errstate(all="ignore"):
            data = probe(sent, kind := "extreme values" if is_float else "small values")
        array = located.placement.unpacked(data)
        got = patterns_of(array, probe.element)
        wanted = sent
        if is_float:
            given = array_of(sent, probe.element, probe.dtype)
            wanted = np.where(np.isnan(given) & np.isnan(array.reshape(-1)), got, sent)
        wrong = (located.packed(wanted) ^ data) & located.own
        if wrong.any():
            number, slot = _first_wrong(probe, located, wrong)
            raise RefutedError(altered(probe, sent, got, number, slot, kind))


def _first_wrong(probe: Prober, located: Located, wrong: Bytes) -> tuple[int, int]:
    """The element and the slot of the first bit that is set."""
    slot = int(bit_positions(wrong)[0]) // located.placement.width
    each = probe.element.bits if located.placement.apart else 1
    return int(np.argmax(located.placement.table() == slot)) // each, slot


def _rounds(probe: Prober) -> int:
    """The number of random arrays: more for small ones, which have few values."""
    extremes = extreme_patterns(probe.element, probe.bounds).size
    few = min(MOST_ROUNDS, LEAST_BITS // (probe.count * probe.element.bits))
    return max(1, few, -(-extremes // probe.count))


def _padding(probe: Prober, located: Located) -> tuple[int, PaddingValue | str | None, Bytes | None]:
    """The padding of the function's buffer.

    Returns:
        The number of slots without elements, or of bytes if bits have slots; what they hold, as
        `InferredLayout.padding_value` describes it; and the buffer with zeros for all elements, or None if it
        has only zeros, or is not the same in all calls.

    Raises:
        RefutedError: bits beside the elements depend on them.
    """
    first, own = located.trials[0].data, located.own
    width = 8 if located.placement.apart else located.placement.width
    free = slot_values(own, width) == 0
    slots = int(np.count_nonzero(free))
    varied = probe.varied & ~own
    if varied.any():
        counterexample = dependence(probe, located.placement.width, list(located.trials), varied)
        if counterexample is not None:
            raise RefutedError(counterexample)
        return slots, UNINITIALIZED, None
    rest = first & ~own
    held: NDArray[Any] = slot_values(rest, width)[free]
    template = rest if rest.any() else None
    if not slots:
        return 0, None, template
    same = bool((held == held[0]).all())
    return slots, _padding_value(probe, width, int(held[0])) if same else SEVERAL, template


def _padding_value(probe: Prober, width: int, word: int) -> PaddingValue:
    """The number in a slot of padding."""
    element = probe.element
    if width not in (element.bits, element.storage_bits) or word >> element.bits or element.bits == 128:
        return word
    patterns = np.array([word], pattern_dtype(element))
    value = array_of(patterns, element, probe.dtype)[0]
    kinds: dict[str, Any] = {"float": float, "complex": complex, "pred": bool}
    if probe.dtype.kind in "iu" and element.kind == "float":  # codes
        return word
    found: PaddingValue = kinds.get(element.kind, int)(value)
    return found
