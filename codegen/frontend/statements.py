"""Python statements -> loops, lets and stores."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from codegen.analysis.scans import scanned_in
from codegen.frontend.carried import finish
from codegen.frontend.changing import Changing
from codegen.frontend.expressions import (
    BINARY,
    NO_PRODUCT,
    array_of,
    element,
    expression,
    operation,
    sizes,
)
from codegen.frontend.indexed import inside_arrays
from codegen.frontend.liveness import assigned, live_after, live_before
from codegen.frontend.operands import Operand, convert_operand, either, indexed
from codegen.frontend.operations import apply_op, truth_operand
from codegen.frontend.ranges import Bounds, Range, read_bounds, read_range
from codegen.frontend.scope import Missing, Scope
from codegen.ir import dtypes
from codegen.ir.index import Index
from codegen.ir.nodes import COMBINERS, MANY, ArrayArg, For, Statement, Store
from codegen.ir.values import Load, Op, Value


def block(statements: Sequence[ast.stmt], scope: Scope, live: set[str]) -> None:
    """Read statements into `scope`; `live` holds the names that are read after them.

    Raises:
        KernelError: an unsupported construct, with a caret under it.
    """
    for statement, after in zip(statements, live_after(statements, live), strict=True):
        match statement:
            case ast.For():
                _loop(statement, scope, after)
            case ast.Assign(targets, value):
                for target in targets[1:]:
                    raise scope.error(target, "kernels assign to one target at a time\nwrite a line for each")
                _assign(targets[0], value, scope)
            case ast.AnnAssign(target, _, value) if value is not None:
                _assign(target, value, scope)
            case ast.AugAssign():
                _update(statement, scope)
            case ast.If():
                _branch(statement, scope, after)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case ast.Return():
                raise scope.error(statement, "return must be the last statement of a kernel, after its loops")
            case _:
                raise scope.error(statement, f"kernels do not support {_named(statement)}\n{_FIX}")


_TARGETS = "kernels assign to names and to elements of arrays\nwrite t = x or A[i] = x"
_FIX = "use for loops over range(), assignments and `x if c else y`"


def _named(statement: ast.stmt) -> str:
    names = {"FunctionDef": "functions inside", "ClassDef": "classes", "Expr": "expressions as statements"}
    return names.get(type(statement).__name__, type(statement).__name__.lower())


def _assign(target: ast.expr, value: ast.expr, scope: Scope) -> None:
    match target:
        case ast.Name(name):
            _name(name, target, expression(value, scope), scope)
        case ast.Subscript():
            array, subscripts = element(target, scope)
            _store(target, array, subscripts, expression(value, scope), scope)
        case ast.Tuple(names) if all(isinstance(name, ast.Name) for name in names):
            found = _several(value, scope)
            if len(found) != len(names):
                raise scope.error(target, f"{len(names)} names for {len(found)} values")
            given = [scope.let("pair", one) for one in found]
            for each, one in zip(names, given, strict=True):
                assert isinstance(each, ast.Name), "checked above"
                _name(each.id, each, one, scope)
        case ast.Tuple():
            raise scope.error(
                target,
                "only names can be assigned together, not elements\nassign one by one: t = x; a[i] = t",
            )
        case _:
            raise scope.error(target, _TARGETS)


def _several(value: ast.expr, scope: Scope) -> tuple[Operand, ...]:
    """The values on the right of `M, N = …`."""
    if isinstance(value, ast.Tuple):
        return tuple(expression(one, scope) for one in value.elts)
    if isinstance(value, ast.Attribute) and value.attr == "shape":
        return sizes(array_of(value, scope))
    raise scope.error(
        value, "several names take several values, or a shape\nwrite s, t = x, y or M, N = A.shape"
    )


def _name(name: str, node: ast.AST, operand: Operand, scope: Scope) -> None:
    before = scope.names.get(name)
    if isinstance(before, ArrayArg):
        raise scope.error(node, f"{name} is an array; use another name for the result")
    if name in scope.indices:
        raise scope.error(node, f"{name} is the index of a loop\nuse another name for the result")
    scope.names[name] = scope.let(name, operand)


def _store(
    node: ast.AST, array: ArrayArg, subscripts: tuple[Index, ...], operand: Operand, scope: Scope
) -> None:
    """C[i] = x; if x combines C[i] with a value, the store accumulates that value."""
    value = scope.text.check(node, convert_operand, operand, array.dtype)
    combiner, rest = _accumulated(Load(array.name, subscripts, array.dtype), value)
    where, inside = scope.where, inside_arrays(subscripts)
    if inside is not None:
        test = Operand("i1", inside)
        test = test if where is None else apply_op("and", Operand("i1", where), test)
        where = scope.let("inside", test).value
    scope.statements.append(Store(array.name, subscripts, rest, accumulate=combiner, where=where))


def _accumulated(old: Load, value: Value) -> tuple[str, Value]:
    """C[i] + x -> "add", x    C[i] - x -> "add", -x (the same number)    others -> "" and the value"""
    match value:
        case Op(name, (one, two), dtype) if name in COMBINERS:
            if one == old and dtype == old.dtype:
                return name, two
            if two == old and dtype == old.dtype:
                return name, one
        case Op("sub", (one, two), dtype) if one == old and dtype == old.dtype:
            return "add", Op("neg", (two,), dtype)
    return "", value


def _update(node: ast.AugAssign, scope: Scope) -> None:
    """t += x and C[i] += x."""
    if type(node.op) not in BINARY:
        raise scope.error(node, NO_PRODUCT)
    op = BINARY[type(node.op)]
    match node.target:
        case ast.Name(name):
            old = expression(ast.copy_location(ast.Name(name, ast.Load()), node.target), scope)
            _name(name, node, operation(node, op, (old, expression(node.value, scope)), scope), scope)
        case ast.Subscript():
            array, subscripts = element(node.target, scope)
            old = Operand(array.dtype, Load(array.name, subscripts, array.dtype))
            found = operation(node, op, (old, expression(node.value, scope)), scope)
            _store(node, array, subscripts, found, scope)
        case _:
            raise scope.error(node.target, _TARGETS)


def _branch(node: ast.If, scope: Scope, live: set[str]) -> None:
    """if c: t = x; C[i] = y  ->  t = x if c else t; C[i] = y where c. Both sides are computed."""
    test = expression(node.test, scope)
    if test.literal is not None:
        block(node.body if test.literal else node.orelse, scope, live)
        return
    condition = scope.let("tested", Operand("i1", scope.text.check(node.test, truth_operand, test)))
    before, around = dict(scope.names), scope.where
    opposite = scope.let("tested", apply_op("not", condition)) if _stores(node.orelse) else condition
    sides = []
    for body, holds in ((node.body, condition), (node.orelse, opposite)):
        scope.names, scope.where = dict(before), holds.value
        if around is not None and _stores(body):
            scope.where = scope.let("tested", apply_op("and", Operand("i1", around), holds)).value
        block(body, scope, live)
        sides.append(scope.names)
    scope.names, scope.where = before, around
    for name in assigned([node]):
        then, otherwise = (side.get(name, Missing(f"{name} has a value only under an if")) for side in sides)
        if isinstance(then, Operand) and isinstance(otherwise, Operand):
            found = scope.text.check(node, either, condition.value, then, otherwise)
            scope.names[name] = scope.let(name, found)
        else:
            scope.names[name] = Missing(f"{name} has a value only on one side of an if")


def _stores(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements assign to an element of an array."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in nodes)


def _loop(node: ast.For, scope: Scope, live: set[str]) -> None:
    """One loop. Locals that live from one iteration to the next, or after the loop, are carried."""
    own = _own_index(node, scope)
    loop_range = read_range(node.iter, scope)
    index = scope.fresh(own)
    bounds = read_bounds(loop_range.call, index, scope)
    inner, changing = _read_body(node, scope, bounds, live)
    names = {name: each.given for name, each in changing.items()}
    before, after = ({name: known_operand(s, name) for name in names} for s in (scope, inner))
    starts, updates = (
        {
            name: scope.text.check(node, convert_operand, operands[name], dtypes.concrete(each.dtype))
            for name, each in changing.items()
        }
        for operands in (before, after)
    )
    flags = {each.flag: name for name, each in changing.items() if each.flag in scope.flags}
    starts |= {flag: changing[name].is_first(before[name]) for flag, name in flags.items()}
    updates |= {flag: changing[name].is_first(after[name]) for flag, name in flags.items()}
    body, carried = finish(inner.statements, names | {flag: flag for flag in flags}, starts, updates)
    _check_marks(node, scope, loop_range, body, {c.name: c.combiner for c in carried}, names)
    scope.statements.append(
        For(
            index,
            bounds.lower,
            bounds.upper,
            bounds.step,
            body,
            carried,
            loop_range.parallel,
            line=scope.text.line(node),
            reduction=loop_range.reduction,
            scan=loop_range.scan,
            min_distance=loop_range.min_distance,
        )
    )
    _check_scan(node, scope)
    for name in [own, *assigned(node.body)]:
        scope.names[name] = Missing(f"{name} has a value only inside of the loop above")
    for name, each in changing.items():
        scope.names[name] = each.after(before[name], after[name], bounds)


def known_operand(scope: Scope, name: str) -> Operand:
    """The value of a name that has one."""
    found = scope.names[name]
    assert isinstance(found, Operand), "checked before"
    return found


def _own_index(node: ast.For, scope: Scope) -> str:
    """The index of a loop, which has one of its own and no `else`."""
    if node.orelse:
        raise scope.error(node.orelse[0], "loops of kernels cannot have an else")
    if not isinstance(node.target, ast.Name):
        raise scope.error(node.target, "a loop of a kernel must have one index")
    if node.target.id in scope.indices or isinstance(scope.names.get(node.target.id), ArrayArg):
        raise scope.error(node.target, f"{node.target.id} is already used; use another name for this index")
    return node.target.id


def _check_marks(
    node: ast.For,
    scope: Scope,
    loop_range: Range,
    body: Sequence[Statement],
    combiners: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    """Raise for a loop marked as a reduction without any, or as independent that carries other locals.

    combiners  of the carried locals, by their names in the body; `names` has these by the source's names
    """
    if loop_range.reduction and not any(combiners.values()) and not _accumulates(body):
        raise scope.error(node.iter, "nothing is reduced in this loop\nwrite acc += x, or C[i] += x, in it")
    for text, name in names.items():
        mark = "parallel" if loop_range.parallel else "vectorizable"
        if (loop_range.parallel or loop_range.min_distance == MANY) and not combiners[name]:
            raise scope.error(
                node.iter, f"{text} is carried from one iteration to the next, so the loop is not {mark}"
            )


def _check_scan(node: ast.For, scope: Scope) -> None:
    """Raise if the loop just read is marked as a scan but scans nothing."""
    loop = scope.statements[-1]
    if isinstance(loop, For) and loop.scan and not scanned_in(loop):
        raise scope.error(
            node.iter, "nothing is scanned in this loop\nwrite s += a[i] in it, and use s: y[i] = s"
        )


def _read_body(
    node: ast.For, scope: Scope, bounds: Bounds, live: set[str]
) -> tuple[Scope, dict[str, Changing]]:
    """Read the body, with dtypes of the carried locals that an iteration leaves unchanged.

    Returns its scope, and the carried locals.
    """
    assert isinstance(node.target, ast.Name), "checked by _own_index"
    live_inside = live | live_before(node.body, live)
    candidates = [name for name in assigned(node.body) if name in live_inside]
    names = [name for name in candidates if isinstance(scope.names.get(name), Operand)]
    before = {name: known_operand(scope, name) for name in names}
    changing = {name: Changing(scope.fresh(name), start.dtype) for name, start in before.items()}
    taken = dict(scope.taken)
    while True:
        scope.taken.clear()
        scope.taken.update(taken)
        inner = scope.inside()
        inner.names[node.target.id] = indexed(bounds.number)
        inner.indices = scope.indices | {node.target.id}
        inner.names |= {name: each.operand() for name, each in changing.items()}
        block(node.body, inner, live_inside)
        joined = {
            name: scope.text.check(node, each.joined, name, before[name], _after(name, inner, node))
            for name, each in changing.items()
        }
        if joined == changing:
            return inner, changing
        changing = joined


def _after(name: str, inner: Scope, node: ast.For) -> Operand:
    """A carried local at the end of a body."""
    found = inner.names[name]
    if isinstance(found, Operand):
        return found
    raise inner.error(node, found.why if isinstance(found, Missing) else f"{name} is an array")


def _accumulates(body: Sequence[object]) -> bool:
    return any(
        (isinstance(s, Store) and bool(s.accumulate))
        or (isinstance(s, For) and (_accumulates(s.body) or any(c.combiner for c in s.carried)))
        for s in body
    )
