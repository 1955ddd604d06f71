"""Python expressions -> typed IR values."""

from __future__ import annotations

import ast

import numpy as np

from codegen.frontend.calls import called_with
from codegen.frontend.functions import call_ufunc
from codegen.frontend.indexed import counted, inside_arrays, permuted
from codegen.frontend.methods import check_call, subscripted
from codegen.frontend.operands import (
    Operand,
    cast_operand,
    convert_operand,
    either,
    for_each_side,
    indexed,
    literal_operand,
)
from codegen.frontend.operations import SHIFTS, apply_op, splits, truth_operand
from codegen.frontend.scope import UNKNOWN, Scope
from codegen.ir import dtypes
from codegen.ir.index import Affine, ArrayElement, Index, index_symbol
from codegen.ir.nodes import ArrayArg
from codegen.ir.values import Const, Load, Op, Value

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
NO_PRODUCT = "kernels do not support matrix products\nwrite loops around s += A[i, k] * B[k, j]"


def expression(node: ast.expr, scope: Scope) -> Operand:
    """An expression as a typed value.

    2.0 * A[i] -> Operand("f32", Op("mul", (Const(2.0, "f32"), Load("A", …)), "f32"))

    Both sides of `x if c else y`, `and` and `or` are computed: subscripts on both must be in bounds.

    Raises:
        KernelError: an unsupported construct, with a caret under it.
    """
    match node:
        case ast.Constant(value):
            return scope.text.check(node, literal_operand, value)
        case ast.Name():
            found = scope.meaning(node)
            if isinstance(found, ArrayArg):
                raise scope.error(node, f"{node.id} is an array\ngive it subscripts: {subscripted(found)}")
            return found
        case ast.UnaryOp():
            return _unary(node, scope)
        case ast.BinOp(left, op, right):
            if type(op) not in BINARY:
                raise scope.error(node, NO_PRODUCT)
            one, two = expression(left, scope), expression(right, scope)
            if isinstance(op, ast.Pow) and isinstance(two.value, Const):
                one = scope.let("base", one)  # x**2 is x*x
            return operation(node, BINARY[type(op)], (one, two), scope)
        case ast.Compare():
            return _compare(node, scope)
        case ast.BoolOp():
            return _boolean(node, scope)
        case ast.IfExp(test, then, otherwise):
            return choose(node, expression(test, scope), (then, otherwise), scope)
        case ast.Subscript():
            return _subscript(node, scope)
        case ast.Attribute():
            return _attribute(node, scope)
        case ast.Call():
            return _call(node, scope)
    name, fix = _UNKNOWN.get(type(node).__name__, (type(node).__name__, _VALUES))
    raise scope.error(node, f"kernels do not support {name}\n{fix}")


def choose(node: ast.AST, test: Operand, sides: tuple[ast.expr, ast.expr], scope: Scope) -> Operand:
    """One of two expressions; both are computed unless the test is a constant."""
    if test.literal is not None:
        return expression(sides[0] if test.literal else sides[1], scope)
    then, otherwise = (expression(side, scope) for side in sides)
    return scope.text.check(node, either, _truth(node, test, scope), then, otherwise)


def operation(node: ast.AST, op: str, operands: tuple[Operand, ...], scope: Scope) -> Operand:
    """An operation, computed for each dtype that the operands may have."""
    if scope.text.check(node, splits, op, operands):
        operands = tuple(scope.let("side", operand) for operand in operands)
    return scope.text.check(node, apply_op, op, *operands)


def _truth(node: ast.AST, test: Operand, scope: Scope) -> Value:
    """The truth value of an expression."""
    return scope.text.check(node, truth_operand, test)


def element(node: ast.Subscript, scope: Scope) -> tuple[ArrayArg, tuple[Index, ...]]:
    """The array and the subscripts of an element.

    A[2*i + 1, j] -> A, (Affine(…), Affine(…))    A[i][j] -> A, (i, j)    A[-1] -> A, (A.shape[0] - 1,)
    A[idx[i]] -> A, (FromEnd(ArrayElement("idx", …), A.shape[0]),)

    Raises:
        KernelError: not an array, a wrong number of subscripts, or one that is not an index expression.
    """
    owner, written = node.value, [node.slice]
    while isinstance(owner, ast.Subscript):
        written.insert(0, owner.slice)
        owner = owner.value
    owner = permuted(owner, scope) or owner
    if not isinstance(owner, ast.Name):
        raise scope.error(owner, "only array arguments have elements")
    array = scope.meaning(owner)
    if not isinstance(array, ArrayArg):
        raise scope.error(owner, f"{owner.id} is a number and has no elements")
    parts = [part for each in written for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    for part in parts:
        if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...)):
            raise scope.error(
                part, f"kernels compute element by element\nwrite loops around {subscripted(array)}"
            )
    if len(parts) != array.rank:
        has = _counted(array.rank, "dimension")
        raise scope.error(node, f"{array.name} has {has}, got {_counted(len(parts), 'subscript')}")
    return array, tuple(_index(part, array.name, k, scope) for k, part in enumerate(parts))


def _index(node: ast.expr, array: str, dimension: int, scope: Scope) -> Index:
    found = expression(node, scope)
    if found.index is None:
        raise scope.error(node, not_an_index(found, node, "a subscript", scope))
    if isinstance(found.index, Affine) and not found.index.terms and found.index.constant < 0:
        # A negative constant counts from the end, as in Python; loop indices never do.
        return found.index + index_symbol(f"{array}.shape[{dimension}]")
    return counted(found.index, index_symbol(f"{array}.shape[{dimension}]"), masked=scope.masked)


def not_an_index(found: Operand, node: ast.expr, what: str, scope: Scope) -> str:
    """Why an expression is not an index expression, and what index expressions are."""
    if dtypes.is_float(found.dtype) or dtypes.is_bool(found.dtype):
        return f"{what} is an integer, not {dtypes.concrete(found.dtype)}"
    if any(isinstance(n, ast.Subscript) and not _is_shape(n.value) for n in ast.walk(node)):
        more = {"a subscript": f"\n{_ELEMENTS}", "a bound": f"\n{_BOUNDS}"}.get(what, "")
        return f"{what} that depends on data is not an index expression\n{_INDICES}{more}"
    if found.least or found.largest:
        return f"min() and max() may be bounds of range(), but not subscripts\n{_INDICES}"
    for shift in ast.walk(node):
        if isinstance(shift, ast.BinOp) and isinstance(shift.op, ast.LShift | ast.RShift):
            number = expression(shift.right, scope).literal
            if not isinstance(number, int) or not 0 <= number < SHIFTS:
                got = ast.unparse(shift.right)
                return (
                    f"{what} shifts by constants from 0 to {SHIFTS - 1}, not by {got}\nwrite 3, or a global"
                )
    return f"expected an index expression\n{_INDICES}"


_INDICES = (
    "those are sums of multiples of loop indices, sizes and integer arguments,\n"
    "//, %, << and >> of them by positive numbers, and &, | and ^ of them"
)

_ELEMENTS = (
    "elements of integer arrays are also subscripts: x[idx[i]]\n"
    "convert those that are not int64 before arithmetic: x[int(idx[i]) + 1]"
)


_BOUNDS = "elements of integer arrays are also bounds of loops that count up: range(ptr[i], ptr[i + 1])"


def _unary(node: ast.UnaryOp, scope: Scope) -> Operand:
    operand = expression(node.operand, scope)
    match node.op:
        case ast.UAdd():
            return scope.text.check(node, for_each_side, _positive, operand)
        case ast.Not():
            if operand.literal is not None:
                return literal_operand(not operand.literal)
            truth = Operand("i1", _truth(node, operand, scope))
            return Operand("weak_bool", apply_op("not", truth).value)
        case ast.Invert():
            return operation(node, "not", (operand,), scope)
    return operation(node, "neg", (operand,), scope)


def _positive(operand: Operand) -> Operand:
    """+x: Python's booleans become integers, and NumPy refuses its own."""
    if operand.dtype == "weak_bool":
        return cast_operand(operand, "weak_int")
    return call_ufunc("positive", (operand,)) if operand.dtype == "i1" else operand


def _compare(node: ast.Compare, scope: Scope) -> Operand:
    found: Operand | None = None
    left = expression(node.left, scope)
    for op, written in zip(node.ops, node.comparators, strict=True):
        if type(op) not in _COMPARED:
            raise scope.error(node, "kernels do not support is and in\nwrite x == a, or x == a or x == b")
        right = expression(written, scope)
        if written is not node.comparators[-1]:
            right = scope.let("compared", right)
        one = operation(node, _COMPARED[type(op)], (left, right), scope)
        found = one if found is None else _both_or_either("and", found, one)
        left = right
    assert found is not None, "expected at least one comparison"
    return found


def _boolean(node: ast.BoolOp, scope: Scope) -> Operand:
    """`a and b` is b where a is true, else a; booleans use the bitwise operation."""
    found, *others = (expression(value, scope) for value in node.values)
    is_and = isinstance(node.op, ast.And)
    for other in others:
        if dtypes.is_bool(found.dtype) and dtypes.is_bool(other.dtype):
            found = _both_or_either("and" if is_and else "or", found, other)
            continue
        found = scope.let("tested", found)
        sides = (other, found) if is_and else (found, other)
        found = scope.text.check(node, either, _truth(node, found, scope), *sides)
    return found


def _both_or_either(op: str, one: Operand, two: Operand) -> Operand:
    """`one and two` or `one or two` of booleans, in a single operation."""
    whole = apply_op(op, *(Operand("i1", x.value) for x in (one, two)))
    if one.dtype == two.dtype and not one.choice and not two.choice:
        return Operand(one.dtype, whole.value)
    return either(one.value, *((two, one) if op == "and" else (one, two)), whole=whole)


def _subscript(node: ast.Subscript, scope: Scope) -> Operand:
    if _is_shape(node.value):
        return _size(node, scope)
    array, subscripts = element(node, scope)
    value: Value = Load(array.name, subscripts, array.dtype)
    inside = inside_arrays(subscripts)
    if inside is not None:
        test = scope.let("inside", Operand("i1", inside)).value
        zero = convert_operand(literal_operand(0), array.dtype)
        value = Op("select", (test, value, zero), array.dtype)
    if array.dtype == "i1" or array.dtype[0] not in "iu":
        return Operand(array.dtype, value)
    distinct = permuted(_owner(node), scope) is not None
    ends: tuple[Index, ...] = (ArrayElement(array.name, subscripts, array.dtype, distinct),)
    return Operand(array.dtype, value, ends, ends)


def _owner(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _size(node: ast.Subscript, scope: Scope) -> Operand:
    """A.shape[k]."""
    array = array_of(node.value, scope)
    number = expression(node.slice, scope).literal
    if not isinstance(number, int) or not -array.rank <= number < array.rank:
        raise scope.error(
            node.slice,
            f"{array.name} has {_counted(array.rank, 'dimension')}, numbered from 0"
            if array.rank
            else f"{array.name} has no dimensions, and no sizes\nits one element is {subscripted(array)}",
        )
    return sizes(array)[number]


def sizes(array: ArrayArg) -> tuple[Operand, ...]:
    """A.shape, as operands."""
    return tuple(indexed(index_symbol(f"{array.name}.shape[{k}]")) for k in range(array.rank))


def array_of(node: ast.expr, scope: Scope) -> ArrayArg:
    """The array of an attribute such as A.shape."""
    assert isinstance(node, ast.Attribute), "called with attributes"
    if isinstance(node.value, ast.Name):
        found = scope.meaning(node.value)
        if isinstance(found, ArrayArg):
            return found
    raise scope.error(node, f"only array arguments have a {node.attr}")


def _attribute(node: ast.Attribute, scope: Scope) -> Operand:
    found = scope.object(node)
    if found is not UNKNOWN:
        return scope.text.check(node, scope.number, ast.unparse(node), found)
    if node.attr == "ndim":
        return literal_operand(array_of(node, scope).rank)
    if node.attr == "size" and array_of(node, scope).rank == 1:
        return sizes(array_of(node, scope))[0]
    if node.attr == "shape":
        raise scope.error(node, "kernels read one size at a time\nwrite A.shape[0], or M, N = A.shape")
    raise scope.error(
        node, f"kernels do not support {ast.unparse(node)}\narrays have shape, ndim and elements"
    )


def _call(node: ast.Call, scope: Scope) -> Operand:
    function = scope.object(node.func)
    check_call(node, function, scope)
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise scope.error(node, "kernels pass arguments of functions by position only")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and len(node.args) == 1:
        return scope.text.check(
            node, cast_operand, expression(node.func.value, scope), _dtype(node.args[0], scope)
        )
    if function is len and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        array = scope.meaning(node.args[0])
        if isinstance(array, ArrayArg) and array.rank:
            return sizes(array)[0]
    operands = tuple(expression(argument, scope) for argument in node.args)
    return scope.text.check(node, called_with, ast.unparse(node.func), function, operands, scope)


def _dtype(node: ast.expr, scope: Scope) -> str:
    """The dtype in astype(…): a type, its name, or the dtype of an array."""
    if isinstance(node, ast.Attribute) and node.attr == "dtype" and isinstance(node.value, ast.Name):
        return array_of(node, scope).dtype
    found = node.value if isinstance(node, ast.Constant) else scope.object(node)
    if isinstance(found, str | type | np.dtype):
        try:
            return scope.text.check(node, dtypes.dtype_name, np.dtype(found))
        except TypeError:
            pass
    raise scope.error(node, "astype takes a dtype, such as np.float32")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_VALUES = "values are numbers, elements of arrays, and results of operators and functions"
_PARTS = "write a line for each number"
_UNKNOWN = {
    **dict.fromkeys(("ListComp", "GeneratorExp", "SetComp", "DictComp"), ("comprehensions", "write a loop")),
    "List": ("lists", _PARTS),
    "Tuple": ("tuples here", _PARTS),
    "Dict": ("dictionaries", _PARTS),
    "Lambda": ("functions inside", "write what it computes where it is used"),
    "JoinedStr": ("strings", _VALUES),
    "NamedExpr": ("assignments in expressions", "write t = x on a separate line before"),
}
"""The name of each expression that kernels do not support, and what to write instead."""
