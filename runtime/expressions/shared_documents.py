"""Calls of JSON functions over the same column, so that its documents are parsed once for all of them.

>>> import pyarrow as pa
>>> document = Read(name="r.d", kind=pa.string())
>>> calls = [JsonCall("hp_json_value", (path,)) for path in ("$.a", "$.b")]
>>> nodes = [Apply(function=call, args=(document,), kind=pa.string(), text="") for call in calls]
>>> first, _ = with_shared_parts(nodes)
>>> [part.steps for part in first.function.parts]
[('a',), ('b',)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hintplan.runtime.expressions.json_calls import JsonCall
from hintplan.runtime.expressions.json_parts import Part
from hintplan.runtime.kernels.evaluation import Apply, Choose, Coalesce, Connect, Node, Read


def with_shared_parts(nodes: Sequence[Node]) -> list[Node]:
    """Return ``nodes``, in which each JSON call over a column knows the parts that the others need."""
    parts: dict[str, list[Part]] = {}
    for node in nodes:
        for column, call in _calls(node):
            if call.part is not None:
                parts.setdefault(column, []).append(call.part)
    shared = {column: tuple(wanted) for column, wanted in parts.items() if len(wanted) > 1}
    return [_with_parts(node, shared) for node in nodes] if shared else [*nodes]


def _calls(node: Node) -> Iterator[tuple[str, JsonCall]]:
    if isinstance(node, Apply) and isinstance(node.function, JsonCall) and isinstance(node.args[0], Read):
        yield node.args[0].name, node.function
    for below in _operands(node):
        yield from _calls(below)


def _operands(node: Node) -> tuple[Node, ...]:
    match node:
        case Apply():
            return node.args
        case Connect() | Coalesce():
            return node.parts
        case Choose():
            return (*(each for branch in node.branches for each in branch), node.default)
        case _:
            return ()


def _with_parts(node: Node, shared: dict[str, tuple[Part, ...]]) -> Node:
    match node:
        case Apply():
            arguments = tuple(_with_parts(each, shared) for each in node.args)
            function = node.function
            if isinstance(function, JsonCall) and isinstance(node.args[0], Read):
                function = replace(function, parts=shared.get(node.args[0].name, ()))
            return replace(node, args=arguments, function=function)
        case Connect() | Coalesce():
            return replace(node, parts=tuple(_with_parts(each, shared) for each in node.parts))
        case Choose():
            branches = tuple((_with_parts(test, shared), _with_parts(value, shared)) for test, value in node.branches)
            return replace(node, branches=branches, default=_with_parts(node.default, shared))
        case _:
            return node
