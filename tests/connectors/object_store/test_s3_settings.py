"""How S3 is said, once for Spark and for state, and what does not fit together; no JVM is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pyspark import SparkContext

from hintplan import compile_sql
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime import s3, stores
from hintplan.runtime.checkpoint.files import stored_files
from hintplan.runtime.run import needs
from hintplan.runtime.run.needs import needs_of
from hintplan.runtime.spark.session import refuse_managed

AWS_HADOOP = "org.apache.hadoop:hadoop-aws"
PLACES = {
    "AWS_ENDPOINT_URL": "http://store:9000",
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "canary-id",
    "AWS_SECRET_ACCESS_KEY": "canary-secret",
    "AWS_SESSION_TOKEN": "canary-token",
}


@pytest.fixture(autouse=True)
def own_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory of Spark whose Hadoop is 3.4.2, and nothing of this machine's configuration."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", *s3.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.4.2.jar").touch()
    return tmp_path


def reading(path: str) -> Plan:
    return compile_sql(
        f"CREATE TABLE t (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');\n"
        "CREATE TABLE r (id BIGINT) WITH ('connector' = 'print');\n"
        "INSERT INTO r SELECT id FROM t;"
    )


@pytest.mark.parametrize(
    ("path", "checkpoint", "needed"),
    [
        ("s3a://lake/t", None, True),
        ("/data/t", "s3a://lake/checkpoint", True),
        ("/data/t", "/data/checkpoint", False),
        ("hdfs://namenode/t", None, False),
    ],
)
def test_tables_and_a_checkpoint_on_s3_need_the_package_of_sparks_own_hadoop(
    path: str, checkpoint: str | None, needed: bool
) -> None:
    found = needs_of(reading(path), checkpoint, {"x": "y"})
    if not needed:
        assert (dict(found.conf), found.notes, found.session.settings) == ({"x": "y"}, (), {})
        return
    assert found.conf == {"x": "y", "spark.jars.packages": f"{AWS_HADOOP}:3.4.2"}
    (note,) = found.notes
    assert f"Spark takes {AWS_HADOOP}:3.4.2 from Maven" in note
    assert "Spark's Hadoop is 3.4.2" in note


def test_a_package_that_spark_has_is_not_fetched(own_spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = reading("s3a://lake/t")
    for conf in ({"spark.jars.packages": f"{AWS_HADOOP}:3.4.0"}, {"spark.jars": "/opt/jars/hadoop-aws-3.4.2.jar"}):
        assert needs_of(plan, None, conf).conf == conf
    (own_spark / "conf").mkdir()
    defaults = own_spark / "conf" / "spark-defaults.conf"
    defaults.write_text("# of this cluster\nspark.jars.packages   a:b:1\n")
    assert needs_of(plan, None, {}).conf == {"spark.jars.packages": f"a:b:1,{AWS_HADOOP}:3.4.2"}
    defaults.write_text("spark.driver.extraClassPath=/opt/hadoop-aws-3.4.2.jar\n")
    assert needs_of(plan, None, {}).conf == {}


def test_a_spark_without_hadoop_among_its_jars_is_told_of(own_spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_spark / "jars" / "hadoop-client-api-3.4.2.jar").unlink()
    monkeypatch.setattr("hintplan.runtime.spark.packages._homes", lambda: [str(own_spark)])
    with pytest.raises(RunError, match="the version of Spark's Hadoop is unknown") as refused:
        needs_of(reading("s3a://lake/t"), None, {})
    assert "org.apache.hadoop:hadoop-aws:VERSION" in str(refused.value.diagnostics[0].hint)


def test_spark_gets_endpoint_and_region_of_the_environment_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLACES.items():
        monkeypatch.setenv(name, value)
    found = needs_of(reading("s3a://lake/t"), None, {})
    settings = {key.removeprefix("spark.hadoop.fs.s3a."): value for key, value in found.session.settings.items()}
    providers = settings.pop("aws.credentials.provider")
    assert settings == {"endpoint": "http://store:9000", "path.style.access": "true", "endpoint.region": "eu-west-1"}
    assert providers.endswith("DefaultCredentialsProvider"), "environment, profile, role: AWS's own chain"
    assert "canary" not in f"{found.session.settings}{found.conf}{found.notes}"
    assert set(PLACES) <= set(found.session.environment), "workers elsewhere get them, by name"


def test_the_endpoint_of_s3_alone_wins() -> None:
    said = {"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_S3": "http://s3"}
    assert s3.endpoint(said) == "http://s3"
    assert s3.endpoint({"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_S3": ""}) == "http://all"
    assert s3.endpoint({}) is None
    assert "fs.s3a.endpoint" not in str(s3.settings({}))


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key",
    ],
)
def test_keys_on_the_command_line_are_refused_and_not_shown(key: str) -> None:
    with pytest.raises(RunError, match="everybody on this machine can read command lines") as refused:
        refuse_managed({key: "canary"})
    assert "AWS_SECRET_ACCESS_KEY" in str(refused.value.diagnostics[0].hint)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "endpoint", "key", "said"),
    [
        ({}, "", "", None),
        ({}, "s3.eu-west-1.amazonaws.com", "", None),
        ({"AWS_ENDPOINT_URL": "http://store:9000"}, "http://store:9000", "", None),
        ({"AWS_ENDPOINT_URL": "http://store:9000/"}, "store:9000", "", None),
        ({}, "http://store:9000", "", "and state at AWS itself, for AWS_ENDPOINT_URL is not set"),
        ({"AWS_ENDPOINT_URL": "http://store:9000"}, "", "", "would be at AWS itself"),
        (
            {"AWS_ENDPOINT_URL": "http://a:1"},
            "http://b:1",
            "",
            "and state at http://a:1, the value of AWS_ENDPOINT_URL",
        ),
        ({"AWS_ACCESS_KEY_ID": "canary"}, "", "canary", None),
        ({"AWS_ACCESS_KEY_ID": "canary"}, "", "canary-two", "a key that only Spark's own files"),
        ({}, "", "canary", "a key that only Spark's own files"),
    ],
)
def test_what_spark_and_state_would_reach_apart_is_refused(
    environment: dict[str, str], endpoint: str, key: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = list(needs._apart(("fs.s3a.endpoint", endpoint), ("fs.s3a.access.key", key)))
    if said is None:
        assert found == []
        return
    (problem,) = found
    assert said in str(problem)
    assert "canary" not in str(problem)
    assert "set it once, in the environment" in str(problem.diagnostics[0].hint)


def test_a_server_that_is_not_there_is_told_of_before_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in stores._PROXIES:
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        needed = needs_of(reading("s3a://lake/t"), None, {})
        with pytest.raises(RunError, match=f"no server answers at http://127.0.0.1:{port}: .*refused") as refused:
            needs.refuse_silent_server(needed)
        assert "correct AWS_ENDPOINT_URL" in str(refused.value.diagnostics[0].hint)
        with pytest.raises(
            RunError, match=f"s3a://lake/x cannot be reached: no server answers at http://127.0.0.1:{port}"
        ):
            stored_files("s3a://lake/x")
        with pytest.raises(RunError, match=f"no server answers at hdfs://127.0.0.1:{port}/x"):
            stored_files(f"hdfs://127.0.0.1:{port}/x")
        needs.refuse_silent_server(needs_of(reading("/data/t"), None, {}))
        listening.listen()
        needs.refuse_silent_server(needed)
