"""`dataclass`, with methods that are compiled on first use.

The standard library compiles up to eight methods of a class while its module is imported, which takes 0.5 ms
for a frozen class with slots. A process that only runs stored kernels imports a hundred such classes, and
constructs half of them. Fields, slots and `replace` are the standard library's; the methods mean the same.
`InitVar` and `order` are not supported.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as _with_fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
    ) -> Any:
        """The standard library's decorator of the same name, with the options that this project uses."""

        def made(cls: type) -> type:
            own, text = frozenset(vars(cls)), cls.__doc__
            hashed = vars(cls).get("__hash__") is not None
            # Few classes have frozen bases. For those, the standard library checks that all are frozen.
            checked = frozen and any(_is_frozen(base) for base in cls.__mro__[1:])
            options = {"slots": slots, "kw_only": kw_only, "frozen": checked}
            cls = _with_fields(init=False, repr=False, eq=False, **options)(cls)
            cls.__doc__ = text
            _check_order(cls)
            _note_options(cls, init=init, repr=repr, eq=eq, frozen=frozen)
            if init and "__init__" not in own:
                cls.__init__ = _Init(cls, frozen)
            if repr and "__repr__" not in own:
                _put(cls, "__repr__", _repr(cls))
            if eq and "__eq__" not in own:
                _put(cls, "__eq__", _eq(cls))
            if eq and not hashed and frozen:
                _put(cls, "__hash__", _hash(cls))
            elif eq and not hashed:
                cls.__hash__ = None
            if frozen:
                _freeze(cls, own, slots)
            return cls

        return made if cls is None else made(cls)


def _is_frozen(base: type) -> bool:
    return getattr(vars(base).get("__dataclass_params__"), "frozen", False)


def _check_order(cls: Any) -> None:
    """Raise for a field without a default after one with a default, as the standard library does."""
    earlier = ""
    for x in fields(cls):
        if not x.init or x.kw_only:
            continue
        if x.default is not MISSING or x.default_factory is not MISSING:
            earlier = x.name
        elif earlier:
            raise TypeError(f"non-default argument {x.name!r} follows default argument {earlier!r}")


def _note_options(cls: Any, **options: bool) -> None:
    """Record the options for the standard library's decorator, for classes that derive from this one."""
    for name, value in options.items():
        setattr(cls.__dataclass_params__, name, value)


def _put(cls: Any, name: str, method: Any) -> None:
    """Add a method under the name that `help` shows."""
    method.__name__, method.__module__ = name, cls.__module__
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)


class _Factory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Init:
    """`__init__` of a class, compiled on first access, when it replaces this object."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self._cls, self._frozen = cls, frozen

    def __get__(self, instance: object | None, owner: type) -> Any:
        made: Any = _compiled_init(self._cls, self._frozen)
        self._cls.__init__ = made  # type: ignore[misc]
        return made if instance is None else made.__get__(instance, owner)


def _compiled_init(cls: type, frozen: bool) -> Callable[..., None]:
    """The constructor that a class's fields describe, such as:

    def __init__(self, extent, stride=_dataclass_of_stride):
        _dataclass_put(self, 'extent', extent)
        _dataclass_put(self, 'stride', stride)

    Names that are not parameters begin with `_dataclass_`, which no field does.
    """
    self = "_dataclass_self" if any(x.name == "self" for x in fields(cls)) else "self"
    names: dict[str, Any] = {"_dataclass_put": object.__setattr__, "_dataclass_absent": _FACTORY}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for x in fields(cls):
        has_default, has_factory = x.default is not MISSING, x.default_factory is not MISSING
        default = f"_dataclass_of_{x.name}"
        names[default] = x.default_factory if has_factory else x.default
        value, given = x.name, f"={default}" if has_default else ""
        if has_factory:
            made, given = f"{default}()", "=_dataclass_absent"
            value = f"{made} if {x.name} is _dataclass_absent else {x.name}" if x.init else made
        elif not x.init:
            value = default
        if x.init:
            (keywords if x.kw_only else positional).append(x.name + given)
        elif not has_factory and not has_default:
            continue
        put = f"_dataclass_put({self}, {x.name!r}, {value})"
        lines.append(put if frozen else f"{self}.{x.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(f"{self}.__post_init__()")
    parameters = ", ".join([self, *positional, *(["*", *keywords] if keywords else [])])
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n    {body}", names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    annotations = {x.name: x.type for x in fields(cls) if x.init}
    init.__annotations__ = {**annotations, "return": None}
    return init


def _repr(cls: type) -> Callable[[Any], str]:
    shown = tuple(x.name for x in fields(cls) if x.repr)

    @recursive_repr()
    def text(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    return text


def _eq(cls: type) -> Callable[[Any, object], bool]:
    values = _values(x for x in fields(cls) if x.compare)

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(cls: type) -> Callable[[Any], int]:
    values = _values(x for x in fields(cls) if (x.compare if x.hash is None else x.hash))

    def digest(self: Any) -> int:
        return hash(values(self))

    return digest


def _values(chosen: Iterable[Field[Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some fields, as a tuple."""
    names = [x.name for x in chosen]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _freeze(cls: Any, own: frozenset[str], slots: bool) -> None:
    """Reject assignments. Copying and unpickling instances with slots can still set the fields."""
    names = tuple(x.name for x in fields(cls))

    def refuse_assignment(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_deletion(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def state_of(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    _put(cls, "__setattr__", refuse_assignment)
    _put(cls, "__delattr__", refuse_deletion)
    if slots and "__getstate__" not in own:
        cls.__getstate__ = state_of
    if slots and "__setstate__" not in own:
        cls.__setstate__ = restore


def as_call(record: Any) -> str:
    """The call that makes a record, without the fields that have their defaults.

    Tail("x", "shift", sizes=(16, 8, 1))    Stream("headed", least=256)
    """
    own = [(field, getattr(record, field.name)) for field in fields(record)]
    given = [_text(value) for field, value in own if field.default is MISSING]
    given += [f"{x.name}={_text(v)}" for x, v in own if x.default is not MISSING and v != x.default]
    return f"{type(record).__name__}({', '.join(given)})"


def _text(value: object) -> str:
    """A number, a tuple of them, or text with the quotation marks of the project."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    return f'"{value}"' if isinstance(value, str) else repr(value)
