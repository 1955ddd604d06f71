"""Plans for open files of any type: which tensors are converted, and how their bytes are created.

One tensor is in memory at a time; large tensors are created in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.files import made
from tilejit.files.casts import Cast
from tilejit.files.packings import Packings, Record, packing_of
from tilejit.files.pieces import Pieces
from tilejit.files.plan import Converted, Plan
from tilejit.files.rules import Conversion, Rules
from tilejit.files.stream import Made, Named, Output
from tilejit.files.tensor_file import Entry, MisfitError, TensorFile, row_major
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import lookup, primitive_type, unambiguous_name
from tilejit.programs.tuning import SAME_KIND, Casting, check_casting
from tilejit.tiled.buffers import writable_layout

Make = Callable[[], Array | Pieces]


def draft_pack(
    file: TensorFile,
    names: Collection[str] | None,
    rules: Rules,
    threads: int | None,
    casting: Casting = SAME_KIND,
    *,
    again: bool = False,
    dims: tuple[int, ...] | None = None,
) -> Plan:
    """The plan to pack the tensors with those names (all tensors for None), even if the layout fits none.

    With `again`, packed tensors are packed once more: as flat arrays, or as arrays of `dims`.
    """
    draft = _Draft(file, file.chosen(names))
    for entry, conversion in draft.conversions(rules):
        with draft.misfits_of(entry, conversion):
            packings = file.packings(entry)
            if packings and not again:
                others = "" if file.one_array else ", select others with --tensor"
                raise LayoutError(
                    f"it is already in {packings[-1]}\n"
                    f"  unpack it with plan_file_unpack{others}, or pass again=True to pack it once more"
                )
            if not packings and names is not None:  # plan_directory looks at all files at once
                _refuse_suspected(file, entry)
            if packings:
                file.tiled(entry)  # raises if the record belongs to another tensor
            own = file.element_type(entry, conversion.dtype or _named_dtype(conversion))
            is_named = names is not None or file.one_array or not conversion.is_general
            dtype = draft.dtype_of(entry, own, conversion.dtype, is_named=is_named)
            if packings and dtype is not None:
                _check_same(own, dtype)
            if dims is not None and packings:
                entry = _reshaped(entry, dims)
            try:
                spec = _packed_spec(own, dtype, entry.shape, conversion)
            except MisfitError as error:
                if dims is not None or not packings:
                    raise
                cause, _, _ = str(error).partition("\n")
                fix = "packed elements are stored flat: write their dimensions, e.g. --dims 128,16"
                raise MisfitError(f"{cause}\n  {fix}") from error
            file.unpacked_as(spec)  # reject tensors that the file type could not store after unpacking
            cast = _cast(own, spec.primitive_type, casting) if dtype else None
            make = partial(_packed, file, entry, own, spec, cast, threads)
            draft.pack(entry, (*packings, _packing(conversion, spec)), make, cast)
    return draft.plan(packed=False)


def draft_unpack(
    file: TensorFile,
    names: Collection[str] | None,
    threads: int | None,
    dtype: str | None = None,
    casting: Casting = SAME_KIND,
) -> Plan:
    """The plan to unpack the tensors with those names, or all packed tensors for None."""
    draft = _Draft(file, _packed_among(file, names))
    for entry in draft.wanted_entries():
        with draft.errors_of(entry):
            tiled = file.tiled(entry)
            own, is_named = tiled.layout.primitive_type, names is not None or file.one_array
            wanted = draft.dtype_of(entry, own, dtype, is_named=is_named)
            packings = file.packings(entry)
            if len(packings) > 1 and wanted is not None:
                _check_same(own, wanted)
            cast = _cast(own, own if wanted is None else primitive_type(wanted).name, casting)
            dtype_in_file, target = file.unpacked_as(
                row_major(cast.want if cast else own, tiled.layout.dimensions)
            )
        make = partial(made.unpacked, tiled, target, cast, threads)
        shape = target.dimensions if len(packings) == 1 else file.packed_as(packings[-2].spec)[1]
        draft.unpack(entry, packings, tiled.layout, dtype_in_file, shape, target.size_in_bytes, make, cast)
    return draft.plan(packed=True)


def draft_relayout(
    file: TensorFile, names: Collection[str] | None, rules: Rules, threads: int | None
) -> Plan:
    """The plan to relayout the tensors with those names, or all packed tensors for None."""
    draft = _Draft(file, _packed_among(file, names))
    for entry, conversion in draft.conversions(rules):
        with draft.misfits_of(entry, conversion):
            tiled = file.tiled(entry)
            if conversion.dtype is not None:
                raise LayoutError("a relayout does not convert elements\n  omit the rule's dtype")
            old = tiled.layout
            spec = _fitting(conversion, old.primitive_type, old.dimensions)
            if spec.primitive_type != old.primitive_type:
                raise MisfitError(
                    f"the layout is for {spec.primitive_type}, but the tensor is {old.primitive_type}"
                )
            packings = (*file.packings(entry)[:-1], _packing(conversion, spec))
            draft.pack(entry, packings, partial(made.relaid, tiled, spec, threads))
    return draft.plan(packed=True)


class _Draft:
    """A plan under construction, tensor by tensor in file order."""

    def __init__(self, file: TensorFile, wanted: Collection[str]) -> None:
        self.file, self.wanted = file, wanted
        self.records: dict[str, Packings] = {}
        self.outputs: list[Output] = []
        self.converted: list[Converted] = []
        self.integers: list[str] = []
        self.misfits: list[tuple[str, LayoutError]] = []

    def wanted_entries(self) -> Iterator[Entry]:
        """The tensors to convert; all other tensors are planned as copies."""
        for entry in self.file.entries:
            if entry.name in self.wanted:
                yield entry
            else:
                self.copy(entry)

    def conversions(self, rules: Rules) -> Iterator[tuple[Entry, Conversion]]:
        """The tensors that a rule converts, each with its new layout and dtype."""
        for entry in self.wanted_entries():
            conversion = rules.conversion(entry.name)
            if conversion is None:
                self.copy(entry)
            else:
                yield entry, conversion

    @contextmanager
    def errors_of(self, entry: Entry, origin: str = "") -> Iterator[None]:
        """Add the name of a tensor to errors, and the origin of its layout."""
        try:
            yield
        except (LayoutError, TypeError) as error:
            raise self._named(entry, error, origin) from error

    @contextmanager
    def misfits_of(self, entry: Entry, conversion: Conversion) -> Iterator[None]:
        """Keep a tensor unchanged if the layout does not fit it; other errors name the tensor."""
        with self.errors_of(entry, conversion.origin):
            try:
                yield
            except MisfitError as error:
                self.misfits.append((entry.name, self._named(entry, error, conversion.origin)))
                self.copy(entry)

    def dtype_of(self, entry: Entry, own: str, dtype: str | None, *, is_named: bool) -> str | None:
        """The dtype to convert a tensor to; None keeps its own, as for indices if it would be a float."""
        if dtype is not None and not is_named and _becomes_float(own, dtype):
            self.integers.append(entry.name)
            return None
        return dtype

    def copy(self, entry: Entry) -> None:
        """Plan the tensor as it is, with its record, if any."""
        if self.file.one_array and self.file.is_packed(entry):  # other files keep their own metadata
            self.records[entry.name] = self.file.packings(entry)
        stored = partial(self.file.stored, entry)
        self.outputs.append(Output(entry.name, entry.dtype, entry.shape, entry.nbytes, stored))

    def pack(self, entry: Entry, packings: Packings, make: Make, cast: Cast | None = None) -> None:
        """Plan a tensor as a packed buffer, in the layout of its last packing."""
        spec = packings[-1].spec
        dtype, shape = self.file.packed_as(spec)
        self._convert(entry, spec, dtype, shape, spec.size_in_bytes, make, cast)
        self.records[entry.name] = packings

    def unpack(
        self,
        entry: Entry,
        packings: Packings,
        spec: Spec,
        dtype: Any,
        shape: tuple[int, ...],
        nbytes: int,
        make: Make,
        cast: Cast | None,
    ) -> None:
        """Plan a packed tensor as elements in row-major order, without its last packing."""
        self._convert(entry, spec, dtype, shape, nbytes, make, cast)
        self.records[entry.name] = packings[:-1]

    def plan(self, *, packed: bool) -> Plan:
        """The complete plan; `packed` tells whether the file is read as a packed one."""
        outputs, converted = tuple(self.outputs), tuple(self.converted)
        misfits, integers = tuple(self.misfits), tuple(self.integers)
        unexplained = self.file.unexplained(packed=packed)
        return Plan(self.file, outputs, converted, self.records, misfits, integers, unexplained)

    def _named(self, entry: Entry, error: Exception, origin: str) -> LayoutError:
        named = self.file.named(entry, error)
        return LayoutError(f"{origin}: {named}") if origin else named

    def _convert(
        self,
        entry: Entry,
        spec: Spec,
        dtype: Any,
        shape: tuple[int, ...],
        nbytes: int,
        make: Make,
        cast: Cast | None,
    ) -> None:
        named = partial(_named, self.file, entry, make, cast)
        self.outputs.append(Output(entry.name, dtype, shape, nbytes, named))
        self.converted.append(Converted(entry.name, spec, entry.nbytes, cast))


def _packed_among(file: TensorFile, names: Collection[str] | None) -> set[str]:
    """The tensors with those names, or all packed tensors for None."""
    chosen = file.chosen(names)
    if names is not None:
        return chosen
    return {entry.name for entry in file.entries if file.is_packed(entry)}


def _reshaped(entry: Entry, dims: tuple[int, ...]) -> Entry:
    """A flat packed tensor as an array of those dimensions.

    Raises:
        MisfitError: they have another number of elements.
    """
    if prod(dims) != prod(entry.shape):
        raise MisfitError(
            f"its buffer has {prod(entry.shape)} elements, but dims {list(dims)} have {prod(dims)}\n"
            "  pass dimensions with as many elements"
        )
    return replace(entry, shape=dims)


def _refuse_suspected(file: TensorFile, entry: Entry) -> None:
    """Raise if a tensor without a record may be packed."""
    if why := file.suspected(entry):
        raise LayoutError(why)


def _packing(conversion: Conversion, spec: Spec) -> Record:
    """The record of a conversion to a layout."""
    return packing_of(conversion.given or conversion.layout, conversion.parameters, spec)


def _check_same(own: str, dtype: str) -> None:
    """Raise unless a buffer that is packed more than once keeps its dtype."""
    wanted = primitive_type(dtype).name
    if wanted != own:
        raise LayoutError(
            f"a buffer that is packed again keeps its dtype: expected {own}, got {wanted}\n"
            "  omit --dtype, or unpack the buffer first"
        )


def _packed_spec(own: str, dtype: str | None, dims: tuple[int, ...], conversion: Conversion) -> Spec:
    """The shape in which elements of the type `own` are packed, converted to `dtype` unless it is None."""
    wanted = own if dtype is None else primitive_type(dtype).name
    spec = _fitting(conversion, wanted, dims)
    held = spec.element.byte_dtype
    narrowed = dtype is None and held is not None and lookup(own).numpy == held
    if spec.primitive_type != wanted and not narrowed:
        fate = (
            f"is {own}\n  convert with --dtype {unambiguous_name(spec.element)}"
            if dtype is None
            else f"becomes {wanted}"
        )
        raise MisfitError(f"the layout is for {spec.primitive_type}, but the tensor {fate}")
    return spec


def _fitting(conversion: Conversion, dtype: str, dims: tuple[int, ...]) -> Spec:
    """The shape of a tensor in its new layout.

    Raises:
        MisfitError: the layout is for other ranks, dtypes or sizes, or cannot be read.
        TypeError: the layout does not take a parameter for any tensor.
    """
    try:
        spec = as_layout(conversion.layout, dtype=lookup(dtype), dims=dims, **conversion.parameters)
        writable_layout(spec)
    except LayoutError as error:
        raise MisfitError(str(error)) from error
    return spec


def _named_dtype(conversion: Conversion) -> str | None:
    """The dtype of a layout that names the whole array, such as "bf16[8,8]{0,1}"; None for others."""
    try:
        return unambiguous_name(as_layout(conversion.layout, **conversion.parameters).element)
    except (LayoutError, TypeError):
        return None


def _becomes_float(own: str, dtype: str) -> bool:
    """Whether a conversion would turn indices, flags or complex numbers into floating-point numbers.

    s64 to bf16, c64 to bf16, pred to c64 -> True    f32 to bf16, f32 to c64, f32 to s8 -> False
    """
    before, after = lookup(own).kind, primitive_type(dtype).kind
    return after in ("float", "complex") and before not in ("float", after)


def _cast(own: str, wanted: str, casting: Casting) -> Cast | None:
    """The conversion of elements to another type; None if they have it.

    Raises:
        LayoutError: the rule `casting` forbids it.
    """
    check_casting(casting)
    if own == wanted:
        return None
    cast = Cast(own, wanted, casting)
    cast.check()
    return cast


def _packed(
    file: TensorFile, entry: Entry, own: str, spec: Spec, cast: Cast | None, threads: int | None
) -> Array | Pieces:
    return made.packed(file.elements(entry, own), spec, cast, threads)


def _named(file: TensorFile, entry: Entry, make: Make, cast: Cast | None) -> Made:
    """The bytes of a tensor, with errors that name it."""
    if cast is not None:
        cast.start()
    try:
        result = make()
    except (LayoutError, TypeError) as error:
        raise file.named(entry, error) from error
    finish = cast.finish if cast is not None else None
    if isinstance(result, Pieces):
        return Named(result, partial(file.named, entry), finish)
    if finish is not None:
        finish()
    return result
