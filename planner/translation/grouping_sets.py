"""GROUP BY as grouping sets: GROUPING SETS, CUBE and ROLLUP, with GROUPING, GROUPING_ID and GROUP_ID.

Elements of the clause combine as in the SQL standard: each set of one with each set of the next. The id of a set is
Flink's. It has a binary digit for each key, in the order of the text, which is 1 if the set lacks the key. For example,
``GROUP BY a, ROLLUP (b, c)`` means the sets (a, b, c), (a, b) and (a), with the ids 0, 1 and 3.

>>> set_id(3, frozenset((0, 1)))
1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from sqlglot import exp

from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, Call, Expr, Field, FieldRef, call, literal
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.source import Source
from hintplan.planner.translation.translator import Translator

FUNCTIONS = frozenset(("GROUPING", "GROUPING_ID", "GROUP_ID"))
"""Functions that distinguish the sets in SELECT, HAVING and ORDER BY."""
GROUP_ID = "$e"
"""The column with the id of the set, named as in Flink's plans."""
_FIXED = -1
"""The place of a key that all sets have."""
MOST_KEYS = 63
MOST_SETS = 512

Columns = tuple[Expr, ...]
Sets = list[Columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingSets:
    """The ``keys`` in the order of the text, and the ``sets`` as positions in ``keys``, by ascending id.

    ``fixed`` are other keys, which all sets have.
    """

    keys: tuple[Expr, ...]
    sets: tuple[frozenset[int], ...]
    fixed: tuple[Expr, ...] = ()

    def without(self, places: frozenset[int]) -> GroupingSets:
        """Return the same sets, in which the keys at ``places`` that all sets have are fixed."""
        common = frozenset(place for place in places if all(place in members for members in self.sets))
        kept = [place for place in range(len(self.keys)) if place not in common]
        return GroupingSets(
            keys=tuple(self.keys[place] for place in kept),
            sets=tuple(frozenset(kept.index(place) for place in members - common) for members in self.sets),
            fixed=tuple(self.keys[place] for place in sorted(common)),
        )


def set_id(keys: int, members: frozenset[int]) -> int:
    """Return the id of the set that has the keys at ``members``, of ``keys`` keys in total."""
    return sum(1 << (keys - 1 - place) for place in range(keys) if place not in members)


def grouping_sets(source: Source, group: exp.Group | None, column: Callable[[exp.Expr], Expr]) -> GroupingSets:
    """Return the sets of a GROUP BY clause, or an empty set without a clause; ``column`` translates the keys."""
    if group is None:
        return GroupingSets(keys=(), sets=(frozenset(),))
    reader = _Reader(source, column)
    elements = [reader.sets(node) for node in group.expressions]
    if not elements:
        raise source.error("GROUP BY names no columns", offset_of(group), "list the columns to group by")
    count = 1
    for sets in elements:
        count *= len(sets)
        reader.check_count(count, group)
    combined = [tuple(dict.fromkeys(e for part in parts for e in part)) for parts in product(*elements)]
    keys = tuple(dict.fromkeys(e for sets in elements for columns in sets for e in columns))
    if len(keys) > MOST_KEYS and len(combined) > 1:
        raise source.error(f"grouping sets take at most {MOST_KEYS} columns", offset_of(group), "leave columns out")
    places = {key: place for place, key in enumerate(keys)}
    all_sets = [frozenset(places[e] for e in columns) for columns in combined]
    distinct_sets = sorted(set(all_sets), key=lambda members: set_id(len(keys), members))
    if len(distinct_sets) < len(all_sets) and group.args.get("all") is not False:
        raise source.error(
            "a grouping set is there twice, which is not supported",
            offset_of(group),
            "write GROUP BY DISTINCT to have each set once, or UNION ALL to have its groups twice",
        )
    return GroupingSets(keys=keys, sets=tuple(distinct_sets))


class _Reader:
    """Expands elements of GROUP BY to their sets."""

    def __init__(self, source: Source, column: Callable[[exp.Expr], Expr]) -> None:
        self.source = source
        self.column = column

    def sets(self, node: exp.Expr) -> Sets:
        if isinstance(node, exp.GroupingSets):
            sets = [each for part in node.expressions for each in self.sets(part)]
        elif isinstance(node, exp.Rollup):
            parts = [self.columns(part) for part in node.expressions]
            sets = [sum(parts[:length], ()) for length in range(len(parts), -1, -1)]
        elif isinstance(node, exp.Cube):
            self.check_count(1 << len(node.expressions), node)
            parts = [self.columns(part) for part in node.expressions]
            sets = [sum(chosen, ()) for chosen in product(*(((part), ()) for part in parts))]
        else:
            return [self.columns(node)]
        if not node.expressions:
            name = node.key.upper().replace("GROUPINGSETS", "GROUPING SETS")
            raise self.source.error(f"{name} names no columns", offset_of(node), "list the columns to group by")
        self.check_count(len(sets), node)
        return sets

    def columns(self, node: exp.Expr) -> Columns:
        if isinstance(node, exp.Tuple):
            return tuple(self.column(part) for part in node.expressions)
        return (self.column(node),)

    def check_count(self, count: int, node: exp.Expr) -> None:
        if count > MOST_SETS:
            message = f"these are more than {MOST_SETS} grouping sets: every row would be copied for each of them"
            raise self.source.error(message, offset_of(node), "list the needed sets with GROUPING SETS")


def translate_grouping_function(t: Translator, node: exp.Expr) -> Expr:
    """Translate a call of one of ``FUNCTIONS``, which stays a call until :func:`grouping_number` knows the sets."""
    name, offset = node.name.upper(), offset_of(node)
    if not t.aggregates:
        if t.clause in ("SELECT", "HAVING", "ORDER BY"):
            raise t.source.error(f"{name} needs a GROUP BY", offset, "add one, or write 0")
        advice = "put it in SELECT, HAVING or ORDER BY of a query with GROUP BY"
        raise t.source.error(f"{name} cannot stand in {t.clause}", offset, advice)
    if name == "GROUP_ID" and node.expressions:
        raise t.source.error("GROUP_ID takes no arguments", offset, "write GROUP_ID()")
    if name != "GROUP_ID" and not node.expressions:
        raise t.source.error(f"{name} takes one argument or more, found none", offset, "name grouped columns")
    inner = replace(t, aggregates=False, clause=name)
    return call(name, tuple(inner.expression(e) for e in node.expressions), BIGINT, offset)


def is_grouping_call(expression: Expr) -> bool:
    """Return True if the expression itself is a call of one of ``FUNCTIONS``."""
    return isinstance(expression, Call) and expression.function in FUNCTIONS


def grouping_number(source: Source, function_call: Call, groups: GroupingSets, group_id: Field | None) -> Expr:
    """Return the value of a call of one of ``FUNCTIONS``: a constant, or a CASE over ``group_id``, the id of the set.

    GROUP_ID is always 0, because it numbers equal sets, and no set occurs twice.
    """
    places: list[int] = []
    for argument in function_call.args:
        if argument in groups.fixed:
            places.append(_FIXED)
            continue
        if argument not in groups.keys:
            offset = getattr(argument, "offset", 0) or function_call.offset
            message = f"{function_call.function} takes grouped columns only"
            raise source.error(message, offset, "name columns of GROUP BY")
        places.append(groups.keys.index(argument))
    if group_id is None or not places:
        return literal(0, BIGINT, function_call.offset)
    if places == list(range(len(groups.keys))):
        return FieldRef(field=group_id, offset=function_call.offset)
    by_number: dict[int, list[int]] = {}
    for members in groups.sets:
        lacking = (place != _FIXED and place not in members for place in reversed(places))
        number = sum(1 << i for i, lacks in enumerate(lacking) if lacks)
        by_number.setdefault(number, []).append(set_id(len(groups.keys), members))
    *chosen, last = sorted(by_number)
    parts: list[Expr] = []
    for number in chosen:
        ids = tuple(literal(each, BIGINT) for each in by_number[number])
        of_set = call("=" if len(ids) == 1 else "IN", (FieldRef(field=group_id), *ids), BOOLEAN, function_call.offset)
        parts += [of_set, literal(number, BIGINT)]
    if not parts:
        return literal(last, BIGINT, function_call.offset)
    return call("CASE", (*parts, literal(last, BIGINT)), BIGINT, function_call.offset)
