"""The planned contents of a file, determined without reading its elements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from codegen import LayoutError, TilejitError, dataclass
from tilejit.files.casts import Cast, Losses
from tilejit.files.packings import Packings
from tilejit.files.provenance import check_records, dropping_sidecar, updating_record
from tilejit.files.resume import Origin, origin_of
from tilejit.files.sidecar import sidecar_of
from tilejit.files.stream import Advance, Output, Say, Target, write_outputs
from tilejit.files.tensor_file import TensorFile
from tilejit.files.whole_file import Around, refuse_to_clobber
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape


@dataclass(frozen=True, slots=True)
class Converted:
    """One tensor that is packed, unpacked or converted to another layout.

    `spec` is the packed shape, and `cast` the conversion of its elements, None if they keep their dtype.
    """

    name: str
    spec: Spec
    source_bytes: int
    cast: Cast | None = None

    @property
    def unpacked(self) -> Shape:
        """The shape without a layout, with the dtype after the cast."""
        bare = self.spec.without_layout()
        return bare if self.cast is None else replace(bare, primitive_type=self.cast.want)


@dataclass(frozen=True, slots=True)
class Plan:
    """A file to write: its tensors in source order, and those that are converted.

    Attributes:
        source: the file to convert.
        outputs: the tensors to write.
        converted: those that are packed, unpacked or converted to another layout.
        records: the packings that the file records, by tensor name; () for a record that it drops.
        misfits: the tensors that stay unchanged because the layout does not fit them, and the reasons.
        integers: the tensors that keep their dtype when all tensors are converted to a floating-point type.
        unexplained: the tensors that may be packed buffers although no layout is known for them.
    """

    source: TensorFile = field(repr=False)
    outputs: tuple[Output, ...]
    converted: tuple[Converted, ...]
    records: Mapping[str, Packings]
    misfits: tuple[tuple[str, LayoutError], ...] = ()
    integers: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()

    @property
    def holds_layouts(self) -> bool:
        """Whether some tensor of the file to write is packed."""
        return any(
            self.records.get(entry.name, self.source.is_packed(entry)) for entry in self.source.entries
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the integer tensors that are converted, but keep their dtype."""
        left = {*self.left}
        return tuple(name for name in self.integers if name not in left)

    @property
    def left(self) -> tuple[str, ...]:
        """The names of the tensors that the layout does not fit."""
        return tuple(name for name, _ in self.misfits)

    @property
    def fits(self) -> bool:
        """Whether some tensor is converted as requested.

        If all converted tensors keep their dtype, the requested dtype does not fit any.
        """
        integers = {*self.integers}
        alike = {c.name for c in self.converted} - integers or not {*self.left} - integers
        return bool(self.converted and alike)

    @property
    def record(self) -> Packings:
        """The packings of the array of a file without names; () for a plain array."""
        return next(iter(self.records.values()), ())

    @property
    def layout(self) -> Spec | None:
        """The new layout of the array of a file without names; None for a plain array."""
        return self.record[-1].spec if self.record else None

    @property
    def losses(self) -> dict[str, Losses]:
        """What the last `write` lost in casts, by tensor name; only tensors that lost something."""
        casts = ((c.name, c.cast.losses) for c in self.converted if c.cast is not None)
        return {name: losses for name, losses in casts if losses.total}

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors to write."""
        return sum(output.nbytes for output in self.outputs)

    def write(
        self,
        target: Target,
        advance: Advance | None = None,
        *,
        resume: bool = False,
        say: Say | None = None,
        recorded: bool = True,
        clobber: bool = True,
        raw: bool | None = None,
        skip: Say | None = None,
    ) -> None:
        """Create and write the tensors one by one; the target changes only after all are done.

        Args:
            target: a file, or a sink such as standard output, which receives the bytes as they are created.
            advance: called with the number of bytes after each write.
            resume: True keeps an unfinished file as the target's .partial, from which the next run continues.
            say: called with a message when a run continues or starts over.
            recorded: whether to update the record beside the target, as opposed to the caller. A sink gets
                none.
            clobber: whether to replace an existing file; must be True with `resume`.
            raw: whether to write only the bytes of an array, without a header. None means for a target with
                another extension than .npy, if the source holds one array.
            skip: called with the name of each tensor that an earlier run wrote completely.

        Raises:
            LayoutError: a value does not fit the packed dtype; the message names its tensor.
            TilejitError: another run is writing the target, or it is not a regular file, or it exists and
                `clobber` is False; or the source holds named tensors and `raw` is True.
            FloatingPointError: a cast overflows, and `np.errstate` asks for an error.
            OSError: the file cannot be written.
        """
        if raw is None and isinstance(target, str | os.PathLike):
            raw = self.source.one_array and Path(target).suffix.lower() != ".npy"
        if raw and not self.source.one_array:
            raise TilejitError("raw bytes hold one array, but this file has named tensors\n  omit raw=True")
        if not clobber and isinstance(target, str | os.PathLike):
            refuse_to_clobber(target)
            if self.record and recorded:
                refuse_to_clobber(sidecar_of(Path(target)))  # of a file that was renamed
        header, outputs = self.source.header_of(self.outputs, self.records)
        header = b"" if raw else header
        origin = self._origin(header) if resume else None
        name = Path(target).name if isinstance(target, str | os.PathLike) else ""
        told = None if say is None else lambda text: say(f"{name}: {text}")
        around: Around = nullcontext
        if self.source.one_array and isinstance(target, str | os.PathLike):
            check_records(target)
            updating = partial(updating_record, target, self.record)
            around = updating if recorded else partial(dropping_sidecar, target)
        write_outputs(
            target,
            header,
            outputs,
            advance,
            origin=origin,
            say=told,
            skip=skip,
            clobber=clobber,
            around=around,
        )

    def origin(self) -> Origin:
        """The identity of the file to write."""
        header, _ = self.source.header_of(self.outputs, self.records)
        return self._origin(header)

    def _origin(self, header: bytes) -> Origin:
        casts = ((c.cast.have, c.cast.want) if c.cast else None for c in self.converted)
        facts = ((c.name, c.spec.to_json(), cast) for c, cast in zip(self.converted, casts, strict=True))
        return origin_of(self.source.identity, header, facts)


def check_fits(plans: Iterable[Plan], *, strictly: bool) -> None:
    """Raise if a layout fits no tensor or, if `strictly`, does not fit every tensor.

    Raises:
        LayoutError: the layout does not fit; the message gives the reason for the first tensor.
    """
    plans = list(plans)
    reason = next((error for plan in plans for _, error in plan.misfits), None)
    if reason is not None and (strictly or not any(plan.fits for plan in plans)):
        raise reason
