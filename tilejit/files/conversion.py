"""Pack, unpack and relayout files of any supported type, given by their paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any

from tilejit.files.draft import draft_pack, draft_relayout, draft_unpack
from tilejit.files.file_types import open_file
from tilejit.files.plan import Plan, check_fits
from tilejit.files.rules import rules_of
from tilejit.files.tensor_file import TensorFile


def plan_file_pack(
    source: str | os.PathLike[str] | TensorFile,
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    dtype: str | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """Plan the packing of a .npy or .safetensors file.

    >>> plan_file_pack("model.safetensors", "tpu").write("model.tpu.safetensors")

    layout, parameters: anything that `as_layout` reads for every packed tensor, and the keywords of a format
    or a pattern; or Rules. tensors: their names. None packs all tensors that the layout fits; others, such as
    biases if it is a layout of matrices, are `left` as they are. dtype: the dtype to convert to, by a C cast.
    Without `tensors`, a floating-point dtype applies to floating-point tensors, and integers and booleans
    keep theirs, because a model's indices do not survive in bf16. The array of a .npy file is converted in
    any case; raw bytes in it are read as elements of the dtype.

    Raises:
        LayoutError: the file is damaged, a requested tensor cannot be packed this way, or none can; the
            message names it.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, dtype, parameters)
    return _planned(source, tensors, lambda file, names: draft_pack(file, names, rules, threads))


def plan_file_unpack(
    source: str | os.PathLike[str] | TensorFile,
    /,
    *,
    tensors: Collection[str] = (),
    threads: int | None = None,
) -> Plan:
    """Plan the unpacking of a file: every packed tensor as it was, without its layout.

    >>> plan_file_unpack("model.tpu.safetensors").write("model.safetensors")
    >>> plan_file_unpack(open_file("x.tpu.npy", shape="bf16[1000,300]{1,0:T(8,128)(2,1)}")).write("x.npy")

    Narrow integers become bytes, because neither file type has narrower ones.

    Raises:
        LayoutError: the file is damaged, or a requested tensor is not packed.
        OSError: the file cannot be read.
    """
    return _planned(source, tensors, lambda file, names: draft_unpack(file, names, threads))


def plan_file_relayout(
    source: str | os.PathLike[str] | TensorFile,
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """Plan the conversion of a file's packed tensors to another layout.

    >>> plan_file_relayout("model.tpu.safetensors", "tenstorrent").write("model.tt.safetensors")

    layout, parameters: anything that `as_layout` reads for every tensor, and the keywords of a format or a
    pattern; or Rules without dtypes. tensors: their names. None converts all packed tensors that the layout
    fits; others are `left` as they are.

    Raises:
        LayoutError: the file is damaged, a requested tensor is not packed, or the layout does not fit it, or
            fits none.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, None, parameters)
    return _planned(source, tensors, lambda file, names: draft_relayout(file, names, rules, threads))


def meant(file: TensorFile, tensors: Collection[str]) -> Collection[str] | None:
    """The names of the tensors to convert; None if the caller gave none and the file may have several.

    A file with a single array needs no name.
    """
    if file.one_array and not tensors:
        return [entry.name for entry in file.entries]
    return tensors or None


def _planned(
    source: str | os.PathLike[str] | TensorFile,
    tensors: Collection[str],
    draft: Callable[[TensorFile, Collection[str] | None], Plan],
) -> Plan:
    file = source if isinstance(source, TensorFile) else open_file(source)
    plan = draft(file, meant(file, tensors))
    check_fits([plan], strictly=bool(tensors) or file.one_array)
    return plan
