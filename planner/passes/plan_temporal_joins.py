"""Finds the versions of each temporal join: the right rows by key and time, and the equalities with the key.

The right side is a table with a PRIMARY KEY and a WATERMARK, or a view of the last row of each key. In both cases, the
join reads all rows, below the operator that would normalise upserts or keep the last rows: what such an operator emits
of a batch has only the last of several versions. The operator stays for other readers.

Other equalities than with the key are conditions on the version that a row meets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import BOOLEAN, Field, FieldRef, call, conjunction
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.relations import (
    AsOf,
    LogicalCache,
    LogicalCalc,
    LogicalJoin,
    LogicalRowNumber,
    LogicalScan,
    Relation,
    StateInput,
    map_inputs,
)
from hintplan.plans.operators.contract.timed import MOST_PRECISION
from hintplan.plans.operators.temporal_join import Versions

_LAST_ROWS = "SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM t) WHERE n = 1"
_REGULAR = (
    "leave FOR SYSTEM_TIME AS OF out: a regular JOIN takes the newest row of each key, and a STATE_TTL hint sets how "
    "long rows wait for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versioned:
    """A relation whose rows are the versions of ``key``. ``time`` is None if any of its rowtimes can be their time.

    A field of the key is None if the relation does not pass it on. ``names`` are the names of the key.
    """

    relation: Relation
    key: tuple[Field | None, ...]
    names: tuple[str, ...]
    time: Field | None
    versions: Versions


def plan_temporal_joins(context: Context, relation: Relation) -> Relation:
    """Give each temporal join its versions. Raise SqlError for a right side without any."""
    planned = map_inputs(relation, lambda below: plan_temporal_joins(context, below))
    if isinstance(planned, LogicalJoin) and planned.as_of is not None:
        return _planned(context, planned, planned.as_of)
    return planned


def _planned(context: Context, join: LogicalJoin, as_of: AsOf) -> LogicalJoin:
    right = _versioned(context, join.right, as_of)
    time = _time(context, right, as_of)
    _check_types(context, as_of.left_time, time, as_of)
    _note_hints(context, join)
    key_ids = [None if field is None else field.id for field in right.key]
    of_key = {b.id: (a, b) for a, b in reversed(join.keys) if b.id in key_ids}
    missing = [
        name for name, field in zip(right.names, right.key, strict=True) if field is None or field.id not in of_key
    ]
    if missing:
        name = _name(join.states[1], join.right)
        message = f"the key of '{name}' is ({', '.join(right.names)}), but ON does not compare {_listed(missing)}"
        advice = " AND ".join(f"{_name(join.states[0], join.left)}.column = {name}.{column}" for column in right.names)
        raise context.source.error(message, join.offset, f"write ON {advice}, with the column itself on the right")
    keys = tuple(of_key[field.id] for field in right.key if field is not None)
    others = tuple(
        call("=", (FieldRef(field=a), FieldRef(field=b)), BOOLEAN, join.offset)
        for a, b in join.keys
        if (a, b) not in keys
    )
    conditions = (*others, *((join.condition,) if join.condition is not None else ()))
    return replace(
        join,
        right=right.relation,
        keys=keys,
        condition=conjunction(conditions),
        states=(replace(join.states[0], hint=None), replace(join.states[1], hint=None)),
        as_of=replace(as_of, right_time=time, versions=right.versions),
    )


def _name(state: StateInput, relation: Relation) -> str:
    return state.name or "_".join(relation.base)


def _listed(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def _versioned(context: Context, relation: Relation, as_of: AsOf) -> _Versioned:
    match relation:
        case LogicalCache():
            return _versioned(context, relation.input, as_of)
        case LogicalScan():
            return _of_table(context, relation, as_of)
        case LogicalCalc():
            if relation.filter is not None:
                message = "a filter of versions is not supported: while the filter drops a version, no older one holds"
                advice = "write the condition into ON: it then decides which versions match"
                raise context.source.error(message, as_of.right_place, advice)
            below = _versioned(context, relation.input, as_of)
            passed = {i.expr.field.id: i.field for i in reversed(relation.items) if isinstance(i.expr, FieldRef)}
            time = below.time
            if time is not None:
                time = passed.get(time.id, time)
            key = tuple(None if field is None else passed.get(field.id) for field in below.key)
            return replace(below, relation=replace(relation, input=below.relation), key=key, time=time)
        case LogicalRowNumber() if relation.is_first_only:
            if not (relation.latest or relation.order[0].descending):
                message = "the first row of each key has no versions: FOR SYSTEM_TIME AS OF takes the last row of each"
                raise context.source.error(message, as_of.right_place, f"order descending: {_LAST_ROWS}")
            return _Versioned(
                relation=relation.input,
                key=relation.partition,
                names=tuple(field.name for field in relation.partition),
                time=None if relation.latest else relation.order[0].field,
                versions="all" if relation.latest else "ascending",
            )
        case _:
            message = "FOR SYSTEM_TIME AS OF a rowtime takes a table with a PRIMARY KEY, or a view of last rows"
            raise context.source.error(message, as_of.right_place, f"write the view as {_LAST_ROWS}; or {_REGULAR}")


def _of_table(context: Context, scan: LogicalScan, as_of: AsOf) -> _Versioned:
    """Return the versions in a table, which are all of its rows."""
    table = context.table(scan.table).table
    if not table.primary_key:
        message = f"table '{scan.declared}' has no versions: it has no PRIMARY KEY"
        advice = f"declare PRIMARY KEY (...) NOT ENFORCED, or join a view of its last rows: {_LAST_ROWS}"
        raise context.source.error(message, as_of.right_place, advice)
    if table.watermark is None:
        message = f"table '{scan.declared}' has no versions: it has no WATERMARK, so its rows have no time"
        advice = f"declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in it; or {_REGULAR}"
        raise context.source.error(message, as_of.right_place, advice)
    fields = {f.name: f for f in scan.fields}
    return _Versioned(
        relation=replace(scan, normalized=()),
        key=tuple(fields.get(name) for name in table.primary_key),
        names=table.primary_key,
        time=None,
        versions="all",
    )


def _time(context: Context, right: _Versioned, as_of: AsOf) -> Field:
    """Return the rowtime of the versions."""
    times = [f for f in right.relation.fields if why_no_rowtime(context, right.relation, f) is None]
    time = next((f for f in times if right.time is None or f.id == right.time.id), None)
    if time is None:
        message = "the versions have no rowtime: the view does not pass on the time of its rows"
        if right.time is not None:
            message = f"the versions have no rowtime: the view does not pass on '{right.time.name}'"
        raise context.source.error(message, as_of.right_place, "select the column with the WATERMARK, unchanged")
    return time


def _check_types(context: Context, left: Field, right: Field, as_of: AsOf) -> None:
    kinds = [field.type.as_nullable() for field in (left, right)]
    if kinds[0].root != kinds[1].root:
        message = (
            f"both times must have the same type, but '{left.name}' is {kinds[0]} and '{right.name}' is {kinds[1]}"
        )
        raise context.source.error(message, as_of.place, "declare a computed column of that type, with the WATERMARK")
    for field, kind in zip((left, right), kinds, strict=True):
        if (kind.precision or 0) > MOST_PRECISION:
            message = f"a rowtime has at most {MOST_PRECISION} digits of a second, but '{field.name}' is {kind}"
            raise context.source.error(message, as_of.place, f"declare it as {kind.root}({MOST_PRECISION})")


def _note_hints(context: Context, join: LogicalJoin) -> None:
    """Warn of STATE_TTL hints: left rows go by the watermark, and no hint of Flink names versions."""
    left, right = join.states
    for state, reason, advice in (
        (left, "its rows wait until the watermark reaches them", "remove it"),
        (right, "no hint sets the TTL of versions", "set table.exec.state.ttl, or the TTL in the plan"),
    ):
        if state.hint is not None:
            context.ledger.losers[state.hint.offset] = ("refused", reason)
            message = f"STATE_TTL key '{state.name}' has no effect: {reason}"
            context.report.warn_of_hint(message, state.hint.offset, advice)
