"""What will be written of a file: planned as far as that goes without its elements, nothing made yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from pathlib import Path

from codegen import LayoutError, dataclass
from tilejit.files.recorded import kept_up
from tilejit.files.resume import Origin, origin_of
from tilejit.files.stream import Advance, Output, Say, Target, write_outputs
from tilejit.files.tensor_file import TensorFile
from tilejit.files.whole_file import refuse_to_clobber
from tilejit.layout.cute_shape import Spec


@dataclass(frozen=True, slots=True)
class Converted:
    """One tensor that is packed, unpacked or brought into another layout; `spec` is the packed shape."""

    name: str
    spec: Spec
    source_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A file to write: its tensors in the order of the source, and those of them that are converted.

    layouts   what the file will say of tensors by name; None where it forgets a layout
    misfits   tensors that stay as they are, since the layout does not fit them, and why
    integers  tensors whose dtype a conversion of all tensors to a floating-point type leaves alone
    """

    source: TensorFile = field(repr=False)
    outputs: tuple[Output, ...]
    converted: tuple[Converted, ...]
    layouts: Mapping[str, Spec | None]
    misfits: tuple[tuple[str, LayoutError], ...] = ()
    integers: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the tensors that are converted, but not to the dtype."""
        left = {*self.left}
        return tuple(name for name in self.integers if name not in left)

    @property
    def left(self) -> tuple[str, ...]:
        """The names of the tensors that the layout does not fit."""
        return tuple(name for name, _ in self.misfits)

    @property
    def fits(self) -> bool:
        """Whether some tensor is converted as was asked; where only those that keep their dtype are, it is
        the dtype that does not fit.
        """
        integers = {*self.integers}
        alike = {c.name for c in self.converted} - integers or not {*self.left} - integers
        return bool(self.converted and alike)

    @property
    def layout(self) -> Spec | None:
        """The layout that the array of a file without names will have; None for a plain one."""
        return next(iter(self.layouts.values()), None)

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
    ) -> None:
        """Make and write tensor by tensor; the target changes only when all is done.

        target: a file, or a sink such as standard output, which gets the bytes as they come. advance: called
        with every so many bytes written. resume: leave what was written in the target's .partial where the
        process ends early, and go on from there the next time; `say` is told so. recorded: keep the layouts
        that are recorded beside the target up to date. clobber: without it, a file that is there is kept; not
        with `resume`.

        Raises:
            LayoutError: a value does not fit the packed dtype, named with its tensor.
            TilejitError: the target is not a regular file, another run is writing it, or it is there without
                `clobber`.
            OSError: the disk refuses.
        """
        if not clobber and isinstance(target, str | os.PathLike):
            refuse_to_clobber(target)  # before anything that is recorded of the file changes
        header, outputs = self.source.header_of(self.outputs, self.layouts)
        origin = self._origin(header) if resume else None
        name = Path(target).name if isinstance(target, str | os.PathLike) else ""
        told = None if say is None else lambda text: say(f"{name}: {text}")
        keep: AbstractContextManager[None] = nullcontext()
        if recorded and self.source.one_array and isinstance(target, str | os.PathLike):
            keep = kept_up(target, self.layout)
        with keep:
            write_outputs(target, header, outputs, advance, origin=origin, say=told, clobber=clobber)

    def origin(self) -> Origin:
        """What tells the file that will be written from all others."""
        header, _ = self.source.header_of(self.outputs, self.layouts)
        return self._origin(header)

    def _origin(self, header: bytes) -> Origin:
        return origin_of(self.source.identity, header, ((c.name, c.spec.to_json()) for c in self.converted))


def check_fits(plans: Iterable[Plan], *, strictly: bool) -> None:
    """Refuse a layout that fits no tensor, or not all of them where the caller named them `strictly`.

    Raises:
        LayoutError: why it does not fit the first.
    """
    plans = list(plans)
    reason = next((error for plan in plans for _, error in plan.misfits), None)
    if reason is not None and (strictly or not any(plan.fits for plan in plans)):
        raise reason
