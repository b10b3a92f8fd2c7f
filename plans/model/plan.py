"""The plan document as a frozen dataclass: the content of a plan, independent of its notation and its execution.

Facts (operators, edges, keys, expressions, schemas, functions) are the meaning of the query. Settings can be edited
freely: state TTLs, waiting, retries and caching of lookups and calls, phases of aggregates, cached results, config, and
connector options. Digests (:mod:`hintplan.plans.format.digest`) cover only the facts.

Columns are referred to by name, never by position. Expressions are Spark SQL text over the columns of the operator's
input; every run first checks them against an allow list. Operators are defined in :mod:`hintplan.plans.operators`.

This module knows nothing of JSON, SQL or Spark. It does not know how a plan is drawn either: it loads
:mod:`hintplan.plans.show.notebook` by name when a notebook displays a plan.

>>> Plan(name="revenue").mode
'streaming'
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

from hintplan.plans.declarations.tables import Function, Table
from hintplan.plans.lazy import load
from hintplan.plans.model.late_rows import declared_operators, with_late_rows
from hintplan.plans.operators import Operator, Scan, Sink
from hintplan.plans.text.read_only import read_only

FORMAT = "1.0"

Mode = Literal["streaming", "batch"]


class PrettyPrinter(Protocol):
    """The printer of IPython that ``_repr_pretty_`` receives."""

    def text(self, text: str) -> None:
        """Print ``text``."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A compiled job; ``operators`` are in dependency order, inputs before their readers.

    The operators that write late rows follow from settings of watermarks, and are always among ``operators``.

    A ``batch`` plan keeps no state, and all its edges are insert-only.

    ``source`` is the base name of the compiled script, and ``init`` has the base names of its init files. ``reasons``
    are notes by the path of a setting. None of these is a fact. ``compiled`` has the compiler's digests of settings
    without origin, by path.
    """

    name: str
    source: str | None = None
    init: tuple[str, ...] = ()
    mode: Mode = "streaming"
    config: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    operators: tuple[Operator, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    compiled: Mapping[str, str] = field(default_factory=dict)
    format: str = FORMAT

    def __post_init__(self) -> None:
        for name in ("config", "tables", "functions", "reasons", "compiled"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if self.mode == "streaming":
            object.__setattr__(self, "operators", with_late_rows(self.operators, self.tables))
        for operator in self.operators:
            if operator.groups:
                object.__setattr__(operator, "settings", read_only(operator.settings))

    def operator(self, operator_id: str) -> Operator:
        """Return the operator called ``operator_id``; raise KeyError if there is none."""
        for candidate in self.operators:
            if candidate.id == operator_id:
                return candidate
        raise KeyError(operator_id)

    @cached_property
    def by_id(self) -> Mapping[str, Operator]:
        """The operators by id; the last if several have one id."""
        return {operator.id: operator for operator in self.operators}

    @cached_property
    def declared(self) -> tuple[Operator, ...]:
        """The operators of the plan file: all except operators that follow from settings."""
        return declared_operators(self.operators)

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """The operators that read tables, in the order of the plan."""
        return tuple(operator for operator in self.operators if isinstance(operator, Scan))

    @cached_property
    def sinks(self) -> tuple[Sink, ...]:
        """The operators that write tables, in the order of the plan."""
        return tuple(operator for operator in self.operators if isinstance(operator, Sink))

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Operator]]:
        """The readers of each operator by id, once per edge; edges from missing operators are included."""
        readers: dict[str, list[Operator]] = {operator.id: [] for operator in self.operators}
        for operator in self.operators:
            for name in operator.inputs:
                readers.setdefault(name, []).append(operator)
        return readers

    def upstream(self, *ids: str) -> tuple[str, ...]:
        """Return the operators called ``ids`` and all operators below them, the nearest first."""
        reached: dict[str, None] = {}
        waiting = deque(ids)
        while waiting:
            name = waiting.popleft()
            if name in self.by_id and name not in reached:
                reached[name] = None
                waiting += self.by_id[name].inputs
        return tuple(reached)

    def replaced(self, *operators: Operator) -> Plan:
        """Return the plan with ``operators`` in place of the operators with the same ids."""
        by_id = {operator.id: operator for operator in operators}
        return replace(self, operators=tuple(by_id.get(operator.id, operator) for operator in self.operators))

    def _repr_html_(self) -> str:
        """Return the picture and the states for a notebook."""
        return str(load("hintplan.plans.show.notebook:plan_html")(self))

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        """Print the tree, which IPython shows without graphics and stores in notebooks as the text form."""
        printer.text(load("hintplan.plans.show.notebook:plan_text")(self))
