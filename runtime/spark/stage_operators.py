"""Finds the operators of a plan that run in a Spark stage, by the names of functions and metrics in Spark's plan.

Spark stores the plan of a query and the steps of each stage, but not the mapping between them. A stage is a part of the
plan between exchanges, and is identified by the names of its steps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_OPERATOR = re.compile(r"\w*MapInArrow (for )?([^(]+)\(|CollectMetrics (?:read by )?([^,/]+)(/\d+)?")
_EXCHANGE = re.compile(r"(?:\w*Exchange|AQEShuffleRead|\w*QueryStage|AdaptiveSparkPlan)$")
_FILES_ONLY = "Scan binaryFile"
"""Spark only lists the files of this scan; tasks read their rows."""
_LAST = 20
"""The number of most recent executions to search for a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """A node of Spark's plan, and its whole-stage codegen cluster, if any."""

    number: int
    name: str
    text: str
    cluster: str | None = None


def operators_of_stage(steps: Iterable[PlanStep], edges: Iterable[tuple[int, int]], scopes: Iterable[str]) -> list[str]:
    """Return the operators in the part of a plan that best matches the ``scopes`` of a stage.

    If several parts match equally well, return the operators of all of them. If a stage runs no operator, return the
    operator for which it packs rows.

    >>> steps = [PlanStep(number=0, name="CollectMetrics", text="CollectMetrics sink_r, [count(1)]"),
    ...     Step(number=1, name="MapInArrow", text="MapInArrow join_a(x), [y]"),
    ...     Step(number=2, name="Exchange", text="Exchange hashpartitioning(x)"),
    ...     Step(number=3, name="MapInArrow", text="MapInArrow for join_a(x), [y]")]
    >>> edges = [(3, 2), (2, 1), (1, 0)]
    >>> operators_of_stage(steps, edges, ["Exchange", "MapInArrow", "CollectMetrics"])
    ['join_a', 'sink_r']
    >>> operators_of_stage(steps, edges, ["MapInArrow", "Exchange"])
    ['join_a']
    """
    wanted = Counter(scope for scope in scopes if not _EXCHANGE.match(scope))
    # Codegen clusters have numbers, and Spark renumbers them when it changes a plan during execution. So match the most
    # similar part instead of an equal one.
    parts = [(_unlike(_scopes(part), wanted), part) for part in _parts({step.number: step for step in steps}, edges)]
    nearest = min((unlike for unlike, _ in parts), default=0)
    fitting = [part for unlike, part in parts if unlike == nearest < wanted.total()]
    steps = sorted((step for part in fitting for step in part), key=lambda step: -step.number)
    groups = [match.groups() for step in steps if (match := _OPERATOR.match(step.text))]
    operators = [(function or metrics, bool(packs or side)) for packs, function, metrics, side in groups]
    own = dict.fromkeys(name for name, is_packed_for in operators if not is_packed_for)
    return list(own or dict.fromkeys(name for name, _ in operators))


def _unlike(one: Counter[str], other: Counter[str]) -> int:
    return (one - other).total() + (other - one).total()


def _scopes(part: Iterable[PlanStep]) -> Counter[str]:
    """Return the scopes of the stage that a part of the plan would form."""
    clusters = {step.cluster for step in part if step.cluster is not None}
    return Counter(clusters) + Counter(
        step.name for step in part if step.cluster is None and not _EXCHANGE.match(step.name)
    )


def _parts(steps: Mapping[int, PlanStep], edges: Iterable[tuple[int, int]]) -> Iterator[list[PlanStep]]:
    """Yield the groups of steps that are connected without an exchange."""
    part_of = {number: {number} for number in steps}
    for below, above in edges:
        exchanged = {_EXCHANGE.match(steps[end].name) is not None for end in (below, above) if end in steps}
        if exchanged == {False} and part_of[below] is not part_of[above]:
            part_of[below] |= part_of[above]
            for number in part_of[above]:
                part_of[number] = part_of[below]
    seen: set[int] = set()
    for number, part in part_of.items():
        if number not in seen:
            seen |= part
            yield [steps[member] for member in part]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContent:
    """The ``operators`` in a stage. ``files_only`` is true if Spark does not count the rows of its sources."""

    operators: tuple[str, ...]
    files_only: bool


def content_of(session: JavaObject, store: JavaObject, job: int, stage: int) -> StageContent:
    """Return the content of a ``stage`` of a ``job``, without operators if they are unknown."""
    clusters = _each(store.operationGraphForStage(stage).rootCluster().childClusters())
    scopes = [cluster.name() for cluster in clusters]
    plans = session.sharedState().statusStore()
    count = plans.executionsCount()
    last = plans.executionsList(max(0, count - _LAST), _LAST)
    executions = (last.apply(index) for index in reversed(range(last.size())))
    execution = next((candidate for candidate in executions if candidate.jobs().contains(job)), None)
    if execution is None:
        return StageContent(operators=(), files_only=_FILES_ONLY in scopes)
    operators: list[str] = []
    # In Spark 4.0, what a sink in Python executes has a plan that only reads the batch. The batch has all operators.
    for number in dict.fromkeys((int(execution.executionId()), int(execution.rootExecutionId()))):
        graph = plans.planGraph(number)
        edges = [(int(edge.fromId()), int(edge.toId())) for edge in _each(graph.edges())]
        operators = operators or operators_of_stage(_steps(graph), edges, scopes)
    return StageContent(operators=tuple(operators), files_only=_FILES_ONLY in scopes)


def _steps(graph: JavaObject) -> Iterator[PlanStep]:
    for node in _each(graph.nodes()):
        if node.getClass().getSimpleName() == "SparkPlanGraphCluster":
            for inner in _each(node.nodes()):
                yield PlanStep(number=int(inner.id()), name=inner.name(), text=inner.desc(), cluster=node.name())
        else:
            yield PlanStep(number=int(node.id()), name=node.name(), text=node.desc())


def _each(sequence: JavaObject) -> Iterator[JavaObject]:
    return (sequence.apply(index) for index in range(sequence.size()))
