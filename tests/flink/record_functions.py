"""Asks Flink for the types and values of the expressions in functions.txt, and writes them to functions.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. ``--missing``
asks only for what is not recorded yet.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment
from recording import by_expression, lines_of, missing, recorded, replace
from values import plain

HERE = Path(__file__).parent
RECORDED = HERE / "functions.json"
ROW = """
SELECT CAST(7 AS TINYINT) AS t, 7 AS i, -7 AS m, 0 AS z, CAST(NULL AS INT) AS n, CAST(10 AS BIGINT) AS b,
CAST(1.5 AS FLOAT) AS f, CAST(2.5 AS DOUBLE) AS d, CAST(-2.5 AS DOUBLE) AS e, CAST(12.35 AS DECIMAL(10, 2)) AS p,
CAST(-2.5 AS DECIMAL(5, 1)) AS q, CAST('Hello' AS STRING) AS s, CAST(' a\\b ' AS STRING) AS v, CAST('' AS STRING) AS w,
CAST(NULL AS STRING) AS u, CAST('größer' AS STRING) AS x, TRUE AS o, DATE '2024-02-29' AS y,
CAST(TIMESTAMP '2024-02-29 13:14:15.678' AS TIMESTAMP(3)) AS ts, DATE '2024-01-31' AS ld,
CAST(TIMESTAMP '2024-01-31 10:00:00' AS TIMESTAMP(3)) AS lt
"""


def ask(environment: TableEnvironment, chosen: list[str]) -> dict[str, Any]:
    """The answers for ``chosen``; if one of several fails, each is asked alone."""
    try:
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(chosen))
        table = environment.sql_query(f"SELECT {columns} FROM r WHERE CHAR_LENGTH(s) > 0")
        types = [t.toString() for t in table._j_table.getResolvedSchema().getColumnDataTypes()]
        with table.execute().collect() as rows:
            (row,) = list(rows)
    except Exception as error:  # noqa: BLE001 - what Flink refuses is an answer, too
        if len(chosen) > 1:
            return {text: answer for one in chosen for text, answer in ask(environment, [one]).items()}
        reasons = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
        return {chosen[0]: {"error": (reasons or [str(error)])[-1].strip()}}
    return {
        text: {"type": data_type.removesuffix(" NOT NULL"), "value": plain(value)}
        for text, data_type, value in zip(chosen, types, row, strict=True)
    }


def main() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.get_config().set("table.exec.sink.not-null-enforcer", "DROP")
    # A union, since columns of constants would be NOT NULL, and be computed by the planner.
    environment.execute_sql(f"CREATE TEMPORARY VIEW r AS SELECT * FROM ({ROW}) UNION ALL SELECT * FROM ({ROW} LIMIT 0)")
    wanted = lines_of(HERE / "functions.txt")
    new, answers = missing(recorded(RECORDED), wanted)
    for start in range(0, len(new), 40):
        answers |= ask(environment, new[start : start + 40])
        print(f"{len(answers)} of {len(wanted)} expressions", file=sys.stderr)
    replace(RECORDED, by_expression({text: answers[text] for text in wanted}))


if __name__ == "__main__":
    main()
