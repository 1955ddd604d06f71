"""Objects loaded without LLVM behave as if LLVM had loaded them; objects that are not simple go to LLVM."""

from __future__ import annotations

import ctypes
import struct
from random import Random

import pytest

from codegen.backend import elf, object_loader
from codegen.backend.build import build, parse, target_machine
from codegen.backend.object_loader import Image, image, load_object
from codegen.runtime.kernel import KERNEL_PROTOTYPES, copy_operands
from codegen.support.cpu import cpu_level
from codegen.support.errors import KernelError
from tests.codegen.backend.test_object_symbols import COPY, object_calling

pytestmark = pytest.mark.skipif(not object_loader.RUNS_HERE, reason="LLVM loads all objects here")

TABLE = """
@table = {kind} [4 x i64] [i64 11, i64 22, i64 33, i64 44]
define i64 @entry(i64 %k) {{
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %k
  %value = load i64, ptr %place
  ret i64 %value
}}
define i64 @other(i64 %k) {{
  %value = call i64 @entry(i64 %k)
  %more = add i64 %value, 100
  ret i64 %more
}}
"""
CONSTANTS, VARIABLES = TABLE.format(kind="constant"), TABLE.format(kind="global")


def compiled(ir: str, **options: str) -> bytes:
    """The object of some IR, by default with the code model of kernels."""
    if not options:
        machine = target_machine(cpu_level())
    else:
        from llvmlite import binding

        machine = binding.Target.from_triple(cpu_level().triple).create_target_machine(**options)
    return bytes(machine.emit_object(parse(ir, machine)))


def values(address: int) -> list[int]:
    return list(map(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address), range(4)))


@pytest.mark.parametrize(("name", "wanted"), [("entry", [11, 22, 33, 44]), ("other", [111, 122, 133, 144])])
def test_constants_and_calls_within_an_object(name: str, wanted: list[int]) -> None:
    """LLVM loads a name only once, so it gets names that only this test uses."""
    code = compiled(CONSTANTS)
    assert image(name, code) is not None
    assert values(load_object(name, code)) == wanted


def test_an_object_may_call_the_c_library() -> None:
    code = object_calling("calls_memcpy", "exp")
    found = image("calls_memcpy", code)
    assert found is not None
    assert [x.function for x in found.wanted] == ["exp"]


def test_a_loaded_kernel_runs() -> None:
    """Copies of a kernel's runs and tails, including memcpy."""
    code = bytes(build("either", COPY.format("either"), cpu_level()).object_code)
    call = KERNEL_PROTOTYPES[False](load_object("either", code))
    for count in (0, 1, 31, 64, 99):
        src = ctypes.create_string_buffer(bytes(range(1, 100)))
        dst = ctypes.create_string_buffer(100)
        call(copy_operands(ctypes.addressof(src), ctypes.addressof(dst)), 0, 0, 0, count)
        assert dst.raw == bytes(range(1, count + 1)) + bytes(100 - count)


@pytest.mark.parametrize(
    ("ir", "options"),
    [(VARIABLES, {}), (CONSTANTS.replace("entry", "small"), {"reloc": "pic", "codemodel": "small"})],
    ids=["data that are written to", "relative addresses"],
)
def test_other_objects_are_left_to_llvm(ir: str, options: dict[str, str]) -> None:
    name = "small" if options else "entry"
    code = compiled(ir, **options)
    assert image(name, code) is None
    assert values(load_object(name, code)) == [11, 22, 33, 44]


def test_a_missing_kernel_is_an_error() -> None:
    with pytest.raises(KernelError, match="does not define it"):
        load_object("nothing_of_that_name", compiled(CONSTANTS))


def test_a_missing_function_is_an_error() -> None:
    with pytest.raises(KernelError, match="no_such_function"):
        load_object("calls_nothing", object_calling("calls_nothing", "no_such_function"))


def test_executable_memory_is_not_writable() -> None:
    begin = load_object("entry", compiled(CONSTANTS))
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[:2] for line in maps]
    (kind,) = [
        kind for span, kind in ranges if int(span.split("-")[0], 16) <= begin < int(span.split("-")[1], 16)
    ]
    assert kind == "r-xp"


def test_a_truncated_object_is_not_loaded() -> None:
    code = compiled(CONSTANTS)
    assert image("entry", code)
    assert not any(image("entry", code[:length]) for length in range(len(code)))


def test_damaged_objects_write_nothing_outside(seed: int) -> None:
    """Checksums reject damage. If one fits by chance, nothing outside the code is written."""
    random, whole = Random(seed), compiled(CONSTANTS)
    tables = [n for n, byte in enumerate(whole) if byte] + list(range(len(whole) - 900, len(whole)))
    kept = 0
    for _ in range(4000):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            data[random.choice(tables)] ^= 1 << random.randrange(8)
        found = image("entry", bytes(data))
        if found is not None:
            assert _is_within(found)
            kept += 1
    assert kept > 100


def _is_within(found: Image) -> bool:
    ends = [x.offset + elf.ADDRESS_BYTES for x in found.wanted]
    return max(ends, default=0) <= len(found.content) and 0 <= found.entry < len(found.content)


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01", b"MZ" * 99, struct.pack("<64Q", *[2**63] * 64)])
def test_other_data_is_refused(data: bytes) -> None:
    assert image("entry", data) is None
