"""Source to object code: Numba to LLVM IR, llvmlite to machine code. Imports numba: import lazily.

Numba types the source and makes IR of it, hardly optimized; what llvmlite makes of that is for a CPU level,
which may be another architecture's.
"""

from __future__ import annotations

import gc
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager
from numba.core import types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from codegen.backend.object_symbols import ALLOWED_SYMBOLS, undefined_symbols
from codegen.simd.register.numba_passes import KernelPasses
from codegen.simd.routines import routines
from codegen.simd.vector import math
from codegen.support.cpu import CpuLevel
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock, hold_in_forks

# Another thread may be compiling with Numba directly: its lock would stay taken in a child for ever.
hold_in_forks(global_compiler_lock)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """Machine code that defines the kernel's name, and the IR it came from."""

    object_code: bytes
    llvm_ir: str


@dataclass(frozen=True, slots=True)
class NumbaIr:
    """A kernel as Numba leaves it, with the symbol that it has there; the same for every level."""

    name: str
    symbol: str
    text: str


def build(name: str, source: str, level: CpuLevel) -> BuiltKernel:
    """Compile the kernel that `source` defines.

    Raises:
        KernelError: Numba or LLVM refuses, or the code would call something that is not there at run time.
    """
    with compiler_lock:
        return machine_code(numba_ir(name, source), level)


def numba_ir(name: str, source: str) -> NumbaIr:
    """Numba's half of `build`.

    Raises:
        KernelError: Numba refuses.
    """
    with compiler_lock, _nothing_to_run(), _asking_once(), _no_collection():
        function = _function(name, source)
        try:
            compile_function = numba.cfunc(
                _signature(function), error_model="numpy", pipeline_class=KernelPasses
            )
            compiled = compile_function(function)
        except numba.core.errors.NumbaError as error:
            raise KernelError(f"numba refuses the kernel {name}\n{error}") from error
        return NumbaIr(name, compiled.native_name, compiled.inspect_llvm())


class _IrLibrary(JITCodeLibrary):
    """What Numba compiles, to be linked into callers and printed; no machine code is made of it.

    Nor is it optimized beyond its functions' own passes: `optimize` does that once, for the level.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Numba's passes for one function; it makes them anew for each, and for every declaration."""
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()  # type: ignore[no-untyped-call]
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        _dispose(passes)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_specific(self) -> None:
        pass

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class _IrGenerator(JITCPUCodegen):
    """Numba's generator for this machine, but that nothing is loaded, so that no constant has an address."""

    _library_class = _IrLibrary

    def _add_module(self, module: object) -> None:
        pass

    def set_env(self, env_name: str, env: object) -> None:
        pass


@cache
def _ir_generator() -> _IrGenerator:
    return _IrGenerator("tilejit")  # type: ignore[no-untyped-call]


@contextmanager
def _nothing_to_run() -> Iterator[None]:
    """Numba compiles to IR alone meanwhile; other threads' functions wait, and are compiled as ever.

    It would optimize every kernel and every routine for this machine and make machine code of them, which is
    half of its time, and keep that for as long as the process lives. Numba's lock is taken under ours, never
    the other way round: `locks` says why that is safe.
    """
    with global_compiler_lock:
        context = cpu_target.target_context
        context.refresh()  # makes Numba's own runtime, which does run, if it is not there
        own = context._internal_codegen
        context._internal_codegen = _ir_generator()
        try:
            yield
        finally:
            context._internal_codegen = own


@contextmanager
def _asking_once() -> Iterator[None]:
    """What a function gives for arguments of some types is asked once meanwhile, not for every call of it.

    For each `+` of two integers Numba tries all rules that there are for `+`, those of arrays first.
    """
    context = cpu_target.typing_context
    ask = context.resolve_function_type

    def resolve(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if isinstance(function, types.Function) and not keywords:
            return _signature_of_call(function, arguments)
        return ask(function, arguments, keywords)

    context.resolve_function_type = resolve
    try:
        yield
    finally:
        del context.resolve_function_type


@lru_cache(maxsize=4096)
def _signature_of_call(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Numba's answer; the function itself keeps what belongs to it."""
    context = cpu_target.typing_context
    return type(context).resolve_function_type(context, function, arguments, {})


@contextmanager
def _no_collection() -> Iterator[None]:
    """No search for garbage meanwhile: it finds little, and visits all nodes of Numba's again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def machine_code(kernel: NumbaIr, level: CpuLevel) -> BuiltKernel:
    """LLVM's half of `build`, for any level, this machine's or not.

    Raises:
        KernelError: the code would call something that is not there at run time.
    """
    with compiler_lock:
        machine = target_machine(level)
        module = parse(kernel.text, machine)
        definitions = math.library([function.name for function in module.functions], level.name)
        if definitions:
            module.link_in(parse(definitions, machine))
        optimize(module, kernel.symbol, machine)
        module.get_function(kernel.symbol).name = kernel.name
        ir = str(module)
        object_code = machine.emit_object(module)
    foreign = undefined_symbols(object_code) - ALLOWED_SYMBOLS
    if foreign:
        raise KernelError(
            f"the kernel {kernel.name} would call {sorted(foreign)}, which no process without numba has"
        )
    return BuiltKernel(object_code, ir)


def assembly(llvm_ir: str, level: CpuLevel) -> str:
    """The machine code as text."""
    machine = target_machine(level)
    return str(machine.emit_assembly(parse(llvm_ir, machine)))


def target_machine(level: CpuLevel) -> Any:
    """LLVM's target machine for a level; code whose addresses are absolute, as the loader needs."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(level.triple)
    return target.create_target_machine(
        cpu=level.llvm_cpu, features=level.llvm_features, opt=3, reloc="default", codemodel="jitdefault"
    )


def parse(llvm_ir: str, machine: Any) -> Any:
    """The IR as a verified module for that machine, whichever it was made for.

    Nothing in it hangs on the layout of another one: kernels compute addresses from integers.
    """
    module = llvm.parse_assembly(llvm_ir)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module


def optimize(module: Any, symbol: str, machine: Any) -> None:
    """Keep the kernel alone, inline what it calls, and optimize for the level rather than for Numba's CPU.

    Numba links whole libraries: wrappers for Python and error paths that nothing here can reach.
    """
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    _dispose(passes)
    # A large kernel is not inlined into its wrapper; that it cannot fail comes out only now.
    last = llvm.create_new_module_pass_manager()
    last.add_ipsccp_pass()
    last.add_simplify_cfg_pass()
    last.add_global_dead_code_eliminate_pass()
    last.run(module, builder)
    _dispose(last)


def _dispose(passes: Any) -> None:
    """Give the memory of a pass manager back, 0.1 MiB for each kernel.

    llvmlite 0.50 means to: its managers inherit `_dispose` from ObjectRef first, which does nothing.
    """
    if type(passes)._dispose is ObjectRef._dispose:
        NewPassManager._dispose(passes)
        passes.detach()
    else:
        passes.close()


def _signature(function: Any) -> Any:
    """Words; one comes back where the source says so: `-> int`."""
    result = numba.int64 if "return" in function.__annotations__ else numba.void
    return result(*[numba.int64] * function.__code__.co_argcount)


def _function(name: str, source: str) -> Any:
    """Define the kernel; its source stays readable in tracebacks."""
    file = f"<tilejit {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = routines(source)
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]
