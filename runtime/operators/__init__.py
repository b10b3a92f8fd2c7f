"""The stateful operators: one file each, pure functions over Arrow tables and stored segments.

:func:`build_operator` binds an operator of the plan to schemas and settings; what it returns travels to the workers.
"""

from __future__ import annotations

from typing import assert_never

from plans.declarations.durations import parse_duration
from plans.declarations.tables import Column
from plans.operators import Aggregate, ChangelogNormalize, Join, SinkMaterialize, Stateful
from runtime.operator import StatefulOperator

__all__ = ["build_operator"]


def build_operator(
    op: Stateful, inputs: tuple[tuple[Column, ...], ...], changelog: tuple[bool, ...], *, in_order: bool = False
) -> StatefulOperator:
    """Bind ``op`` to its input columns; ``changelog`` says per input whether it carries row kinds.

    ``in_order`` says that the order of its output matters to an operator above it (:mod:`plans.analysis.row_order`).

    RunError if a column type cannot be kept in state or the join condition is beyond what a join evaluates.
    """
    from runtime.expressions.condition import compile_condition
    from runtime.operators.aggregate import AggregateOperator
    from runtime.operators.changelog_normalize import ChangelogNormalizeOperator
    from runtime.operators.join import JoinOperator
    from runtime.operators.schema import state_schema
    from runtime.operators.sink_materialize import SinkMaterializeOperator
    from runtime.types import to_arrow

    schemas = [state_schema(op.id, columns) for columns in inputs]
    ttls = tuple(parse_duration(entry.ttl) for entry in sorted(op.state, key=lambda entry: entry.index))
    match op:
        case Aggregate():
            return AggregateOperator(
                columns=schemas[0],
                changelog=changelog[0],
                keys=op.keys,
                calls=op.aggregates,
                types=tuple(to_arrow(call.type) for call in op.aggregates),
                ttl=ttls[0],
                kinds=op.changelog,
                phases=op.strategy,
            )
        case ChangelogNormalize():
            return ChangelogNormalizeOperator(columns=schemas[0], key=op.key, ttl=ttls[0], kinds=op.changelog)
        case SinkMaterialize():
            return SinkMaterializeOperator(columns=schemas[0], key=op.key, changelog=changelog[0], ttl=ttls[0])
        case Join():
            return JoinOperator(
                kind=op.join_type,
                left=schemas[0],
                right=schemas[1],
                left_keys=tuple(key.left for key in op.keys),
                right_keys=tuple(key.right for key in op.keys),
                changelog=(changelog[0], changelog[1]),
                condition=compile_condition(op, schemas[0], schemas[1]) if op.condition is not None else None,
                ttls=(ttls[0], ttls[1]),
                columns=tuple((column.name, column.side, column.column) for column in op.output),
                emits_changelog=op.changelog != ("+I",),
                in_order=in_order,
            )
        case _:
            assert_never(op)
