"""Loads, stores and moves at raw addresses, in LLVM IR.

Accesses to the source and the destination carry alias scopes, because the sides of a copy never overlap. This
lets LLVM vectorize. Every access has alignment 1, so misaligned arrays do not need a second kernel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from codegen.ir.lines import LINE_BYTES, WIDTHS
from codegen.simd.register.intrinsics import statement, typed_routine

I8, I16, I32, I64 = (ir.IntType(n) for n in (8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    """The address as a pointer to `kind`."""
    return builder.inttoptr(address, kind.as_pointer())


def tag(builder: Any, instruction: Any, side: str) -> None:
    """Mark the side that an access belongs to; it never aliases the other side."""
    module = builder.module
    domain = module.add_metadata(["tilejit"])
    scopes = {
        name: module.add_metadata([module.add_metadata([f"tilejit {name}", domain])])
        for name in ("src", "dst")
    }
    other = "dst" if side == "src" else "src"
    instruction.set_metadata("alias.scope", scopes[side])
    instruction.set_metadata("noalias", scopes[other])


def load(builder: Any, address: Any, kind: Any) -> Any:
    """Load from the source, at any alignment."""
    value = builder.load(pointer(builder, address, kind))
    value.align = 1
    tag(builder, value, "src")
    return value


def store(builder: Any, value: Any, address: Any) -> None:
    """Store to the destination, at any alignment."""
    done = builder.store(value, pointer(builder, address, value.type))
    done.align = 1
    tag(builder, done, "dst")


def element_pointer(builder: Any, base: Any, offset: Any, kind: Any) -> Any:
    """A pointer `offset` bytes after a base, in a form that shows LLVM which addresses are contiguous.

    An integer sum cast to a pointer hides that: contiguous loops then become gathers and scatters.
    """
    element = builder.gep(pointer(builder, base, I8), [offset], source_etype=I8)
    return builder.bitcast(element, kind.as_pointer())


def vector(bits: int, lanes: int) -> Any:
    """The LLVM type of `lanes` integers of `bits` bits."""
    return ir.VectorType(ir.IntType(bits), lanes)


def _mover(width: int) -> Any:
    kind = vector(8, width) if width > 8 else ir.IntType(8 * width)
    return statement(lambda b, dst, src: store(b, load(b, src, kind), dst), 2, f"move_{width}")


move_1, move_2, move_4, move_8, move_16, move_32 = (_mover(width) for width in (1, 2, 4, 8, 16, 32))


def _drainer(width: int) -> Any:
    """A move out of a buffer that this kernel has filled. Its load belongs to neither side of the copy."""

    def emit(builder: Any, dst: Any, buffer: Any) -> None:
        value = builder.load(pointer(builder, buffer, vector(8, width)))
        value.align = 1
        store(builder, value, dst)

    return statement(emit, 2, f"drain_{width}")


drain_1, drain_2, drain_4, drain_8, drain_16, drain_32 = (_drainer(w) for w in (1, 2, 4, 8, 16, 32))


_ON_ONE, _ON_TWO = types.int64(types.int64), types.int64(types.int64, types.int64)


def _load_byte(builder: Any, address: Any) -> Any:
    return builder.zext(load(builder, address, I8), I64)


load_u8 = typed_routine("load_u8", _ON_ONE, _load_byte)
"""Load a byte of the source."""


def _storer(bits: int) -> Any:
    kind = ir.IntType(bits)

    def emit(builder: Any, address: Any, value: Any) -> None:
        store(builder, builder.trunc(value, kind) if bits < 64 else value, address)

    return statement(emit, 2, f"store_u{bits}")


store_u8, store_u16, store_u32, store_u64 = (_storer(n) for n in (8, 16, 32, 64))


def _int64_at(builder: Any, address: Any, index: Any) -> Any:
    entry = builder.add(address, builder.shl(index, ir.Constant(I64, 3)))
    return builder.load(pointer(builder, entry, I64))


int64_at = typed_routine("int64_at", _ON_TWO, _int64_at)
"""The 64-bit integer at an index of a table of sizes or offsets."""


def _read_byte(builder: Any, address: Any) -> Any:
    value = builder.load(pointer(builder, address, I8))
    tag(builder, value, "dst")
    return builder.zext(value, I64)


read_byte = typed_routine("read_byte", _ON_ONE, _read_byte)
"""Load a byte of the destination, to modify part of it and write it back."""


def _block_move(builder: Any, dst: Any, src: Any, count: Any) -> None:
    pointers = I8.as_pointer()
    memcpy = builder.module.declare_intrinsic("llvm.memcpy", [pointers, pointers, I64])
    zero = ir.Constant(ir.IntType(1), 0)
    builder.call(memcpy, [pointer(builder, dst, I8), pointer(builder, src, I8), count, zero])


memcpy = statement(_block_move, 3, "memcpy")


def hidden(builder: Any, address: Any) -> Any:
    """The same address, opaque to LLVM, so that each loop increments an address of its own.

    Otherwise strength reduction keeps a register per loop and access live throughout the nest, and spills
    them in the innermost loop.
    """
    return builder.asm(ir.FunctionType(I64, [I64]), "", "=r,0", [address], False)


opaque = typed_routine("opaque", _ON_ONE, hidden)


def prefetch(builder: Any, address: Any, level: int = 2) -> None:
    """Prefetch the line at an address into the cache of that level. The address may be invalid."""
    pointers = I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointers, I32, I32, I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointers], kind)
    read, locality, data = (ir.Constant(I32, k) for k in (0, 4 - level, 1))
    builder.call(function, [pointer(builder, address, I8), read, locality, data])


prefetch_line = statement(prefetch, 1, "prefetch_line")


def _fence(builder: Any) -> None:
    builder.fence("seq_cst")


stream_fence = statement(_fence, 0, "stream_fence")


def _element_loader(bits: int) -> Any:
    kind = ir.IntType(bits)

    def emit(builder: Any, base: Any, offset: Any) -> Any:
        value = builder.load(element_pointer(builder, base, offset, kind))
        value.align = 1
        tag(builder, value, "src")
        return builder.zext(value, I64) if bits < I64.width else value

    return typed_routine(f"load_u{bits}_at", _ON_TWO, emit)


def _element_storer(bits: int) -> Any:
    kind = ir.IntType(bits)

    def emit(builder: Any, base: Any, offset: Any, value: Any) -> None:
        value = builder.trunc(value, kind) if bits < I64.width else value
        done = builder.store(value, element_pointer(builder, base, offset, kind))
        done.align = 1
        tag(builder, done, "dst")

    return statement(emit, 3, f"store_u{bits}_at")


def _element_mover(width: int) -> Any:
    kind = vector(8, width) if width > 8 else ir.IntType(8 * width)

    def emit(builder: Any, dst: Any, dst_offset: Any, src: Any, src_offset: Any) -> None:
        value = builder.load(element_pointer(builder, src, src_offset, kind))
        value.align = 1
        tag(builder, value, "src")
        done = builder.store(value, element_pointer(builder, dst, dst_offset, kind))
        done.align = 1
        tag(builder, done, "dst")

    return statement(emit, 4, f"move_u{8 * width}_at")


ELEMENTS: dict[str, Any] = {
    **{f"load_u{bits}_at": _element_loader(bits) for bits in (8, 16, 32, 64)},
    **{f"store_u{bits}_at": _element_storer(bits) for bits in (8, 16, 32, 64)},
    **{f"move_u{8 * width}_at": _element_mover(width) for width in WIDTHS},
    "int64_at": int64_at,
    "opaque": opaque,
}
"""Loads, stores and moves of the elements of copies, by their names in kernels."""


def table_routine(name: str, count: int) -> Any:
    """arguments_3(sizes) or addresses_3(operands), the first numbers of a table."""
    result = types.UniTuple(types.int64, count)  # type: ignore[no-untyped-call]

    def emit(builder: Any, table: Any) -> Any:
        tuple_ = ir.Constant(ir.ArrayType(I64, count), ir.Undefined)
        for k in range(count):
            entry = builder.add(table, ir.Constant(I64, 8 * k))
            tuple_ = builder.insert_value(tuple_, builder.load(pointer(builder, entry, I64)), k)
        return tuple_

    return typed_routine(name, result(types.int64), emit)


def stack_routine(name: str, size: int) -> Any:
    """stack_3072(): the address of as many bytes on the stack, on a line."""

    def emit(builder: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(I8, size))
            room.align = LINE_BYTES
        return builder.ptrtoint(room, I64)

    return typed_routine(name, types.int64(), emit)


SIZED = {"arguments": table_routine, "addresses": table_routine, "stack": stack_routine}
"""The routines for that many table entries, or bytes on the stack, by their families."""


def swapped(builder: Any, value: Any, bits: int) -> Any:
    """The low bits of an int64 with their bytes in reverse order."""
    kind = ir.IntType(bits)
    value = value if bits == 64 else builder.trunc(value, kind)
    out = builder.call(builder.module.declare_intrinsic("llvm.bswap", [kind]), [value])
    return out if bits == 64 else builder.zext(out, I64)


def load_untagged(builder: Any, address: Any, kind: Any) -> Any:
    """Load at any alignment, without alias information: loops may read what they write."""
    value = builder.load(pointer(builder, address, kind))
    value.align = 1
    return value


def store_untagged(builder: Any, value: Any, address: Any) -> Any:
    """Store at any alignment, without alias information. Returns the instruction."""
    done = builder.store(value, pointer(builder, address, value.type))
    done.align = 1
    return done
