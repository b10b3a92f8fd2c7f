"""Compiles a script to a plan: feeds the script to a session, and combines all its INSERTs into one plan.

>>> script = '''
... CREATE TABLE t (a INT) WITH ('connector' = 'datagen');
... CREATE TABLE s (a INT) WITH ('connector' = 'print');
... INSERT INTO s SELECT a FROM t;
... '''
>>> [o.id for o in compile_sql(script).operators]
['scan_t', 'sink_s']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hintplan.planner.catalog import give_table
from hintplan.planner.init_files import read_init_files
from hintplan.planner.job import Compilation, JobCompiler
from hintplan.planner.session import CompileSession, Declaration, too_deep
from hintplan.planner.statements.model import (
    CreateTable,
    Insert,
    ResetOption,
    SetOption,
    Statement,
    StatementSet,
    inserts_of,
)
from hintplan.plans.analysis.run_limits import deep_recursion
from hintplan.plans.connectors.frame_types import schema_json, table_columns
from hintplan.plans.connectors.table import options_by_program
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.model.config import KEYS, canonical_key
from hintplan.plans.model.layered_groups import with_config_layers
from hintplan.plans.model.plan import Mode, Plan
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.cached import CACHED, ENABLED
from hintplan.plans.settings.calls import CALL_KINDS
from hintplan.plans.text.names import did_you_mean

__all__ = ["Compilation", "compile_script", "compile_sql"]

_CLIENT = "; 'hintplan sql' runs such scripts"
_INSTEAD = {
    "Select": ("SELECT has no sink", f"write INSERT INTO <sink table> SELECT ...: a plan needs a sink{_CLIENT}"),
    "Show": ("SHOW has no place in a plan", f"leave it out{_CLIENT}"),
    "Describe": ("DESCRIBE has no place in a plan", f"leave it out{_CLIENT}"),
    "Explain": ("EXPLAIN has no place in a plan", f"compile, then run 'hintplan explain plan.json'{_CLIENT}"),
    "CompilePlan": ("COMPILE PLAN in a script that is compiled", f"write the INSERT alone{_CLIENT}"),
    "ExecutePlan": ("EXECUTE PLAN has no place in a plan", f"run it with 'hintplan run plan.json'{_CLIENT}"),
    "SetOption": ("SET without an option is not supported", f"write SET 'key' = 'value'{_CLIENT}"),
    "StopJobStatement": ("STOP JOB has no place in a plan", f"leave it out{_CLIENT}"),
}


def compile_sql(
    text: str,
    config: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    file: str | None = None,
    strict_hints: bool = False,
    allow_modules: Sequence[str] = (),
    functions: Mapping[str, type | str] | None = None,
    init: Mapping[str, str] | None = None,
    tables: Mapping[str, Any] | None = None,
    on_warning: Callable[[Diagnostic], None] | None = None,
) -> Plan:
    """Compile a SQL script to a plan.

    Raise SqlError, with file, line and column, for any error or unsupported construct.

    - ``config`` overrides the script's SET.
    - ``name`` is the plan's name, unless the script sets ``pipeline.name``. The default is the stem of ``file``, or the
      names of the sinks.
    - ``strict_hints`` makes a hint without its intended effect an error.
    - ``allow_modules`` are the modules from which CREATE FUNCTION may load classes.
    - ``functions`` are declared by name. Each is a class, or ``module.Class``.
    - ``init`` has the texts of init files, by file name. They precede the script.
    - ``tables`` has DataFrames, by name. A table that the script reads and does not declare gets the columns of its
      DataFrame. Pass the rows to :func:`hintplan.execute`.
    - ``on_warning`` receives every warning and note.
    """
    compilation = compile_script(
        text,
        config,
        name=name,
        file=file,
        strict_hints=strict_hints,
        allow_modules=allow_modules,
        functions=functions,
        init=init,
        tables=tables,
    )
    if on_warning is not None:
        for finding in compilation.findings:
            on_warning(finding.diagnostic)
    return compilation.plan


def compile_script(
    text: str,
    config: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    file: str | None = None,
    strict_hints: bool = False,
    allow_modules: Sequence[str] = (),
    functions: Mapping[str, type | str] | None = None,
    init: Mapping[str, str] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Compilation:
    """Compile like :func:`compile_sql`, and return also the outcome of all hints and the severity of each finding."""
    session = CompileSession.open(
        config, file=file, strict_hints=strict_hints, allow_modules=allow_modules, functions=functions
    )
    try:
        compilation = _compiled(session, text, name, init or {}, tables or {})
        _refuse_idle(session, compilation.plan)
    except SqlError as error:
        error.texts = dict([(session.source.file, text), *session.source.texts().items()])
        raise
    return compilation


def _compiled(
    session: CompileSession, text: str, name: str | None, init: Mapping[str, str], frames: Mapping[str, Any]
) -> Compilation:
    """Return the compiled script. Raise SqlError with all its errors."""
    try:
        with deep_recursion():
            _give(session, frames)
            read_init_files(session, init)
            compilation = _compile(session, text, name)
    except RecursionError:
        session.source.raise_problems(too_deep(session))
    except SqlError as error:
        session.source.raise_problems(error)
    session.source.raise_problems()
    return compilation


def _give(session: CompileSession, frames: Mapping[str, Any]) -> None:
    """Add a table with the columns of each DataFrame in ``frames``.

    Raise SqlError if a table cannot have its columns.
    """
    for name, frame in frames.items():
        try:
            columns = table_columns(schema_json(frame))
        except ValueError as error:
            raise SqlError(
                f"the DataFrame of table '{name}' cannot be a table: {error}", path=f"tables.{name}"
            ) from error
        give_table(session.context, name, Table(columns=columns, options=options_by_program()))


def _refuse_idle(session: CompileSession, plan: Plan) -> None:
    """Raise SqlError for a DataFrame that no INSERT reads."""
    for name in sorted(session.context.catalog.given - {scan.table for scan in plan.scans}):
        raise SqlError(
            f"no INSERT reads a table '{name}', of which there is a DataFrame",
            hint=did_you_mean(name, plan.tables, what="tables of the plan"),
            path=f"tables.{name}",
        )


def _compile(session: CompileSession, text: str, name: str | None) -> Compilation:
    source = session.source
    job: JobCompiler | None = None
    set_statements: list[SetOption] = []
    empty = True
    source.spend("characters", len(source.text) + len(text), source.begin)
    for unit in session.feed(text):
        source.spend("statements", 1, unit.start)
        empty = False
        with session.attempt(unit):
            statement = session.read(unit)
            if isinstance(statement, CreateTable) and statement.query:
                statement = session.create_and_fill(statement)
            if isinstance(statement, Insert | StatementSet):
                job = job or session.job()
                for insert in inserts_of(statement):
                    with source.problems.going_on():
                        job.insert(insert)
            else:
                _declare(session, statement, compiled=job is not None)
                if isinstance(statement, SetOption):
                    set_statements.append(statement)
            session.check_options(unit)
    _refuse_incomplete(session)
    if source.problems.found or source.problems.doubts:
        raise SqlError(diagnostics=tuple(session.context.report.refusals))
    if job is None:
        message = "the script is empty" if empty else "the script has no INSERT INTO"
        advice = "write INSERT INTO <sink table> SELECT ...: a plan needs a sink"
        raise source.error(message, max(len(source.text.rstrip()), source.begin), advice)
    _warn_of_idle_settings(session, set_statements, job)
    _warn_of_idle_cached(session, set_statements, job)
    file = os.path.basename(source.file) if source.file and not source.file.startswith("<") else None
    if name is None and file is not None:
        name = os.path.splitext(file)[0]
    return job.finish(name, within=(source.begin, len(source.text)), file=file)


def _declare(session: CompileSession, statement: Statement, *, compiled: bool) -> None:
    offset = statement.offset
    if not isinstance(statement, Declaration) or (isinstance(statement, SetOption) and not statement.key):
        message, advice = _INSTEAD[type(statement).__name__]
        raise session.source.error(message, offset, advice)
    if compiled and isinstance(statement, SetOption | ResetOption):
        word = "SET" if isinstance(statement, SetOption) else "RESET"
        message = f"{word} after an INSERT: one plan has one configuration"
        raise session.source.error(message, offset, "move it before the first INSERT")
    session.apply(statement)


def _refuse_incomplete(session: CompileSession) -> None:
    """Record an error for each table of the script that lacks an option.

    Ignore tables that LIKE copies or that a hint completes.
    """
    catalog = session.context.catalog
    for name, entry in catalog.tables.items():
        if entry.missing is not None and name not in catalog.bases and entry.offset >= session.source.begin:
            session.source.problems.add_known(entry.missing)


def _warn_of_idle_settings(session: CompileSession, statements: list[SetOption], job: JobCompiler) -> None:
    """Warn of each SET for operators that has no effect.

    The job has no such operator, or a stronger layer overrides the value in all of them.
    """
    mode: Mode = "batch" if session.context.batch else "streaming"
    plan = with_config_layers(Plan(name="", mode=mode, config=session.context.config, operators=job.operators))
    heeded = {
        (_called(job, operator), group, name)
        for operator in plan.operators
        for group, settings in operator.settings.items()
        for name in settings.origin.get("config", {})
    }
    for statement in statements:
        key = KEYS.get(canonical_key(statement.key))
        if key is None or not key.owners or key.group is None:
            continue
        kinds = {key.whose, *(kind.title for kind in key.owners)}
        if key.group.optional and key.group.mode not in (None, mode):
            message, advice = key.group.elsewhere, "remove it"
        elif not any((kind, key.group.name, name) in heeded for kind in kinds for name in key.sets):
            message = f"no {key.whose} of this job takes it"
            advice = "remove it" if key.group.optional else "remove it, or set the options that it belongs to"
        else:
            continue
        session.context.report.warn(f"'{statement.key}' has no effect: {message}", statement.offset, advice)


def _called(job: JobCompiler, operator: Operator) -> str:
    """Return the operator's name for messages."""
    if isinstance(operator, Requesting) and operator.functions:
        return f"{CALL_KINDS.get(job.kind_of(operator.functions[0])) or ''} function"
    return operator.title


def _warn_of_idle_cached(session: CompileSession, statements: list[SetOption], job: JobCompiler) -> None:
    """Warn of settings for cached results that no operator uses, and of CACHE TABLE if no INSERT reads the table."""
    context = session.context
    mode: Mode = "batch" if context.batch else "streaming"
    plan = with_config_layers(Plan(name="", mode=mode, config=context.config, operators=job.operators))
    groups = (operator.settings.get(CACHED.name) for operator in plan.operators)
    origins = [cached.origin for cached in groups if cached is not None]
    heeded = {name for origin in origins for name in origin.get("config", {})}
    for statement in statements:
        for name, spec in CACHED.settings.items():
            # 'false' is the default, or -c overrides this statement.
            is_off = name == ENABLED and context.config.get(statement.key) == "false"
            if statement.key == spec.config and name not in heeded and not is_off:
                reason = "no result of this job is read more than once" if name == ENABLED else "no result is cached"
                reason = reason if context.batch else "a stream has no result that is complete"
                context.report.warn(f"'{statement.key}' has no effect: {reason}", statement.offset, "remove it")
    for name, table in context.catalog.cached.items():
        offset = table.places[ENABLED]
        idle = offset >= context.source.begin and offset not in context.ledger.statements.values()
        if table.settings[ENABLED] and idle:
            message = f"CACHE TABLE has no effect: no INSERT below it reads '{name}'"
            context.report.warn(message, offset, "read it, or remove the statement")
