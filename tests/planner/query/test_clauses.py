"""No clause of a block is unread: every part that sqlglot's syntax trees can have is honoured, or refused in its place.

Queries with blocks of every kind stand in every place. One part of one node is set at a time, to something that no
honoured part holds. What the parts that are honoured mean is the matter of ``tests/planner/results``.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from sqlglot import exp

from hintplan.planner.compile import compile_sql
from hintplan.planner.query import syntax_rewrites, where_clause
from hintplan.planner.query.subqueries import lateral, scalar
from hintplan.planner.syntax.dialect import parse_query
from hintplan.plans.errors import SqlError
from tests.planner.results.test_each_clause_of_a_block_counts import FILES, PLACES

pytestmark = [pytest.mark.slow, pytest.mark.part(of=2)]

HONOURED: dict[type[exp.Expr], set[str]] = {
    exp.Select: {
        *("hint", "expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "with_"),
        *("windows", "order", "limit", "offset"),
    },
    exp.Union: {"this", "expression", "distinct", "with_", "order", "limit", "offset"},
    exp.Except: {"this", "expression", "distinct", "with_", "order", "limit", "offset"},
    exp.Subquery: {"this", "alias", "joins", "with_", "order", "limit", "offset"},
    exp.Table: {"this", "db", "catalog", "alias", "joins", "version"},
    exp.With: {"expressions", "recursive"},
    exp.CTE: {"this", "alias"},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
    exp.From: {"this"},
    exp.Where: {"this"},
    exp.Group: {"expressions", "all"},
    exp.Having: {"this"},
    exp.Order: {"this", "expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Limit: {"expression"},
    exp.Offset: {"expression"},
    exp.Distinct: {"expressions"},
    exp.TableAlias: {"this", "columns"},
}
"""The parts of each kind of node that mean something."""
BLOCKS = (exp.Select, exp.Union, exp.Except, exp.Subquery, exp.Table)

QUERY = "SELECT marked.v AS x FROM marked"
QUERIES = {
    "block": f"{QUERY} JOIN b AS b2 ON marked.k = b2.k WHERE marked.id <> 4",
    "groups": "SELECT MAX(marked.v) AS x FROM marked WHERE marked.id <> 4 GROUP BY marked.k HAVING COUNT(*) > 0",
    "first rows": "SELECT DISTINCT marked.v AS x FROM marked WHERE marked.id > 1 ORDER BY 1 LIMIT 1 OFFSET 1",
    "union": f"{QUERY} UNION {QUERY} WHERE marked.id > 3",
    "union in union": f"{QUERY} UNION ALL {QUERY} UNION ALL {QUERY}",
    "except": f"{QUERY} EXCEPT {QUERY} WHERE marked.id > 3",
    "parentheses": f"SELECT t.x FROM ({QUERY}) AS t",
    "with": f"WITH y AS ({QUERY}) SELECT y.x FROM y",
}


def clauses_in(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of ``select``, without those of queries in it."""
    return select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))


def nodes_of(query: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of what stands in the place: those that read the table ``marked``, and what is around and in them."""
    found: dict[int, exp.Expr] = {}
    for table in query.find_all(exp.Table):
        if table.name != "marked":
            continue
        node: exp.Expr | None = table
        while node is not None and not isinstance(node, exp.In | exp.Exists | exp.Any | exp.All | exp.Lateral):
            if type(node) in HONOURED:
                found[id(node)] = node
            if isinstance(node, exp.Select):
                for part in node.walk(
                    prune=lambda each, select=node: each is not select and isinstance(each, exp.Query)
                ):
                    if type(part) in HONOURED:
                        found[id(part)] = part
            node = node.parent
    yield from found.values()


def text_of(place: str, query: str, mode: str) -> str:
    two = f"SELECT z.x, z.x AS y FROM ({query}) AS z"
    return (
        f"SET 'execution.runtime-mode' = '{mode}';\n"
        + "".join(f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) {FILES};\n" for name in ("a", "b", "marked"))
        + (f"CREATE VIEW seen AS {query};\n" if "FROM seen" in PLACES[place] else "")
        + f"CREATE TABLE s WITH ('connector' = 'print') AS {PLACES[place].format(q=query, q2=two)};"
    )


def compiled_with(text: str, changed: tuple[int, str] | None = None) -> list[type[exp.Expr]]:
    """Compile ``text`` with one part ``changed``, of the node with that number; return the types of the nodes."""
    kinds: list[type[exp.Expr]] = []

    def parse(*arguments: Any) -> exp.Query:
        query = parse_query(*arguments)
        nodes = list(nodes_of(query))
        if nodes:
            kinds[:] = [type(node) for node in nodes]
            if changed is not None:
                number, part = changed
                nodes[number].set(part, exp.Var(this="unread"))
        return query

    with mock.patch.object(syntax_rewrites, "parse_query", parse):
        compile_sql(text)
    return kinds


def is_refused(text: str, changed: tuple[int, str]) -> bool:
    try:
        compiled_with(text, changed)
    except SqlError as error:
        return all(found.line is not None and found.hint for found in error.diagnostics)
    return False


def others_of(kind: type[exp.Expr]) -> list[str]:
    """The parts that nodes of ``kind`` can have, and that mean nothing."""
    return sorted(set(kind.arg_types) - HONOURED[kind])


def compiled_texts(place: str) -> Iterator[tuple[str, str, list[type[exp.Expr]]]]:
    """The name and text of each query that can stand in ``place``, and the types of its nodes."""
    for number, (name, query) in enumerate(QUERIES.items()):
        text = text_of(place, query, ("streaming", "batch")[(number + len(place)) % 2])
        try:
            yield name, text, compiled_with(text)
        except SqlError as error:
            # LATERAL takes fewer queries, and a value has one row.
            assert any(word in place for word in ("LATERAL", "scalar", "EXISTS")), error  # noqa: PT017


@pytest.mark.parametrize("place", PLACES)
def test_a_part_that_nothing_means_is_refused_wherever_its_block_stands(place: str) -> None:
    turn = list(PLACES).index(place)
    unread = []
    for name, text, kinds in compiled_texts(place):
        for number, kind in enumerate(kinds):
            if kind in BLOCKS:
                others = others_of(kind)
                part = others[(turn + 7 * number) % len(others)]
                if not is_refused(text, (number, part)):
                    unread.append((name, kind.__name__, part))
    assert unread == []


@pytest.mark.parametrize("query", QUERIES)
def test_every_part_that_nothing_means_is_refused(query: str) -> None:
    """All parts of all nodes, in one place."""
    text = text_of("IN below OR", QUERIES[query], "streaming")
    unread = [
        (kind.__name__, part)
        for number, kind in enumerate(compiled_with(text))
        for part in others_of(kind)
        if not is_refused(text, (number, part))
    ]
    assert unread == []


@pytest.mark.parametrize(
    ("reader", "query"),
    [
        (where_clause, "SELECT id FROM a WHERE v IN (SELECT v FROM b)"),
        (where_clause, "SELECT id FROM a WHERE EXISTS (SELECT v FROM b WHERE b.k = a.k)"),
        (scalar, "SELECT id FROM a WHERE id = 1 OR EXISTS (SELECT v FROM b)"),
        (scalar, "SELECT id, (SELECT MAX(v) FROM b) FROM a"),
        (lateral, "SELECT id, t.v FROM a, LATERAL (SELECT v FROM b WHERE b.k = a.k) AS t"),
    ],
)
def test_a_block_whose_reader_does_not_read_its_clauses_is_refused(reader: ModuleType, query: str) -> None:
    declared = "".join(f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) {FILES};\n" for name in "ab")
    text = f"{declared}CREATE TABLE s WITH ('connector' = 'print') AS {query};"
    compile_sql(text)
    with (
        mock.patch.object(reader, "read_clauses"),
        pytest.raises(SqlError, match="nothing reads it") as caught,
    ):
        compile_sql(text)
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (
        3,
        text.splitlines()[2].index("SELECT v" if "SELECT v" in query else "SELECT MAX") + 1,
    )


@pytest.mark.parametrize("clause", ["WHERE a > 1", "LIMIT 1", "ORDER BY a", "GROUP BY a"])
def test_a_computed_column_has_no_clauses(clause: str) -> None:
    text = f"CREATE TABLE t (a BIGINT, b AS a + 1 {clause}) {FILES};\n"
    text += "CREATE TABLE s WITH ('connector' = 'print') AS SELECT b FROM t;"
    with pytest.raises(SqlError, match="expected one expression"):
        compile_sql(text)
