"""The columns of every operator, followed along the edges of the plan by name, and what is wrong with them.

Expressions are not read here: a computed column has the type that the plan gives it.

>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> orders = Table(columns=(TableColumn(name="a", type="INT"),), options={})
>>> output_columns(Plan(name="p", tables={"o": orders}, operators=(scan,)))
{'scan_o': (Column(name='a', type='INT'),)}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import assert_never

from plans.declarations.tables import Column, Function, Table, TableColumn
from plans.declarations.types import DataType, parse_type
from plans.errors import Diagnostic, PlanError
from plans.model.plan import Plan
from plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    ChangelogNormalize,
    Correlate,
    Expand,
    Join,
    JoinColumn,
    LookupJoin,
    Operator,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    Union,
)
from plans.text.names import did_you_mean

__all__ = ["MOST_ROWS", "UNSORTABLE", "check_columns", "output_columns", "physical_columns"]

Columns = tuple[Column, ...]

RESERVED_PREFIX = "__"
UNSORTABLE = ("ARRAY", "MAP", "ROW")
MOST_ROWS = 2**31 - 1
"""What LIMIT and OFFSET can be at most: Spark counts the rows of a result in 32 bits."""
ENOUGH = 101


def output_columns(plan: Plan) -> dict[str, Columns]:
    """The output columns of every operator by id, a sink's being its input's; PlanError if some do not resolve."""
    columns, problems = check_columns(plan)
    if problems:
        raise PlanError(diagnostics=tuple(problems))
    return columns


def physical_columns(table: Table) -> Columns:
    """The columns that the connector reads or writes: all but the computed ones."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.expression is None)


def check_columns(plan: Plan) -> tuple[dict[str, Columns], list[Diagnostic]]:
    """The output columns that resolve, and about the first hundred problems.

    Nothing is reported below an operator whose columns do not resolve.
    """
    known: dict[str, Columns] = {}
    tables = (problem for name, table in plan.tables.items() for problem in _check_table(name, table))
    problems = list(islice(tables, ENOUGH))
    for operator in plan.operators:
        inputs = [known[i] for i in operator.inputs if i in known]
        if len(inputs) < len(operator.inputs):
            continue
        found = list(islice(_check_operator(operator, inputs, plan), ENOUGH))
        problems += found
        if len(problems) >= ENOUGH:
            break
        if not found:
            known[operator.id] = _columns(operator, inputs, plan.tables)
    return known, problems


def _columns(operator: Operator, inputs: Sequence[Columns], tables: Mapping[str, Table]) -> Columns:
    match operator:
        case Scan():
            physical = {column.name: column for column in physical_columns(tables[operator.table])}
            return tuple(physical[name] for name in operator.columns)
        case Calc():
            types = _types(inputs[0])
            return tuple(Column(name=item.name, type=item.type or types[item.name]) for item in operator.select)
        case Join() | LookupJoin() | Correlate():
            return tuple(Column(name=column.name, type=column.type) for column in operator.output)
        case Expand():
            return (*_expanded(operator, inputs[0]), Column(name=operator.group_id, type="BIGINT NOT NULL"))
        case Aggregate():
            types = _types(inputs[0])
            keys = tuple(Column(name=key, type=types[key]) for key in operator.keys)
            return keys + tuple(Column(name=call.name, type=call.type) for call in operator.aggregates)
        case Union():
            # A column is NOT NULL only if it is in all inputs.
            return tuple(
                next((c for c in same if parse(c.type).nullable), same[0]) for same in zip(*inputs, strict=True)
            )
        case ChangelogNormalize() | Sort() | SinkMaterialize() | Sink():
            return inputs[0]
        case _:
            assert_never(operator)


def _expanded(expand: Expand, columns: Columns) -> Iterator[Column]:
    """The columns of the input; a key that is not in all sets can be NULL."""
    for column in columns:
        sometimes = column.name in expand.keys and not all(column.name in each for each in expand.sets)
        yield Column(name=column.name, type=str(parse(column.type).as_nullable())) if sometimes else column


def _check_table(name: str, table: Table) -> Iterator[Diagnostic]:
    path = f"tables.{name}"
    names = [column.name for column in table.columns]
    yield from _check_names(names, path, "columns")
    for key in table.primary_key:
        if key not in names:
            yield Diagnostic(
                message=f"unknown column '{key}'", path=f"{path}.primary-key", hint=did_you_mean(key, names)
            )
    if table.watermark and table.watermark.column not in names:
        hint = did_you_mean(table.watermark.column, names)
        yield Diagnostic(
            message=f"unknown column '{table.watermark.column}'", path=f"{path}.watermark.column", hint=hint
        )


def _check_operator(operator: Operator, inputs: Sequence[Columns], plan: Plan) -> Iterator[Diagnostic]:
    path, tables = f"operators.{operator.id}", plan.tables
    match operator:
        case Scan():
            yield from _check_scan(operator, tables, path)
        case Calc():
            passed = [item.name for item in operator.select if item.expression is None]
            yield from _check_known(passed, _types(inputs[0]), f"{path}.select", "column")
            yield from _check_names([item.name for item in operator.select], path, "select")
        case Join():
            yield from _check_join(operator, inputs[0], inputs[1], path)
        case LookupJoin():
            yield from _check_lookup(operator, inputs[0], tables, path)
        case Correlate():
            yield from _check_correlate(operator, inputs[0], plan.functions, path)
        case Expand():
            yield from _check_expand(operator, inputs[0], path)
        case Aggregate():
            types = _types(inputs[0])
            yield from _check_known(operator.keys, types, f"{path}.keys", "key column")
            for call in operator.aggregates:
                yield from _check_call(call, types, f"{path}.aggregates.{call.name}")
            yield from _check_names([*operator.keys, *(call.name for call in operator.aggregates)], path, "aggregates")
        case Union():
            yield from _check_union(operator, inputs, path)
        case ChangelogNormalize() | SinkMaterialize():
            yield from _check_known(operator.key, _types(inputs[0]), f"{path}.key", "key column")
        case Sort():
            yield from _check_sort(operator, inputs[0], path)
        case Sink():
            yield from _check_sink(operator, inputs[0], tables, path)
        case _:
            assert_never(operator)


def _check_scan(scan: Scan, tables: Mapping[str, Table], path: str) -> Iterator[Diagnostic]:
    if scan.table not in tables:
        yield _unknown_table(scan.table, tables, path)
        return
    table = tables[scan.table]
    physical = _types(physical_columns(table))
    computed = {column.name for column in table.columns if column.expression is not None}
    for name in scan.columns:
        if name in computed:
            hint = "scan the physical columns and compute this one in a calc"
            yield Diagnostic(
                message=f"column '{name}' is computed and cannot be read", path=f"{path}.columns", hint=hint
            )
        else:
            yield from _check_known([name], physical, f"{path}.columns", f"column of table '{scan.table}'")
    yield from _check_names(scan.columns, path, "columns")


def _check_join(join: Join, left: Columns, right: Columns, path: str) -> Iterator[Diagnostic]:
    sides = {"left": _types(left), "right": _types(right)}
    for index, key in enumerate(join.keys):
        here = f"{path}.keys[{index}]"
        unknown = [
            *_check_known([key.left], sides["left"], f"{here}.left", "column of the left input"),
            *_check_known([key.right], sides["right"], f"{here}.right", "column of the right input"),
        ]
        yield from unknown
        if not unknown and not _same_type(sides["left"][key.left], sides["right"][key.right]):
            types = f"'{key.left}' is {sides['left'][key.left]}, '{key.right}' is {sides['right'][key.right]}"
            yield Diagnostic(message=f"the columns of a join key must have the same type: {types}", path=here)
    for column in join.output:
        if join.join_type in ("semi", "anti") and column.side == "right":
            message = f"a {join.join_type} join has no columns of its right input"
            yield Diagnostic(message=message, path=f"{path}.output.{column.name}.from")
    yield from _check_output(join.output, left, right, "the right input", path)


def _check_output(
    output: Sequence[JoinColumn], left: Columns, right: Columns, what: str, path: str
) -> Iterator[Diagnostic]:
    sides = {"left": (_types(left), "the left input"), "right": (_types(right), what)}
    for column in output:
        here = f"{path}.output.{column.name}"
        types, owner = sides[column.side]
        unknown = list(_check_known([column.column], types, f"{here}.from", f"column of {owner}"))
        yield from unknown
        if not unknown and not _same_type(types[column.column], column.type):
            source = f"{column.side}.{column.column} is {types[column.column]}"
            yield Diagnostic(message=f"the type is {column.type}, but {source}", path=f"{here}.type")
    yield from _check_names([column.name for column in output], path, "output")


def _check_lookup(lookup: LookupJoin, left: Columns, tables: Mapping[str, Table], path: str) -> Iterator[Diagnostic]:
    if lookup.table not in tables:
        yield _unknown_table(lookup.table, tables, path)
        return
    physical = physical_columns(tables[lookup.table])
    what = f"column of table '{lookup.table}'"
    unknown = list(_check_known(lookup.columns, _types(physical), f"{path}.columns", what))
    yield from unknown
    yield from _check_names(lookup.columns, path, "columns")
    if unknown:
        return
    wanted = set(lookup.columns)
    fetched = tuple(column for column in physical if column.name in wanted)
    seen: set[str] = set()
    types = {"left": _types(left), "right": _types(fetched)}
    for index, key in enumerate(lookup.keys):
        here = f"{path}.keys[{index}]"
        if key.column in seen:
            yield Diagnostic(message=f"column '{key.column}' is a key twice", path=f"{here}.column")
        seen.add(key.column)
        bad = list(_check_known([key.column], types["right"], f"{here}.column", "fetched column (see 'columns')"))
        if key.left is not None:
            bad += _check_known([key.left], types["left"], f"{here}.left", "column of the input")
        yield from bad
        if not bad and key.left is not None and not _same_type(types["left"][key.left], types["right"][key.column]):
            pair = f"'{key.left}' is {types['left'][key.left]}, '{key.column}' is {types['right'][key.column]}"
            yield Diagnostic(message=f"the columns of a lookup key must have the same type: {pair}", path=here)
    yield from _check_output(lookup.output, left, fetched, "the table that is fetched (see 'columns')", path)


def _check_correlate(
    call: Correlate, left: Columns, functions: Mapping[str, Function], path: str
) -> Iterator[Diagnostic]:
    function = functions.get(call.function)
    if function is None:
        hint = did_you_mean(call.function, functions, what="functions")
        yield Diagnostic(message=f"there is no function '{call.function}'", path=f"{path}.function", hint=hint)
        return
    wanted, types = function.arguments, _types(left)
    if len(call.arguments) != len(wanted):
        message = f"'{call.function}' takes {len(wanted)} arguments ({', '.join(wanted)}), found {len(call.arguments)}"
        yield Diagnostic(message=message, path=f"{path}.arguments")
        return
    for index, (argument, must) in enumerate(zip(call.arguments, wanted, strict=True)):
        if argument.column is None:
            continue
        here = f"{path}.arguments[{index}]"
        unknown = list(_check_known([argument.column], types, here, "column of the input"))
        yield from unknown
        if not unknown and not _same_type(types[argument.column], must):
            message = f"'{call.function}' takes {must}, but '{argument.column}' is {types[argument.column]}"
            yield Diagnostic(message=message, path=here)
        elif not unknown and parse(types[argument.column]).nullable and not parse(must).nullable:
            message = f"'{call.function}' takes {must}, but '{argument.column}' may be NULL"
            yield Diagnostic(message=message, path=here)
    yield from _check_output(call.output, left, function.output, f"function '{call.function}'", path)


def _check_expand(expand: Expand, columns: Columns, path: str) -> Iterator[Diagnostic]:
    yield from _check_known(expand.keys, _types(columns), f"{path}.keys", "key column")
    keys, seen = set(expand.keys), set[frozenset[str]]()
    for index, each in enumerate(expand.sets):
        here = f"{path}.sets[{index}]"
        for name in each:
            if name not in keys:
                hint = did_you_mean(name, expand.keys, what="keys")
                yield Diagnostic(message=f"'{name}' is not one of the keys", path=here, hint=hint)
        if frozenset(each) in seen:
            yield Diagnostic(message="this grouping set is given twice", path=here, hint="remove it")
        seen.add(frozenset(each))
    yield from _check_names([*(column.name for column in columns), expand.group_id], path, "group-id")


def _check_call(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    names = [name for name in (call.argument, call.filter) if name is not None]
    unknown = list(_check_known(names, types, path, "column of the input"))
    yield from unknown
    if call.argument is None and (call.function != "COUNT" or call.distinct):
        yield Diagnostic(message=f"{call.function} needs an argument", path=path)
    if unknown:
        return
    argument = parse(types[call.argument]) if call.argument is not None else None
    result = parse(call.type)
    if call.filter is not None and parse(types[call.filter]).root != "BOOLEAN":
        message = f"expected a BOOLEAN column, but '{call.filter}' is {types[call.filter]}"
        yield Diagnostic(message=message, path=f"{path}.filter")
    if call.function == "COUNT" and result.root != "BIGINT":
        yield Diagnostic(message=f"COUNT is BIGINT, found {call.type}", path=f"{path}.type")
    if call.function in ("SUM", "AVG") and argument is not None and not (argument.is_numeric and result.is_numeric):
        message = f"{call.function} needs numbers, but '{call.argument}' is {argument} and the result {result}"
        yield Diagnostic(message=message, path=path)
    if (call.function == "LISTAGG") != (call.separator is not None):
        message = "LISTAGG needs a separator" if call.function == "LISTAGG" else "only LISTAGG has a separator"
        yield Diagnostic(message=message, path=f"{path}.separator")
    if call.function == "LISTAGG" and not (argument is not None and argument.is_text and result.is_text):
        yield Diagnostic(message=f"LISTAGG joins texts, found {argument} and {call.type}", path=f"{path}.type")
    of_argument = ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
    if call.function in of_argument and argument is not None and argument.as_nullable() != result.as_nullable():
        message = f"{call.function} has the type of its argument, {argument}, found {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")


def _check_union(union: Union, inputs: Sequence[Columns], path: str) -> Iterator[Diagnostic]:
    first = inputs[0]
    for operator_id, columns in zip(union.inputs[1:], inputs[1:], strict=True):
        same = len(first) == len(columns) and all(
            a.name == b.name and _same_type(a.type, b.type) for a, b in zip(first, columns, strict=True)
        )
        if not same:
            message = f"the inputs must agree in columns: '{union.inputs[0]}' has {_listed(first)}"
            yield Diagnostic(message=f"{message}; '{operator_id}' has {_listed(columns)}", path=f"{path}.inputs")


def _check_sort(sort: Sort, columns: Columns, path: str) -> Iterator[Diagnostic]:
    types, seen = _types(columns), set[str]()
    for index, key in enumerate(sort.order):
        here = f"{path}.order[{index}].column"
        unknown = list(_check_known([key.column], types, here, "column of the input"))
        yield from unknown
        if not unknown and parse(types[key.column]).root in UNSORTABLE:
            yield Diagnostic(message=f"'{key.column}' is {types[key.column]}, which has no order", path=here)
        if key.column in seen:
            yield Diagnostic(message=f"'{key.column}' is sorted by twice", path=here, hint="remove the second")
        seen.add(key.column)


def _check_sink(sink: Sink, columns: Columns, tables: Mapping[str, Table], path: str) -> Iterator[Diagnostic]:
    if sink.table not in tables:
        yield _unknown_table(sink.table, tables, path)
        return
    wanted = physical_columns(tables[sink.table])
    if [c.name for c in columns] != [c.name for c in wanted]:
        message = f"table '{sink.table}' has the columns {_listed(wanted)}, but the input has {_listed(columns)}"
        yield Diagnostic(message=message, path=path)
        return
    for have, want in zip(columns, wanted, strict=True):
        if not _fits(parse(have.type), parse(want.type)):
            message = f"column '{have.name}' is {have.type}, which does not fit {want.type} of table '{sink.table}'"
            yield Diagnostic(message=message, path=path)


def _check_known(names: Sequence[str], known: Mapping[str, str], path: str, what: str) -> Iterator[Diagnostic]:
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, what="columns")
            yield Diagnostic(message=f"'{name}' is no {what}", path=path, hint=hint)


def _check_names(names: Sequence[str], path: str, field: str) -> Iterator[Diagnostic]:
    seen = set()
    for name in names:
        if name in seen:
            yield Diagnostic(message=f"two columns are called '{name}'", path=f"{path}.{field}")
        if name.startswith(RESERVED_PREFIX):
            message = f"column names that start with {RESERVED_PREFIX} are reserved: '{name}'"
            yield Diagnostic(message=message, path=f"{path}.{field}")
        seen.add(name)


def _unknown_table(name: str, tables: Mapping[str, Table], path: str) -> Diagnostic:
    hint = did_you_mean(name, tables, what="tables")
    return Diagnostic(message=f"there is no table '{name}'", path=f"{path}.table", hint=hint)


@lru_cache(maxsize=4096)
def parse(text: str) -> DataType:
    return parse_type(text)


def _types(columns: Sequence[Column | TableColumn]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def _same_type(a: str, b: str) -> bool:
    return a == b or parse(a).as_nullable() == parse(b).as_nullable()


def _fits(have: DataType, want: DataType) -> bool:
    """Whether every value of ``have`` is a value of ``want``; NULL is for the sink to judge."""
    have, want = have.as_nullable(), want.as_nullable()
    if have == want:
        return True
    integers = ("TINYINT", "SMALLINT", "INT", "BIGINT")
    if have.root in integers and want.root in integers:
        return integers.index(have.root) <= integers.index(want.root)
    if have.is_text and want.is_text:
        return want.root == "STRING" or (want.root == "VARCHAR" and (have.precision or 2**31) <= (want.precision or 0))
    if have.root == want.root == "DECIMAL":
        scale = (want.scale or 0) - (have.scale or 0)
        return scale >= 0 and (want.precision or 0) - (have.precision or 0) >= scale
    if have.root == want.root and have.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return (have.precision or 0) <= (want.precision or 0)
    return (have.root, want.root) in (("FLOAT", "DOUBLE"), ("BINARY", "BYTES"), ("VARBINARY", "BYTES"))


def _listed(columns: Columns) -> str:
    return "(" + ", ".join(f"{column.name} {column.type}" for column in columns) + ")"
