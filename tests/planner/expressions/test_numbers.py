"""Numbers of any length and size: those of a type are compiled, all others are refused where they stand."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.plans.errors import SqlError

TABLES = (
    "CREATE TABLE a (id BIGINT, d DOUBLE, s STRING) WITH ('connector'='filesystem', 'path'='a', 'format'='json');\n"
    "CREATE TABLE r (x DOUBLE) WITH ('connector' = 'blackhole');\n"
)
PLACES = (
    "SELECT CAST({} AS DOUBLE) FROM a",
    "SELECT d FROM a WHERE d > {}",
    "SELECT a.d FROM a LEFT JOIN a AS b ON a.id = b.id AND b.d < {}",
    "SELECT d FROM a WHERE `LEFT`(s, {}) = s",
    "SELECT d FROM a ORDER BY d LIMIT {}",
    "SELECT d FROM a ORDER BY {}",
)
TOO_MUCH = {
    "9" * 5000: "at most 400 characters, found 5,000",
    "0" * 5000 + "1": "at most 400 characters, found 5,001",
    "0." + "1" * 5000: "at most 400 characters, found 5,002",
    "1e" + "9" * 5000: "at most 400 characters, found 5,002",
    "1e100000": "does not fit into DOUBLE",
    "1.5E400": "does not fit into DOUBLE",
    "1e-100000": "does not fit into DOUBLE",
    "1.e": "its exponent is missing",
    "9" * 40: "does not fit into BIGINT",
    "0." + "1" * 40: "at most 38 digits",
}


@pytest.mark.parametrize("number", TOO_MUCH, ids=lambda text: text[:12])
@pytest.mark.parametrize("query", PLACES)
def test_a_number_that_fits_no_type_is_refused_where_it_stands(query: str, number: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query.format(number))
    found = caught.value.diagnostics[0]
    assert found.line == 3
    if "LIMIT" not in query and "ORDER BY" not in query:
        assert TOO_MUCH[number] in found.message
        assert found.column == len("INSERT INTO r ") + query.index("{}") + 1


@pytest.mark.parametrize("number", ["1e308", "4.9E-324", "0e999", "0.0", "9223372036854775807", "0.5e-300"])
def test_a_number_at_the_end_of_a_type_is_compiled(number: str) -> None:
    compiled(f"SELECT d FROM a WHERE d > {number}")


def compiled(query: str) -> None:
    hintplan.compile_sql(f"{TABLES}INSERT INTO r {query};", config={"execution.runtime-mode": "batch"}, name="q")
