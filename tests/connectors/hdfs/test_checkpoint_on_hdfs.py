"""Tables and a checkpoint on HDFS, which state reaches without Hadoop's native library."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import hintplan as api
from hintplan import compile_sql
from hintplan.runtime.storage.remote_files import RemoteFiles, remote_files
from hintplan.runtime.stores import open_store
from tests.connectors.hdfs.server import running_hdfs
from tests.connectors.text_in_pieces import EXPECTED, script, sums, write_lines
from tests.sample import in_turn

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.integration]

ROOT = Path(__file__).parents[3]
SQL = """
SET 'parallelism.default' = '{partitions}';
CREATE TABLE orders (id BIGINT, country STRING, total DECIMAL(10, 2)) WITH ('connector' = 'filesystem',
  'path' = '{url}/orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE sums (country STRING, total DECIMAL(38, 2), PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:sums.db', 'table-name' = 'sums');
CREATE TABLE large (id BIGINT, country STRING)
WITH ('connector' = 'filesystem', 'path' = '{url}/large', 'format' = 'parquet');
INSERT INTO sums SELECT country, SUM(total) FROM orders GROUP BY country;
INSERT INTO large SELECT id, country FROM orders WHERE total > 15;
"""


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as found:
        if found is None:
            pytest.skip("the jars of HDFS are not there, or for another Hadoop than Spark's; make hdfs fetches them")
        yield found


def hintplan(directory: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hintplan", *words],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@in_turn(1, of=3)
def test_a_job_goes_on_after_a_restart_and_on_other_numbers_of_partitions(hdfs: str, tmp_path: Path) -> None:
    url = f"{hdfs}/{tmp_path.name}"
    checkpoint = ("--checkpoint", f"{url}/checkpoint")
    system, base = open_store(url)
    system.create_dir(f"{base}/orders")
    expected: dict[str, Decimal] = {}
    number = 0
    for partitions in (2, 4, 1):
        api.dump(compile_sql(SQL.format(url=url, partitions=partitions), name="job"), tmp_path / "job.json")
        for _ in range(2):
            rows = [{"id": number * 3 + at, "country": f"c{at}", "total": number + at * 10} for at in range(3)]
            with system.open_output_stream(f"{base}/orders/{number}.json") as out:
                out.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
            for row in rows:
                expected[row["country"]] = expected.get(row["country"], Decimal(0)) + row["total"]
            number += 1
        said = hintplan(
            tmp_path, "run", "job.json", "--once", *checkpoint, "--master", "local[2]", "--allow-scheme", hdfs
        )
        assert "state files:" in said
        found = sqlite3.connect(tmp_path / "sums.db").execute("SELECT country, total FROM sums").fetchall()
        assert {country: Decimal(str(total)) for country, total in found} == expected
    assert re.search(r"total +3 ", hintplan(tmp_path, "state", "job.json", *checkpoint))
    hintplan(tmp_path, "state", checkpoint[1], "--compact")
    hintplan(tmp_path, "state", checkpoint[1], "--snapshot", f"{url}/copy")
    names = {info.base_name for info in system.get_file_info(pafs.FileSelector(f"{base}/copy"))}
    assert "hintplan" in names
    query = next(name for name in names if not name.startswith("hintplan") and "large" not in name)
    system.delete_file(f"{base}/checkpoint/{query}/commits/2")
    refused = hintplan(tmp_path, "check", "job.json", *checkpoint, "--master", "local[2]", code=1)
    assert "commits/2 is missing" in refused


@pytest.fixture
def files(hdfs: str, tmp_path: Path) -> RemoteFiles:
    return remote_files(f"{hdfs}/{tmp_path.name}")


def test_the_first_file_of_a_name_stays_also_of_two_at_once(
    files: RemoteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.publish("0/3/1.7.manifest", b"one")
    assert not files.publish("0/3/1.7.manifest", b"two")
    monkeypatch.setattr(RemoteFiles, "_is_there", lambda self, path: False)  # as whoever looked before the first wrote
    assert not files.publish("0/3/1.7.manifest", b"two")
    assert files.names("0/3") == ["1.7.manifest"], "the draft is gone"
    assert files.fetched("0/3/1.7.manifest") == b"one"


def test_a_file_takes_the_place_of_another(files: RemoteFiles) -> None:
    for data in (b"one", b"two"):
        files.replace("hintplan.lease/1", data)
        assert files.fetched("hintplan.lease/1") == data
    assert files.names("hintplan.lease") == ["1"], "the draft is gone"


def test_a_large_file_is_there_when_it_is_whole_and_may_be_removed_twice(files: RemoteFiles) -> None:
    data = os.urandom(20_000_000)
    with files.writing("0/3/1.7.abc.arrow") as out:
        out.write(data)
        assert not [name for name in files.names("0/3") if not name.startswith(".")]
    assert bytes(files.read("0/3/1.7.abc.arrow")) == data
    assert files.sizes() == {"0/3/1.7.abc.arrow": len(data)}
    for _ in range(2):
        files.remove("0/3/1.7.abc.arrow")
    with pytest.raises(FileNotFoundError):
        files.read("0/3/1.7.abc.arrow")
    assert files.names("9/9") == []
    assert not files.take("0/3/1.7.abc.arrow", files, link=True)


@in_turn(2, of=3)
def test_workers_read_files_of_parquet_in_partitions(hdfs: str, tmp_path: Path) -> None:
    url = f"{hdfs}/{tmp_path.name}"
    script = f"""
    SET 'parallelism.default' = '2';
    CREATE TABLE orders (country STRING, total BIGINT, name STRING METADATA FROM 'file.name')
    PARTITIONED BY (country) WITH ('connector' = 'filesystem', 'path' = '{url}/orders', 'format' = 'parquet');
    CREATE TABLE sums (country STRING, name STRING, total BIGINT, PRIMARY KEY (country, name) NOT ENFORCED)
    WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:sums.db', 'table-name' = 'sums');
    INSERT INTO sums SELECT country, name, SUM(total) FROM orders GROUP BY country, name;
    """
    api.dump(compile_sql(script, name="job"), tmp_path / "job.json")
    system, base = open_store(url)
    expected = {}
    for number, country in enumerate(("a b", "c%d", "é")):
        name = f"x+y {number}?#;.parquet"
        rows = pa.table({"total": list(range(number, 1000))})
        system.create_dir(f"{base}/orders/country={quote(country)}")
        with system.open_output_stream(f"{base}/orders/country={quote(country)}/{name}") as out:
            pq.write_table(rows, out, row_group_size=300)
        expected[country, name] = sum(range(number, 1000))
    said = hintplan(
        tmp_path, "run", "job.json", "--once", "--checkpoint", f"{url}/checkpoint", "--master", "local[2]",
        "--allow-scheme", hdfs,
    )  # fmt: skip
    assert "read by Spark" not in said
    found = sqlite3.connect(tmp_path / "sums.db").execute("SELECT country, name, total FROM sums").fetchall()
    assert {(country, name): total for country, name, total in found} == expected


@in_turn(0, of=3)
def test_workers_read_large_text_files_in_pieces(hdfs: str, tmp_path: Path) -> None:
    url = f"{hdfs}/{tmp_path.name}"
    database = tmp_path / "sums.db"
    api.dump(compile_sql(script(f"{url}/in", database), name="job"), tmp_path / "job.json")
    system, base = open_store(url)
    write_lines(system, f"{base}/in")
    said = hintplan(
        tmp_path, "run", "job.json", "--once", "--checkpoint", f"{url}/checkpoint", "--master", "local[2]",
        "--allow-scheme", hdfs,
    )  # fmt: skip
    assert "read by Spark" not in said
    assert sums(database) == EXPECTED
