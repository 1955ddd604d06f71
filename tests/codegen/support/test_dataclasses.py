"""`dataclass`, whose methods are compiled late, behaves like the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from threading import Barrier, Thread
from typing import Any, ClassVar

import pytest

from codegen.support.dataclasses import dataclass as ours

BOTH = pytest.mark.parametrize("dataclass", [dataclasses.dataclass, ours], ids=["standard", "ours"])
FROZEN = pytest.mark.parametrize("frozen", [False, True], ids=["mutable", "frozen"])
SLOTS = pytest.mark.parametrize("slots", [False, True], ids=["dict", "slots"])


def declared(dataclass: Any, **options: Any) -> Any:
    @dataclass(**options)
    class Declared:
        """Fields of all kinds."""

        kind: ClassVar[str] = "of all"
        a: int
        b: int = 2
        c: list[int] = field(default_factory=list, hash=False)
        d: int = field(default=4, init=False, repr=False)
        e: int = field(default=5, compare=False)
        f: tuple[int, ...] = field(default=(), kw_only=True)
        g: dict[str, int] = field(default_factory=dict, init=False, compare=False)

    return Declared


def shown(value: object) -> str:
    return repr(value).replace("declared.<locals>.", "")


@FROZEN
@SLOTS
def test_values_are_as_in_the_standard_library(frozen, slots):
    theirs, mine = (declared(x, frozen=frozen, slots=slots) for x in (dataclasses.dataclass, ours))
    for made in (theirs, mine):
        assert shown(made(1)) == "Declared(a=1, b=2, c=[], e=5, f=(), g={})"
        assert made(1, 3, [4], 6, f=(7,)).f == (7,)
        assert made(1).d == 4
        assert made(1, e=0) == made(1, e=9)
        assert made(1) != made(2)
        assert made(1) != "made(1)"
        assert made(1).c is not made(1).c
        assert shown(replace(made(1), a=8, f=(9,))) == "Declared(a=8, b=2, c=[], e=5, f=(9,), g={})"
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            made()
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            made(1, d=3)
    assert [x.name for x in fields(mine)] == [x.name for x in fields(theirs)]
    assert mine.__match_args__ == theirs.__match_args__
    assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
    assert mine.__dataclass_params__.frozen == frozen
    assert mine.__eq__.__qualname__.endswith("Declared.__eq__")
    if frozen:
        assert hash(mine(1)) == hash(theirs(1))
    else:
        with pytest.raises(TypeError, match="unhashable"):
            hash(mine(1))


@BOTH
@SLOTS
def test_frozen_values_refuse_assignments(dataclass, slots):
    made = declared(dataclass, frozen=True, slots=slots)
    value = made(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        value.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del value.a
    with pytest.raises((FrozenInstanceError, TypeError)):
        value.other = 2
    assert value.a == 1


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    a: int
    b: tuple[int, ...] = ()


@ours(frozen=True, slots=True)
class Ours:
    a: int
    b: tuple[int, ...] = ()


@pytest.mark.parametrize("made", [Theirs, Ours])
def test_frozen_values_with_slots_are_copied_and_pickled(made):
    value = made(1, (2, 3))
    for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert same == value
        assert same.b == (2, 3)


@BOTH
def test_methods_of_the_class_stay(dataclass):
    @dataclass(frozen=True, slots=True)
    class Own:
        a: float

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + 1)

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    assert Own(1).a == 2
    assert Own(1) == "anything"
    assert hash(Own(1)) == 7
    assert repr(Own(1)) == "own"


@BOTH
def test_fields_are_inherited(dataclass):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        a: int = 1

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        b: int

    @dataclass(frozen=True, slots=True)
    class Same(Derived):
        """The same fields as its base, but never equal to a value of it."""

    assert Derived(2, a=3).a == 3
    assert Base().a == 1
    assert Same(2) != Derived(2)
    assert Same(2) == Same(2)
    assert "Same(a=1, b=2)" in repr(Same(2))


@BOTH
def test_a_nan_equals_itself_but_no_other(dataclass):
    @dataclass(frozen=True)
    class One:
        x: float

    nan = float("nan")
    assert One(nan) == One(nan)
    assert One(nan) != One(float("nan"))


@BOTH
def test_eq_false_compares_identities(dataclass):
    @dataclass(frozen=True, slots=True, eq=False)
    class Same:
        x: int

    value = Same(1)
    assert value != Same(1)
    assert len({value, Same(1)}) == 2


def test_threads_may_construct_the_first_values():
    for _ in range(50):
        made = declared(ours, frozen=True, slots=True)
        start, found = Barrier(4), []

        def construct(made: Any = made, start: Barrier = start, found: list[Any] = found) -> None:
            start.wait()
            found.append(made(1))

        threads = [Thread(target=construct) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [made(1)] * 4


@BOTH
def test_fields_may_have_any_name(dataclass):
    @dataclass(frozen=True, slots=True)
    class Odd:
        self: int
        put: int
        absent: int
        make_b: int
        default_b: int
        b: list[int] = field(default_factory=list)
        c: int = field(default=5, init=False)

    value = Odd(1, 2, 3, 4, 5)
    assert (value.self, value.put, value.absent, value.make_b, value.default_b) == (1, 2, 3, 4, 5)
    assert (value.b, value.c) == ([], 5)


@BOTH
def test_required_fields_come_first(dataclass):
    with pytest.raises(TypeError, match="non-default argument 'b' follows default argument"):

        @dataclass(frozen=True)
        class Wrong:
            a: int = 1
            b: int  # type: ignore[misc]


@BOTH
def test_a_value_that_contains_itself_has_a_repr(dataclass):
    @dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert shown(node).endswith("Node(next=...)")


@pytest.mark.parametrize("base", [dataclasses.dataclass, ours], ids=["standard base", "our base"])
@BOTH
def test_frozen_classes_have_frozen_bases(dataclass, base):
    @base(frozen=True)
    class Base:
        a: int = 1

    @dataclass(frozen=True)
    class Derived(Base):
        b: int = 2

    assert Derived(b=3) == Derived(1, 3)
    assert Derived(b=3) != Derived(2, 3)
    with pytest.raises(FrozenInstanceError):
        Derived().a = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclass
        class Mutable(Base):
            c: int = 3
