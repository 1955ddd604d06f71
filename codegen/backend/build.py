"""Source to object code: Numba emits LLVM IR, llvmlite compiles it. Imports numba, so import it lazily.

Numba types the source and emits barely optimized IR. llvmlite compiles that IR for a CPU level, which may
belong to another architecture.
"""

from __future__ import annotations

import gc
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
from codegen.simd.register import byte_shuffles, completed_lines, level_networks
from codegen.simd.register.numba_passes import KernelPasses
from codegen.simd.routines import bound_routines
from codegen.simd.vector import math
from codegen.support.caching import cached
from codegen.support.cpu import CpuLevel
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError
from codegen.support.locks import compiler_lock, hold_in_forks

# Another thread may be compiling with Numba directly; a forked child could then never take its lock.
hold_in_forks(global_compiler_lock)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """Machine code that defines the kernel's name, and the IR that it was compiled from."""

    object_code: bytes
    llvm_ir: str


@dataclass(frozen=True, slots=True)
class NumbaIr:
    """A kernel's IR and symbol as Numba emits them; the same for every level."""

    name: str
    symbol: str
    text: str


def build(name: str, source: str, level: CpuLevel) -> BuiltKernel:
    """Compile the kernel that `source` defines.

    Raises:
        KernelError: Numba or LLVM rejects it, or the code calls a function that is missing at run time.
    """
    with compiler_lock:
        return machine_code(numba_ir(name, source), level)


def numba_ir(name: str, source: str) -> NumbaIr:
    """Numba's half of `build`.

    Raises:
        KernelError: Numba rejects the source.
    """
    with compiler_lock, _nothing_to_run(), _asking_once(), _no_garbage_collection():
        function = _function(name, source)
        try:
            compile_function = numba.cfunc(
                _signature(function), error_model="numpy", pipeline_class=KernelPasses
            )
            compiled = compile_function(function)
        except numba.core.errors.NumbaError as error:
            raise KernelError(f"Numba rejects the kernel {name}\n{error}") from error
        return NumbaIr(name, compiled.native_name, compiled.inspect_llvm())


class _IrLibrary(JITCodeLibrary):
    """A library that Numba links into callers and prints, but does not compile to machine code.

    Only its functions' own passes run here: `optimize` optimizes once, for the level.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Run Numba's function passes from one manager; Numba makes one for each function and declaration."""
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
    """Numba's generator for this machine, but nothing is loaded, so that constants have no addresses."""

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
    """Make Numba stop at IR; other threads' functions wait and then compile as usual.

    Otherwise Numba would optimize every kernel and routine for this machine and compile it to machine code.
    That takes half of its time, and it keeps the code for the life of the process. Numba's lock is taken
    inside TileJIT's, never the other way around; `locks` explains why that is safe.
    """
    with global_compiler_lock:
        context = cpu_target.target_context
        context.refresh()  # creates Numba's own runtime, which must run, if it is missing
        own = context._internal_codegen
        context._internal_codegen = _ir_generator()
        try:
            yield
        finally:
            context._internal_codegen = own


@contextmanager
def _asking_once() -> Iterator[None]:
    """Resolve each function's signature once per argument types, not once per call.

    For each `+` of two integers Numba tries all its rules for `+`, array rules first.
    """
    context = cpu_target.typing_context
    resolve_uncached = context.resolve_function_type

    def resolve(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if isinstance(function, types.Function) and not keywords:
            return _signature_of_call(function, arguments)
        return resolve_uncached(function, arguments, keywords)

    context.resolve_function_type = resolve
    try:
        yield
    finally:
        del context.resolve_function_type


@cached(4096)
def _signature_of_call(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Numba's signature of a call; the function itself keeps its overloads."""
    context = cpu_target.typing_context
    return type(context).resolve_function_type(context, function, arguments, {})


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection: it finds little, and visits all of Numba's nodes again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def machine_code(kernel: NumbaIr, level: CpuLevel) -> BuiltKernel:
    """LLVM's half of `build`, for any level, whether this machine supports it or not.

    Raises:
        KernelError: the code calls a function that is missing at run time.
    """
    with compiler_lock:
        machine = target_machine(level)
        module = parse(kernel.text, machine)
        names = [each.name for each in (*module.functions, *module.global_variables)]
        for library in (math, byte_shuffles, completed_lines, level_networks):
            if definitions := library.library(names, level):
                module.link_in(parse(definitions, machine))
        optimize(module, kernel.symbol, machine)
        module.get_function(kernel.symbol).name = kernel.name
        ir = str(module)
        object_code = machine.emit_object(module)
    foreign = undefined_symbols(object_code) - ALLOWED_SYMBOLS
    if foreign:
        raise KernelError(
            f"the kernel {kernel.name} calls {sorted(foreign)}, which are missing without numba"
        )
    return BuiltKernel(object_code, ir)


def assembly(llvm_ir: str, level: CpuLevel) -> str:
    """The machine code as text."""
    machine = target_machine(level)
    return str(machine.emit_assembly(parse(llvm_ir, machine)))


def target_machine(level: CpuLevel) -> Any:
    """LLVM's target machine for a level; its code has absolute addresses, as the loader requires."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(level.triple)
    return target.create_target_machine(
        cpu=level.llvm_cpu, features=level.llvm_features, opt=3, reloc="default", codemodel="jitdefault"
    )


def parse(llvm_ir: str, machine: Any) -> Any:
    """The IR as a verified module for that machine, whatever machine it was emitted for.

    Kernels compute addresses from integers, so nothing depends on another machine's data layout.
    """
    module = llvm.parse_assembly(llvm_ir)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module


def optimize(module: Any, symbol: str, machine: Any) -> None:
    """Keep only the kernel, inline its callees, and optimize for the level rather than for Numba's CPU.

    Numba links entire libraries, with Python wrappers and error paths that are unreachable here.
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
    # A large kernel is not inlined into its wrapper, so only these passes show that it cannot fail.
    last = llvm.create_new_module_pass_manager()
    last.add_ipsccp_pass()
    last.add_simplify_cfg_pass()
    last.add_global_dead_code_eliminate_pass()
    last.run(module, builder)
    _dispose(last)


def _dispose(passes: Any) -> None:
    """Free the memory of a pass manager, 0.1 MiB for each kernel.

    llvmlite 0.50 fails to do so, because its managers inherit `_dispose` from ObjectRef first, which does
    nothing.
    """
    if type(passes)._dispose is ObjectRef._dispose:
        NewPassManager._dispose(passes)
        passes.detach()
    else:
        passes.close()


def _signature(function: Any) -> Any:
    """64-bit integer arguments, and a 64-bit integer result if the source declares `-> int`."""
    result = numba.int64 if "return" in function.__annotations__ else numba.void
    return result(*[numba.int64] * function.__code__.co_argcount)


def _function(name: str, source: str) -> Any:
    """Define the kernel, and make its source available to tracebacks."""
    file = f"<tilejit {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    exec(compile(source, file, "exec"), namespace)
    function = namespace[name]
    namespace.update(bound_routines(function.__code__.co_names))
    return function
