"""The DataFrames and sink functions that a Python program passes to the run of a plan.

All of them are checked before anything starts. Each table of the plan that needs one must have one, of the right kind
and with the declared columns.

    objects = objects_for(plan, {"events": frame}, {"paid": function})
    bound = objects.on(session)                      # the same rows, computed in the session of the run
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from hintplan.plans.analysis.by_program import lacking, misspelt, read_by_program, written_by_program
from hintplan.plans.connectors.table import is_by_program
from hintplan.plans.declarations.tables import Table, physical_columns
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.spark.function_failed import FunctionFailed
from hintplan.runtime.spark.session import is_remote, is_stopped
from hintplan.runtime.spark.versions import can_be_copied
from hintplan.runtime.types import to_spark

SinkFunction = Callable[[Any, int], object]
"""Takes the rows of a micro-batch as a DataFrame, and the batch number."""

_KEEPING = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "GlobalLimit", "LocalLimit", "Distinct")
"""Nodes of Spark's plans that keep state in a stream, in addition to those with ``WithState`` in their name."""

_PLAIN = "UTF8_BINARY"
"""The collation that compares texts by their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramObjects:
    """The DataFrames of ``tables`` and the functions of ``sinks``, by table name.

    ``identities`` distinguish DataFrames that exist at the same time. ``views`` are the names of temporary views of
    Spark Connect DataFrames. A copy of the session has these views, too. ``failures`` receives the errors of functions
    that run in this process. ``notes`` name the DataFrames and functions that the plan does not use.
    """

    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    sinks: Mapping[str, SinkFunction] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failures: list[FunctionFailed] = field(default_factory=list, compare=False)

    def session(self) -> SparkSession | None:
        """Return the session of the DataFrames; None if there are none."""
        return next((frame.sparkSession for frame in self.tables.values()), None)

    @contextmanager
    def with_views(self) -> Iterator[ProgramObjects]:
        """Create temporary views of Spark Connect DataFrames for the block, in which the caller copies their session.

        A DataFrame's plan alone would not work in the copy: it may refer to data or temporary views of its own session.
        """
        spark = self.session()
        if spark is None or not is_remote(spark) or not can_be_copied(spark):
            yield self
            return
        views = {name: f"hintplan_{uuid.uuid4().hex}" for name in self.tables}
        try:
            for name, frame in self.tables.items():
                frame.createTempView(views[name])
            yield replace(self, views=views)
        finally:
            for view in views.values():
                spark.catalog.dropTempView(view)

    def on(self, spark: SparkSession) -> ProgramObjects:
        """Return the same DataFrames in session ``spark``, whose settings then apply to their computation."""
        frames = {
            name: spark.table(self.views[name]) if name in self.views else _on(frame, spark)
            for name, frame in self.tables.items()
        }
        for name in self.views:
            _ = frames[name].schema  # the first request to a copied session makes its views available
        return replace(self, tables=frames, views={})


NO_OBJECTS = ProgramObjects()


def objects_for(
    plan: Plan,
    tables: Mapping[str, DataFrame],
    sinks: Mapping[str, SinkFunction],
    spark: SparkSession | None = None,
) -> ProgramObjects:
    """Return the DataFrames in ``tables`` and the functions in ``sinks`` that ``plan`` uses when it runs on ``spark``.

    Raises RunError with all problems unless there is exactly one fitting object for each table that needs one.
    """
    read, written = set(read_by_program(plan)), set(written_by_program(plan))
    meant_tables, meant_sinks = misspelt(read, tables), misspelt(written, sinks)
    problems = [
        *_misspelt(meant_tables, "tables", "reads"),
        *_misspelt(meant_sinks, "sinks", "writes"),
        *lacking(plan, {*tables, *meant_tables.values()}, {*sinks, *meant_sinks.values()}),
        *_of_other_connectors(plan, tables, "tables"),
        *_of_other_connectors(plan, sinks, "sinks"),
    ]
    for name in sorted(read & set(tables)):
        problems += _wrong_frame(name, plan.tables[name], tables[name], spark, is_batch=plan.mode == "batch")
        spark = spark or getattr(tables[name], "sparkSession", None)
    for name in sorted(written & set(sinks)):
        problems += _wrong_function(name, sinks[name])
    if problems:
        raise RunError(diagnostics=tuple(problems))
    frames = {name: frame for name, frame in tables.items() if name in read}
    return ProgramObjects(
        tables=frames,
        sinks={name: function for name, function in sinks.items() if name in written},
        identities={name: f"DataFrame {id(frame)}" for name, frame in frames.items()},
        notes=(*_unused(plan, tables, read, "tables", "reads"), *_unused(plan, sinks, written, "sinks", "writes")),
    )


def _unused(plan: Plan, passed: Iterable[str], wanted: Collection[str], argument: str, used: str) -> Iterator[str]:
    names = [name for name in passed if name not in wanted]
    if names:
        yield f"plan {plan.name} {used} nothing of what {argument} has for {', '.join(sorted(names))}"


def _misspelt(meant: Mapping[str, str], argument: str, used: str) -> Iterator[Diagnostic]:
    for name, wanted in meant.items():
        message = f"{argument} has '{name}', the plan {used} '{wanted}'"
        yield Diagnostic(message=message, hint=f"call it '{wanted}' in {argument}", path=f"tables.{wanted}")


def _of_other_connectors(plan: Plan, passed: Mapping[str, object], argument: str) -> Iterator[Diagnostic]:
    """Yield the tables that a plan has, and reads or writes without the program."""
    for name in passed:
        table = plan.tables.get(name)
        if table is not None and not is_by_program(table):
            connector = table.options.get("connector")
            message = f"table {name} has the connector {connector!r}, and {argument} has another one for it"
            hint = f"remove it from {argument}, or do not declare the table in the script: compile_sql(sql, tables=...)"
            yield Diagnostic(message=message, hint=hint, path=f"tables.{name}")


def _wrong_function(name: str, function: object) -> Iterator[Diagnostic]:
    path, hint = f"tables.{name}", "give a function of two parameters: the rows as a DataFrame, and the batch's number"
    if not callable(function):
        message = f"the sink of table {name} is a {type(function).__name__}, expected a function"
        yield Diagnostic(message=message, hint=hint, path=path)
        return
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError as error:
        message = f"the function of table {name} cannot be called with a DataFrame and a number: {error}"
        yield Diagnostic(message=message, hint=hint, path=path)
    except ValueError:
        return  # a function that is not written in Python


def _wrong_frame(
    name: str, table: Table, frame: DataFrame, spark: SparkSession | None, *, is_batch: bool
) -> Iterator[Diagnostic]:
    """Yield the reasons why ``frame`` cannot be ``table``."""
    path = f"tables.{name}"
    if not hasattr(frame, "isStreaming") or not hasattr(frame, "sparkSession"):
        message = f"table {name} was given a {type(frame).__name__}, expected a DataFrame of Spark"
        hint = "spark.createDataFrame(...) makes one of rows" if is_batch else "spark.readStream... makes one"
        yield Diagnostic(message=message, hint=hint, path=path)
        return
    if is_stopped(frame.sparkSession):
        message = f"the Spark session of the DataFrame of table {name} has been stopped"
        yield Diagnostic(message=message, hint="build a new session, and create the DataFrames again", path=path)
        return
    if spark is not None and _place(spark) != _place(frame.sparkSession):
        yield Diagnostic(
            message=f"the DataFrame of table {name} is of another Spark session than the run",
            hint="make all of them of one session, and give it to execute, or none",
            path=path,
        )
        return
    if bool(frame.isStreaming) == is_batch:
        has, wants = ("a streaming", "a batch") if is_batch else ("a batch", "a streaming")
        instead = "spark.read" if is_batch else "spark.readStream"
        mode = "streaming" if is_batch else "batch"
        yield Diagnostic(
            message=f"table {name} was given {has} DataFrame, and a {'batch' if is_batch else 'streaming'} plan reads "
            f"{wants} one",
            hint=f"read it with {instead}, or SET 'execution.runtime-mode' = '{mode}' in the script",
            path=path,
        )
        return
    yield from _wrong_columns(name, table, frame)
    if not is_batch and not is_remote(frame.sparkSession):
        yield from _wrong_sources(name, frame)


def _place(spark: Any) -> object:
    """Return a value that is equal for two sessions if one can read the DataFrames of the other."""
    return spark.session_id if is_remote(spark) else spark.sparkContext


def _wrong_columns(name: str, table: Table, frame: DataFrame) -> Iterator[Diagnostic]:
    types: dict[str, spark_types.DataType] = {}
    twice = set()
    for field_ in frame.schema.fields:
        twice |= {field_.name} & set(types)
        types[field_.name] = field_.dataType
    for column in physical_columns(table):
        path, wanted = f"tables.{name}.columns.{column.name}", to_spark(column.type)
        if column.name in twice:
            message = f"the DataFrame of table {name} has two columns '{column.name}'"
            yield Diagnostic(message=message, hint="select or rename one of them", path=path)
        elif column.name not in types:
            message = f"the DataFrame of table {name} has no column '{column.name}'"
            yield Diagnostic(message=message, hint=did_you_mean(column.name, types, what="columns"), path=path)
        elif not _same(types[column.name], wanted):
            has, wants = types[column.name].simpleString(), wanted.simpleString()
            declared = parse_type(column.type).as_nullable()
            yield Diagnostic(
                message=f"column '{column.name}' of table {name} is {declared}, which is Spark's {wants}, and the "
                f"DataFrame has {has}",
                hint=f'df.withColumn("{column.name}", df["{column.name}"].cast("{wants}")), or declare another type',
                path=path,
            )


def _same(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Return true if two Spark types have the same values, ignoring nullability."""
    if isinstance(one, spark_types.ArrayType) and isinstance(other, spark_types.ArrayType):
        return _same(one.elementType, other.elementType)
    if isinstance(one, spark_types.MapType) and isinstance(other, spark_types.MapType):
        return _same(one.keyType, other.keyType) and _same(one.valueType, other.valueType)
    if isinstance(one, spark_types.StructType) and isinstance(other, spark_types.StructType):
        return one.names == other.names and all(
            _same(a.dataType, b.dataType) for a, b in zip(one.fields, other.fields, strict=True)
        )
    texts = (spark_types.StringType, spark_types.CharType, spark_types.VarcharType)
    if type(one) in texts and type(other) in texts:
        return bool(getattr(one, "collation", _PLAIN) == getattr(other, "collation", _PLAIN))
    return bool(one == other)


def _wrong_sources(name: str, frame: DataFrame) -> Iterator[Diagnostic]:
    """Yield the errors for a streaming DataFrame with state or several streams, which belong in the plan.

    A run can continue a checkpoint only if the plan itself contains them.
    """
    sources, keeping = _streams(frame._jdf.queryExecution().analyzed())
    path = f"tables.{name}"
    if sources != 1:
        message = f"the DataFrame of table {name} reads {sources} streams, and a table is one"
        hint = "give each as a table of its own, and join or UNION ALL them in SQL"
        yield Diagnostic(message=message, hint=hint, path=path)
    if keeping:
        yield Diagnostic(
            message=f"the DataFrame of table {name} keeps state of Spark's own, by {', '.join(sorted(keeping))}",
            hint="write that in SQL, where the plan has it with its TTL",
            path=path,
        )


def _streams(node: JavaObject) -> tuple[int, set[str]]:
    """Return the number of streams at and below ``node`` of Spark's plan, and the stateful nodes above them."""
    children = node.children()
    count = children.size()
    if count == 0:
        return int(node.isStreaming()), set()
    parts = [_streams(children.apply(index)) for index in range(count)]
    sources, keeping = sum(part[0] for part in parts), set().union(*(part[1] for part in parts))
    name = str(node.nodeName())
    if sources and (name in _KEEPING or "WithState" in name):
        keeping.add(name)
    return sources, keeping


def _on(frame: Any, spark: Any) -> DataFrame:
    if is_remote(spark):
        copied: DataFrame = type(frame)(frame._plan, spark)
        return copied
    plan = frame._jdf.queryExecution().analyzed()
    dataset = spark.sparkContext._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)
