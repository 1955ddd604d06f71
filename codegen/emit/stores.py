"""Stores of loop kernels: of one element, or of the registers of a super-vector."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from codegen.analysis.strides import ELEMENT_BYTES, HALVES
from codegen.emit.blocks import is_transposed, transposed
from codegen.emit.names import Names
from codegen.emit.scope import Scope, Text, element_address, lane_stride
from codegen.emit.values import accumulated, spread, unwrapped, value_text
from codegen.emit.writer import Writer
from codegen.ir.nodes import Store, Value
from codegen.support.errors import KernelError


def emit_store(store: Store, scope: Scope, names: Names, out: Writer) -> None:
    """Write the store of one element, or of one element per lane.

    Raises:
        KernelError: all lanes would be stored to the same element.
    """
    array, step = scope.function.array(store.array), lane_stride(store, scope)
    value: Value = store.value
    if store.accumulate:
        value = accumulated(store, array.dtype)
    text, lanes = value_text(value, scope), scope.lanes
    if lanes is not None and step == 0 and store.accumulate:
        raise KernelError(f"all lanes would be accumulated in the same element of {store.array}")
    where = "" if store.where is None else value_text(store.where, scope)
    if lanes is None or step == 0:
        if not isinstance(text, str) or not isinstance(where, str):
            raise KernelError(f"all lanes would be stored to the same element of {store.array}")
        base, offset = element_address(store, scope)
        with out.block(f"if {unwrapped(where)}:") if where else nullcontext():
            out.line(f"write_{array.dtype}_at({base}, {offset}, {unwrapped(text)})")
        return
    if isinstance(where, str):
        with out.block(f"if {unwrapped(where)}:") if where else nullcontext():
            _store_lanes(store, value.dtype, text, None, scope, names, out)
    else:
        _store_lanes(store, value.dtype, text, where, scope, names, out)


def _store_lanes(
    store: Store,
    dtype: str,
    text: Text,
    where: tuple[str, ...] | None,
    scope: Scope,
    names: Names,
    out: Writer,
) -> None:
    """Write the stores of registers; `where` holds a mask for each, None stores all active lanes."""
    if is_transposed(store, scope):
        text = transposed(spread(text, dtype, scope.lanes), dtype, scope, names, out)  # type: ignore[arg-type]
        where = None if where is None else transposed(where, "i1", scope, names, out)
        scope = replace(scope, lanes=scope.lanes.transposed())  # type: ignore[union-attr]
    array, step, lanes = scope.function.array(store.array), lane_stride(store, scope), scope.lanes
    assert lanes is not None
    name = f"f32x{lanes.count}_as_{array.dtype}" if array.dtype in HALVES else f"{array.dtype}x{lanes.count}"
    suffix, live = ("_first", f", {lanes.live}") if lanes.live else ("", "")
    near = step == ELEMENT_BYTES[array.dtype]
    for register, lane_values in enumerate(spread(text, dtype, lanes)):
        if where is not None:
            counted = f" & first_{lanes.count}({lanes.live})" if lanes.live else ""
            tested = where[register] if counted else unwrapped(where[register])
            suffix, live = "_where", f", {tested}{counted}"
        base, offset = element_address(store, scope, register)
        at = base if offset == "0" else f"{base} + {offset}"
        plain = "stream" if store is scope.streamed and not suffix else "store"
        how, by = (plain, "") if near else ("scatter", f", {step}")
        out.line(f"{how}_{name}{suffix}({at}{by}, {unwrapped(lane_values)}{live})")
