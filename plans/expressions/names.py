"""The functions and columns that an expression of a plan names: what a run asks of it before Spark sees it.

>>> refused_function("coalesce(a, reflect('x'))"), refused_function("a IN (1) AND CAST(b AS DECIMAL(3, 1)) > 0")
('reflect', None)
>>> columns_named("l.total > 3 AND timestampadd(HOUR, 1, r.`a b`) < r.c.d")
(('l', 'total'), ('r', 'a b'), ('r', 'c', 'd'))
"""

from __future__ import annotations

from itertools import pairwise

from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS, ALLOWED_WORDS
from hintplan.plans.expressions.nodes import Node, read, tokens


def refused_function(text: str) -> str | None:
    """Return the first name that is called and is none of the functions of a plan, as the text has it."""
    found = [*tokens(text)]
    for number, (token, following) in enumerate(pairwise(found)):
        if following.text != "(" or token.kind not in ("word", "quoted"):
            continue
        is_quoted = token.kind == "quoted" or (number > 0 and found[number - 1].text == ".")
        if is_quoted or (token.text.lower() not in ALLOWED_FUNCTIONS and token.text.upper() not in ALLOWED_WORDS):
            return token.text
    return None


def columns_named(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the columns that ``text`` reads, each with the fields taken of it; none if it is not understood."""
    tree = read(text)
    found: dict[tuple[str, ...], None] = {}
    waiting = [] if tree is None else [tree]
    while waiting:
        node = waiting.pop()
        path = _path(node)
        if path is None:
            waiting += reversed(node.parts)
        elif len(path) > 1 or node.text.upper() not in ALLOWED_WORDS:  # a unit of time is no column
            found[path] = None
    return tuple(found)


def _path(node: Node) -> tuple[str, ...] | None:
    names: list[str] = []
    while node.kind == "field":
        names.append(_unquoted(node.text))
        (node,) = node.parts
    return (_unquoted(node.text), *reversed(names)) if node.kind == "name" else None


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
