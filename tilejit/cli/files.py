"""`tilejit pack`, `unpack` and `relayout`: .npy and .safetensors files, and directories of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import TilejitError
from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked, misused
from tilejit.cli.file_jobs import Options, convert
from tilejit.cli.file_report import printable
from tilejit.cli.layouts import Layout
from tilejit.cli.parameters import Parameters, read_dims, read_parameters
from tilejit.cli.streams import DASH

if TYPE_CHECKING:
    from tilejit.files.rules import Rules
    from tilejit.programs.tuning import Casting as CastingRule

In = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        help="A .npy or .safetensors file, a directory of them, or - for stdin.",
        readable=False,  # not a mistake in the command line: `open` reports it
    ),
]
PackedIn = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        help="A .npy or .safetensors file, a directory of them, raw bytes, or - for stdin.",
        readable=False,
    ),
]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        help="A file, replaced atomically: of the same kind, or raw bytes; a directory; or - for stdout.",
        readable=False,
    ),
]
PackedShape = Annotated[
    str | None,
    typer.Option(
        "--shape", metavar="S", help="The complete shape of raw bytes or a .npy file without a record."
    ),
]
Tensors = Annotated[
    list[str] | None,
    typer.Option(
        "--tensor",
        metavar="NAME",
        help="Convert only this tensor of a .safetensors file; may be repeated.",
        autocompletion=completion.tensors,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads of a copy; by default chosen by its size."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors, and JSON if --json is given.")]
Casting = Annotated[
    str,
    typer.Option(
        "--casting",
        metavar="RULE",
        help="NumPy's rule for --dtype: no, equiv, safe, same_kind or unsafe.",
        autocompletion=completion.castings,
    ),
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Read raw bytes whatever the extension is, and write raw bytes, without a header, to stdout.",
    ),
]
Offset = Annotated[
    int, typer.Option("--offset", metavar="BYTES", min=0, help="Bytes before the array in raw bytes.")
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="A TOML file of layouts by tensor name; --layout applies to all other tensors.",
        readable=False,
    ),
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Pack packed tensors once more; unpack then undoes one packing at a time."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print sizes and padding without converting anything.")
]
NoClobber = Annotated[
    bool,
    typer.Option("-n", "--no-clobber", help="Fail if OUT, or one of its files, exists."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Keep OUT.partial if the run ends early; the next run continues from it.",
    ),
]


def pack(
    source: In,
    target: Out,
    layout: Layout = None,
    parameters: Parameters = None,
    rules: RulesFile = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="D",
            help="The packed dtype, e.g. bf16; also the dtype of raw '|V2' elements.",
            autocompletion=completion.dtypes,
        ),
    ] = None,
    casting: Casting = "same_kind",
    tensor: Tensors = None,
    again: Again = False,
    dims: Annotated[
        str | None,
        typer.Option(
            "--dims", metavar="D,D,...", help="With --again, the dimensions of the stored, flat elements."
        ),
    ] = None,
    threads: Threads = None,
    raw: Raw = False,
    dry_run: DryRun = False,
    resume: Resume = False,
    no_clobber: NoClobber = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Convert files to a tiled layout.

    Packs the array of a .npy file, or the tensors of a .safetensors file. Tensors that the layout does not
    fit, such as biases with a matrix layout, stay unchanged, unless --tensor names them. In a directory,
    packs every such file, or every shard that model.safetensors.index.json names. Other files and
    subdirectories are not copied.

    Records the layouts: of tensors in the metadata of the .safetensors file, of a directory's .npy files in
    tilejit-layouts.json, and of any other file in OUT.tilejit.json beside it. Refuses what such a record says
    is packed. For an array, prints the complete shape, and on stderr the command that unpacks it.

    An OUT with another extension than .npy gets the raw bytes of the packed array.

    A floating-point --dtype leaves integers alone, unless --tensor names them or their rule has the dtype.
    """
    from tilejit.files.draft import draft_pack

    chosen = _chosen_rules(layout, parameters, rules, dtype)
    _check_not_rules(target, rules)
    rule = _checked_casting(casting, dtype, rules)
    options = Options("packed", tensor or (), raw, dry_run, resume, not no_clobber, quiet, as_json, dtype)
    sizes = _dims_again(dims, again=again)
    draft = partial(draft_pack, rules=chosen, threads=threads, casting=rule, again=again, dims=sizes)
    convert(source, target, draft, options, chosen if rules else None)


def unpack(
    source: PackedIn,
    target: Out,
    shape: PackedShape = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="D",
            help="The dtype of the result, e.g. f32.",
            autocompletion=completion.dtypes,
        ),
    ] = None,
    casting: Casting = "same_kind",
    tensor: Tensors = None,
    threads: Threads = None,
    raw: Raw = False,
    offset: Offset = 0,
    dry_run: DryRun = False,
    resume: Resume = False,
    no_clobber: NoClobber = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Convert packed files back.

    Unpacks the array of a .npy file, the packed tensors of a .safetensors file, or the raw bytes in a file
    with any other extension, by the layouts that pack recorded. A file without a record, such as a dump of
    another program, needs --shape. An array is written to a .npy file, or to a file with another extension as
    raw bytes.

    A floating-point --dtype leaves integers alone, unless --tensor names them.
    """
    from tilejit.files.draft import draft_unpack

    _check_shape(shape)
    with arguments_checked():
        _check_dtype(dtype)
    rule = _checked_casting(casting, dtype, None)
    options = Options(
        "unpacked", tensor or (), raw, dry_run, resume, not no_clobber, quiet, as_json, dtype, shape, offset
    )
    convert(source, target, partial(draft_unpack, threads=threads, dtype=dtype, casting=rule), options)


def relayout(
    source: PackedIn,
    target: Out,
    layout: Layout = None,
    parameters: Parameters = None,
    rules: RulesFile = None,
    shape: PackedShape = None,
    tensor: Tensors = None,
    threads: Threads = None,
    raw: Raw = False,
    offset: Offset = 0,
    dry_run: DryRun = False,
    resume: Resume = False,
    no_clobber: NoClobber = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Convert packed files to another layout.

    Tensors that the layout does not fit stay unchanged, unless --tensor names them. With --shape, IN can also
    be a file without a record, even raw bytes of a row-major array: --shape "f32[1000,300]".
    """
    from tilejit.files.draft import draft_relayout

    chosen = _chosen_rules(layout, parameters, rules, None)
    _check_not_rules(target, rules)
    _check_shape(shape)
    options = Options(
        "converted", tensor or (), raw, dry_run, resume, not no_clobber, quiet, as_json, None, shape, offset
    )
    draft = partial(draft_relayout, rules=chosen, threads=threads)
    convert(source, target, draft, options, chosen if rules else None)


def _chosen_rules(
    layout: str | None, parameters: list[str] | None, rules: Path | None, dtype: str | None
) -> Rules:
    """The conversion of each tensor, by --layout and --rules."""
    from tilejit.files.rules import Conversion, Rules, read_rules
    from tilejit.layout.check_layout import check_layout
    from tilejit.layout.text.pattern_text import spelled_out

    default = None
    with arguments_checked():
        values = read_parameters(parameters)
        _check_dtype(dtype)
        if layout is not None:
            check_layout(layout, values)
            default = Conversion(spelled_out(layout), values, dtype, is_general=True, given=layout)
        elif values:
            raise TypeError(f"{next(iter(values))[:40]} is a parameter of --layout, which is missing")
    if rules is not None:
        return read_rules(rules, default, dtype)
    if default is None:
        raise misused("expected --layout or --rules\npass --layout L, --rules FILE, or both")
    return Rules((), default, dtype)


def _dims_again(text: str | None, *, again: bool) -> tuple[int, ...] | None:
    """The value of --dims, which needs --again."""
    if text is None:
        return None
    if not again:
        raise misused("--dims is for --again: other arrays have dimensions of their own\nomit it")
    with arguments_checked():
        return read_dims(text)


def _check_not_rules(target: Path, rules: Path | None) -> None:
    """Raise if the file to write is the one with the rules."""
    from tilejit.files.whole_file import would_replace

    if rules is not None and target != DASH and would_replace(target, rules):
        raise TilejitError(
            f"OUT and --rules are the same file, {printable(str(target))!r}\n  give another name for OUT"
        )


def _check_dtype(dtype: str | None) -> None:
    from tilejit.layout.dtypes import primitive_type

    if dtype is not None:
        primitive_type(dtype)


def _checked_casting(casting: str, dtype: str | None, rules: Path | None) -> CastingRule:
    """The value of --casting, if it is one of NumPy's rules and can have an effect."""
    from tilejit.programs.tuning import SAME_KIND, check_casting

    with arguments_checked():
        check_casting(casting)
        if casting != SAME_KIND and dtype is None and rules is None:
            raise TypeError("--casting is the rule for --dtype, which is missing")
    rule: Any = casting
    return rule  # type: ignore[no-any-return]


def _check_shape(text: str | None) -> None:
    """Reject an unreadable --shape before reading files."""
    from tilejit.layout.as_layout import as_layout

    if text is not None:
        with arguments_checked():
            as_layout(text)
