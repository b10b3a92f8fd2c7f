"""Binds the kernel of a stateful operator to the plan's description of the operator and its inputs.

Knows no Spark, because code that only inspects state needs the layouts of its tables, too.

    operator = build_operator(join, (orders.columns, customers.columns), (False, False))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.computations import AggregateCall, SortKey
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.operators import (
    Aggregate,
    ChangelogNormalize,
    Deduplicate,
    IntervalJoin,
    Join,
    Operator,
    OverAggregate,
    OverCall,
    Rank,
    SinkMaterialize,
    Stateful,
    TemporalJoin,
    TemporalSort,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.operators.over_aggregate import AGGREGATED
from hintplan.plans.settings.emit import EARLY_DELAY, LATE_DELAY
from hintplan.runtime.functions.aggregates import UserAggregate
from hintplan.runtime.functions.plan import called_function
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.operator import StatefulOperator, TimeOperator
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.operators.changelog_normalize import ChangelogNormalizeOperator
from hintplan.runtime.operators.deduplicate import DeduplicateOperator
from hintplan.runtime.operators.fired_windows import FiredWindowsOperator
from hintplan.runtime.operators.first_by_time import FirstByTimeOperator
from hintplan.runtime.operators.first_rows import FirstRowsOperator
from hintplan.runtime.operators.interval_join import IntervalJoinOperator
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.operators.over.by_column import OverChangesOperator
from hintplan.runtime.operators.over.by_time import OverByArrival, OverByRowtime
from hintplan.runtime.operators.over.functions import OverFunctions, RowCall
from hintplan.runtime.operators.rank import RankOperator
from hintplan.runtime.operators.session import SessionOperator
from hintplan.runtime.operators.session_rows import SessionRowsOperator
from hintplan.runtime.operators.sink_materialize import SinkMaterializeOperator
from hintplan.runtime.operators.temporal_join import TemporalJoinOperator
from hintplan.runtime.operators.temporal_sort import TemporalSortOperator
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator
from hintplan.runtime.operators.window_function import window_fields
from hintplan.runtime.operators.window_join import WindowJoinOperator
from hintplan.runtime.operators.window_rows import WindowRowsOperator
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.types import to_arrow


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """The facts that a kernel is bound to, in addition to its operator.

    - per input: ``schemas``, the columns as state keeps them, and ``changelog``, whether it carries row kinds
    - ``ttls``: the TTLs of the state entries in ms; an entry that lives until the watermark has none
    - ``in_order``: whether an operator above depends on the order of the output
      (:mod:`hintplan.plans.analysis.row_order`)
    - ``users``: the user's aggregate functions that the operator calls
    - ``condition``: the compiled condition of a join
    """

    schemas: tuple[pa.Schema, ...]
    changelog: tuple[bool, ...]
    ttls: tuple[int, ...]
    in_order: bool
    users: Mapping[str, UserAggregate]
    condition: JoinCondition | None


Bind = Callable[[Any, BoundInputs], StatefulOperator | TimeOperator]
"""Binds an operator of the plan to its inputs; Spark sends the resulting kernel to the workers."""


def build_operator(
    operator: Stateful,
    inputs: tuple[tuple[Column, ...], ...],
    changelog: tuple[bool, ...],
    *,
    in_order: bool = False,
    users: Mapping[str, UserAggregate] = MappingProxyType({}),
    condition: JoinCondition | None = None,
) -> StatefulOperator | TimeOperator:
    """Return the kernel of ``operator``, bound to its input columns.

    ``changelog`` is True for inputs with row kinds. ``in_order`` means that an operator above depends on the order of
    the output (:mod:`hintplan.plans.analysis.row_order`). ``users`` are the user's aggregate functions that it calls.
    ``condition`` is the compiled condition of a join. Raise RunError if state cannot keep a column type.
    """
    schemas = tuple(state_schema(columns) for columns in inputs)
    entries = sorted(operator.state, key=lambda entry: entry.index)
    ttls = tuple(parse_duration(entry.ttl) for entry in entries if entry.ttl is not None)
    bound = BoundInputs(
        schemas=schemas, changelog=changelog, ttls=ttls, in_order=in_order, users=users, condition=condition
    )
    return KERNELS[type(operator)](operator, bound)


def layouts_of(
    operator: Stateful,
    inputs: tuple[tuple[Column, ...], ...],
    changelog: tuple[bool, ...],
    functions: Mapping[str, Function],
) -> tuple[StateLayout, ...]:
    """Return the tables that the kernel of ``operator`` keeps; RunError if state cannot keep a column type.

    ``functions`` are the functions of the plan; none of them is loaded.
    """
    # Spark may evaluate a part of the condition of a join, and none of it is stored.
    if isinstance(operator, (Join, WindowJoin, IntervalJoin, TemporalJoin)):
        operator = replace(operator, condition=None)
    users = users_aggregates(operator, functions, RequestRun(token=""))
    kernel: Any = build_operator(operator, inputs, changelog, users=users)
    layouts: tuple[StateLayout, ...] = kernel.layouts
    return layouts


def _aggregate(operator: Aggregate, inputs: BoundInputs) -> AggregateOperator:
    return AggregateOperator(
        columns=inputs.schemas[0],
        changelog=inputs.changelog[0],
        keys=operator.keys,
        calls=operator.aggregates,
        types=tuple(to_arrow(call.type) for call in operator.aggregates),
        ttl=inputs.ttls[0],
        kinds=operator.changelog,
        phases=operator.strategy,
        users=inputs.users,
    )


def users_aggregates(
    operator: Stateful, functions: Mapping[str, Function], run: RequestRun
) -> dict[str, UserAggregate]:
    """Return, by name, the user's aggregate functions that ``operator`` calls in ``run``."""
    return {
        name: UserAggregate(called=called_function(operator.id, name, functions[name], run))
        for name in operator.functions
    }


def _changelog_normalize(operator: ChangelogNormalize, inputs: BoundInputs) -> ChangelogNormalizeOperator:
    return ChangelogNormalizeOperator(
        columns=inputs.schemas[0], key=operator.key, ttl=inputs.ttls[0], kinds=operator.changelog
    )


def _deduplicate(operator: Deduplicate, inputs: BoundInputs) -> DeduplicateOperator | FirstByTimeOperator:
    if operator.emit is not None:
        assert operator.time is not None
        return FirstByTimeOperator(columns=inputs.schemas[0], key=operator.key, time=operator.time, ttl=inputs.ttls[0])
    return DeduplicateOperator(
        columns=inputs.schemas[0],
        key=operator.key,
        time=operator.time,
        keep=operator.keep,
        ttl=inputs.ttls[0],
        kinds=operator.changelog,
    )


def _join(operator: Join, inputs: BoundInputs) -> JoinOperator:
    _check_condition(operator, inputs)
    left, right = inputs.schemas
    return JoinOperator(
        kind=operator.join_type,
        left=left,
        right=right,
        left_keys=tuple(key.left for key in operator.keys),
        right_keys=tuple(key.right for key in operator.keys),
        changelog=(inputs.changelog[0], inputs.changelog[1]),
        condition=inputs.condition,
        ttls=(inputs.ttls[0], inputs.ttls[1]),
        columns=tuple((column.name, column.side, column.column) for column in operator.output),
        emits_changelog=operator.changelog != INSERT_ONLY,
        in_order=inputs.in_order,
        limits=operator.max_rows_per_key,
    )


def _check_condition(operator: Join | WindowJoin | IntervalJoin | TemporalJoin, inputs: BoundInputs) -> None:
    if (operator.condition is None) != (inputs.condition is None):
        raise ValueError(f"the condition of {operator.id} is not the compiled one")


def _rank(operator: Rank, inputs: BoundInputs) -> RankOperator | FirstRowsOperator:
    numbering = Numbering(
        order=operator.order,
        latest=operator.arrival == "last",
        start=operator.rank_start,
        end=operator.rank_end,
        number=operator.number,
        kinds=operator.changelog,
    )
    kind = RankOperator if inputs.changelog[0] else FirstRowsOperator
    return kind(columns=inputs.schemas[0], key=operator.key, numbering=numbering, ttl=inputs.ttls[0])


def _sink_materialize(operator: SinkMaterialize, inputs: BoundInputs) -> SinkMaterializeOperator:
    return SinkMaterializeOperator(
        columns=inputs.schemas[0], key=operator.key, changelog=inputs.changelog[0], ttl=inputs.ttls[0]
    )


def _temporal_sort(operator: TemporalSort, inputs: BoundInputs) -> TemporalSortOperator:
    return TemporalSortOperator(columns=inputs.schemas[0], order=operator.order)


def _window_aggregate(
    operator: WindowAggregate, inputs: BoundInputs
) -> SessionOperator | WindowAggregateOperator | FiredWindowsOperator:
    common: dict[str, Any] = {
        "operator": operator.id,
        "columns": inputs.schemas[0],
        "keys": operator.keys,
        "window": operator.window,
        "calls": operator.aggregates,
        "types": tuple(to_arrow(call.type) for call in operator.aggregates),
        "names": (operator.start, operator.end, operator.window_time),
        "phases": operator.strategy,
        "users": inputs.users,
    }
    if operator.window.type == "session" and operator.attached is None:
        return SessionOperator(**common, time=operator.time)
    windows = WindowAggregateOperator(
        **common,
        changelog=inputs.changelog[0],
        time=operator.time,
        attached=operator.attached,
        whole=operator.emits_updates,
    )
    if not operator.emits_updates:
        return windows
    return FiredWindowsOperator(
        windows=windows,
        kinds=operator.changelog,
        early=operator.early_fire,
        late=operator.late_fire,
        early_delay=operator.emit_ms(EARLY_DELAY),
        late_delay=operator.emit_ms(LATE_DELAY),
        lateness=operator.lateness_ms,
    )


def _window_rank(operator: WindowRank, inputs: BoundInputs) -> WindowRowsOperator:
    numbering = Numbering(
        order=operator.order,
        latest=operator.arrival == "last",
        start=operator.rank_start,
        end=operator.rank_end,
        number=operator.number,
        kinds=INSERT_ONLY,
    )
    return _window_rows(operator, inputs, numbering)


def _window_deduplicate(operator: WindowDeduplicate, inputs: BoundInputs) -> WindowRowsOperator:
    is_last = operator.keep == "last"
    by_time = SortKey(
        column=operator.time, direction="desc" if is_last else "asc", nulls="last" if is_last else "first"
    )
    numbering = Numbering(order=(by_time,), latest=is_last, start=1, end=1, number=None, kinds=INSERT_ONLY)
    return _window_rows(operator, inputs, numbering)


def _window_rows(
    operator: WindowRank | WindowDeduplicate, inputs: BoundInputs, numbering: Numbering
) -> WindowRowsOperator:
    return WindowRowsOperator(
        columns=inputs.schemas[0],
        key=operator.key,
        window=operator.window,
        attached=operator.attached,
        numbering=numbering,
    )


def _window_join(operator: WindowJoin, inputs: BoundInputs) -> WindowJoinOperator:
    _check_condition(operator, inputs)
    left, right = inputs.schemas
    return WindowJoinOperator(
        kind=operator.join_type,
        left=left,
        right=right,
        left_keys=tuple(key.left for key in operator.keys),
        right_keys=tuple(key.right for key in operator.keys),
        window=operator.window,
        left_window=operator.left_window,
        right_window=operator.right_window,
        condition=inputs.condition,
        columns=tuple((column.name, column.side, column.column) for column in operator.output),
    )


def _interval_join(operator: IntervalJoin, inputs: BoundInputs) -> IntervalJoinOperator:
    _check_condition(operator, inputs)
    left, right = inputs.schemas
    return IntervalJoinOperator(
        operator=operator.id,
        kind=operator.join_type,
        left=left,
        right=right,
        left_keys=tuple(key.left for key in operator.keys),
        right_keys=tuple(key.right for key in operator.keys),
        times=operator.times,
        bounds=operator.bounds,
        condition=inputs.condition,
        columns=tuple((column.name, column.side, column.column) for column in operator.output),
    )


def _temporal_join(operator: TemporalJoin, inputs: BoundInputs) -> TemporalJoinOperator:
    _check_condition(operator, inputs)
    left, right = inputs.schemas
    return TemporalJoinOperator(
        operator=operator.id,
        kind="left" if operator.join_type == "left" else "inner",
        left=left,
        right=right,
        left_keys=tuple(key.left for key in operator.keys),
        right_keys=tuple(key.right for key in operator.keys),
        left_time=operator.left_time,
        right_time=operator.right_time,
        changelog=(inputs.changelog[0], inputs.changelog[1]),
        ascending=operator.versions == "ascending",
        condition=inputs.condition,
        ttl=inputs.ttls[0],
        columns=tuple((column.name, column.side, column.column) for column in operator.output),
    )


def _window_table_function(operator: WindowTableFunction, inputs: BoundInputs) -> SessionRowsOperator:
    names = (operator.start, operator.end, operator.window_time)
    return SessionRowsOperator(
        operator=operator.id,
        columns=inputs.schemas[0],
        keys=operator.keys,
        time=operator.time,
        window=operator.window,
        names=names,
        output=pa.schema([*inputs.schemas[0], *window_fields(names, operator.window.zone)]),
    )


def _over_aggregate(
    operator: OverAggregate, inputs: BoundInputs
) -> OverByArrival | OverByRowtime | OverChangesOperator:
    frame = operator.frame
    functions = OverFunctions(
        columns=inputs.schemas[0],
        key=operator.key,
        calls=tuple(_over_call(call) for call in operator.calls),
        types=tuple(to_arrow(call.type) for call in operator.calls),
        unit="range" if frame is None else frame.unit,
        preceding=None if frame is None or frame.start is None else -frame.start,
        has_peers=(operator.goes_by_time or bool(operator.order)) and (frame is None or frame.unit == "range"),
    )
    ttl = inputs.ttls[0] if inputs.ttls else 0
    if operator.order:
        return OverChangesOperator(functions=functions, order=operator.order, changelog=inputs.changelog[0], ttl=ttl)
    if operator.time is None:
        return OverByArrival(operator=operator.id, functions=functions, ttl=ttl)
    return OverByRowtime(operator=operator.id, functions=functions, ttl=ttl, time=operator.time)


def _over_call(call: OverCall) -> AggregateCall | RowCall:
    if call.function in AGGREGATED:
        return AggregateCall(
            name=call.name, function=call.function, argument=call.argument, distinct=call.distinct, type=call.type
        )
    return RowCall(
        name=call.name, function=call.function, argument=call.argument, count=call.count or 0, default=call.default
    )


KERNELS: Mapping[type[Operator], Bind] = {
    Aggregate: _aggregate,
    ChangelogNormalize: _changelog_normalize,
    Deduplicate: _deduplicate,
    IntervalJoin: _interval_join,
    Join: _join,
    OverAggregate: _over_aggregate,
    Rank: _rank,
    SinkMaterialize: _sink_materialize,
    TemporalJoin: _temporal_join,
    TemporalSort: _temporal_sort,
    WindowAggregate: _window_aggregate,
    WindowDeduplicate: _window_deduplicate,
    WindowJoin: _window_join,
    WindowRank: _window_rank,
    WindowTableFunction: _window_table_function,
}
"""The function that binds the kernel, by class of stateful operator."""


def state_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema in which state keeps ``columns``."""
    return pa.schema([pa.field(column.name, to_arrow(column.type)) for column in columns])
