"""`dataclass`, with methods that are compiled when they are first used.

The standard library compiles up to eight methods of a class while its module is imported, which takes 0.5 ms
for a frozen class with slots. A process that only runs stored kernels imports a hundred such classes and
constructs half of them. Fields, slots and `replace` are the standard library's; methods have its meaning.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as _with_fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
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
        """The standard library's decorator of this name, for the options that this project uses."""

        def made(cls: type) -> type:
            own = frozenset(vars(cls))
            hashed = vars(cls).get("__hash__") is not None
            cls = _with_fields(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            if init and "__init__" not in own:
                cls.__init__ = _Init(cls, frozen)
            if repr and "__repr__" not in own:
                cls.__repr__ = _repr(cls)
            if eq and "__eq__" not in own:
                cls.__eq__ = _eq(cls)
            if eq and not hashed:
                cls.__hash__ = _hash(cls) if frozen else None
            if frozen:
                _freeze(cls, own, slots)
            return cls

        return made if cls is None else made(cls)


class _Init:
    """`__init__` of a class. It is compiled, and replaces this object, when it is first looked up."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self._cls, self._frozen = cls, frozen

    def __get__(self, instance: object | None, owner: type) -> Any:
        made: Any = _compiled_init(self._cls, self._frozen)
        self._cls.__init__ = made  # type: ignore[misc]
        return made if instance is None else made.__get__(instance, owner)


def _compiled_init(cls: type, frozen: bool) -> Callable[..., None]:
    """The constructor that a class's fields describe, such as:

    def __init__(self, extent, stride=default_stride):
        put(self, 'extent', extent)
        put(self, 'stride', stride)
    """
    names: dict[str, Any] = {"put": object.__setattr__, "absent": MISSING}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for x in fields(cls):
        value = x.name
        has_factory = x.default_factory is not MISSING
        if has_factory:
            names[f"make_{x.name}"] = x.default_factory
            value = f"make_{x.name}() if {x.name} is absent else {x.name}" if x.init else f"make_{x.name}()"
        elif x.default is not MISSING:
            names[f"default_{x.name}"] = x.default
            value = x.name if x.init else f"default_{x.name}"
        if x.init:
            given = "=absent" if has_factory else f"=default_{x.name}" if x.default is not MISSING else ""
            (keywords if x.kw_only else positional).append(x.name + given)
        elif not has_factory and x.default is MISSING:
            continue
        lines.append(f"put(self, {x.name!r}, {value})" if frozen else f"self.{x.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n    {body}", names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {x.name: x.type for x in fields(cls) if x.init} | {"return": None}
    return init


def _repr(cls: type) -> Callable[[Any], str]:
    shown = tuple(x.name for x in fields(cls) if x.repr)

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


def _values(chosen: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some fields, as a tuple."""
    names = [x.name for x in chosen]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _freeze(cls: Any, own: frozenset[str], slots: bool) -> None:
    """Refuse assignments. Copies and pickles of instances with slots set the fields anyway."""
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

    cls.__setattr__, cls.__delattr__ = refuse_assignment, refuse_deletion
    if slots and "__getstate__" not in own:
        cls.__getstate__ = state_of
    if slots and "__setstate__" not in own:
        cls.__setstate__ = restore
