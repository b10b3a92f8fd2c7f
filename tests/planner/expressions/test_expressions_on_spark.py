"""Expressions of a plan give in Spark what Flink gives for the SQL, and have the type that the plan says.

The expected values are Flink's: from its documentation of each function, or its recorded answers. Each row of ``CASES``
is the SQL, the type that Flink gives it, and its value as Spark prints it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.types import to_spark
from tests.planner.expressions.one_expression import ROW, expression_of, type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [
    ("i + t", "INT", "14"),
    ("i + b", "BIGINT", "17"),
    ("t + t", "TINYINT", "14"),
    ("i / 2", "INT", "3"),
    ("m / 2", "INT", "-3"),
    ("b / i", "BIGINT", "1"),
    ("m % 4", "INT", "-3"),
    ("MOD(b, i)", "INT", "3"),
    ("(m - 2147483641) / (i - 8)", "INT", "-2147483648"),
    ("CAST(t * 0 - 128 AS TINYINT) / CAST(t - 8 AS TINYINT)", "TINYINT", "-128"),
    ("(-b - 9223372036854775798) / (i - 8)", "BIGINT", "-9223372036854775808"),
    ("i / d", "DOUBLE", "2.8"),
    ("d / z", "DOUBLE", "Infinity"),
    ("e / z", "DOUBLE", "-Infinity"),
    ("z / CAST(z AS DOUBLE)", "DOUBLE", "NaN"),
    ("d / n", "DOUBLE", None),
    ("f * i", "FLOAT", "10.5"),
    ("f + d", "DOUBLE", "4.0"),
    ("f + p", "DOUBLE", "13.85"),
    ("p + i", "DECIMAL(13, 2)", "19.35"),
    ("p + q", "DECIMAL(11, 2)", "9.85"),
    ("p * q", "DECIMAL(16, 3)", "-30.875"),
    ("p * 2", "DECIMAL(21, 2)", "24.70"),
    ("p / q", "DECIMAL(17, 8)", "-4.94000000"),
    ("p % q", "DECIMAL(6, 2)", "2.35"),
    ("p - 0.005", "DECIMAL(12, 3)", "12.345"),
    ("-p", "DECIMAL(10, 2)", "-12.35"),
    ("CASE WHEN i > 5 THEN p ELSE i END", "DECIMAL(12, 2)", "12.35"),
    ("COALESCE(n, b)", "BIGINT", "10"),
    ("COALESCE(n, d)", "DOUBLE", "2.5"),
    ("IFNULL(n, 3)", "INT", "3"),
    ("NULLIF(i, 7)", "INT", None),
    ("IF(n = 1, 'a', 'b')", "STRING", "b"),
    ("n = 1 OR TRUE", "BOOLEAN", "true"),
    ("(n = 1) IS TRUE", "BOOLEAN", "false"),
    ("n IS DISTINCT FROM i", "BOOLEAN", "true"),
    ("n IS NOT DISTINCT FROM CAST(NULL AS INT)", "BOOLEAN", "true"),
    ("i BETWEEN 1 AND 7", "BOOLEAN", "true"),
    ("i NOT IN (1, 2)", "BOOLEAN", "true"),
    ("s LIKE 'H_l%'", "BOOLEAN", "true"),
    ("s NOT LIKE 'H_l%'", "BOOLEAN", "false"),
    ("s NOT LIKE 'J%'", "BOOLEAN", "true"),
    ("'50x' NOT LIKE '50!%' ESCAPE '!'", "BOOLEAN", "true"),
    ("v LIKE '%a\\b%'", "BOOLEAN", "true"),
    ("'50%' LIKE '50!%' ESCAPE '!'", "BOOLEAN", "true"),
    ("'50x' LIKE '50!%' ESCAPE '!'", "BOOLEAN", "false"),
    ("UPPER(s) || LOWER(s)", "STRING", "HELLOhello"),
    ("s || CAST(NULL AS STRING)", "STRING", None),
    ("CONCAT(s, '-', s)", "STRING", "Hello-Hello"),
    ("CONCAT_WS('-', s, CAST(NULL AS STRING), 'x')", "STRING", "Hello-x"),
    ("TRIM(v)", "STRING", "a\\b"),
    ("TRIM(LEADING FROM v)", "STRING", "a\\b "),
    ("RTRIM(v)", "STRING", " a\\b"),
    ("SUBSTRING(s, 2, 3)", "STRING", "ell"),
    ("SUBSTRING(s FROM 4)", "STRING", "lo"),
    ("CHAR_LENGTH(v)", "INT", "5"),
    ("POSITION('l' IN s)", "INT", "3"),
    ("REPLACE(s, 'l', 'L')", "STRING", "HeLLo"),
    ("REVERSE(s)", "STRING", "olleH"),
    ("MD5(s)", "STRING", "8b1a9953c4611296a827abf8c47804d7"),
    ("'it''s'", "STRING", "it's"),
    ("'a${x}b'", "STRING", "a${x}b"),
    ("ABS(m)", "INT", "7"),
    ("FLOOR(e)", "DOUBLE", "-3.0"),
    ("CEIL(e)", "DOUBLE", "-2.0"),
    ("FLOOR(CAST('1e300' AS DOUBLE))", "DOUBLE", "1.0E300"),
    ("FLOOR(p)", "DECIMAL(10, 0)", "12"),
    ("CEIL(i)", "INT", "7"),
    ("ROUND(p, 1)", "DECIMAL(10, 1)", "12.4"),
    ("ROUND(d)", "DOUBLE", "3.0"),
    ("ROUND(e)", "DOUBLE", "-3.0"),
    ("ROUND(i, 2)", "INT", "7"),
    ("SQRT(b - 1)", "DOUBLE", "3.0"),
    ("POWER(i, 2)", "DOUBLE", "49.0"),
    ("EXP(z)", "DOUBLE", "1.0"),
    ("CAST(o AS STRING)", "STRING", "TRUE"),
    ("CAST(p AS STRING)", "STRING", "12.35"),
    ("CAST(d AS INT)", "INT", "2"),
    ("CAST(e AS INT)", "INT", "-2"),
    ("CAST('12' AS INT)", "INT", "12"),
    ("TRY_CAST(s AS INT)", "INT", None),
    ("CAST(s AS VARCHAR(3))", "VARCHAR(3)", "Hel"),
    ("CAST(s AS CHAR(7))", "CHAR(7)", "Hello  "),
    ("CAST(p AS DECIMAL(4, 1))", "DECIMAL(4, 1)", "12.4"),
    ("CAST(y AS STRING)", "STRING", "2024-02-29"),
    ("CAST(ts AS DATE)", "DATE", "2024-02-29"),
    ("CAST('2024-01-02 03:04:05' AS TIMESTAMP(3))", "TIMESTAMP(3)", "2024-01-02 03:04:05"),
    ("EXTRACT(MONTH FROM ts)", "BIGINT", "2"),
    ("YEAR(y)", "BIGINT", "2024"),
    ("SECOND(ts)", "BIGINT", "15"),
    ("ts + INTERVAL '1' DAY", "TIMESTAMP(3)", "2024-03-01 13:14:15.678"),
    ("y + INTERVAL '1' DAY", "DATE", "2024-03-01"),
    ("ts > TIMESTAMP '2024-02-29 13:14:15.6'", "BOOLEAN", "true"),
    ("ts < '2025-01-01 00:00:00'", "BOOLEAN", "true"),
    ("y = DATE '2024-02-29'", "BOOLEAN", "true"),
    ("DATE_FORMAT(ts, 'yyyy/MM/dd HH:mm')", "STRING", "2024/02/29 13:14"),
    ("TO_TIMESTAMP_LTZ(ms, 3)", "TIMESTAMP_LTZ(3)", "1970-01-01 00:00:01.5"),
    ("TO_TIMESTAMP_LTZ(ms, 0)", "TIMESTAMP_LTZ(3)", "1970-01-01 00:25:00"),
    ("i - (m - 1) - 1", "INT", "14"),
    ("-(-i)", "INT", "7"),
    ("NOT (i = 7 AND z = 0) OR i > 100", "BOOLEAN", "false"),
]


@pytest.mark.parametrize(("sql", "data_type"), [(sql, data_type) for sql, data_type, _ in CASES])
def test_expression_has_the_type_flink_gives_it_and_a_run_accepts_it(sql: str, data_type: str) -> None:
    assert type_of(sql) == data_type
    assert expression_of(sql, data_type)[1] == data_type


@pytest.mark.spark
def test_expressions_give_in_spark_what_flink_gives(spark: SparkSession) -> None:
    row = spark.range(1).selectExpr(*(f"{value} AS `{name}`" for name, (_, value) in ROW.items()))
    found = {sql: expression_of(sql, data_type) for sql, data_type, _ in CASES}
    results = row.select(*(spark_expression(row, text).alias(f"c{i}") for i, (text, _) in enumerate(found.values())))
    values = results.selectExpr(*(f"CAST(c{i} AS STRING)" for i in range(len(found)))).first()
    assert values is not None
    for (sql, data_type, expected), value, field in zip(CASES, values, results.schema.fields, strict=True):
        assert value == expected, sql
        assert field.dataType == to_spark(data_type), sql
