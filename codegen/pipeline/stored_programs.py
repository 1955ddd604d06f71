"""Programs from the store: a process whose copies were compiled before loads neither passes nor schedules.

The store caches the launch plan of a program. The plan is named after the digest of everything that the
program depends on: the request, the machine, and the code of this package. A request that does not consist of
numbers and strings has no such digest, and is compiled in each process.

Every program is looked up: a miss takes 50 us, and compiling a copy takes 200 us or more.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from codegen.backend.store import KernelStore, default_store
from codegen.backend.store_files import digest_of
from codegen.backend.store_key import lowering_digest
from codegen.maps.access import in_common_units
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.launch_plans import plan_of, program_of
from codegen.schedule.machine import machine
from codegen.support.caching import cached
from codegen.support.locks import compiler_lock
from codegen.support.settings import settings

if TYPE_CHECKING:
    from codegen.pipeline.program import CopyProgram


def find_copy(request: CopyRequest) -> CopyProgram:
    """The program of a copy, from the store or compiled."""
    store = default_store()
    if store.folder is None or settings().verify:
        return _compiled(request)
    digest = request_digest(request, store)
    if digest is None:
        return _compiled(request)
    planned = _planned(store.get_plan(digest), digest, request)
    if planned is not None:
        return planned
    program = _compiled(request)
    plan = plan_of(program) if store.plans_left > 0 else None
    if plan is not None:
        store.put_plan(digest, {"digest": digest, **plan})
    return program


def _compiled(request: CopyRequest) -> CopyProgram:
    with compiler_lock:
        from codegen.pipeline.copies import compile_copy  # which stored programs do not need
    return compile_copy(request)


@cached(16)
def _compiled_again(request: CopyRequest) -> CopyProgram:
    """The program with its stages, to inspect it or to build a kernel that the store lacks."""
    return _compiled(request)


def request_digest(request: CopyRequest, store: KernelStore) -> str | None:
    """The digest of everything that determines the program; None for a request that is not all data."""
    try:
        facts = _facts(request), _facts(machine()), lowering_digest(store)
    except TypeError:
        return None
    return digest_of(repr(facts).encode())


def _planned(plan: dict[str, Any] | None, digest: str, request: CopyRequest) -> CopyProgram | None:
    """The program that a launch plan describes; None if the plan is missing or invalid."""
    if plan is None or plan.get("digest") != digest:
        return None
    try:
        maps = in_common_units(request.src, request.dst)
        return program_of(plan, *maps, partial(_compiled_again, request))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _facts(value: Any) -> Any:
    """A value as nested tuples of numbers and strings, whose `repr` differs wherever values differ.

    Raises:
        TypeError: a part is neither a number nor a string, such as a function.
    """
    if value is None or type(value) in (int, str, bytes, bool):
        return value
    if type(value) is tuple:
        return tuple(map(_facts, value))
    if is_dataclass(value):
        kind = type(value)
        parts = (_facts(getattr(value, x.name)) for x in fields(value))
        return (kind.__module__, kind.__qualname__, *parts)
    raise TypeError(f"{type(value).__name__} is not data")
