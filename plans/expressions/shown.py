"""Displays the expressions of a plan, which are Spark SQL, as Flink SQL, which authors write.

The compiler rewrites some of Flink's functions. The pairs in ``flink_forms.json`` reverse this; ``python -m
tests.planner.forms`` generates them with the compiler. Functions with the same name in both stay as they are.
Hand-written text that cannot be parsed is displayed unchanged.

>>> shown_expression("CAST(concat(substring(CAST(ts AS STRING), 1, 13), ':00:00') AS TIMESTAMP_NTZ)")
'FLOOR(ts TO HOUR)'
>>> shown_expression("l.total > 3 AND hp_json_value(r.raw, '$.a') <=> l.`it's`", {"l": "o", "r": "c"})
"o.total > 3 AND JSON_VALUE(c.raw, '$.a') IS NOT DISTINCT FROM o.`it's`"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hintplan.plans.expressions.documents import Document, document_call
from hintplan.plans.expressions.nodes import Node, read_expression

_PLAIN = re.compile(r"[A-Za-z_]\w*|\d+|'[^'\\]*'")
_PLACE = re.compile(r"_\d+")
_OR, _AND, _NOT, _COMPARE, _UNARY, _PRIMARY = 1, 2, 3, 4, 8, 9
_CHAINS = {"||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "div": 7, "%": 7}
_TYPES = {"TIMESTAMP_NTZ": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP_LTZ", "BINARY": "BYTES", "STRUCT": "ROW"}

_NULL_OF_NULL = ("greatest", "least")
"""Functions that return NULL in Flink if an argument is NULL. Spark ignores NULLs instead."""

Written = tuple[str, int]
"""A text, and the precedence of its outermost operator."""
_NOWHERE: Mapping[str, str] = {}


def shown_expression(text: str, sides: Mapping[str, str] = _NOWHERE) -> str:
    """Return the expression ``text`` of a plan as Flink SQL. ``sides`` has the names to display for ``l`` and ``r``."""
    if _PLAIN.fullmatch(text):
        return text
    tree = read_expression(text)
    if tree is None:
        return text
    try:
        return _Writer(sides).written(tree)[0]
    except RecursionError:
        return text


def operand_of_and(text: str, sides: Mapping[str, str] = _NOWHERE) -> str:
    """Return ``text`` like :func:`shown_expression`, in parentheses if AND has a higher precedence."""
    tree = read_expression(text)
    shown = shown_expression(text, sides)
    return f"({shown})" if tree is not None and tree.kind == "OR" else shown


class _Form(NamedTuple):
    """A call in Flink with the placeholders ``_1``, ``_2`` and so on, and the tree that the planner makes of it."""

    flink: str
    tree: Node


@cache
def _texts() -> Mapping[str, Mapping[str, list[str]]]:
    texts: Mapping[str, Mapping[str, list[str]]] = json.loads(
        Path(__file__).with_name("flink_forms.json").read_text(encoding="utf-8")
    )
    return texts


@cache
def _forms(root: str) -> tuple[_Form, ...]:
    """Return the forms whose trees have this root: the largest first, then those with fewer placeholders."""
    texts = _texts().get(root, {})
    forms = [
        _Form(flink, tree)
        for flink, spark_texts in texts.items()
        for text in spark_texts
        if (tree := form_of(text)) is not None
    ]
    return tuple(sorted(forms, key=_order))


def form_of(spark: str) -> Node | None:
    """Return the tree by which to find a form: without its NULL guard, if that keeps all placeholders."""
    tree = read_expression(spark)
    if tree is None:
        return None
    inside = _without_guard(tree)[1]
    return inside if _places(inside) == _places(tree) else tree


def root_of(tree: Node) -> str:
    """Return the key of a form in the file."""
    return f"{tree.kind} {tree.text}".strip()


def _places(form: Node) -> set[str]:
    own = set(_PLACE.findall(form.text)) if form.kind in ("name", "string") else set()
    return own.union(*map(_places, form.parts))


def _order(form: _Form) -> tuple[int, int]:
    return -_size(form.tree), len(_places(form.tree))


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.parts))


def _matches(form: Node, node: Node, found: dict[str, Node]) -> bool:
    """Return True if ``node`` matches ``form``, with equal nodes for equal placeholders. Put them into ``found``."""
    if form.kind == "name" and _PLACE.fullmatch(form.text):
        return found.setdefault(form.text, node) == node
    if form.kind == node.kind == "string" and form.text != node.text:
        return _matches_text(form.text, node.text, found)
    return (
        form.kind == node.kind
        and form.text == node.text
        and len(form.parts) == len(node.parts)
        and all(_matches(a, b, found) for a, b in zip(form.parts, node.parts, strict=True))
    )


def _matches_text(form: str, text: str, found: dict[str, Node]) -> bool:
    """Return True if ``text`` ends like ``form``, a literal that begins with a placeholder.

    Put the beginning of ``text`` into ``found``.
    """
    place = _PLACE.match(form)
    suffix = form[place.end() :] if place is not None else ""
    if place is None or not suffix or not text.endswith(suffix):
        return False
    inside = Node("string", text.removesuffix(suffix))
    return found.setdefault(place[0], inside) == inside


def _without_guard(node: Node) -> tuple[tuple[Node, ...], Node]:
    """Split a CASE that returns NULL if one of its operands is NULL. Return the operands and the guarded expression.

    For any other ``node``, return no operands and the node.
    """
    if node.kind != "case" or len(node.parts) != 3 or not _is_null(node.parts[1]):
        return (), node
    condition = node.parts[0]
    tests = condition.parts if condition.kind == "OR" else (condition,)
    if any(test.kind != "is" or test.text != "IS NULL" for test in tests):
        return (), node
    return tuple(test.parts[0] for test in tests), node.parts[2]


def _is_null(node: Node) -> bool:
    return node == _NULL or (node.kind == "cast" and node.parts == (_NULL,))


_NULL = Node("constant", "NULL")


class _Writer:
    def __init__(self, sides: Mapping[str, str]) -> None:
        self.sides = sides

    def text(self, node: Node, needed: int = 0) -> str:
        """Return the text of ``node``, in parentheses if its precedence is lower than ``needed``."""
        text, strength = self.written(node)
        return f"({text})" if strength < needed else text

    def all(self, nodes: tuple[Node, ...]) -> str:
        return ", ".join(map(self.text, nodes))

    def written(self, node: Node) -> Written:
        call = document_call(node)
        if call is not None:
            return self.document(call), _PRIMARY
        guarded, inside = _without_guard(node)
        for tests, tree in (((), node), (guarded, inside)) if guarded else (((), node),):
            for form in _forms(root_of(tree)):
                arguments: dict[str, Node] = {}
                if _matches(form.tree, tree, arguments) and set(tests) <= set(arguments.values()):
                    return self.filled(form.flink, arguments), _strength(form.flink)
        if guarded and inside.kind == "call" and inside.text in _NULL_OF_NULL and set(guarded) <= set(inside.parts):
            return f"{inside.text.upper()}({self.all(inside.parts)})", _PRIMARY
        return _KINDS[node.kind](self, node)

    def document(self, made: Document) -> str:
        """Return the call of a function that makes JSON."""
        members = []
        for member in made.members:
            value = self.document(member.value) if isinstance(member.value, Document) else self.text(member.value)
            members.append(value if member.name is None else f"{flink_literal(member.name)} VALUE {value}")
        return f"{made.function}({' '.join(filter(None, (', '.join(members), made.clause)))})"

    def filled(self, flink: str, found: Mapping[str, Node]) -> str:
        """Return the call with its arguments, in parentheses unless brackets or commas enclose an argument."""

        def argument(place: re.Match[str]) -> str:
            before, behind = flink[: place.start()].rstrip(), flink[place.end() :].lstrip()
            is_alone = before.endswith(("(", ",")) and behind.startswith((")", ","))
            return self.text(found[place[0]], 0 if is_alone else _UNARY)

        return _PLACE.sub(argument, flink)


def _strength(flink: str) -> int:
    if re.fullmatch(r"`?\w+`?\(.*\)|\w+|.*\]", flink):
        return _PRIMARY
    sign = re.fullmatch(r"_1 (\S+) _2", flink)
    return _CHAINS.get(sign[1], _COMPARE) if sign is not None else _COMPARE


def flink_literal(text: str) -> str:
    """Return ``text`` as a literal of Flink SQL."""
    return "'" + text.replace("'", "''") + "'"


def _flink_type(text: str) -> str:
    return re.sub(r"`(?:[^`]|``)*`|\w+", lambda word: _TYPES.get(word[0].upper(), word[0]), text)


def _alternatives(writer: _Writer, node: Node) -> Written:
    return " OR ".join(writer.text(part, _AND) for part in node.parts), _OR


def _conditions(writer: _Writer, node: Node) -> Written:
    return " AND ".join(writer.text(part, _NOT) for part in node.parts), _AND


def _negation(writer: _Writer, node: Node) -> Written:
    (inner,) = node.parts
    if inner.kind == "compare" and inner.text == "<=>":
        return _comparison(writer, Node("compare", "IS DISTINCT FROM", inner.parts))
    return f"NOT {writer.text(inner, _NOT)}", _NOT


def _comparison(writer: _Writer, node: Node) -> Written:
    left, right = (writer.text(part, _COMPARE + 1) for part in node.parts)
    sign = {"<=>": "IS NOT DISTINCT FROM", "!=": "<>"}.get(node.text, node.text)
    return f"{left} {sign} {right}", _COMPARE


def _tested(writer: _Writer, node: Node) -> Written:
    return f"{writer.text(node.parts[0], _COMPARE + 1)} {node.text}", _COMPARE


def _between(writer: _Writer, node: Node) -> Written:
    value, low, high = (writer.text(part, _COMPARE + 1) for part in node.parts)
    return f"{value} {node.text} {low} AND {high}", _COMPARE


def _one_of(writer: _Writer, node: Node) -> Written:
    return f"{writer.text(node.parts[0], _COMPARE + 1)} {node.text} ({writer.all(node.parts[1:])})", _COMPARE


def _like(writer: _Writer, node: Node) -> Written:
    value, pattern, *escape = (writer.text(part, _COMPARE + 1) for part in node.parts)
    return " ESCAPE ".join((f"{value} {node.text} {pattern}", *escape)), _COMPARE


def _chain(writer: _Writer, node: Node) -> Written:
    signs = node.text.split()
    strength = _CHAINS[signs[0]]
    first, *following = node.parts
    written = [writer.text(first, strength)]
    for sign, part in zip(signs, following, strict=True):
        written += ["/" if sign == "div" else sign, writer.text(part, strength + 1)]
    return " ".join(written), strength


def _negative(writer: _Writer, node: Node) -> Written:
    inner = writer.text(node.parts[0], _UNARY)
    return (f"-({inner})" if inner.startswith("-") else f"-{inner}"), _UNARY


def _name(_writer: _Writer, node: Node) -> Written:
    return node.text, _PRIMARY


def _string(_writer: _Writer, node: Node) -> Written:
    return flink_literal(node.text), _PRIMARY


def _typed(_writer: _Writer, node: Node) -> Written:
    # Flink has no TIMESTAMP_LTZ literals. A text represents one.
    kind = _TYPES.get(node.text, node.text)
    return f"{'' if kind == 'TIMESTAMP_LTZ' else kind + ' '}{flink_literal(node.parts[0].text)}", _PRIMARY


def _call(writer: _Writer, node: Node) -> Written:
    name = node.text.lower()
    if name in ("array", "map"):
        return f"{name.upper()}[{writer.all(node.parts)}]", _PRIMARY
    if name == "get" and len(node.parts) == 2 and node.parts[1].kind == "number" and node.parts[1].text.isdecimal():
        return f"{_whole(writer, node.parts[0])}[{int(node.parts[1].text) + 1}]", _PRIMARY
    if name == "unhex" and node.parts[0].kind == "string":
        return f"X{flink_literal(node.parts[0].text)}", _PRIMARY
    if name == "named_struct":
        return f"ROW({writer.all(node.parts[1::2])})", _PRIMARY
    return f"{node.text}({writer.all(node.parts)})", _PRIMARY


def _extracted(writer: _Writer, node: Node) -> Written:
    return f"EXTRACT({node.text} FROM {writer.text(node.parts[0])})", _PRIMARY


def _cast(writer: _Writer, node: Node) -> Written:
    function, _, kind = node.text.partition(" ")
    return f"{function}({writer.text(node.parts[0])} AS {_flink_type(kind)})", _PRIMARY


def _case(writer: _Writer, node: Node) -> Written:
    if len(node.parts) == 3 and node.parts[0].kind == "compare" and node.parts[0].text == "=":
        (same, other), nothing, value = node.parts[0].parts, *node.parts[1:]
        if same == value and _is_null(nothing):
            return f"NULLIF({writer.all((value, other))})", _PRIMARY
    parts = [writer.text(part) for part in node.parts]
    whens = [f"WHEN {condition} THEN {value}" for condition, value in zip(parts[::2], parts[1::2], strict=False)]
    return " ".join(("CASE", *whens, *([f"ELSE {parts[-1]}"] if len(parts) % 2 else []), "END")), _PRIMARY


def _field(writer: _Writer, node: Node) -> Written:
    (whole,) = node.parts
    if whole.kind == "name" and whole.text in writer.sides:
        return ".".join(filter(None, (writer.sides[whole.text], node.text))), _PRIMARY
    return f"{_whole(writer, whole)}.{node.text}", _PRIMARY


def _element(writer: _Writer, node: Node) -> Written:
    return f"{_whole(writer, node.parts[0])}[{writer.text(node.parts[1])}]", _PRIMARY


def _whole(writer: _Writer, node: Node) -> str:
    """Return the text of a value whose field or element is taken."""
    text = writer.text(node, _PRIMARY)
    return f"({text})" if node.kind in ("case", "call", "cast") else text


_KINDS: Mapping[str, Callable[[_Writer, Node], Written]] = {
    "OR": _alternatives,
    "AND": _conditions,
    "NOT": _negation,
    "compare": _comparison,
    "is": _tested,
    "between": _between,
    "in": _one_of,
    "like": _like,
    "chain": _chain,
    "negative": _negative,
    "name": _name,
    "number": _name,
    "constant": _name,
    "interval": _name,
    "string": _string,
    "typed": _typed,
    "call": _call,
    "extract": _extracted,
    "cast": _cast,
    "case": _case,
    "field": _field,
    "element": _element,
}
