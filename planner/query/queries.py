"""Queries: compiles SELECT blocks, set operations, WITH and views to relations."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context, Cte, QueryEnvironment
from hintplan.planner.query import ordering, set_operations
from hintplan.planner.query.clauses import check_clauses_read, read_clauses, refuse_clauses
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.from_clause import view_relation
from hintplan.planner.query.select_block import compile_select
from hintplan.planner.query.subqueries.lateral import compile_lateral
from hintplan.planner.query.subqueries.scalar import compile_subquery_value
from hintplan.planner.query.values import compile_values
from hintplan.planner.relations import Relation
from hintplan.planner.statements.model import CreateView
from hintplan.planner.syntax.dialect import is_values, offset_of


def build_query(context: Context, environment: QueryEnvironment, node: exp.Expr) -> Relation:
    """Compile any query; its output is the relation's fields, by position and name."""
    relation = _compiler(context, environment).query(node)
    check_clauses_read(context, node)
    return relation


def build_view(context: Context, view: CreateView) -> Relation:
    """Return the relation of a view's query, under the view's column names."""
    return view_relation(_compiler(context, QueryEnvironment(block=view.name)), view)


def _compiler(context: Context, environment: QueryEnvironment) -> QueryCompiler:
    return QueryCompiler(
        context=context,
        environment=environment,
        compile_query=_compile_query,
        compile_value=compile_subquery_value,
        compile_lateral=compile_lateral,
    )


def _compile_query(compiler: QueryCompiler, node: exp.Expr) -> Relation:
    context, outside = compiler.context, compiler.environment
    context.count_operator()
    if isinstance(node, exp.Select | exp.SetOperation | exp.Subquery):
        refuse_clauses(context, node)
    inside = _with(context, outside, node)
    relation = _body(compiler.within(inside), node)
    if not isinstance(node, exp.Select) or is_values(node):
        relation = ordering.over_output(context, node, relation, outside.block)
    for name, cte in inside.ctes.items():
        if outside.ctes.get(name) is not cte and offset_of(cte.query) not in context.used_ctes:
            with context.on_trial():
                compiler.within(cte.environment).query(cte.query)
    return relation


def _body(compiler: QueryCompiler, node: exp.Expr) -> Relation:
    source = compiler.context.source
    if isinstance(node, exp.Subquery):
        read_clauses(compiler.context, node, "this", "with_", *ordering.CLAUSES)
        return compiler.query(node.this)
    if isinstance(node, exp.Union):
        return set_operations.union(compiler, node)
    if isinstance(node, exp.SetOperation):
        return set_operations.intersection(compiler, node)
    if isinstance(node, exp.Select) and is_values(node):
        return compile_values(compiler, node)
    if not isinstance(node, exp.Select):
        raise source.error("expected a query", offset_of(node), "write SELECT ... FROM ...")
    return compile_select(compiler, node)


def _with(context: Context, environment: QueryEnvironment, node: exp.Expr) -> QueryEnvironment:
    """Return ``environment`` with the CTEs that ``node`` declares."""
    clause = node.args.get("with_")
    if clause is None:
        return environment
    if clause.args.get("recursive"):
        raise context.source.error("WITH RECURSIVE is not supported", offset_of(clause), "write the levels out")
    for cte in clause.expressions:
        if not isinstance(cte.this, exp.Query):
            raise context.source.error("expected a query in WITH", offset_of(cte), "write name AS (SELECT ...)")
        columns = tuple(c.name for c in cte.args["alias"].args.get("columns") or ())
        declared = Cte(query=cte.this, columns=columns, environment=environment)
        environment = replace(environment, ctes={**environment.ctes, cte.alias: declared})
    return environment
