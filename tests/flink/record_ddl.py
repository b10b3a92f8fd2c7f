"""Asks Flink what becomes of the scripts in ddl.txt, and writes its answers to ddl.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ddl import BEFORE, DDL
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent


def answer(script: str) -> dict[str, Any]:
    """The columns and options of ``t``, or which statement was refused, and why."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "1")
    for statement in BEFORE.split(";\n"):
        environment.execute_sql(statement)
    statements = script.split(";\n")
    for number, statement in enumerate(statements):
        try:
            environment.execute_sql(statement)
        except Exception as error:  # noqa: BLE001 - what Flink refuses is an answer, too
            return {"refused": number, "why": _reason(error)}
    try:
        with environment.execute_sql("DESCRIBE t").collect() as rows:
            columns = [[None if value is None else str(value) for value in list(row)] for row in rows]
    except Exception as error:  # noqa: BLE001
        return {"refused": len(statements), "why": _reason(error)}
    catalog = environment._j_tenv.getCatalogManager()
    gateway = catalog.getTable(catalog.qualifyIdentifier(_identifier()))
    table = gateway.get().getResolvedTable()
    found: dict[str, Any] = {"columns": columns, "options": dict(sorted(dict(table.getOptions()).items()))}
    if table.getTableKind().toString() == "TABLE":
        found["partitioned by"] = list(table.getPartitionKeys())
    found["comment"] = table.getComment()
    return found


def _identifier() -> Any:
    from pyflink.java_gateway import get_gateway

    gateway = get_gateway()
    names = gateway.new_array(gateway.jvm.java.lang.String, 1)
    names[0] = "t"
    return gateway.jvm.org.apache.flink.table.catalog.UnresolvedIdentifier.of(names)


def _reason(error: Exception) -> str:
    """The messages of an error and of what caused it, without stack traces."""
    java = getattr(error, "java_exception", None)
    if java is None:
        lines = [line for line in str(error).splitlines() if not line.startswith("\tat") and line.strip()]
        return " | ".join(line for line in lines if "py4j" not in line)[:600]
    found = []
    while java is not None and len(found) < 4:
        found.append(str(java.getMessage()).strip().splitlines()[0])
        java = java.getCause()
    return " | ".join(dict.fromkeys(found))


def main() -> None:
    answers = {name: answer(script) for name, script in DDL.items()}
    text = ",\n".join(
        f"  {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in answers.items()
    )
    (HERE / "ddl.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
