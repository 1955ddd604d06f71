"""`dataclasses.dataclass`, an eighth of the time a frozen class: a first pack needs a hundred of them.

The standard one compiles six functions from text for each class, 0.6 ms in Python 3.11. Here `__init__` is
compiled once for all classes of so many fields, and `__eq__` and `__hash__` when they are first called.
Classes and instances behave as ever, for `fields`, `replace`, pickles and type checkers too; there are no
keyword-only fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True, init: bool = True) -> Any:
        """A decorator as the standard library's, for the parameters in use."""
        if frozen and eq:
            return lambda cls: _frozen(cls, slots=slots, init=init)
        return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, init=init)


def _frozen(cls: type[T], *, slots: bool, init: bool) -> type[T]:
    """The class with its fields, then the methods that it does not define itself."""
    own = dict(vars(cls))
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    compared = [f.name for f in fields if f.compare]
    methods: dict[str, Any] = {
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__eq__": _equal(made, compared),
        "__repr__": _repr([f.name for f in fields if f.repr]),
    }
    if init:
        methods["__init__"] = _init(made, fields)
    if slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    if own.get("__hash__") is None:  # which is what a class with an `__eq__` of its own has
        made.__hash__ = _hash(made, compared)  # type: ignore[method-assign, assignment]
    return made


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """An `__init__` as fast as a compiled one, which it is."""
    then = hasattr(cls, "__post_init__")
    given = [_is_given(f) for f in fields if f.init]
    if given != sorted(given):
        raise TypeError(f"{cls.__name__} has a field without a default behind one that has a default")
    if all(f.init and f.default_factory is dataclasses.MISSING for f in fields):
        code = _renamed(_template(len(fields), then), [f.name for f in fields])
        defaults = tuple(f.default for f in fields if f.default is not dataclasses.MISSING)
        made = FunctionType(code, {"_set": object.__setattr__}, "__init__", defaults)
    else:
        made = _compiled_init(fields, then)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _is_given(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has a default."""
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


@cache
def _template(count: int, then: bool) -> CodeType:
    """The code of an `__init__` of so many fields, named _0, _1, ...; `then` it calls `__post_init__`."""
    names = [f"_{k}" for k in range(count)]
    body = [f" _set(self, {name!r}, {name})" for name in names]
    return _function(["self", *names], body, then, {}).__code__


def _renamed(code: CodeType, names: list[str]) -> CodeType:
    """The same code for other fields: to rename is ten times as fast as to compile."""
    known = {f"_{k}": name for k, name in enumerate(names)}
    variables = tuple(known.get(name, name) for name in code.co_varnames)
    constants = tuple(known.get(x, x) if isinstance(x, str) else x for x in code.co_consts)
    return code.replace(co_varnames=variables, co_consts=constants)


def _compiled_init(fields: tuple[dataclasses.Field[Any], ...], then: bool) -> FunctionType:
    """An `__init__` with fields that are no parameters, or are made by functions."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_none": dataclasses.MISSING}
    parameters, body = ["self"], []
    for field in fields:
        name = value = field.name
        default = field.default is not dataclasses.MISSING
        made = field.default_factory is not dataclasses.MISSING
        if default or made:
            names[f"_of_{name}"] = field.default if default else field.default_factory
        if field.init:
            parameters.append(name + (f"=_of_{name}" if default else "=_none" if made else ""))
            value = f"_of_{name}() if {name} is _none else {name}" if made else name
        elif default or made:
            value = f"_of_{name}()" if made else f"_of_{name}"
        else:
            continue
        body.append(f" _set(self, {name!r}, {value})")
    return _function(parameters, body, then, names)


def _function(parameters: list[str], body: list[str], then: bool, names: dict[str, Any]) -> FunctionType:
    lines = [*body, " self.__post_init__()" if then else " pass"]
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), names)
    made: FunctionType = names["__init__"]
    return made


def _equal(cls: type, compared: list[str]) -> Callable[[Any, object], Any]:
    own, others = _tuple("self", compared), _tuple("other", compared)
    text = (
        "def __eq__(self, other):\n"
        f" if other.__class__ is self.__class__: return {own} == {others}\n"
        " return NotImplemented"
    )

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return _compiled(cls, "__eq__", text)(self, other)

    return __eq__


def _hash(cls: type, compared: list[str]) -> Callable[[Any], int]:
    text = f"def __hash__(self): return hash({_tuple('self', compared)})"

    def __hash__(self: Any) -> int:  # noqa: N807
        return int(_compiled(cls, "__hash__", text)(self))

    return __hash__


def _tuple(owner: str, names: list[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _compiled(cls: type, name: str, text: str) -> Callable[..., Any]:
    """The method that a text defines, which takes the place of the one that asks for it."""
    names: dict[str, Any] = {}
    exec(text, names)
    method: Callable[..., Any] = names[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)
    return method


def _repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
