"""What one look at this machine tells is said before Spark starts: no test here has one."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import hintplan as api
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.in_advance import refuse_in_advance
from tests.plans.in_process import hintplan


def job(path: Path | str, mode: str = "streaming") -> Plan:
    return api.compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}';"
        f"CREATE TABLE o (k BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}');"
        "CREATE TABLE r (k BIGINT) WITH ('connector' = 'blackhole'); INSERT INTO r SELECT k FROM o;"
    )


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_source_that_is_not_there_is_told_by_the_command(tmp_path: Path, mode: str) -> None:
    (tmp_path / "plan.json").write_bytes(api.dumps(job(tmp_path / "in", mode)))
    done = hintplan("run", str(tmp_path / "plan.json"))
    assert done.returncode == 1
    assert f"tables.o.options.path: table o cannot be read: there is nothing at '{tmp_path}/in'" in done.stderr
    assert "create the directory, or correct the path" in done.stderr
    assert "starting Spark" not in done.stderr


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").symlink_to(tmp_path / "disk")
    with pytest.raises(RunError, match=r"table o cannot be read: .*/in is a symbolic link to .*/disk, where there is"):
        refuse_in_advance(job(tmp_path / "in"), None, {})


@pytest.mark.parametrize(
    ("path", "conf", "variables"),
    [
        ("in", {"spark.hadoop.fs.defaultFS": "hdfs://namenode:8020"}, {}),
        ("in", {}, {"HADOOP_CONF_DIR": "/etc/hadoop"}),
        ("in", {}, {"PYSPARK_GATEWAY_PORT": "4711"}),
        ("s3a://lake/in", {}, {}),
        ("file:///tmp/not%20there", {}, {}),
    ],
)
def test_what_only_spark_can_tell_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, path: str, conf: dict[str, str], variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refuse_in_advance(job(path), None, conf)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("spark-defaults.conf", "spark.hadoop.fs.defaultFS  hdfs://namenode:8020\n"),
        ("core-site.xml", "<configuration/>"),
    ],
)
def test_a_file_system_that_is_configured_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(RunError):
        refuse_in_advance(job("in"), None, {})
    (tmp_path / file).write_text(text)
    refuse_in_advance(job("in"), None, {})


@pytest.mark.parametrize("there", ["the checkpoint", "what it is to be made in"])
@pytest.mark.parametrize(("flags", "reason"), [(os.ST_RDONLY, errno.EROFS), (0, errno.EACCES)])
def test_a_checkpoint_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, flags: int, reason: int
) -> None:
    """Root may write everywhere, so the system's answers are given here."""
    (tmp_path / "in").mkdir()
    checkpoint = tmp_path / "a" / "b"
    above = checkpoint if there == "the checkpoint" else tmp_path
    above.mkdir(parents=True, exist_ok=True)
    plan = job(tmp_path / "in")
    refuse_in_advance(plan, str(checkpoint), {})
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(above))
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=flags))
    for text in (str(checkpoint), f"file://{checkpoint}"):
        with pytest.raises(RunError) as caught:
            refuse_in_advance(plan, text, {})
        assert f"the checkpoint {checkpoint} cannot be written: {os.strerror(reason)} ({above})" in str(caught.value)


def test_a_checkpoint_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"the checkpoint .*/file/ck cannot be written: Not a directory \(.*/file\)"):
        refuse_in_advance(job(tmp_path / "in"), str(tmp_path / "file" / "ck"), {})


def with_secrets(tmp_path: Path) -> Plan:
    (tmp_path / "in").mkdir()
    return api.compile_sql(
        "CREATE TABLE o (k BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{tmp_path}/in'); CREATE TABLE r (k BIGINT) WITH ('connector' = 'jdbc', 'table-name' = 'r', "
        "'url' = 'jdbc:postgresql://db/shop', 'username' = '${env:SHOP_USER}', 'password' = '${env:SHOP_PASSWORD}');"
        "INSERT INTO r SELECT k FROM o;"
    )


@pytest.mark.parametrize("conf", [{}, {"spark.master": "local[4]"}])
def test_all_variables_that_are_not_set_are_reported_at_once(tmp_path: Path, conf: dict[str, str]) -> None:
    with pytest.raises(RunError, match="variable SHOP_PASSWORD, SHOP_USER is not set") as raised:
        refuse_in_advance(with_secrets(tmp_path), None, conf)
    assert "export SHOP_PASSWORD=... SHOP_USER=..." in str(raised.value)


def test_variables_of_a_cluster_may_be_set_there_alone(tmp_path: Path) -> None:
    refuse_in_advance(with_secrets(tmp_path), None, {"spark.master": "spark://master:7077"})
