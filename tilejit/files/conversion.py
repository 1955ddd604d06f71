"""Pack, unpack and relayout files of any supported type, given by their paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tilejit.files.draft import draft_pack, draft_relayout, draft_unpack
from tilejit.files.file_types import open_file
from tilejit.files.plan import Plan, check_fits
from tilejit.files.rules import rules_of
from tilejit.files.tensor_file import TensorFile
from tilejit.layout.checks import int_tuple
from tilejit.programs.tuning import SAME_KIND, Casting

__all__ = ["open_file", "plan_file_pack", "plan_file_relayout", "plan_file_unpack"]


def plan_file_pack(
    source: str | os.PathLike[str] | TensorFile,
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    dtype: str | None = None,
    casting: Casting = SAME_KIND,
    threads: int | None = None,
    again: bool = False,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Plan:
    """Plan the packing of a .npy or .safetensors file.

    >>> np.save("x.npy", np.ones((1000, 300), np.float32))
    >>> plan = plan_file_pack("x.npy", "{1,0:T(8,128)}")
    >>> print(plan.layout)
    f32[1000,300]{1,0:T(8,128)}
    >>> plan.write("x.tpu.npy")

    The file that the plan writes records the layout, so that `plan_file_unpack` needs none: a .safetensors
    file in its metadata, any other file in x.tpu.npy.tilejit.json, or in the record of its directory.

    >>> plan_file_pack("x.tpu.npy", "tenstorrent")
    Traceback (most recent call last):
    tilejit.LayoutError: 'x.tpu.npy': it is already in {1,0:T(8,128)}
      unpack it with plan_file_unpack, or pass again=True to pack it once more

    Args:
        source: the path of a file, or an open one.
        layout: anything that `as_layout` reads, for every tensor; or the `Rules` that
            `read_rules` returns.
        tensors: the names of the tensors to pack. If empty, pack all tensors that the layout fits. The
            others, such as biases if the layout is for matrices, stay unchanged; `Plan.left` names them.
        dtype: the dtype to convert to. Without `tensors`, a floating-point dtype applies only to
            floating-point tensors, because bf16 cannot represent a model's indices. The array of a .npy file
            is always converted; its raw bytes are read as elements of the dtype. Writing the plan warns as
            NumPy's casts do, and fills `Plan.losses`.
        casting: NumPy's rule for conversions.
        threads: the number of threads; None chooses it from the size.
        again: whether to pack packed tensors once more. `plan_file_unpack` then undoes one packing at a time.
        dims: the dimensions of tensors that are packed once more, in elements. None takes them as flat
            arrays, as they are stored.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The plan; `write` writes the file.

    Raises:
        LayoutError: the file is damaged, a requested tensor is packed or cannot be packed this way, or no
            tensor can, or `casting` forbids a conversion; the message names the tensor.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, dtype, parameters)
    sizes = None if dims is None else int_tuple(dims, "dims")
    return _planned(
        source,
        tensors,
        lambda file, names: draft_pack(file, names, rules, threads, casting, again=again, dims=sizes),
    )


def plan_file_unpack(
    source: str | os.PathLike[str] | TensorFile,
    /,
    *,
    tensors: Collection[str] = (),
    dtype: str | None = None,
    casting: Casting = SAME_KIND,
    threads: int | None = None,
) -> Plan:
    """Plan the unpacking of all packed tensors of a file, by the layouts that it records.

    >>> np.save("x.npy", np.ones((1000, 300), np.float32))
    >>> plan_file_pack("x.npy", "{1,0:T(8,128)}").write("x.tpu.npy")
    >>> plan_file_unpack("x.tpu.npy").write("y.npy")
    >>> np.load("y.npy").shape
    (1000, 300)

    Of tensors that were packed several times, the plan undoes the last packing. Integers narrower than a byte
    become bytes, because neither file type has narrower ones.

    A dump that another program wrote has no record, so open it with its shape:

    >>> _ = open("dump.bin", "wb").write(tilejit.pack(np.load("y.npy"), "tpu").buffer.tobytes())
    >>> dump = open_file("dump.bin", shape="f32[1000,300]{0,1:T(8,128)}")
    >>> plan_file_unpack(dump).write("y.npy")
    >>> plan_file_unpack(dump).write("y.bin")  # any other extension: only the elements

    Args:
        source: the path of a file, or an open one.
        tensors: the names of the tensors to unpack. If empty, unpack all packed tensors.
        dtype: the dtype to convert to, and which tensors are converted, as in `plan_file_pack`.
        casting: NumPy's rule for conversions.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The plan; `write` writes the file.

    Raises:
        LayoutError: the file is damaged, a requested tensor is not packed, or `casting` forbids a conversion.
        OSError: the file cannot be read.
    """
    return _planned(source, tensors, lambda file, names: draft_unpack(file, names, threads, dtype, casting))


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

    >>> np.save("x.npy", np.ones((1000, 300), np.float32))
    >>> plan_file_pack("x.npy", "{1,0:T(8,128)}").write("x.tpu.npy")
    >>> plan_file_relayout("x.tpu.npy", "tenstorrent").write("x.tt.npy")
    >>> np.load("x.tt.npy").shape
    (327680,)

    Args:
        source: the path of a file, or an open one.
        layout: anything that `as_layout` reads, for every tensor; or the `Rules` that
            `read_rules` returns, without dtypes.
        tensors: the names of the tensors to convert. If empty, convert all packed tensors that the layout
            fits. The others stay unchanged; `Plan.left` names them.
        threads: the number of threads; None chooses it from the size.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The plan; `write` writes the file.

    Raises:
        LayoutError: the file is damaged, a requested tensor is not packed, or the layout does not fit it or
            any tensor.
        OSError: the file cannot be read.
    """
    rules = rules_of(layout, None, parameters)
    return _planned(source, tensors, lambda file, names: draft_relayout(file, names, rules, threads))


def requested_names(file: TensorFile, tensors: Collection[str]) -> Collection[str] | None:
    """The names of the tensors to convert; None for all.

    A file with a single array needs no name: its array counts as named by the caller.
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
    plan = draft(file, requested_names(file, tensors))
    check_fits([plan], strictly=bool(tensors) or file.one_array)
    return plan
