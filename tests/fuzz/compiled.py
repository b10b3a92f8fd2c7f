"""Scripts of a world and a query, compiled: the tables as files, views, and the query with a sink of its own."""

from __future__ import annotations

from hintplan.planner.session import CompileSession
from hintplan.planner.statements.model import Select
from hintplan.plans.model.plan import Plan
from tests.fuzz.data import World
from tests.fuzz.trees import Rendered

__all__ = ["compiled", "script"]

FILES = "'connector' = 'filesystem', 'format' = 'parquet', 'source.max-files-per-trigger' = '1', 'path' = '{path}'"


def script(world: World, query: Rendered, *, folder: str = "/data", batch: bool) -> str:
    """The SQL text, which ends with the query; files are read below ``folder``, one of each table a micro-batch."""
    mode = "SET 'execution.runtime-mode' = 'batch';" if batch else "SET 'execution.runtime-mode' = 'streaming';"
    tables = [table.declared(FILES.format(path=f"{folder}/{table.name}")) for table in world.tables]
    return "\n".join([mode, *tables, *query.views, f"{query.flink};"])


def compiled(text: str, *, config: dict[str, str] | None = None) -> Plan:
    """The plan of a script that ends with a query; SqlError if it is refused."""
    session = CompileSession.open(config)
    for unit in session.feed(text):
        plan: Plan | None = None
        with session.attempt(unit):
            statement = session.read(unit)
            if isinstance(statement, Select):
                job = session.job()
                job.select(statement)
                plan = job.finish("fuzz", within=(unit.start, unit.end)).plan
            else:
                session.apply(statement)  # type: ignore[arg-type]
        session.source.raise_problems()
        if plan is not None:
            return plan
    raise AssertionError("the script has no query")
