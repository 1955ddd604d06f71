"""Vectorize the Python functions of a file, typed by their annotations."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from codegen import (
    ArrayArg,
    Function,
    KernelError,
    ScalarArg,
    add_disjoint_bits,
    format_function,
    index_arrays,
    numpy_dtype,
    read_function,
    vectorize_function,
)
from tilejit.cli.errors import say
from tilejit.kernels.options import KernelKeywords, read_options

ANNOTATION = re.compile(
    r"\s*(?P<dtype>i1|[iu](?:8|16|32|64)|f16|bf16|f32|f64)\s*(?:\[(?P<dims>[\s:,]*)\])?\s*"
)
MODULE = "vectorized_file"
"""The name of a file's module while it runs, which does not shadow other modules."""
STDIN = "<standard input>"
"""The file name of functions from standard input, in angle brackets, as in Python."""
PYTHONS = {int: "weak_int", float: "weak_float", bool: "weak_bool"}
"""Python numbers take the dtype of the other operand."""


def vectorized_functions(
    module: ModuleType,
    sizes: tuple[int | str, ...],
    fastest: tuple[int, ...] | None,
    reductions: bool,
    dtype: str,
    scans: bool,
) -> Iterator[str]:
    """The functions of a module in super-vectors, each after a report on its loops.

    Kernels (`@tj.kernel`) if it has any, else every function that it defines. A comment and a line on stderr
    name functions that cannot be read, and the reasons; if all fail, an error is raised.

    Raises:
        KernelError: the module defines no function, none of them can be a kernel, or the dtype is unknown.
    """
    functions = list(_functions(module))
    if not functions:
        name = (module.__file__ or "").strip("<>")
        raise KernelError(f"{name} defines no function; write one with `for` loops over arrays")
    options = read_options("kernel", KernelKeywords, {"virtual_vector_size": sizes})
    numpy_dtype(dtype)  # a wrong option is an error, not a reason to skip each function
    members = [_read(python, dtype) for python in functions]
    refused = [member for member in members if isinstance(member, KernelError)]
    if len(refused) == len(members):
        raise refused[0]
    for python, function in zip(functions, members, strict=True):
        if isinstance(function, KernelError):
            refusal = f"@{python.__name__} cannot be read: {function}"
            say(refusal)
            yield "\n".join(f"// {line}" for line in refusal.splitlines()) + "\n"
            continue
        wide = vectorize_function(function, options.sizes(function), fastest, reductions, "mask", scans)
        yield "".join(f"// {loop}\n" for loop in wide.loops) + format_function(wide.function).rstrip("\n")


def _read(python: FunctionType, dtype: str) -> Function | KernelError:
    """A function as a kernel, or the reason why it cannot be one."""
    try:
        function = add_disjoint_bits(read_function(python).typed(arguments_of(python, dtype)))
        index_arrays(function)
    except KernelError as error:
        return error
    return function


def arguments_of(python: Callable[..., Any], dtype: str) -> list[ArrayArg | ScalarArg]:
    """The type of each parameter: by its annotation, else by its use in the function.

    def add(A: "f32[:, :]", n: int)       -> ArrayArg("A", "f32", 2, "C"), ScalarArg("n", "weak_int")
    def add(A, n): … A[i, j] … range(n)   -> the same, with `dtype` for f32
    def pick(y, x, k): … y[i] = x[k[i]]   -> the same, with "i64" for k

    Parameters with a default keep it, unless an annotation types them.

    Raises:
        KernelError: an annotation is not a dtype, or a parameter takes several arguments.
    """
    ranks, integers, subscripts = _uses(python)
    found: list[ArrayArg | ScalarArg] = []
    for name, parameter in inspect.signature(python).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise KernelError(f"{python.__name__}: {parameter} takes several arguments; name each of them")
        annotation = parameter.annotation
        if annotation is parameter.empty and parameter.default is not parameter.empty:
            break
        if isinstance(annotation, str) and annotation in ("int", "float", "bool"):
            annotation = {"int": int, "float": float, "bool": bool}[annotation]
        if annotation in PYTHONS:
            found.append(ScalarArg(name, PYTHONS[annotation]))
        elif isinstance(annotation, str):
            found.append(_annotated(python, name, annotation))
        elif name in ranks:
            found.append(ArrayArg(name, "i64" if name in subscripts else dtype, ranks[name], "C"))
        else:
            found.append(ScalarArg(name, "weak_int" if name in integers else "weak_float"))
    return found


def _annotated(python: Callable[..., Any], name: str, text: str) -> ArrayArg | ScalarArg:
    # Under `from __future__ import annotations`, a string annotation is a string in a string.
    match = ANNOTATION.fullmatch(text.strip("\"'"))
    if match is None:
        raise KernelError(
            f"{python.__name__}: the annotation {text[:40]!r} of {name} is not a dtype; "
            'write "f32[:, :]" or "i64"'
        )
    dims = match["dims"]
    if dims is None:
        return ScalarArg(name, match["dtype"])
    return ArrayArg(name, match["dtype"], dims.count(",") + 1 if dims.strip() else 0, "C")


def _uses(python: Callable[..., Any]) -> tuple[dict[str, int], set[str], set[str]]:
    """The ranks of names that are subscripted, names in subscripts and bounds, arrays of subscripts."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(python)))
    except (OSError, TypeError, SyntaxError) as error:
        raise KernelError(
            f"the source of {python.__name__} cannot be read: {error}; write it in a file"
        ) from None
    ranks: dict[str, int] = {}
    integers: set[str] = set()
    subscripts: set[str] = set()
    for node in ast.walk(tree):
        inside: ast.AST | None = None
        if isinstance(node, ast.Subscript):
            if array := _array(node):
                ranks[array] = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
            inside = node.slice
            subscripts.update(_arrays(inside))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            inside = node
        if inside is not None:
            integers |= {n.id for n in ast.walk(inside) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in integers for target in node.targets
        ):
            subscripts.update(_arrays(node.value))
    return ranks, integers, subscripts


def _arrays(node: ast.AST) -> Iterator[str]:
    """The names that are subscripted in an expression."""
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and (array := _array(each)):
            yield array


def _array(node: ast.Subscript) -> str | None:
    """The name that is subscripted: y in y[i], and in tj.permutation(y)[i]."""
    match node.value:
        case ast.Name(name) | ast.Call(args=[ast.Name(name)]):
            return name
    return None


def load(path: Path) -> ModuleType:
    """Run a file as `python FILE` would, except for its `__name__`.

    Raises:
        KernelError: it ends in an exception.
        OSError: it cannot be read.
    """
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise KernelError(f"{path} is not a Python file; pass a .py file")
    module, loader = importlib.util.module_from_spec(spec), spec.loader
    sys.path.insert(0, str(path.parent))
    try:
        _run(module, lambda: loader.exec_module(module), str(path))
    finally:
        with suppress(ValueError):
            sys.path.remove(str(path.parent))
    return module


def from_text(text: str) -> ModuleType:
    """Run a text from standard input as `python -` would, except for its `__name__`.

    Raises:
        KernelError: it ends in an exception.
        OSError: it fails to read or write a file.
    """
    module = ModuleType(MODULE)
    module.__file__ = STDIN
    # Functions look for their source there.
    linecache.cache[STDIN] = (len(text), None, text.splitlines(keepends=True), STDIN)
    _run(module, lambda: exec(compile(text, STDIN, "exec"), vars(module)), STDIN.strip("<>"))
    return module


def _run(module: ModuleType, run: Callable[[], None], name: str) -> None:
    """Run code that defines a module; report its exceptions on one line, because they are the user's."""
    sys.modules[MODULE] = module
    try:
        run()
    except OSError:
        raise
    except (Exception, SystemExit) as error:
        raise KernelError(f"{name} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.modules.pop(MODULE, None)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions of kernels, else all functions that the file itself defines."""
    kernels = [
        value.python
        for value in vars(module).values()
        if isinstance(getattr(value, "python", None), FunctionType)
    ]
    if kernels:
        yield from kernels
        return
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value
