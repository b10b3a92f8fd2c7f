"""The enrich example: its result against plain Python over the same flights, on both databases, and what it counts."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from hintplan import compile_sql
from tests.connectors.lookup_sources.servers import PASSWORD, Postgres
from tests.sample import in_turn, sampled

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "enrich"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """All planes, and the flights of the first two weeks."""
    target = tmp_path_factory.mktemp("enrich") / "data"
    runpy.run_path(str(ROOT / "examples" / "flights" / "prepare.py"))["main"](target)
    for file in sorted((target / "flights").iterdir())[2:]:
        file.unlink()
    return target


def lines(directory: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(directory.iterdir()) for line in file.read_text().splitlines()]


def expected(data: Path) -> dict[str, tuple]:
    planes = {plane["tailnum"]: plane for plane in lines(data / "planes")}
    fleets = defaultdict(list)
    for flight in lines(data / "flights"):
        fleets[flight["carrier"]].append(planes.get(flight["tailnum"]))
    result = {}
    for carrier, found in fleets.items():
        known = [plane for plane in found if plane is not None]
        ages = [2013 - plane["year"] for plane in known if plane["year"] is not None]
        seats = [plane["seats"] for plane in known]
        means = [pytest.approx(fmean(values), rel=1e-12) if values else None for values in (ages, seats)]
        result[carrier] = (len(found), len(known), *means)
    return result


def hintplan(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hintplan", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def filled_postgres(server: Postgres, data: Path) -> None:
    planes = [(p["tailnum"], p["year"], p["manufacturer"], p["seats"]) for p in lines(data / "planes")]
    server.execute(
        "DROP TABLE IF EXISTS planes",
        "CREATE TABLE planes (tailnum VARCHAR(6) PRIMARY KEY, year INT, manufacturer TEXT, seats INT)",
    )
    import psycopg

    with psycopg.connect(server.dsn()) as connection:
        connection.cursor().executemany("INSERT INTO planes VALUES (%s, %s, %s, %s)", planes)


def test_both_databases_are_declared_alike():
    declared = []
    for database in ("postgres", "sqlite"):
        text = (EXAMPLE / f"planes_{database}.sql").read_text() + (EXAMPLE / "enrich.sql").read_text()
        table = compile_sql(text).tables["planes"]
        options = {k: v for k, v in table.options.items() if k not in ("url", "username", "password")}
        declared.append((table.columns, options))
    assert declared[0] == declared[1]


@in_turn(2, of=3)
@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.parametrize("database", sampled(["sqlite", "postgres"], keep=1))
def test_flights_find_their_planes_and_most_of_them_in_the_cache(request, data, tmp_path, database):
    shutil.copytree(data, tmp_path / "data", copy_function=shutil.copy2)
    shutil.copy(EXAMPLE / "load.py", tmp_path)
    shutil.copy(EXAMPLE / "hintplan.toml", tmp_path)
    text = (EXAMPLE / f"planes_{database}.sql").read_text()
    environment = {}
    if database == "postgres":
        server = request.getfixturevalue("postgres")
        filled_postgres(server, data)
        text = text.replace("/planes'", "/shop'").replace("= 'planes',\n  'password'", "= 'hintplan',\n  'password'")
        environment = {"PLANES_PORT": str(server.port), "PLANES_PASSWORD": PASSWORD}
    else:
        subprocess.run([sys.executable, "load.py", "sqlite", "planes.db"], cwd=tmp_path, check=True)
    (tmp_path / "job.sql").write_text(text + (EXAMPLE / "enrich.sql").read_text())
    hintplan("compile", "job.sql", "-o", "enrich.json", cwd=tmp_path)
    out = hintplan("run", "enrich.json", "--once", "--json", "--master", "local[2]", cwd=tmp_path, **environment)

    connection = sqlite3.connect(tmp_path / "fleets.db")
    found = {row[0]: row[1:] for row in connection.execute("SELECT * FROM fleets")}
    connection.close()
    assert found == expected(data)

    (tmp_path / "run.jsonl").write_text(out)
    lookups, hits, loads = runpy.run_path(str(EXAMPLE / "fleets.py"))["counted"](tmp_path / "run.jsonl")
    flights = [flight["tailnum"] for flight in lines(data / "flights")]
    assert lookups == sum(tailnum is not None for tailnum in flights)
    assert len(set(flights) - {None}) <= loads
    assert hits + loads <= lookups
    assert hits / lookups > 0.5
