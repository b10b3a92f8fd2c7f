"""Asks Flink for the types and values of the expressions in nested.txt, and writes them to nested.json.

Values as Flink casts them to text, for Python is not told of a NULL in an array. Runs in an environment of its own,
which has apache-flink and nothing of ours: ``make flink-goldens``. ``--missing`` asks only for what is
not recorded yet.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment
from recording import by_expression, lines_of, missing, recorded, replace

HERE = Path(__file__).parent
RECORDED = HERE / "nested.json"
ROW = """
SELECT 7 AS i, CAST(NULL AS INT) AS n, CAST(10 AS BIGINT) AS b, CAST(2.5 AS DOUBLE) AS d, CAST('Hello' AS STRING) AS s,
CAST(NULL AS STRING) AS u, TRUE AS o, CAST(ARRAY[3, 1, 2, 1] AS ARRAY<INT>) AS ai,
CAST(ARRAY[1, CAST(NULL AS INT), 3] AS ARRAY<INT>) AS an, CAST(ARRAY_REMOVE(ARRAY[1], 1) AS ARRAY<INT>) AS ae,
CAST(NULL AS ARRAY<INT>) AS au, CAST(ARRAY['b', 'a', 'b'] AS ARRAY<STRING>) AS ast,
CAST(ARRAY['a', CAST(NULL AS STRING), 'c'] AS ARRAY<STRING>) AS asn,
CAST(ARRAY[ARRAY[1, 2], ARRAY[3]] AS ARRAY<ARRAY<INT>>) AS aa,
CAST(MAP['a', 1, 'b', 2] AS MAP<STRING, INT>) AS mp, CAST(NULL AS MAP<STRING, INT>) AS mu,
CAST(ROW(1, 'x', ROW(2.5)) AS ROW<a INT, b STRING, c ROW<d DOUBLE>>) AS r,
CAST(ROW(7, CAST(NULL AS STRING)) AS ROW<a INT, b STRING>) AS rn, CAST(NULL AS ROW<a INT, b STRING>) AS ru,
ARRAY[CAST(ROW(1, 'x') AS ROW<a INT, b STRING>), CAST(ROW(2, 'y') AS ROW<a INT, b STRING>)] AS ar
"""


def ask(environment: TableEnvironment, chosen: list[str]) -> dict[str, Any]:
    """The answers for ``chosen``; if one of several fails, each half is asked alone."""
    try:
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(chosen))
        described = environment.sql_query(f"SELECT {columns} FROM t")
        types = [each.toString() for each in described._j_table.getResolvedSchema().getColumnDataTypes()]
        columns = ", ".join(f"CAST({text} AS STRING) AS c{i}" for i, text in enumerate(chosen))
        with environment.sql_query(f"SELECT {columns} FROM t WHERE CHAR_LENGTH(s) > 0").execute().collect() as rows:
            (row,) = list(rows)
    except Exception as error:  # noqa: BLE001 - what Flink refuses is an answer, too
        if len(chosen) > 1:
            half = len(chosen) // 2
            return ask(environment, chosen[:half]) | ask(environment, chosen[half:])
        reasons = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
        return {chosen[0]: {"error": (reasons or [str(error)])[-1].strip()}}
    return {
        text: {"type": data_type, "value": value} for text, data_type, value in zip(chosen, types, row, strict=True)
    }


def main() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    # A union, since columns of constants would be NOT NULL, and be computed by the planner.
    environment.execute_sql(f"CREATE TEMPORARY VIEW t AS SELECT * FROM ({ROW}) UNION ALL SELECT * FROM ({ROW} LIMIT 0)")
    wanted = lines_of(HERE / "nested.txt")
    new, answers = missing(recorded(RECORDED), wanted)
    for start in range(0, len(new), 40):
        answers |= ask(environment, new[start : start + 40])
        print(f"{len(answers)} of {len(wanted)} expressions", file=sys.stderr)
    replace(RECORDED, by_expression({text: answers[text] for text in wanted}))


if __name__ == "__main__":
    main()
