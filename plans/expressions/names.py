"""The functions and columns in an expression of a plan. A run checks them before Spark gets the expression.

>>> refused_function("coalesce(a, reflect('x'))"), refused_function("a IN (1) AND CAST(b AS DECIMAL(3, 1)) > 0")
('reflect', None)
>>> columns_named("l.total > 3 AND timestampadd(HOUR, 1, r.`a b`) < r.c.d")
(('l', 'total'), ('r', 'a b'), ('r', 'c', 'd'))
"""

from __future__ import annotations

from itertools import pairwise

from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS, ALLOWED_WORDS
from hintplan.plans.expressions.nodes import Node, read_expression, tokens


def refused_function(text: str) -> str | None:
    """Return the first called name that plans do not allow as a function, as written in the text, or None."""
    all_tokens = [*tokens(text)]
    for number, (token, following) in enumerate(pairwise(all_tokens)):
        if following.text != "(" or token.kind not in ("word", "quoted"):
            continue
        is_quoted = token.kind == "quoted" or (number > 0 and all_tokens[number - 1].text == ".")
        if is_quoted or (token.text.lower() not in ALLOWED_FUNCTIONS and token.text.upper() not in ALLOWED_WORDS):
            return token.text
    return None


def columns_named(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the columns that ``text`` reads, each with the path of its field. The result is empty if parsing fails."""
    tree = read_expression(text)
    paths: dict[tuple[str, ...], None] = {}
    waiting = [] if tree is None else [tree]
    while waiting:
        node = waiting.pop()
        path = _path(node)
        if path is None:
            waiting += reversed(node.parts)
        elif len(path) > 1 or node.text.upper() not in ALLOWED_WORDS:  # a unit of time is no column
            paths[path] = None
    return tuple(paths)


def _path(node: Node) -> tuple[str, ...] | None:
    names: list[str] = []
    while node.kind == "field":
        names.append(_unquoted(node.text))
        (node,) = node.parts
    return (_unquoted(node.text), *reversed(names)) if node.kind == "name" else None


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
