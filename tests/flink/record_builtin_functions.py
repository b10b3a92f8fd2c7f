"""Writes the names of all functions that Flink has built in to builtin_functions.json, each with where it is from.

Those that ``SHOW FUNCTIONS`` lists and the definitions behind them, by their names in SQL, and the operators of the
planner, which have a syntax. Runs in an environment of its own, with apache-flink: ``make flink-goldens``.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment
from recording import replace

_OPERATORS = "org.apache.flink.table.planner.functions.sql.FlinkSqlOperatorTable"


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with tables.execute_sql("SHOW FUNCTIONS").collect() as rows:
        shown = {row[0] for row in rows}
    jvm = get_gateway().jvm
    found: dict[str, dict[str, str]] = {}
    for each in jvm.org.apache.flink.table.functions.BuiltInFunctionDefinitions.getDefinitions():
        if each.getName() in shown:
            found.setdefault(each.getSqlName().upper(), {})["kind"] = each.getKind().toString()
    loader = tables._j_tenv.getPlanner().getClass().getClassLoader()
    table = jvm.java.lang.Class.forName(_OPERATORS, True, loader)
    (instance,) = (method for method in table.getMethods() if method.getName() == "instance")
    arguments = get_gateway().new_array(jvm.java.lang.Object, 1)
    arguments[0] = False
    for each in instance.invoke(None, arguments).getOperatorList():
        found.setdefault(each.getName().upper(), {})["syntax"] = each.getSyntax().toString()
    lines = (f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found) if not name.startswith("$"))
    replace(Path(__file__).parent / "builtin_functions.json", "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
