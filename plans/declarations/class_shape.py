"""Checks that the engine can call a user's class, without calling it.

The engine creates a class without arguments and calls its methods with the declared number of arguments. It awaits the
methods of an asynchronous class. A class of another shape would fail at the first row, or do nothing at all if no one
awaits its coroutine. Planner and runtime both use these checks. Knows no interface except the methods that it receives.

>>> class Locate:
...     def eval(self, address): ...
>>> check_shape(Locate, "geo.Locate", function_methods("async-table", 1))
Traceback (most recent call last):
  ...
hintplan.plans.declarations.classes.ClassRefusal: eval of geo.Locate is no async def, but it is awaited
>>> check_shape(Locate, "geo.Locate", function_methods("table", 2))  # doctest: +ELLIPSIS
Traceback (most recent call last):
  ...
hintplan.plans.declarations.classes.ClassRefusal: eval of geo.Locate cannot be called with 2 arguments: too many ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from hintplan.plans.declarations.classes import ClassRefusal
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import count

Flavour = Literal["value", "rows", "awaited value", "awaited rows"]


@frozen
class Method:
    """A method that the engine calls with ``arguments`` positional arguments.

    It returns a value, or returns or yields rows. An awaited method is an ``async def``.
    """

    name: str
    arguments: int
    flavour: Flavour
    required: bool = True


def function_methods(kind: FunctionKind, arguments: int) -> tuple[Method, ...]:
    """Return the methods of a function of ``kind`` that declares this number of arguments."""
    if kind == "aggregate":
        return (
            Method(name="create_accumulator", arguments=0, flavour="value"),
            Method(name="accumulate", arguments=1 + arguments, flavour="value"),
            Method(name="get_value", arguments=1, flavour="value"),
            Method(name="retract", arguments=1 + arguments, flavour="value", required=False),
            Method(name="merge", arguments=2, flavour="value", required=False),
            *_around("value"),
        )
    flavours: dict[FunctionKind, Flavour] = {
        "table": "rows",
        "scalar": "value",
        "async-table": "awaited rows",
        "async-scalar": "awaited value",
    }
    around: Flavour = "awaited value" if kind.startswith("async") else "value"
    return (Method(name="eval", arguments=arguments, flavour=flavours[kind]), *_around(around))


def _around(flavour: Flavour) -> tuple[Method, ...]:
    """Return the methods that the engine calls before and after all other calls."""
    return (
        Method(name="open", arguments=1, flavour=flavour, required=False),
        Method(name="close", arguments=0, flavour=flavour, required=False),
    )


def check_shape(found: type[Any], name: str, methods: Sequence[Method]) -> None:
    """Raise ClassRefusal unless the class ``found``, called ``name``, can be created and has these ``methods``."""
    missing = {method.name for method in methods if method.required and not callable(getattr(found, method.name, None))}
    missing |= getattr(found, "__abstractmethods__", frozenset())
    if missing:
        raise ClassRefusal(f"the class {name} does not define {', '.join(sorted(missing))}")
    unbound = _misfit(found, 0)
    if unbound is not None:
        raise ClassRefusal(
            f"{name} is created without arguments, which its constructor does not allow: {unbound}",
            hint="give them defaults, or read the arguments in open, for example from environment variables",
        )
    for method in methods:
        if getattr(found, method.name, None) is not None:
            _check_method(found, f"{method.name} of {name}", method)


def _check_method(found: type[Any], what: str, method: Method) -> None:
    called, bound = _called(found, method.name)
    unbound = _misfit(called, method.arguments + bound)
    if unbound is not None:
        arguments = count(method.arguments, "argument") if method.arguments else "no arguments"
        raise ClassRefusal(f"{what} cannot be called with {arguments}: {unbound}", hint="declare as many as it takes")
    awaited = method.flavour.startswith("awaited")
    returns = any(map(inspect.iscoroutinefunction, _wrapped(called)))
    yields = any(map(inspect.isasyncgenfunction, _wrapped(called)))
    if awaited and not (returns or yields):
        raise ClassRefusal(
            f"{what} is no async def, but it is awaited",
            hint=f"write async def {method.name}(...), or let the class extend one that is not asynchronous",
        )
    # A decorator may turn an async def into a plain function, so only the outermost callable matters here.
    if not awaited and (inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)):
        raise ClassRefusal(
            f"{what} is an async def, but nobody awaits it",
            hint=f"write def {method.name}(...), or let the class extend one that is asynchronous",
        )
    if method.flavour.endswith("value") and (yields if awaited else inspect.isgeneratorfunction(called)):
        raise ClassRefusal(f"{what} yields, but it has to return one value", hint="return the value")


def _called(found: type[Any], name: str) -> tuple[Any, int]:
    """Return the function behind a method, and the number of arguments before the arguments of a call."""
    static = inspect.getattr_static(found, name)
    if isinstance(static, staticmethod):
        return static.__func__, 0
    if inspect.isfunction(static):
        return static, 1
    return getattr(found, name), 0


def _misfit(called: Callable[..., Any], arguments: int) -> str | None:
    """Return the reason why ``called`` does not accept this number of positional arguments, or None if it may."""
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        return str(error)
    return None


def _wrapped(called: object) -> Iterator[Any]:
    """Yield ``called``, then the functions that its decorators wrap."""
    seen: set[int] = set()
    while called is not None and id(called) not in seen:
        seen.add(id(called))
        yield called
        called = getattr(called, "__wrapped__", None)
