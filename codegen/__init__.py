"""The compiler: access maps, loop nests, Python source, native kernels. It knows no XLA and no CuTe.

This module is the facade: everything that `tilejit` and `bench` import from the compiler. A name is
imported when it is first used, because importing everything would take ten times as long as a first copy.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from codegen.analysis.bodies import shared_loop as shared_loop
    from codegen.analysis.bounds import check_bounds as check_bounds
    from codegen.analysis.bounds import known_sizes as known_sizes
    from codegen.analysis.bounds import nested_accesses as nested_accesses
    from codegen.analysis.divisibility import check_divisible as check_divisible
    from codegen.analysis.index_checks import IndexChecks as IndexChecks
    from codegen.analysis.index_checks import index_arrays as index_arrays
    from codegen.analysis.integers import check_fits as check_fits
    from codegen.analysis.integers import check_indices as check_indices
    from codegen.analysis.integers import check_powers as check_powers
    from codegen.analysis.report import LoopReport as LoopReport
    from codegen.analysis.strides import ELEMENT_BYTES as ELEMENT_BYTES
    from codegen.backend.progress import compilations as compilations
    from codegen.backend.store import default_store as default_store
    from codegen.backend.store_check import remove_entries as remove_entries
    from codegen.backend.store_check import verify_store as verify_store
    from codegen.frontend.functions import UFUNCS as UFUNCS
    from codegen.frontend.functions import call_ufunc as call_ufunc
    from codegen.frontend.operands import Operand as Operand
    from codegen.frontend.operands import cast_operand as cast_operand
    from codegen.frontend.operands import convert_operand as convert_operand
    from codegen.frontend.operands import literal_operand as literal_operand
    from codegen.frontend.operands import select_operand as select_operand
    from codegen.frontend.operands import strong_operand as strong_operand
    from codegen.frontend.operations import apply_op as apply_op
    from codegen.frontend.operations import truth_operand as truth_operand
    from codegen.frontend.python_ast import read_function as read_function
    from codegen.frontend.scope import LOOP_MARK as LOOP_MARK
    from codegen.frontend.source_text import pointed as pointed
    from codegen.ir import dtypes as dtypes
    from codegen.ir.combiners import neutral as neutral
    from codegen.ir.dtypes import FLOAT_FUNCTIONS as FLOAT_FUNCTIONS
    from codegen.ir.dtypes import numpy_dtype as numpy_dtype
    from codegen.ir.element_types import HALF_TYPES as HALF_TYPES
    from codegen.ir.element_types import INTEGER_TYPES as INTEGER_TYPES
    from codegen.ir.element_types import can_convert as can_convert
    from codegen.ir.index import Affine as Affine
    from codegen.ir.index import ArrayElement as ArrayElement
    from codegen.ir.index import Bitwise as Bitwise
    from codegen.ir.index import FloorDiv as FloorDiv
    from codegen.ir.index import FromEnd as FromEnd
    from codegen.ir.index import Index as Index
    from codegen.ir.index import Inside as Inside
    from codegen.ir.index import Mod as Mod
    from codegen.ir.index import Sum as Sum
    from codegen.ir.index import add_indices as add_indices
    from codegen.ir.index import depends_on_elements as depends_on_elements
    from codegen.ir.index import evaluate_index as evaluate_index
    from codegen.ir.index import index_symbol as index_symbol
    from codegen.ir.index import index_symbols as index_symbols
    from codegen.ir.index import scale_index as scale_index
    from codegen.ir.instructions import conversion as conversion
    from codegen.ir.integer_operators import bitwise as bitwise
    from codegen.ir.interpreter import interpret as interpret
    from codegen.ir.nodes import COMBINERS as COMBINERS
    from codegen.ir.nodes import ArrayArg as ArrayArg
    from codegen.ir.nodes import Carried as Carried
    from codegen.ir.nodes import For as For
    from codegen.ir.nodes import Function as Function
    from codegen.ir.nodes import If as If
    from codegen.ir.nodes import Let as Let
    from codegen.ir.nodes import ScalarArg as ScalarArg
    from codegen.ir.nodes import Statement as Statement
    from codegen.ir.nodes import Store as Store
    from codegen.ir.print_index import SsaNames as SsaNames
    from codegen.ir.print_names import mlir_element as mlir_element
    from codegen.ir.print_names import mlir_memref as mlir_memref
    from codegen.ir.print_names import mlir_type as mlir_type
    from codegen.ir.printer import FunctionPrinter as FunctionPrinter
    from codegen.ir.printer import format_function as format_function
    from codegen.ir.streams import Stream as Stream
    from codegen.ir.strided_box import Element as Element
    from codegen.ir.values import Const as Const
    from codegen.ir.values import IndexValue as IndexValue
    from codegen.ir.values import Load as Load
    from codegen.ir.values import Local as Local
    from codegen.ir.values import Op as Op
    from codegen.ir.values import Reduce as Reduce
    from codegen.ir.values import Value as Value
    from codegen.ir.visit import constant_trips as constant_trips
    from codegen.ir.visit import parts as parts
    from codegen.ir.visit import values_of as values_of
    from codegen.maps.access import AccessMap as AccessMap
    from codegen.maps.access import Root as Root
    from codegen.maps.access import logical_roots as logical_roots
    from codegen.maps.access import map_offset as map_offset
    from codegen.maps.access import map_range as map_range
    from codegen.maps.access import strided_map as strided_map
    from codegen.maps.block_grid import BlockGrid as BlockGrid
    from codegen.maps.block_grid import grains as grains
    from codegen.maps.digit_names import index_name as index_name
    from codegen.maps.digit_trees import Leaf as Leaf
    from codegen.maps.digit_trees import Offsets as Offsets
    from codegen.maps.digit_trees import Opaque as Opaque
    from codegen.maps.digit_trees import Split as Split
    from codegen.maps.digit_trees import Switch as Switch
    from codegen.maps.digit_trees import Tree as Tree
    from codegen.maps.digit_trees import Window as Window
    from codegen.maps.digit_trees import ceil_div as ceil_div
    from codegen.maps.digit_trees import coalesce_tree as coalesce_tree
    from codegen.maps.digit_trees import evaluate_tree as evaluate_tree
    from codegen.maps.digit_trees import mode_tree as mode_tree
    from codegen.maps.digit_trees import offset_range as offset_range
    from codegen.maps.digit_trees import truncate_tree as truncate_tree
    from codegen.maps.offset_function import offset_function as offset_function
    from codegen.maps.permuted import PermutedMap as PermutedMap
    from codegen.maps.refine import PairTable as PairTable
    from codegen.maps.windows import moved_map as moved_map
    from codegen.maps.windows import tight_map as tight_map
    from codegen.maps.windows import window_map as window_map
    from codegen.passes.add_disjoint_bits import add_disjoint_bits as add_disjoint_bits
    from codegen.passes.drop_empty import drop_empty as drop_empty
    from codegen.passes.name_loops import name_loops as name_loops
    from codegen.passes.rename_arrays import rename_arrays as rename_arrays
    from codegen.passes.shallow import flatten_values as flatten_values
    from codegen.passes.specialize_sizes import specialize_sizes as specialize_sizes
    from codegen.pipeline.block_program import BlockProgram as BlockProgram
    from codegen.pipeline.calibrate import CALIBRATED_FROM_BYTES as CALIBRATED_FROM_BYTES
    from codegen.pipeline.calibrate import calibrate_machine as calibrate_machine
    from codegen.pipeline.calibrate import remembered_stream_bytes as remembered_stream_bytes
    from codegen.pipeline.calibrate import streamed_from as streamed_from
    from codegen.pipeline.compile_staging import compile_stage as compile_stage
    from codegen.pipeline.compile_staging import outgrows_caches as outgrows_caches
    from codegen.pipeline.copies import compile_copy as compile_copy
    from codegen.pipeline.copy_options import CopyOptions as CopyOptions
    from codegen.pipeline.copy_request import CopyRequest as CopyRequest
    from codegen.pipeline.index_limits import limits_call as limits_call
    from codegen.pipeline.loops import Vectorized as Vectorized
    from codegen.pipeline.loops import in_tiles as in_tiles
    from codegen.pipeline.loops import loop_kernel as loop_kernel
    from codegen.pipeline.loops import schedule_function as schedule_function
    from codegen.pipeline.loops import vectorize_function as vectorize_function
    from codegen.pipeline.loops import verify_calls as verify_calls
    from codegen.pipeline.program import CopyProgram as CopyProgram
    from codegen.pipeline.program import footprint_bytes as footprint_bytes
    from codegen.pipeline.single_passes import single_passes as single_passes
    from codegen.pipeline.staged import StagedProgram as StagedProgram
    from codegen.pipeline.staged_copy import staged_copy as staged_copy
    from codegen.pipeline.staged_loops import StagedOperand as StagedOperand
    from codegen.pipeline.staged_loops import staged_loops as staged_loops
    from codegen.pipeline.steps import source_of_step as source_of_step
    from codegen.pipeline.stored_programs import find_copy as find_copy
    from codegen.pipeline.tune import best_times as best_times
    from codegen.pipeline.tune import fastest as fastest
    from codegen.pipeline.tune import machine_facts as machine_facts
    from codegen.pipeline.tune import tuned as tuned
    from codegen.pipeline.tune_copies import tuned_copies as tuned_copies
    from codegen.pipeline.tune_live import LiveProgram as LiveProgram
    from codegen.pipeline.tune_live import live_copy as live_copy
    from codegen.pipeline.verify_promises import check_independence as check_independence
    from codegen.pipeline.verify_promises import promises_independence as promises_independence
    from codegen.runtime.call_tables import Integers as Integers
    from codegen.runtime.direct_calls import Direct as Direct
    from codegen.runtime.direct_calls import is_direct as is_direct
    from codegen.runtime.direct_entries import Argument as Argument
    from codegen.runtime.direct_entries import ArrayArgument as ArrayArgument
    from codegen.runtime.direct_entries import DirectCall as DirectCall
    from codegen.runtime.direct_entries import Disjoint as Disjoint
    from codegen.runtime.direct_entries import Entry as Entry
    from codegen.runtime.direct_entries import FloatArgument as FloatArgument
    from codegen.runtime.direct_entries import FreshArray as FreshArray
    from codegen.runtime.direct_entries import HolderArgument as HolderArgument
    from codegen.runtime.direct_entries import PassedThrough as PassedThrough
    from codegen.runtime.direct_entries import SameAddress as SameAddress
    from codegen.runtime.direct_entries import SameArgument as SameArgument
    from codegen.runtime.direct_entries import own_scratch as own_scratch
    from codegen.runtime.float_flags import ALL_FLAGS as ALL_FLAGS
    from codegen.runtime.float_flags import CLEAR_FLAGS as CLEAR_FLAGS
    from codegen.runtime.float_flags import FLAG_BITS as FLAG_BITS
    from codegen.runtime.float_flags import FLAGS_SUPPORTED as FLAGS_SUPPORTED
    from codegen.runtime.float_flags import TEST_FLAGS as TEST_FLAGS
    from codegen.runtime.kernel import KERNEL_PROTOTYPES as KERNEL_PROTOTYPES
    from codegen.runtime.kernel import Kernel as Kernel
    from codegen.runtime.kernel import copy_operands as copy_operands
    from codegen.runtime.kernel import kernels_in_use as kernels_in_use
    from codegen.runtime.launch import KernelCall as KernelCall
    from codegen.runtime.launch import Launch as Launch
    from codegen.runtime.loop_kernel import BoundKernel as BoundKernel
    from codegen.runtime.loop_kernel import LoopKernel as LoopKernel
    from codegen.runtime.offset_builder import build_offset_calls as build_offset_calls
    from codegen.runtime.offset_calls import OffsetCalls as OffsetCalls
    from codegen.runtime.step import Step as Step
    from codegen.runtime.threads import check_threads as check_threads
    from codegen.runtime.threads import in_dask_worker as in_dask_worker
    from codegen.runtime.threads import run_parts as run_parts
    from codegen.runtime.threads import thread_count as thread_count
    from codegen.runtime.threads import threads_by_size as threads_by_size
    from codegen.schedule.call_limits import BOUND_BY_MEMORY as BOUND_BY_MEMORY
    from codegen.schedule.call_limits import COMPUTES as COMPUTES
    from codegen.schedule.call_limits import COPIES_HOLD_GIL_BYTES as COPIES_HOLD_GIL_BYTES
    from codegen.schedule.call_limits import LEND_BUFFER_BYTES as LEND_BUFFER_BYTES
    from codegen.schedule.call_limits import TRANSPOSES as TRANSPOSES
    from codegen.schedule.call_limits import may_stage as may_stage
    from codegen.schedule.call_limits import may_stage_digits as may_stage_digits
    from codegen.schedule.check_loops import read_loop_directives as read_loop_directives
    from codegen.schedule.choose_blocks import fills_blocks as fills_blocks
    from codegen.schedule.choose_lanes import choose_shape as choose_shape
    from codegen.schedule.choose_lanes import only_reduces as only_reduces
    from codegen.schedule.choose_strips import choose_strips as choose_strips
    from codegen.schedule.choose_strips import strips_text as strips_text
    from codegen.schedule.choose_tiles import choose_tiles as choose_tiles
    from codegen.schedule.choose_tiles import choose_transposed_tiles as choose_transposed_tiles
    from codegen.schedule.choose_tiles import runs_in_tiles as runs_in_tiles
    from codegen.schedule.directives import Directive as Directive
    from codegen.schedule.directives import Parallel as Parallel
    from codegen.schedule.directives import Tail as Tail
    from codegen.schedule.directives import Tile as Tile
    from codegen.schedule.directives import Vectorize as Vectorize
    from codegen.schedule.hold_gil import loops_hold_gil as loops_hold_gil
    from codegen.schedule.loop_groups import outer_loop as outer_loop
    from codegen.schedule.machine import MACHINE_FACTS as MACHINE_FACTS
    from codegen.schedule.machine import Machine as Machine
    from codegen.schedule.machine import described as described
    from codegen.schedule.machine import machine as machine
    from codegen.schedule.read_directives import check_calls as check_calls
    from codegen.schedule.read_directives import pointing as pointing
    from codegen.schedule.read_directives import refuse as refuse
    from codegen.schedule.slowness import has_costly as has_costly
    from codegen.schedule.slowness import slowness_of as slowness_of
    from codegen.schedule.staging import StageCopy as StageCopy
    from codegen.schedule.vector_size import MOST_DIMS as MOST_DIMS
    from codegen.schedule.vector_size import Size as Size
    from codegen.schedule.vector_size import read_vector_sizes as read_vector_sizes
    from codegen.schedule.vector_size import sizes_in_elements as sizes_in_elements
    from codegen.support.caching import Cache as Cache
    from codegen.support.caching import cached as cached
    from codegen.support.caching import clear_caches as clear_caches
    from codegen.support.caching import lazy as lazy
    from codegen.support.caching import lazy_pattern as lazy_pattern
    from codegen.support.caching import on_clear as on_clear
    from codegen.support.callers import caller_stacklevel as caller_stacklevel
    from codegen.support.dataclasses import dataclass as dataclass
    from codegen.support.errors import FallbackWarning as FallbackWarning
    from codegen.support.errors import IntegerError as IntegerError
    from codegen.support.errors import KernelError as KernelError
    from codegen.support.errors import KernelIndexError as KernelIndexError
    from codegen.support.errors import KernelValueError as KernelValueError
    from codegen.support.errors import LayoutError as LayoutError
    from codegen.support.errors import LayoutIndexError as LayoutIndexError
    from codegen.support.errors import OperandError as OperandError
    from codegen.support.errors import OutOfMemoryError as OutOfMemoryError
    from codegen.support.errors import PowerError as PowerError
    from codegen.support.errors import ScheduleError as ScheduleError
    from codegen.support.errors import StoreError as StoreError
    from codegen.support.errors import TilejitError as TilejitError
    from codegen.support.errors import shown as shown
    from codegen.support.locks import compiler_lock as compiler_lock
    from codegen.support.locks import hold_in_forks as hold_in_forks
    from codegen.support.settings import settings as settings
    from codegen.support.versions import is_free_threaded as is_free_threaded

TILEJIT = True
"""Distinguishes this package from others named codegen."""

_HOMES = {
    "analysis.bodies": "shared_loop",
    "analysis.bounds": "check_bounds known_sizes nested_accesses",
    "analysis.divisibility": "check_divisible",
    "analysis.index_checks": "IndexChecks index_arrays",
    "analysis.integers": "check_fits check_indices check_powers",
    "analysis.report": "LoopReport",
    "analysis.strides": "ELEMENT_BYTES",
    "backend.progress": "compilations",
    "backend.store": "default_store",
    "backend.store_check": "remove_entries verify_store",
    "frontend.functions": "UFUNCS call_ufunc",
    "frontend.operands": "Operand cast_operand convert_operand literal_operand select_operand strong_operand",
    "frontend.operations": "apply_op truth_operand",
    "frontend.python_ast": "read_function",
    "frontend.scope": "LOOP_MARK",
    "frontend.source_text": "pointed",
    "ir.combiners": "neutral",
    "ir.dtypes": "FLOAT_FUNCTIONS numpy_dtype",
    "ir.element_types": "HALF_TYPES INTEGER_TYPES can_convert",
    "ir.index": (
        "Affine ArrayElement Bitwise FloorDiv FromEnd Index Inside Mod Sum add_indices depends_on_elements "
        "evaluate_index index_symbol index_symbols scale_index"
    ),
    "ir.instructions": "conversion",
    "ir.integer_operators": "bitwise",
    "ir.interpreter": "interpret",
    "ir.nodes": "ArrayArg COMBINERS Carried For Function If Let ScalarArg Statement Store",
    "ir.print_index": "SsaNames",
    "ir.print_names": "mlir_element mlir_memref mlir_type",
    "ir.printer": "FunctionPrinter format_function",
    "ir.streams": "Stream",
    "ir.strided_box": "Element",
    "ir.values": "Const IndexValue Load Local Op Reduce Value",
    "ir.visit": "constant_trips parts values_of",
    "maps.access": "AccessMap Root logical_roots map_offset map_range strided_map",
    "maps.block_grid": "BlockGrid grains",
    "maps.digit_names": "index_name",
    "maps.digit_trees": (
        "Leaf Offsets Opaque Split Switch Tree Window ceil_div coalesce_tree evaluate_tree mode_tree "
        "offset_range truncate_tree"
    ),
    "maps.offset_function": "offset_function",
    "maps.permuted": "PermutedMap",
    "maps.refine": "PairTable",
    "maps.windows": "moved_map tight_map window_map",
    "passes.add_disjoint_bits": "add_disjoint_bits",
    "passes.drop_empty": "drop_empty",
    "passes.name_loops": "name_loops",
    "passes.rename_arrays": "rename_arrays",
    "passes.shallow": "flatten_values",
    "passes.specialize_sizes": "specialize_sizes",
    "pipeline.block_program": "BlockProgram",
    "pipeline.calibrate": "CALIBRATED_FROM_BYTES calibrate_machine streamed_from remembered_stream_bytes",
    "pipeline.compile_staging": "compile_stage outgrows_caches",
    "pipeline.copies": "compile_copy",
    "pipeline.copy_options": "CopyOptions",
    "pipeline.copy_request": "CopyRequest",
    "pipeline.index_limits": "limits_call",
    "pipeline.loops": "Vectorized in_tiles loop_kernel schedule_function vectorize_function verify_calls",
    "pipeline.program": "CopyProgram footprint_bytes",
    "pipeline.single_passes": "single_passes",
    "pipeline.staged": "StagedProgram",
    "pipeline.staged_copy": "staged_copy",
    "pipeline.staged_loops": "StagedOperand staged_loops",
    "pipeline.stored_programs": "find_copy",
    "pipeline.steps": "source_of_step",
    "pipeline.tune": "best_times fastest machine_facts tuned",
    "pipeline.tune_copies": "tuned_copies",
    "pipeline.tune_live": "LiveProgram live_copy",
    "pipeline.verify_promises": "check_independence promises_independence",
    "runtime.call_tables": "Integers",
    "runtime.direct_calls": "Direct is_direct",
    "runtime.direct_entries": (
        "Argument ArrayArgument DirectCall Disjoint Entry FloatArgument FreshArray HolderArgument "
        "PassedThrough SameAddress SameArgument own_scratch"
    ),
    "runtime.float_flags": "ALL_FLAGS CLEAR_FLAGS FLAGS_SUPPORTED FLAG_BITS TEST_FLAGS",
    "runtime.kernel": "KERNEL_PROTOTYPES Kernel copy_operands kernels_in_use",
    "runtime.launch": "KernelCall Launch",
    "runtime.loop_kernel": "BoundKernel LoopKernel",
    "runtime.offset_builder": "build_offset_calls",
    "runtime.offset_calls": "OffsetCalls",
    "runtime.step": "Step",
    "runtime.threads": "check_threads in_dask_worker run_parts thread_count threads_by_size",
    "schedule.call_limits": (
        "BOUND_BY_MEMORY COMPUTES COPIES_HOLD_GIL_BYTES LEND_BUFFER_BYTES TRANSPOSES may_stage "
        "may_stage_digits"
    ),
    "schedule.check_loops": "read_loop_directives",
    "schedule.choose_lanes": "choose_shape only_reduces",
    "schedule.choose_strips": "choose_strips strips_text",
    "schedule.choose_blocks": "fills_blocks",
    "schedule.choose_tiles": "choose_tiles choose_transposed_tiles runs_in_tiles",
    "schedule.directives": "Directive Parallel Tail Tile Vectorize",
    "schedule.hold_gil": "loops_hold_gil",
    "schedule.loop_groups": "outer_loop",
    "schedule.machine": "MACHINE_FACTS Machine described machine",
    "schedule.read_directives": "check_calls pointing refuse",
    "schedule.slowness": "has_costly slowness_of",
    "schedule.staging": "StageCopy",
    "schedule.vector_size": "MOST_DIMS Size read_vector_sizes sizes_in_elements",
    "support.caching": "Cache cached clear_caches lazy lazy_pattern on_clear",
    "support.callers": "caller_stacklevel",
    "support.dataclasses": "dataclass",
    "support.errors": (
        "FallbackWarning IntegerError KernelError KernelIndexError KernelValueError LayoutError "
        "LayoutIndexError OperandError OutOfMemoryError PowerError ScheduleError StoreError TilejitError "
        "shown"
    ),
    "support.locks": "compiler_lock hold_in_forks",
    "support.settings": "settings",
    "support.versions": "is_free_threaded",
}
"""The module of each name; the same names as in the imports above, which a test compares."""

_HOME_OF = {name: f"codegen.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    """A name of the compiler, imported when it is first used; `dtypes` is a module."""
    if name == "dtypes":
        return _import_module("codegen.ir.dtypes")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, "dtypes"})
