"""Checks that the operators of a plan form a valid graph: inputs precede their readers, and every path ends in a sink.

>>> from hintplan.plans.operators import Sink
>>> sink = Sink(id="sink_r", inputs=("scan_o",), table="r")
>>> [problem.message for problem in check_graph(Plan(name="p", operators=(sink,)))]
["there is no operator 'scan_o'"]
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import tables_used
from hintplan.plans.text.names import did_you_mean


def check_graph(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every problem of ids and edges, in the order of the operators."""
    position: dict[str, int] = {}
    sinks = {operator.id for operator, _ in tables_used(plan.operators, "writes")}
    read = {operator_input for operator in plan.operators for operator_input in operator.inputs}
    for index, operator in enumerate(plan.operators):
        if operator.id in position:
            yield Diagnostic(message=f"two operators are called '{operator.id}'", path=f"operators[{index}].id")
        position[operator.id] = index
    cyclic = _cyclic(plan)
    for index, operator in enumerate(plan.operators):
        path = f"operators.{operator.id}"
        for number, name in enumerate(operator.inputs):
            here = f"{path}.inputs[{number}]"
            if name not in position:
                candidates = [
                    candidate for candidate in position if candidate != operator.id and candidate not in sinks
                ]
                hint = did_you_mean(name, candidates, what="operators")
                yield Diagnostic(message=f"there is no operator '{name}'", path=here, hint=hint)
            elif name in sinks:
                yield Diagnostic(message=f"'{name}' is a sink; a sink has no output", path=here)
            elif name in cyclic and operator.id in cyclic:
                message = f"'{operator.id}' reads '{name}', which depends on '{operator.id}': the plan has a cycle"
                yield Diagnostic(message=message, path=here)
            elif position[name] > index:
                message = f"'{name}' stands below '{operator.id}', which reads it"
                hint = "operators must be in dependency order: inputs before their consumers"
                yield Diagnostic(message=message, path=here, hint=hint)
        if operator.id not in read and operator.id not in sinks:
            hint = "every operator must lead to a sink"
            yield Diagnostic(message=f"nothing reads operator '{operator.id}'", path=path, hint=hint)


def _cyclic(plan: Plan) -> set[str]:
    """Return the ids on a cycle: the rest after removing operators without inputs, then without readers, repeatedly."""
    left = plan.by_id.keys() - dependency_order({name: operator.inputs for name, operator in plan.by_id.items()})
    readers = {name: {reader.id for reader in plan.readers[name]} for name in left}
    return left - {*dependency_order({name: reader_ids & left for name, reader_ids in readers.items()})}


def dependency_order(inputs: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the names sorted topologically, and in the given order where inputs allow it.

    Names on a cycle, or with inputs on a cycle, are left out.

    >>> dependency_order({"sink": ["join"], "join": ["a", "b"], "b": [], "a": [], "loop": ["loop"]})
    ('b', 'a', 'join', 'sink')
    """
    names = list(inputs)
    rank = {name: position for position, name in enumerate(names)}
    followers: dict[str, list[str]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    for name, needed in inputs.items():
        for needed_name in {*needed} & rank.keys():
            followers[needed_name].append(name)
            waiting[name] += 1
    free = [rank[name] for name, count in waiting.items() if count == 0]
    order = []
    while free:
        name = names[heapq.heappop(free)]
        order.append(name)
        for follower in followers[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(free, rank[follower])
    return tuple(order)
