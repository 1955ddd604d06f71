"""Machine code may call only allowed functions, which is checked when it is stored and when it is loaded."""

from __future__ import annotations

import ctypes

import pytest

from codegen.backend.build import NumbaIr, machine_code, parse, target_machine
from codegen.backend.object_symbols import can_be_loaded, undefined_symbols
from codegen.backend.store import KernelStore
from codegen.backend.store_files import digest_of
from codegen.backend.store_key import store_key
from codegen.runtime import kernel
from codegen.support.cpu import cpu_level, level_named
from codegen.support.errors import KernelError

CALLS = """
declare i32 @{called}(ptr)
define void @{name}(i64 %operands, i64 %scratch, i64 %sizes, i64 %begin, i64 %end) {{
  %pointer = inttoptr i64 %operands to ptr
  %result = call i32 @{called}(ptr %pointer)
  ret void
}}
"""

COPY = """
def {0}(operands, scratch, sizes, begin, end):
    src, dst = addresses_2(operands)
    copy_block(dst, src, min(end - begin, 99))
"""
FOREIGN = ("system", "execve", "puts", "numba_unpickle", "PyErr_Clear", "NRT_incref", "__stack_chk_fail")


def object_calling(name: str, called: str) -> bytes:
    """Machine code that passes its first argument to a function."""
    machine = target_machine(cpu_level())
    return bytes(machine.emit_object(parse(CALLS.format(name=name, called=called), machine)))


@pytest.mark.parametrize("called", FOREIGN)
def test_foreign_functions_are_refused_at_loading(called: str) -> None:
    code = object_calling("foreign", called)
    assert undefined_symbols(code) == {called}
    assert not can_be_loaded(code)


@pytest.mark.parametrize("level", ["avx2", "neon"])
@pytest.mark.parametrize("called", FOREIGN)
def test_foreign_functions_are_refused_before_storing(called: str, level: str) -> None:
    with pytest.raises(KernelError, match=called):
        machine_code(
            NumbaIr("foreign", "foreign", CALLS.format(name="foreign", called=called)), level_named(level)
        )


def test_allowed_functions_are_loaded() -> None:
    assert can_be_loaded(object_calling("allowed", "memcpy"))
    assert can_be_loaded(object_calling("allowed", "exp"))


def test_a_truncated_object_or_other_data_cannot_be_loaded() -> None:
    code = object_calling("cut", "memcpy")
    assert can_be_loaded(code)
    assert not any(can_be_loaded(code[:length]) for length in range(len(code)))
    assert not can_be_loaded(b"not an object")


def test_a_stored_object_with_a_forbidden_call_is_rebuilt(fresh_store: KernelStore) -> None:
    """Even with a valid checksum under the right key, such an object is not run."""
    name = "copy_beside_a_foreign_object"
    source = COPY.format(name)
    key = store_key(digest_of(source.encode()), cpu_level())
    planted = object_calling(name, "system")
    fresh_store.put(key, planted)
    call = kernel.native(name, source)
    src, dst = ctypes.create_string_buffer(b"abcdef"), ctypes.create_string_buffer(b"123456")
    call(kernel.copy_operands(ctypes.addressof(src), ctypes.addressof(dst)), 0, 0, 0, 4)
    assert dst.value == b"abcd56"
    assert fresh_store.get(key) not in (None, planted)
