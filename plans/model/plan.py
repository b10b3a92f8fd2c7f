"""The plan document as a frozen dataclass: what a plan says, without how it is written or run.

Facts (operators, edges, keys, expressions, schemas, functions) are what the query means; settings (state TTLs, how
lookups and calls wait, retry and cache, phases of aggregates, cached results, config, connector options) are free to
edit. Facts and settings are told apart in :mod:`hintplan.plans.format.digest`. Columns are addressed by name, never by
position. Expressions are Spark SQL text over the columns of the operator's input; they are checked against an allow
list before every run. What operators say is in :mod:`hintplan.plans.operators`. This module knows nothing of JSON, SQL
or Spark, nor of how a plan is drawn: what a notebook shows of one is found by name, in
:mod:`hintplan.plans.show.notebook`, when it is asked for.

>>> Plan(name="revenue").mode
'streaming'
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

from hintplan.plans.declarations.tables import Function, Table
from hintplan.plans.lazy import load
from hintplan.plans.operators import Operator, Scan, Sink, kind_of
from hintplan.plans.text.read_only import read_only

FORMAT = "1.0"

Mode = Literal["streaming", "batch"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A compiled job. ``operators`` stand in dependency order: inputs before their consumers.

    A ``batch`` plan keeps no state, and all its edges are insert-only.

    ``source`` is the base name of the script it was compiled from, ``init`` has those of its init files; ``reasons``
    are notes by the path of a setting. None of them is a fact.
    ``compiled`` has the digests of settings without origin as the compiler wrote them, by path.
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
        for operator in self.operators:
            if kind_of(operator).groups:
                object.__setattr__(operator, "settings", read_only(operator.settings))

    def operator(self, operator_id: str) -> Operator:
        """The operator called ``operator_id``; KeyError if there is none."""
        for candidate in self.operators:
            if candidate.id == operator_id:
                return candidate
        raise KeyError(operator_id)

    @cached_property
    def by_id(self) -> Mapping[str, Operator]:
        """The operators by id; of several with one id, the last."""
        return {operator.id: operator for operator in self.operators}

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """The operators in which rows of tables begin, in the order of the plan."""
        return tuple(cast(Scan, operator) for operator in self.operators if kind_of(operator).is_source)

    @cached_property
    def sinks(self) -> tuple[Sink, ...]:
        """The operators in which rows end, in the order of the plan."""
        return tuple(cast(Sink, operator) for operator in self.operators if kind_of(operator).is_sink)

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Operator]]:
        """What reads each operator, once for each of its inputs that it is; an edge that leads nowhere counts, too."""
        found: dict[str, list[Operator]] = {operator.id: [] for operator in self.operators}
        for operator in self.operators:
            for name in operator.inputs:
                found.setdefault(name, []).append(operator)
        return found

    def upstream(self, *ids: str) -> tuple[str, ...]:
        """The operators called ``ids`` and all that they are computed from, the nearest first."""
        found: dict[str, None] = {}
        waiting = deque(ids)
        while waiting:
            name = waiting.popleft()
            if name in self.by_id and name not in found:
                found[name] = None
                waiting += self.by_id[name].inputs
        return tuple(found)

    def replaced(self, *operators: Operator) -> Plan:
        """The plan with ``operators`` in the places of those that have their ids."""
        by_id = {operator.id: operator for operator in operators}
        return replace(self, operators=tuple(by_id.get(operator.id, operator) for operator in self.operators))

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture and the states."""
        return str(load("hintplan.plans.show.notebook:plan_html")(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows where there are no pictures, and keeps in the notebook beside them: the tree."""
        printer.text(load("hintplan.plans.show.notebook:plan_text")(self))
