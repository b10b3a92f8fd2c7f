"""Asks Flink which words of its language (words.txt) cannot be names of columns unquoted; writes them to reserved.txt.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent


def is_refused(environment: TableEnvironment, word: str) -> bool:
    """Whether a table cannot have a column of this name, or a query cannot read it."""
    environment.execute_sql("DROP TEMPORARY TABLE IF EXISTS t")
    try:
        environment.execute_sql(f"CREATE TEMPORARY TABLE t ({word} INT) WITH ('connector' = 'datagen')")
        environment.explain_sql(f"SELECT t.{word} FROM t")
    except Exception:  # noqa: BLE001 - what Flink refuses is the answer
        return True
    return False


def main() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    words = (HERE / "words.txt").read_text(encoding="utf-8").split()
    found = [word for word in words if is_refused(environment, word)]
    (HERE / "reserved.txt").write_text("\n".join(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
