"""Checks that a plan can run: graph, columns, states, configuration, tables and changelogs.

All problems are collected, not only the first. Of expressions, only columns, nesting and functions are checked here; a
run checks the rest before it starts.

>>> from hintplan.plans.operators import Scan
>>> plan_problems(Plan(name="p", operators=(Scan(id="scan_o", table="o", columns=("a",)),)))[0].message
"nothing reads operator 'scan_o'"
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from hintplan.plans.analysis.asking_check import check_asking, check_functions
from hintplan.plans.analysis.changelog import output_kinds, refused_kinds, with_changelogs
from hintplan.plans.analysis.columns import ENOUGH, check_columns
from hintplan.plans.analysis.layered_check import check_layered_groups
from hintplan.plans.analysis.overlap import check_overlap
from hintplan.plans.analysis.places import check_places
from hintplan.plans.analysis.repeated import check_times
from hintplan.plans.analysis.run_limits import check_depth, check_nesting, expressions_of
from hintplan.plans.analysis.states import check_states
from hintplan.plans.analysis.watermarks import check_waiting_lookups, check_watermarks
from hintplan.plans.analysis.windows import check_rowtimes, check_windows
from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.table import can_read, can_write
from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS
from hintplan.plans.declarations.row_kinds import ALL_KINDS, RowKind, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.names import refused_function
from hintplan.plans.lazy import load
from hintplan.plans.model.config import KEYS, SYNONYMS, known_keys, normalise
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.reasons import check_reasons
from hintplan.plans.operators import Stateful, WatermarkAssigner
from hintplan.plans.text.names import did_you_mean


def plan_problems(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return the problems of ``plan``, the first hundred of each kind; empty if it is valid.

    The ``path`` of a problem is its path in the plan; the caller knows file and line.
    """
    problems = [*islice(_check_config(plan), ENOUGH)]
    for name, table in plan.tables.items():
        problems += check_table(name, table)
    graph = [*islice(check_graph(plan), ENOUGH)]
    _, columns = check_columns(plan)
    states = [*islice(check_states(plan), ENOUGH)]
    problems += [*graph, *columns, *_check_uses(plan), *states]
    if not graph and not columns:
        problems += [*islice(check_windows(plan), ENOUGH), *islice(check_rowtimes(plan), ENOUGH)]
    problems += [*islice(_check_mode(plan), ENOUGH), *islice(check_overlap(plan), ENOUGH)]
    problems += [*islice(check_layered_groups(plan), ENOUGH), *islice(check_watermarks(plan), ENOUGH)]
    problems += islice(check_waiting_lookups(plan), ENOUGH)
    if any(isinstance(operator, WatermarkAssigner) and operator.late_rows for operator in plan.operators):
        problems += islice(load("hintplan.plans.analysis.late_rows:check_late_rows")(plan), ENOUGH)
    used = {operator.table for operator in plan.operators} - {None}
    # Row kinds are derived along the edges from the tables, so both must be valid.
    kinds = output_kinds(plan) if not graph and used <= plan.tables.keys() else None
    problems += [*islice(check_functions(plan), ENOUGH), *islice(check_asking(plan, kinds), ENOUGH)]
    problems += [*islice(check_nesting(plan), ENOUGH), *islice(_check_called(plan), ENOUGH)]
    if kinds is not None:
        problems += [*check_depth(plan), *check_times(plan), *_check_kinds(plan, kinds)]
        problems += islice(check_places(plan), ENOUGH)
    if not states:
        problems += islice(check_reasons(plan), ENOUGH)
    return tuple(problems)


def _check_config(plan: Plan) -> Iterator[Diagnostic]:
    for key, value in plan.config.items():
        path = f"config.{key}"
        config_key = KEYS.get(key)
        if key in SYNONYMS:
            message = f"a plan calls '{key}' by its other name"
            yield Diagnostic(message=message, path=path, hint=f"write '{SYNONYMS[key]}'")
            continue
        if config_key is None:
            keys = [name for name in known_keys() if KEYS[name].in_config]
            hint = did_you_mean(key, keys, what="known keys")
            yield Diagnostic(message=f"unknown configuration key '{key}'", path=path, hint=hint)
            continue
        if not config_key.in_config:
            where = (
                f"it is '{config_key.plan_field}' at the top of the plan"
                if config_key.plan_field
                else "it is the client's"
            )
            where = "the operators record their effect" if config_key.compiler else where
            yield Diagnostic(message=f"'{key}' is not in config: {where}", path=path)
            continue
        try:
            normalise(key, value, require_unit=True)
        except ValueError as error:
            yield Diagnostic(message=str(error), path=path, hint=getattr(error, "hint", None))


def _check_uses(plan: Plan) -> Iterator[Diagnostic]:
    for operator in plan.declared:
        use, name = operator.table_use, operator.table
        if name is not None and use != "looks up" and name in plan.tables:
            table = plan.tables[name]
            verb, able = ("read", can_read(table)) if use == "reads" else ("written", can_write(table))
            connector = table.options.get("connector", "")
            if not able:
                message = f"table '{name}' cannot be {verb}: its connector is '{connector}'"
                yield Diagnostic(message=message, path=f"operators.{operator.id}.table")


def _check_called(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for every expression with a function that a run refuses to call."""
    for operator in plan.operators:
        for path, text in expressions_of(operator):
            refused = refused_function(text)
            if refused is not None:
                message = f"the expression uses '{refused}', which is not allowed in a plan"
                hint = did_you_mean(refused.lower(), sorted(ALLOWED_FUNCTIONS), what="functions that a plan may call")
                yield Diagnostic(message=message, path=f"operators.{operator.id}.{path}", hint=hint)


def _check_mode(plan: Plan) -> Iterator[Diagnostic]:
    for operator in plan.operators:
        yield from operator.check_mode(plan)


def _check_kinds(plan: Plan, kinds: Mapping[str, RowKinds]) -> Iterator[Diagnostic]:
    for stated, derived in zip(plan.operators, with_changelogs(plan).operators, strict=True):
        if isinstance(stated, Stateful) and isinstance(derived, Stateful) and stated.changelog != derived.changelog:
            message = f"the changelog is {_kinds(stated.changelog)}, but it must be {_kinds(derived.changelog)}"
            yield Diagnostic(message=message, path=f"{stated.path}.changelog")
    for operator in plan.declared:  # the check of late rows reports their tables
        accepted = operator.takes(plan)
        if accepted is None:
            continue
        for source in operator.inputs:
            refused = refused_kinds(kinds[source], accepted)
            if not refused:
                continue
            producer = _producer(plan, source, refused[0], kinds)
            name = operator.table
            taker = f"table '{name}'" if name is not None else f"'{operator.id}'"
            message = (
                f"{taker} takes {_kinds(accepted)}, but gets {_kinds(refused)} from "
                f"the {plan.by_id[producer].op} '{producer}'"
            )
            hint = "use a connector that takes updates, such as an upsert table with a primary key"
            if name is None:
                hint = f"a {operator.op} needs rows that are only ever added"
            yield Diagnostic(message=message, path=f"operators.{operator.id}", hint=hint)


def _producer(plan: Plan, operator_id: str, kind: RowKind, kinds: Mapping[str, RowKinds]) -> str:
    """Return the operator at or below ``operator_id`` that first emits ``kind``."""
    while True:
        above = [name for name in plan.by_id[operator_id].inputs if kind in kinds[name]]
        if not above:
            return operator_id
        operator_id = above[0]


def _kinds(kinds: Collection[RowKind]) -> str:
    return ", ".join(kind for kind in ALL_KINDS if kind in kinds)
