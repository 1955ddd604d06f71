"""Pack and unpack the tensors of a safetensors file, one in memory at a time, large ones in pieces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

from codegen import LayoutError
from tilejit.files import container
from tilejit.files import tensors as single
from tilejit.files.container import Container, Entry, Output
from tilejit.files.resume import Origin
from tilejit.files.rules import Rules, rules_of
from tilejit.files.stream import Advance, Made, Say, Target
from tilejit.files.tensors import METADATA_PREFIX, MisfitError
from tilejit.layout.cute_shape import Spec


@dataclass(frozen=True, slots=True)
class Converted:
    """One tensor that is packed or unpacked, and its bytes before and after."""

    name: str
    spec: Spec
    source_bytes: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be written: checked as far as that goes without the data, nothing made yet."""

    source: Container = field(repr=False)
    outputs: tuple[Output, ...]
    metadata: dict[str, str]
    converted: tuple[Converted, ...]
    kept: tuple[str, ...] = ()
    """Tensors of integers that a conversion of all tensors to a floating-point type left alone."""
    misfits: tuple[tuple[str, LayoutError], ...] = ()
    """Tensors that stay as they are, since the layout does not fit them, and why."""

    strangers: tuple[str, ...] = ()
    """Those of the misfits whose dtype would have been converted."""

    @property
    def left(self) -> tuple[str, ...]:
        """The names of the tensors that the layout does not fit."""
        return tuple(name for name, _ in self.misfits)

    @property
    def reason(self) -> str:
        """Why the first of those stays."""
        return str(self.misfits[0][1]) if self.misfits else ""

    @property
    def fits(self) -> bool:
        """Whether some tensor is converted as was asked; where only those that keep their dtype are, it is
        the dtype that does not fit.
        """
        alike = {c.name for c in self.converted} - set(self.kept) or not self.strangers
        return bool(self.converted and alike)

    @property
    def tensors(self) -> int:
        """How many tensors the file will have."""
        return len(self.outputs)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors to write."""
        return sum(output.nbytes for output in self.outputs)

    def checked(self, *, strictly: bool) -> Plan:
        """The plan, if the layout fits some tensor, or all of them where the caller named them `strictly`.

        Raises:
            LayoutError: why it does not fit the first.
        """
        if self.misfits and (strictly or not self.fits):
            raise self.misfits[0][1]
        return self

    def write(
        self,
        path: Target,
        advance: Advance | None = None,
        *,
        resume: bool = False,
        say: Say | None = None,
    ) -> None:
        """Make and write tensor by tensor; `path` changes only when all is done.

        resume: leave what was written in `path`.partial where the process ends early, and go on from there
        the next time; `say` is told so.

        Raises:
            LayoutError: a value does not fit the packed dtype, named with its tensor.
            OSError: the disk refuses.
        """
        origin = self.origin() if resume else None
        container.write(path, self.outputs, self.metadata, advance, origin=origin, say=say)

    def origin(self) -> Origin:
        """What tells the file that will be written from all others."""
        return container.origin(self.source, self.outputs, self.metadata)


def plan_pack(
    source: str | os.PathLike[str],
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    dtype: str | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """What packing a safetensors file will write.

    >>> plan_pack("model.safetensors", "tpu").write("model.tpu.safetensors")

    layout, parameters: whatever `as_layout` reads for every tensor that is packed, and the keywords of a
    format or a pattern; or Rules. tensors: their names; none means all that the layout fits: others, such as
    biases where it is one of matrices, are `left` as they are. dtype: convert to it on the way, as a C cast
    does; without `tensors`, a floating-point dtype is for floating-point tensors, and integers and booleans
    keep their own, since a model's indices do not survive in bf16.

    Raises:
        LayoutError: the file is damaged, a tensor asked for cannot be packed so, or none can; the message
            names it.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, dtype, parameters)
    plan = draft_pack(container.read(source), rules, tensors or None, threads)
    return plan.checked(strictly=bool(tensors))


def draft_pack(file: Container, rules: Rules, tensors: Collection[str] | None, threads: int | None) -> Plan:
    """The plan of `plan_pack`, whether or not the layout fits any tensor; of all tensors for None."""
    draft = _Draft(file, chosen(file, tensors))
    for entry in draft.others(rules):
        wish = rules.wish(entry.name)
        assert wish is not None
        keeps = wish.dtype is not None and tensors is None and single.keeps_its_dtype(entry, wish.dtype)
        own = None if keeps else wish.dtype
        if keeps:
            draft.kept.append(entry.name)
        with draft.misfits_of(entry):
            spec = single.packed_spec(file, entry, wish.layout, own, dict(wish.parameters))
            casting = "no" if own is None else "unsafe"
            draft.add(entry, spec, partial(single.packed, file, entry, spec, casting, threads))
    return draft.plan()


def plan_unpack(
    source: str | os.PathLike[str], *, tensors: Collection[str] = (), threads: int | None = None
) -> Plan:
    """What unpacking a safetensors file will write: every packed tensor as it was, its metadata entry gone.

    >>> plan_unpack("model.tpu.safetensors").write("model.safetensors")

    Narrow integers come back as I8 or U8, since safetensors has no narrower ones.

    Raises:
        LayoutError: the file is damaged, or a tensor asked for is not packed.
        OSError: the file cannot be read.
    """
    return draft_unpack(container.read(source), tensors or None, threads)


def draft_unpack(file: Container, tensors: Collection[str] | None, threads: int | None) -> Plan:
    """The plan of `plan_unpack` for an open file."""
    wanted = packed_names(file) if tensors is None else chosen(file, tensors)
    gone = {METADATA_PREFIX + name for name in wanted}
    metadata = {key: text for key, text in file.metadata.items() if key not in gone}
    outputs: list[Output] = []
    converted: list[Converted] = []
    for entry in file.entries:
        if entry.name not in wanted:
            outputs.append(single.copied(file, entry))
            continue
        try:
            spec = single.kept_spec(file, entry)
            restored = single.restored_as(spec)
        except (LayoutError, TypeError) as error:
            raise single.named(entry, error) from error
        size = prod(spec.dimensions) * container.DTYPE_BITS[restored] // 8
        make = partial(single.unpacked, file, entry, spec, restored, threads)
        outputs.append(Output(entry.name, restored, spec.dimensions, size, make))
        converted.append(Converted(entry.name, spec, entry.nbytes, size))
    return Plan(file, tuple(outputs), metadata, tuple(converted))


def plan_relayout(
    source: str | os.PathLike[str],
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """What bringing the packed tensors of a safetensors file into another layout will write.

    >>> plan_relayout("model.tpu.safetensors", "tenstorrent").write("model.tt.safetensors")

    layout, parameters: whatever `as_layout` reads for every tensor, and the keywords of a format or a
    pattern; or Rules without dtypes. tensors: their names; none means all that are packed and that the layout
    fits: others are `left` packed as they are.

    Raises:
        LayoutError: the file is damaged, a tensor asked for is not packed, or the layout does not fit it, or
            fits none.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, None, parameters)
    plan = draft_relayout(container.read(source), rules, tensors or None, threads)
    return plan.checked(strictly=bool(tensors))


def draft_relayout(
    file: Container, rules: Rules, tensors: Collection[str] | None, threads: int | None
) -> Plan:
    """The plan of `plan_relayout`, whether or not the layout fits any tensor; of all tensors for None."""
    draft = _Draft(file, packed_names(file) if tensors is None else chosen(file, tensors))
    for entry in draft.others(rules):
        wish = rules.wish(entry.name)
        assert wish is not None
        with draft.misfits_of(entry):
            old = single.kept_spec(file, entry)
            if wish.dtype is not None:
                raise LayoutError("a relayout converts no elements\n  leave dtype out of the rule")
            spec = single.spec_of(wish.layout, old.dimensions, old.primitive_type, dict(wish.parameters))
            if spec.primitive_type != old.primitive_type:
                raise MisfitError(
                    f"the layout is for {spec.primitive_type}, the tensor is {old.primitive_type}"
                )
            draft.add(entry, spec, partial(single.relaid, file, entry, old, spec, threads))
    return draft.plan()


class _Draft:
    """A plan as it grows, tensor by tensor in the order of the file."""

    def __init__(self, file: Container, wanted: Collection[str]) -> None:
        self.file, self.wanted = file, wanted
        self.metadata = dict(file.metadata)
        self.outputs: list[Output] = []
        self.converted: list[Converted] = []
        self.kept: list[str] = []
        self.misfits: list[tuple[str, LayoutError]] = []

    def others(self, rules: Rules) -> Iterator[Entry]:
        """The tensors to convert; those that stay are written down on the way."""
        for entry in self.file.entries:
            if entry.name in self.wanted and rules.wish(entry.name) is not None:
                yield entry
            else:
                self.outputs.append(single.copied(self.file, entry))

    @contextmanager
    def misfits_of(self, entry: Entry) -> Iterator[None]:
        """Leave the tensor as it is where the layout does not fit it; other errors name it."""
        try:
            yield
        except MisfitError as error:
            self.misfits.append((entry.name, single.named(entry, error)))
            self.outputs.append(single.copied(self.file, entry))
        except (LayoutError, TypeError) as error:
            raise single.named(entry, error) from error

    def add(self, entry: Entry, spec: Spec, make: Callable[[], Made]) -> None:
        self.outputs.append(Output(entry.name, *single.stored_as(spec), spec.size_in_bytes, make))
        self.converted.append(Converted(entry.name, spec, entry.nbytes, spec.size_in_bytes))
        self.metadata[METADATA_PREFIX + entry.name] = json.dumps(spec.to_json(), separators=(",", ":"))

    def plan(self) -> Plan:
        left = {name for name, _ in self.misfits}
        kept = tuple(name for name in self.kept if name not in left)
        plan = Plan(self.file, tuple(self.outputs), self.metadata, tuple(self.converted), kept)
        strangers = tuple(sorted(left - set(self.kept)))
        return replace(plan, misfits=tuple(self.misfits), strangers=strangers)


def packed_names(file: Container) -> set[str]:
    """The tensors that the metadata says are packed."""
    return {entry.name for entry in file.entries if METADATA_PREFIX + entry.name in file.metadata}


def chosen(file: Container, tensors: Collection[str] | None) -> set[str]:
    """The tensors of those names; all for None.

    Raises:
        LayoutError: the file has none of a name.
    """
    names = {entry.name for entry in file.entries}
    if tensors is None:
        return names
    unknown = [name for name in tensors if name not in names]
    if unknown:
        some = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
        raise LayoutError(f"there is no tensor {unknown[0]!r}\n  the file has {some or 'none'}")
    return set(tensors)
