"""``frozen`` makes what ``dataclasses`` makes, which is asked here for each answer."""

from __future__ import annotations

import copy
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from inspect import signature
from typing import Any, ClassVar, get_type_hints

import pytest

from hintplan.plans.frozen import frozen

ours: Callable[[type], Any] = frozen
theirs: Callable[[type], Any] = dataclass(frozen=True, slots=True, kw_only=True)


def made(decorator: Callable[[type], Any]) -> dict[str, Any]:
    """Classes of each form of field, which are equal but for what makes them."""

    @decorator
    class Empty:
        """No field."""

    @decorator
    class One:
        """One field."""

        a: int

    @decorator
    class Many:
        """All forms of fields."""

        KIND: ClassVar[str] = "many"
        a: int
        b: tuple[str, ...] = ()
        c: dict[str, int] = field(default_factory=dict, compare=False)
        d: str = field(default="x", repr=False)

        @property
        def twice(self) -> int:
            return self.a * 2

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")

    @decorator
    class Spoken:
        """Its own text."""

        a: int

        def __str__(self) -> str:
            return f"number {self.a}"

        def __repr__(self) -> str:
            return "spoken"

    @decorator
    class Below(One):
        """A field more than its base."""

        b: str = "b"

    return {cls.__name__: cls for cls in (Empty, One, Many, Spoken, Below)}


GIVEN: list[tuple[str, dict[str, Any]]] = [
    ("Empty", {}),
    ("One", {"a": 1}),
    ("One", {"a": float("nan")}),
    ("Many", {"a": 1}),
    ("Many", {"a": 2, "b": ("x",), "c": {"k": 1}, "d": "y"}),
    ("Spoken", {"a": 3}),
    ("Below", {"a": 1, "b": "c"}),
]


@pytest.mark.parametrize(("name", "given"), GIVEN)
def test_values_are_the_same_as_those_of_dataclasses(name: str, given: dict[str, Any]) -> None:
    answers = []
    for decorator in (ours, theirs):
        cls = made(decorator)[name]
        value, same = cls(**given), cls(**given)
        answers.append(
            (
                repr(value).replace(decorator.__name__, ""),
                str(value).replace(decorator.__name__, ""),
                [getattr(value, one.name) for one in fields(cls)],
                [(one.name, one.type, one.kw_only, one.compare, one.repr) for one in fields(cls)],
                value == same,
                value != same,
                hash(value) == hash(same),
                value == object(),
                value == replace(value),
                copy.copy(value) == value,
                copy.deepcopy(value) == value,
                hasattr(value, "__dict__"),
                cls.__match_args__,
                cls.__doc__,
                [(part.name, part.kind) for part in signature(cls).parameters.values()],
                get_type_hints(cls.__init__),
            )
        )
    assert answers[0] == answers[1]


@pytest.mark.parametrize("decorator", [ours, theirs])
def test_fields_that_are_not_compared_make_no_difference(decorator: Callable[[type], Any]) -> None:
    many = made(decorator)["Many"]
    assert many(a=1, c={"k": 1}) == many(a=1)
    assert hash(many(a=1, c={"k": 1})) == hash(many(a=1))
    assert many(a=1, d="y") != many(a=1)
    assert many(a=1).c is not many(a=1).c
    assert (many(a=4).twice, many.KIND) == (8, "many")


@pytest.mark.parametrize("decorator", [ours, theirs])
def test_nothing_can_be_changed_or_left_out(decorator: Callable[[type], Any]) -> None:
    many = made(decorator)["Many"]
    value = many(a=1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        value.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del value.a
    for wrong in ({}, {"a": 1, "z": 2}):
        with pytest.raises(TypeError):
            many(**wrong)
    with pytest.raises(TypeError):
        many(1)
    with pytest.raises(ValueError, match="negative"):
        replace(value, a=-1)


def test_values_of_other_classes_differ() -> None:
    one, other = made(ours), made(ours)
    assert one["One"](a=1) != other["One"](a=1)
    assert one["Below"](a=1) != one["One"](a=1)


class Shape(ABC):
    """An abstract base with a property that a field overrides, one with a default, and a method."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def sides(self) -> int:
        return 0

    @abstractmethod
    def area(self) -> int: ...


def test_a_field_overrides_a_property_of_an_abstract_base() -> None:
    @frozen
    class Square(Shape):
        name: str
        side: int
        sides: int = 4

        def area(self) -> int:
            return self.side**2

    square = Square(name="s", side=3)
    assert (square.name, square.sides, square.area(), isinstance(square, Shape)) == ("s", 4, 9, True)
    assert not hasattr(square, "__dict__")
    assert replace(square, side=2) == Square(name="s", side=2)
    with pytest.raises(TypeError, match="name"):
        Square(side=3)  # type: ignore[call-arg]


def test_what_a_base_leaves_open_must_be_decided() -> None:
    @frozen
    class Circle(Shape):
        name: str

    with pytest.raises(TypeError, match=r"abstract class Circle .* area"):
        Circle(name="c")  # type: ignore[abstract]


@frozen
class Sent:
    """A class that pickle finds."""

    a: int
    b: tuple[int, ...] = ()


def test_a_value_can_be_sent_to_another_process() -> None:
    value = Sent(a=1, b=(2,))
    assert pickle.loads(pickle.dumps(value)) == value
    assert repr(value) == "Sent(a=1, b=(2,))"
