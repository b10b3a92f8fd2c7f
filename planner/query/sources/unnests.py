"""UNNEST(x): a join with the elements of an array or multiset, or with the entries of a map, in each left row.

The columns of the elements have Flink's names. This module refuses values that have no elements.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import FieldRef
from hintplan.planner.query.sources.laterals import Called, join_type
from hintplan.planner.relations import Item, LogicalUnnest, Relation, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import only
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.operators import element_columns
from hintplan.plans.operators.unnest import UNNESTED
from hintplan.plans.text.counts import count


def unnested(context: Context, left: Relation, scope: Scope, join: exp.Join, block: str) -> Called:
    """Join the elements that ``join`` names to the rows of ``left``; raise SqlError for an unsupported form."""
    conditional = join.args.get("on") is not None or join.args.get("using")
    natural = str(join.args.get("method") or "").upper() == "NATURAL" and not conditional
    if natural:  # without a common column, NATURAL has no condition
        join = join.copy()
        join.set("method", None)
        join.set("on", exp.Boolean(this=True))
    outer, condition = join_type(context, join, "UNNEST")
    relation, added = elements(context, left, scope, join.this, block, outer=outer)
    shared = next((f.name for f in added.fields if scope.find(None, f.name)), None)
    if natural and shared is not None:
        message = f"NATURAL JOIN UNNEST by '{shared}', which both sides have, is not supported, by Flink neither"
        advice = "write JOIN UNNEST(...) AS t(x) ON TRUE with another name, and compare in WHERE"
        raise context.source.error(message, offset_of(join), advice)
    return Called(relation=relation, input=added, condition=condition)


def elements(
    context: Context, left: Relation, scope: Scope, node: exp.Unnest, block: str, *, outer: bool = False
) -> tuple[LogicalUnnest, Input]:
    """Return the rows of ``left`` with the elements of ``node``, and the input that the elements form."""
    source = context.source
    only(source, node, "expressions", "alias", "offset")
    if len(node.expressions) != 1:
        message = f"UNNEST takes one array, map or multiset, found {len(node.expressions)}"
        raise source.error(message, offset_of(node), "write one UNNEST for each, behind a comma")
    collection = clause_translator(context, scope, "UNNEST").expression(node.expressions[0])
    if collection.type.root not in UNNESTED:
        message = f"UNNEST does not take {collection.type.as_nullable()}"
        raise source.error(message, offset_of(node.expressions[0]), "give it an ARRAY, a MAP or a MULTISET")
    offered = element_columns(collection.type)
    returned = tuple(context.field(column.name, parse_type(column.type)) for column in offered)
    alias, names = _names(context, node, collection.type)
    shown = tuple(
        Item(field=context.field(name, field.type), expr=FieldRef(field=field))
        for name, field in zip(names, returned, strict=False)
    )
    relation = LogicalUnnest(
        input=left,
        collection=collection,
        join_type="left" if outer else "inner",
        returned=returned,
        items=(*identity(left.fields), *shown),
        base=left.base,
        block=block,
    )
    fields = tuple(item.field for item in shown)
    added = Input(name=alias, kind="UNNEST", fields=fields, offset=offset_of(node), called=True)
    return relation, added


def _names(context: Context, node: exp.Unnest, collection: DataType) -> tuple[str | None, tuple[str, ...]]:
    """Return the alias and the column names, in the order of :func:`element_columns`; ORDINALITY only if requested.

    A single unnamed column takes the alias as its name. sqlglot parses the last column name as the name of ORDINALITY.
    """
    alias, place = node.args.get("alias"), node.args.get("offset")
    name = (alias.name or None) if isinstance(alias, exp.TableAlias) else None
    columns = [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    columns += [place.name] if isinstance(place, exp.Identifier) else []
    (*_, element) = collection.children
    default = [name or "EXPR$0"]
    if collection.root == "MAP":
        default = ["KEY", "VALUE"]
    elif element.root == "ROW":
        default = list(element.names)
    default += ["ORDINALITY"] if place else []
    if columns and len(columns) != len(default):
        message = f"this UNNEST gives ({', '.join(default)}), found {count(len(columns), 'name')}"
        raise context.source.error(message, offset_of(node.args.get("alias") or node), "name each column once")
    return name, tuple(columns or default)
