"""Frozen classes of `codegen.records` beside those of the standard library: nobody can tell them apart."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from codegen import records


def made_by(dataclass: Callable[..., Any], *, slots: bool) -> tuple[type[Any], ...]:
    """Classes with all that is in use: defaults, factories, fields left out, methods of their own."""

    @dataclass(frozen=True, slots=slots)
    class Point:
        """Two numbers and a name."""

        x: int
        y: int = 3
        name: str = dataclasses.field(default="p", compare=False)

    @dataclass(frozen=True, slots=slots)
    class Held(Point):
        """Fields of a base, a factory, one that is worked out."""

        parts: list[int] = dataclasses.field(default_factory=list, repr=False)
        size: int = dataclasses.field(init=False, default=0, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.parts) + 1)

        def __hash__(self) -> int:
            return 17

    @dataclass(frozen=True, slots=slots)
    class One:
        """Methods of its own."""

        value: object

        def __repr__(self) -> str:
            return "one"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, int) or type(other) is type(self)

    @dataclass(frozen=True, slots=slots)
    class Nothing:
        """No field."""

    return Point, Held, One, Nothing


@pytest.fixture(params=[True, False], ids=["slots", "dict"])
def pairs(request: pytest.FixtureRequest) -> tuple[tuple[type[Any], ...], tuple[type[Any], ...]]:
    slots = request.param
    return made_by(records.dataclass, slots=slots), made_by(dataclasses.dataclass, slots=slots)


ARGUMENTS: list[list[tuple[tuple[Any, ...], dict[str, Any]]]] = [
    [((1,), {}), ((1, 2), {}), ((1, 2, "q"), {}), ((), {"x": 5, "name": "z"}), ((1, float("nan")), {})],
    [((1,), {}), ((1, 2, "q", [4]), {}), ((0,), {"parts": [1, 2]})],
    [((4,), {}), (((1, 2),), {})],
    [((), {})],
]


def test_instances_look_and_compare_alike(pairs: Any) -> None:
    for ours, theirs, given in zip(*pairs, ARGUMENTS, strict=True):
        made = [[cls(*a, **k) for a, k in given] for cls in (ours, theirs)]
        for mine, other in zip(*made, strict=True):
            assert repr(mine) == repr(other)
            assert dataclasses.asdict(mine) == dataclasses.asdict(other)
            assert hash(mine) == hash(other) == hash(mine)
            assert mine == copy.copy(mine)
            assert (mine == 3) == (other == 3)
        equal = [[[a == b for b in row] for a in row] for row in made]
        assert equal[0] == equal[1]


def test_classes_say_the_same_of_themselves(pairs: Any) -> None:
    for ours, theirs in zip(*pairs, strict=True):
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs)) or ours.__name__ == "Held"
        assert ours.__match_args__ == theirs.__match_args__
        assert ours.__doc__ == theirs.__doc__
        assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
        assert hasattr(ours, "__slots__") == hasattr(theirs, "__slots__")
        assert ours.__init__.__qualname__ == theirs.__init__.__qualname__


def test_they_are_frozen_and_replaced_alike(pairs: Any) -> None:
    for kinds in pairs:
        point, held = kinds[0](1, 2), kinds[1](1, parts=[1, 2])
        for change in (lambda p: setattr(p, "x", 4), lambda p: delattr(p, "x")):
            with pytest.raises(dataclasses.FrozenInstanceError, match="field 'x'"):
                change(point)
        assert dataclasses.replace(point, y=7) == kinds[0](1, 7)
        assert held.size == 3
        assert dataclasses.replace(held, parts=[]).size == 1
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'x'"):
            kinds[0]()


def test_defaults_come_last() -> None:
    for dataclass in (records.dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError, match="default"):

            @dataclass(frozen=True)
            class Wrong:
                """A field too many."""

                x: int = 3
                y: int  # type: ignore[misc]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_fields_go_where_they_belong(count: int) -> None:
    """Classes of as many fields share one code, whose names are theirs."""
    names = [f"f{k}" for k in range(count)]
    for kind in ("A", "B"):
        fields = {name + kind: int for name in names}
        made = records.dataclass(frozen=True)(type(kind, (), {"__annotations__": fields, "__doc__": "."}))
        assert vars(made(*range(count))) == {name: k for k, name in enumerate(fields)}
        assert vars(made(**{name: -k for k, name in enumerate(fields)})) == {
            name: -k for k, name in enumerate(fields)
        }
        assert list(inspect.signature(made).parameters) == list(fields)


@records.dataclass(frozen=True, slots=True)
class Stored:
    """At the top of a module, as what is pickled must be."""

    a: int
    b: tuple[int, ...] = ()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    if protocol < 2:
        pytest.skip("slots are not pickled by protocols 0 and 1")
    value = Stored(1, (2, 3))
    assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.deepcopy(value) == value


def test_a_list_within_itself_is_shown() -> None:
    held: list[Any] = []
    value = Stored(1, held)  # type: ignore[arg-type]
    held.append(value)
    assert repr(value) == "Stored(a=1, b=[...])"


def test_methods_are_compiled_once() -> None:
    @records.dataclass(frozen=True)
    class Late:
        """Compared for the first time here."""

        x: int

    before = Late.__eq__, Late.__hash__
    assert Late(1) == Late(1)
    assert hash(Late(1)) == hash((1,))
    after = Late.__eq__, Late.__hash__
    assert not set(before) & set(after)
    assert Late(2) != Late(1)
    assert (Late.__eq__, Late.__hash__) == after
