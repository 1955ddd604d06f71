"""Programs in the store: a process whose copies were compiled before loads neither passes nor schedules.

The name of a note is the digest of everything that `compile_copy` depends on: maps, elements and options, the
machine, and the code of this package. A request whose parts are not all numbers and texts has no such digest,
and is compiled in each process.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from codegen.backend.store import KernelStore, default_store, lowering_digest
from codegen.backend.store_files import digest_of
from codegen.maps.access import in_common_units
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program_notes import note_of, program_of
from codegen.schedule.machine import machine
from codegen.support.caching import cached
from codegen.support.locks import compiler_lock
from codegen.support.settings import settings

if TYPE_CHECKING:
    from codegen.pipeline.program import CopyProgram

MOST_PROGRAMS = 32
"""The first programs of a process that the store is asked for.

It would grow with every shape. A process that asks for more has loaded the compiler by then.
"""

_asked = count()


def find_copy(request: CopyRequest) -> CopyProgram:
    """The program of a copy, from the store or compiled."""
    store = default_store()
    if store.folder is None or settings().verify or next(_asked) >= MOST_PROGRAMS:
        return _compiled(request)
    digest = request_digest(request, store)
    if digest is None:
        return _compiled(request)
    name = f"program-{digest[:32]}"
    known = _known(store.get_note(name), digest, request)
    if known is not None:
        return known
    program = _compiled(request)
    note = note_of(program)
    if note is not None:
        store.put_note(name, {"digest": digest, **note})
    return program


def _compiled(request: CopyRequest) -> CopyProgram:
    with compiler_lock:
        from codegen.pipeline.copies import compile_copy  # which stored programs do not need
    return compile_copy(request)


@cached(16)
def _compiled_again(request: CopyRequest) -> CopyProgram:
    """The program, compiled to be inspected."""
    return _compiled(request)


def request_digest(request: CopyRequest, store: KernelStore) -> str | None:
    """The digest of everything that determines the program; None for a request that is not all data."""
    try:
        facts = _facts(request), _facts(machine()), lowering_digest(store)
    except TypeError:
        return None
    return digest_of(repr(facts).encode())


def _known(note: dict[str, Any] | None, digest: str, request: CopyRequest) -> CopyProgram | None:
    """The program that a note describes; None without one, or if the note is odd."""
    if note is None or note.get("digest") != digest:
        return None
    try:
        return program_of(note, *in_common_units(request.src, request.dst), partial(_compiled_again, request))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _facts(value: Any) -> Any:
    """A value as tuples of numbers and texts: they differ, and so does their `repr`, wherever values do.

    Raises:
        TypeError: a part is neither, such as a function.
    """
    if value is None or type(value) in (int, str, bytes, bool):
        return value
    if type(value) is tuple:
        return tuple(map(_facts, value))
    if is_dataclass(value):
        return (type(value).__name__, *(_facts(getattr(value, x.name)) for x in fields(value)))
    raise TypeError(f"{type(value).__name__} is not data")
