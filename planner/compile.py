"""From a script to a plan: a session is fed the script, and all its INSERTs become one plan.

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

from hintplan.planner.init_files import read_init_files
from hintplan.planner.job import Compilation, Job
from hintplan.planner.session import Declaration, Session, too_deep
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
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.model.config import KEYS, canonical_key
from hintplan.plans.model.optional_groups import with_config_layers
from hintplan.plans.model.plan import Mode, Plan
from hintplan.plans.operators import Operator, functions_of, kind_of
from hintplan.plans.settings.cached import CACHED, ENABLED
from hintplan.plans.settings.calls import CALL_KINDS

__all__ = ["Compilation", "compile_script", "compile_sql"]

_CLIENT = "; 'hintplan sql' runs such scripts"
_INSTEAD = {
    "Select": ("SELECT has no sink", f"write INSERT INTO <sink table> SELECT ...: a plan needs a sink{_CLIENT}"),
    "Show": ("SHOW has no place in a plan", f"leave it out{_CLIENT}"),
    "Describe": ("DESCRIBE has no place in a plan", f"leave it out{_CLIENT}"),
    "Explain": ("EXPLAIN has no place in a plan", f"compile, then run 'hintplan explain plan.json'{_CLIENT}"),
    "CompilePlan": ("COMPILE PLAN inside of what is compiled", f"write the INSERT alone{_CLIENT}"),
    "ExecutePlan": ("EXECUTE PLAN has no place in a plan", f"run it with 'hintplan run plan.json'{_CLIENT}"),
    "SetOption": ("SET without an option is not supported", f"write SET 'key' = 'value'{_CLIENT}"),
    "StopJob": ("STOP JOB has no place in a plan", f"leave it out{_CLIENT}"),
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
    on_warning: Callable[[Diagnostic], None] | None = None,
) -> Plan:
    """Compile a SQL script to a plan; SqlError, with file, line and column, for everything wrong or unsupported.

    ``config`` overrides the script's SET. ``name`` is used if the script does not set ``pipeline.name``; else the
    stem of ``file``, else the names of the sinks. ``on_warning`` gets every warning and note; with ``strict_hints``
    a hint that does not do what it says is an error. CREATE FUNCTION loads classes from ``allow_modules``; functions
    may be declared by ``functions`` too, by name: a class, or ``module.Class``. ``init`` are texts of init files, by
    their names, which come before the script.
    """
    done = compile_script(
        text,
        config,
        name=name,
        file=file,
        strict_hints=strict_hints,
        allow_modules=allow_modules,
        functions=functions,
        init=init,
    )
    if on_warning is not None:
        for finding in done.findings:
            on_warning(finding.diagnostic)
    return done.plan


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
) -> Compilation:
    """Like :func:`compile_sql`, with the account of all hints and the severity of each finding."""
    session = Session.open(
        config, file=file, strict_hints=strict_hints, allow_modules=allow_modules, functions=functions
    )
    try:
        with deep_recursion():
            read_init_files(session, init or {})
            done = _compile(session, text, name)
    except RecursionError:
        session.source.raise_problems(too_deep(session))
    except SqlError as error:
        session.source.raise_problems(error)
    session.source.raise_problems()
    return done


def _compile(session: Session, text: str, name: str | None) -> Compilation:
    source = session.source
    job: Job | None = None
    said: list[SetOption] = []
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
                    said.append(statement)
            session.check_options(unit)
    _refuse_incomplete(session)
    if source.problems.found or source.problems.doubts:
        raise SqlError(diagnostics=tuple(session.context.report.refusals))
    if job is None:
        message = "the script is empty" if empty else "the script has no INSERT INTO"
        advice = "write INSERT INTO <sink table> SELECT ...: a plan needs a sink"
        raise source.error(message, max(len(source.text.rstrip()), source.begin), advice)
    _warn_of_idle_settings(session, said, job)
    _warn_of_idle_cached(session, said, job)
    file = os.path.basename(source.file) if source.file and not source.file.startswith("<") else None
    if name is None and file is not None:
        name = os.path.splitext(file)[0]
    return job.finish(name, within=(source.begin, len(source.text)), file=file)


def _declare(session: Session, statement: Statement, *, compiled: bool) -> None:
    offset = statement.offset
    if not isinstance(statement, Declaration) or (isinstance(statement, SetOption) and not statement.key):
        message, advice = _INSTEAD[type(statement).__name__]
        raise session.source.error(message, offset, advice)
    if compiled and isinstance(statement, SetOption | ResetOption):
        word = "SET" if isinstance(statement, SetOption) else "RESET"
        message = f"{word} after an INSERT: one plan has one configuration"
        raise session.source.error(message, offset, "move it before the first INSERT")
    session.apply(statement)


def _refuse_incomplete(session: Session) -> None:
    """Take down that a table of the script lacks an option, if neither LIKE took it over nor a hint completes it."""
    catalog = session.context.catalog
    for name, entry in catalog.tables.items():
        if entry.missing is not None and name not in catalog.bases and entry.offset >= session.source.begin:
            session.source.problems.add_known(entry.missing)


def _warn_of_idle_settings(session: Session, said: list[SetOption], job: Job) -> None:
    """Settings of operators that none of the job heeds: there is none, or each says otherwise."""
    mode: Mode = "batch" if session.context.batch else "streaming"
    plan = with_config_layers(Plan(name="", mode=mode, config=session.context.config, operators=job.operators))
    heeded = {
        (_called(job, operator), group, name)
        for operator in plan.operators
        for group, settings in operator.settings.items()
        for name in settings.origin.get("config", {})
    }
    for statement in said:
        key = KEYS.get(canonical_key(statement.key))
        if key is None or key.owner is None or key.group is None:
            continue
        if key.group.optional and key.group.mode not in (None, mode):
            message, advice = key.group.elsewhere, "remove it"
        elif not any((key.whose, key.group.name, name) in heeded for name in key.sets):
            message = f"no {key.whose} of this job takes it"
            advice = "remove it" if key.group.optional else "remove it, or set what it goes with"
        else:
            continue
        session.context.report.warn(f"'{statement.key}' has no effect: {message}", statement.offset, advice)


def _called(job: Job, operator: Operator) -> str:
    """What a message calls the operator."""
    kind = kind_of(operator)
    if kind.asks is not None and (functions := functions_of(operator)):
        return f"{CALL_KINDS.get(job.kind_of(functions[0])) or ''} function"
    return kind.title


def _warn_of_idle_cached(session: Session, said: list[SetOption], job: Job) -> None:
    """Settings of cached results that no operator heeds, and statements for what no INSERT reads."""
    context = session.context
    mode: Mode = "batch" if context.batch else "streaming"
    plan = with_config_layers(Plan(name="", mode=mode, config=context.config, operators=job.operators))
    groups = (operator.settings.get(CACHED.name) for operator in plan.operators)
    origins = [cached.origin for cached in groups if cached is not None]
    heeded = {name for origin in origins for name in origin.get("config", {})}
    for statement in said:
        for name, spec in CACHED.settings.items():
            # False says what is the case anyway, or was said over this statement, with -c.
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
