"""Flat buffers as text in the style of MLIR: views, allocations, transfers, prefetches and instructions.

MLIR's memrefs have types for elements, sizes and strides, which flat storage lacks. So subscripts are offsets
in units, views have no sizes, and a transfer states the type of its value beside that of the buffer:

    %src_a = memref.subview %src[%a * %a_src] {opaque} : memref<?xi8>
    %0 = vector.transfer_read %src_a[%i * 4] {steps = [%pitch, 4]} : memref<?xi8>, vector<16x4xi32>
    func.call @copy_part(%dst_at, %src_at, %count) : (memref<?xi8>, memref<?xi8>, index) -> ()
    %dst_lines = memref.subview %dst[0] {lines = %line_offsets} : memref<?xi8>

Lanes past the bounds of their loops are inactive, as in the IR, and no mask is printed for them.
"""

from __future__ import annotations

from codegen.ir.building import index_of, plus
from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, Call, Store, View
from codegen.ir.print_index import SsaNames
from codegen.ir.print_names import mlir_type
from codegen.ir.print_transfers import TransferPrinter
from codegen.ir.values import Each, Entries, Load, Step

BYTES, BITS = "memref<?xi8>", "memref<?xi1>"
"""The types of buffers, by their unit."""


class BufferPrinter(TransferPrinter):
    """Writes the lines of what accesses flat buffers."""

    def define_view(self, node: View, names: SsaNames) -> None:
        """Write a memref.subview."""
        kind = self.flat[node.buffer]
        how = ["opaque"] if node.opaque else []
        how += [f"lines = {self.memrefs[node.lines]}"] if node.lines else []
        base, offset = self.memrefs[node.buffer], self.inline(node.offset, names)
        result = {0: kind, 1: BITS, 8: BYTES}[node.unit_bits]
        to = f"{kind} to {result}" if result != kind else kind
        self.name_buffer(node.name, result)
        self.line(f"{self.memrefs[node.name]} = memref.subview {base}[{offset}]{_attributes(how)} : {to}")

    def allocate(self, node: Alloc, names: SsaNames) -> None:
        """Write a memref.alloca for memory on the stack, or a memref.alloc for scratch."""
        size = self.inline(index_of(node.size_bytes), names)
        how = _attributes([f"alignment = {LINE_BYTES}", f"bytes = {size}"])
        self.name_buffer(node.name, BYTES)
        where = "alloca" if node.space == "stack" else "alloc"
        self.line(f"{self.memrefs[node.name]} = memref.{where}(){how} : {BYTES}")

    def name_buffer(self, name: str, kind: str) -> None:
        """Declare a buffer or a view by its name."""
        self.memrefs[name], self.flat[name] = self.fresh(name), kind

    def flat_load(self, load: Load, offsets: str, names: SsaNames) -> str:
        """A load from a buffer; `offsets` is the super-vector of its offsets, or ""."""
        kind, verb = (
            mlir_type(load.dtype, load.shape),
            "vector.transfer_read" if load.shape else "memref.load",
        )
        return self.emit(f"{verb} {self.access(load, names, offsets=offsets)}, {kind}")

    def flat_store(self, store: Store, value: str, tested: str, offsets: str, names: SsaNames) -> None:
        """A store to a buffer; `tested` is its mask, `offsets` the super-vector of its offsets, or ""."""
        assert not store.accumulate, "stores to buffers do not accumulate"
        kind, shape = mlir_type(store.value.dtype, store.value.shape), store.value.shape
        verb = "vector.transfer_write" if shape else "memref.store"
        self.line(f"{verb} {value}, {self.access(store, names, offsets, tested)}, {kind}")

    def prefetch(self, load: Load, names: SsaNames) -> None:
        """Write a memref.prefetch of the lines of a load."""
        kind = mlir_type(load.dtype, load.shape)
        self.line(f"memref.prefetch {self.access(load, names)}, {kind}")

    def call(self, node: Call, names: SsaNames) -> None:
        """Write a func.call of an instruction."""
        given, kinds = [], []
        for operand in node.operands:
            if isinstance(operand, str):
                given.append(self.memrefs[operand])
                kinds.append(self.flat[operand])
            else:
                given.append(self.index(operand, names))
                kinds.append("index")
        name = instruction(node.instruction).name
        self.line(f"func.call @{name}({', '.join(given)}) : ({', '.join(kinds)}) -> ()")

    def access(self, access: Load | Store, names: SsaNames, offsets: str = "", mask: str = "") -> str:
        """%src[%x] {steps = [%pitch, 4], first = %n} : memref<?xi8>"""
        how = []
        if access.steps:
            how.append(f"steps = [{', '.join(self.step(step, names) for step in access.steps)}]")
        if isinstance(access, Load) and any(access.along):
            how.append(f"along = [{', '.join(access.along)}]")
        if offsets:
            how.append(f"offsets = {offsets}")
        if mask:
            how.append(f"mask = {mask}")
        if access.first is not None:
            how.append(f"first = {self.inline(access.first, names)}")
        if isinstance(access, Store) and access.carry is not None:
            where = self.inline(plus(*access.carry.subscripts), names)
            how.append(f"carry = {self.memrefs[access.carry.array]}[{where}]")
        if isinstance(access, Store) and access.streamed:
            how.append("nontemporal")
        where = self.inline(plus(*access.subscripts), names)
        base, kind = self.memrefs[access.array], self.flat[access.array]
        return f"{base}[{where}]{_attributes(how)} : {kind}"

    def step(self, step: Step, names: SsaNames) -> str:
        """The distance between lanes: 4, %pitch, each %pitch, or low %table[%i] for entries of a table."""
        match step:
            case int():
                return str(step)
            case str():
                return self.index_name(step, names)
            case Each(same):
                return f"each {self.step(same, names)}"
            case Entries(table, first, half):
                entries = f"{self.memrefs[table]}[{self.inline(first, names)}]"
                return f"{half} {entries}" if half else entries
            case _:
                return self.inline(step, names)


def _attributes(how: list[str]) -> str:
    return f" {{{', '.join(how)}}}" if how else ""
