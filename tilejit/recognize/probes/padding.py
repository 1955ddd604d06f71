"""The padding of a buffer: the slots without elements, and what they hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilejit.layout.padding import PaddingValue
from tilejit.recognize.probes.bit_patterns import array_of, pattern_dtype
from tilejit.recognize.probes.inferred import SEVERAL, UNINITIALIZED
from tilejit.recognize.probes.locate import Located
from tilejit.recognize.probes.prober import Prober, RefutedError
from tilejit.recognize.probes.refute import dependence
from tilejit.recognize.probes.slots import Bytes, slot_values


class FoundPadding(NamedTuple):
    """The padding of a buffer.

    Attributes:
        slots: the number of slots without elements; of bytes, if bits of elements have slots of their own.
        value: what they hold, as `InferredLayout.padding_value` describes it.
        template: the buffer with zeros for all elements; None if it has only zeros, or is not the same in all
            calls.
    """

    slots: int
    value: PaddingValue | str | None
    template: Bytes | None


def padding_of(probe: Prober, located: Located) -> FoundPadding:
    """The padding of the function's buffer.

    Raises:
        RefutedError: bits beside the elements depend on them.
    """
    first, own = located.trials[0].data, located.own
    width = 8 if located.apart else located.width
    free = slot_values(own, width) == 0
    slots = int(np.count_nonzero(free))
    rest = first & ~own
    varied = probe.varied & ~own
    if varied.any():
        counterexample = dependence(probe, located.width, list(located.trials), varied)
        if counterexample is not None:
            raise RefutedError(counterexample)
        return FoundPadding(slots, UNINITIALIZED, None)
    template = rest if rest.any() else None
    if not slots:
        return FoundPadding(0, None, template)
    if template is None:
        return FoundPadding(slots, _value(probe, width, 0), None)
    held: NDArray[Any] = slot_values(rest, width)[free]
    if (held != held[0]).any():
        return FoundPadding(slots, SEVERAL, template)
    return FoundPadding(slots, _value(probe, width, int(held[0])), template)


def _value(probe: Prober, width: int, word: int) -> PaddingValue:
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
