"""Whether the operators of a plan form a proper graph: inputs exist and stand above, and everything ends in a sink.

>>> from plans.operators import Sink
>>> sink = Sink(id="sink_r", inputs=("scan_o",), table="r")
>>> [problem.message for problem in check_graph(Plan(name="p", operators=(sink,)))]
["there is no operator 'scan_o'"]
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.errors import Diagnostic
from plans.model.plan import Plan
from plans.operators import tables_used
from plans.text.names import did_you_mean

__all__ = ["check_graph"]


def check_graph(plan: Plan) -> Iterator[Diagnostic]:
    """Every problem with ids and edges, in the order of the operators."""
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
                others = [known for known in position if known != operator.id and known not in sinks]
                hint = did_you_mean(name, others, what="operators")
                yield Diagnostic(message=f"there is no operator '{name}'", path=here, hint=hint)
            elif name in sinks:
                yield Diagnostic(message=f"'{name}' is a sink; a sink has no output", path=here)
            elif name in cyclic and operator.id in cyclic:
                message = f"'{operator.id}' reads '{name}', which depends on '{operator.id}': the plan has a cycle"
                yield Diagnostic(message=message, path=here)
            elif position[name] > index:
                message = f"'{name}' stands below '{operator.id}', which reads it"
                hint = "operators stand in dependency order: inputs before their consumers"
                yield Diagnostic(message=message, path=here, hint=hint)
        if operator.id not in read and operator.id not in sinks:
            hint = "every operator must lead to a sink"
            yield Diagnostic(message=f"nothing reads operator '{operator.id}'", path=path, hint=hint)


def _cyclic(plan: Plan) -> set[str]:
    """Ids on a cycle: what is left when operators without inputs, then those without consumers, are taken away."""
    inputs = {operator.id: set(operator.inputs) for operator in plan.operators}
    inputs = {name: found & inputs.keys() for name, found in inputs.items()}
    consumers: dict[str, set[str]] = {name: set() for name in inputs}
    for name, found in inputs.items():
        for one in found:
            consumers[one].add(name)
    left = _strip(inputs, consumers)
    return _strip(
        {name: found & left for name, found in consumers.items() if name in left},
        {name: found & left for name, found in inputs.items() if name in left},
    )


def _strip(before: dict[str, set[str]], after: dict[str, set[str]]) -> set[str]:
    waiting = {name: len(found) for name, found in before.items()}
    free = [name for name, count in waiting.items() if count == 0]
    while free:
        name = free.pop()
        del waiting[name]
        for follower in after[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                free.append(follower)
    return set(waiting)
