"""A broker that only lets in who knows a password, over TLS: read and written as docs/connectors/kafka.md says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from tests.connectors.messages.broker import Broker, Secured, running_broker
from tests.connectors.messages.test_topics import messages, run, source, table

pytestmark = [pytest.mark.spark, pytest.mark.integration]

PASSWORD = "of-the-store"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """The broker, and what lets tables in."""

    broker: Broker
    options: dict[str, str]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    folder = tmp_path_factory.mktemp("secured")
    keys, trusted, certificate = folder / "keys.p12", folder / "trusted.p12", folder / "broker.pem"
    store = ["-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", "broker", "-noprompt"]
    for command in (
        ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1", "-keystore", keys],
        ["-exportcert", "-rfc", "-keystore", keys, "-file", certificate],
        ["-importcert", "-keystore", trusted, "-file", certificate],
    ):
        subprocess.run(["keytool", *command, *store], check=True, capture_output=True, timeout=120)
    secured = Secured(
        settings=f"""\
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="broker" password="inner" user_broker="inner";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={LOGIN};
ssl.keystore.location={keys}
ssl.keystore.type=PKCS12
ssl.keystore.password={PASSWORD}
ssl.key.password={PASSWORD}
ssl.truststore.location={trusted}
ssl.truststore.type=PKCS12
ssl.truststore.password={PASSWORD}
""",
        storage=("--add-scram", "SCRAM-SHA-512=[name=job,password=s3cret]"),
        client={
            "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "job",
            "sasl.password": "s3cret", "ssl.ca.location": str(certificate),
        },
    )  # fmt: skip
    with running_broker(secured) as broker:
        if broker is None:
            pytest.skip("the jars of Kafka are not there; fetch them with make kafka")
        yield Locked(
            broker=broker,
            options={
                "properties.security.protocol": "SASL_SSL", "properties.sasl.mechanism": "SCRAM-SHA-512",
                "properties.sasl.jaas.config": "${env:KAFKA_JAAS}",
                "properties.ssl.truststore.location": str(trusted), "properties.ssl.truststore.type": "PKCS12",
                "properties.ssl.truststore.password": "${env:KAFKA_TRUST}",
                "properties.default.api.timeout.ms": "20000", "properties.request.timeout.ms": "10000",
            },
        )  # fmt: skip


@pytest.mark.parametrize("password", ["s3cret", "wrong"])
def test_who_knows_the_password_reads_and_writes(
    spark: SparkSession, locked: Locked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("KAFKA_JAAS", f'{LOGIN} username="job" password="{password}";')
    monkeypatch.setenv("KAFKA_TRUST", PASSWORD)
    broker = locked.broker
    orders, copies = broker.create(), broker.create()
    script = (
        source("orders", "id BIGINT", broker, orders, **locked.options)
        + table("copies", "id BIGINT", broker, topic=copies, format="json", **locked.options)
        + "INSERT INTO copies SELECT id + 1 FROM orders;"
    )
    broker.send(orders, messages({"id": 1}, {"id": 2}))
    policy = Policy(environment=("KAFKA_JAAS", "KAFKA_TRUST"))
    if password == "wrong":
        with pytest.raises(RunError, match="Authentication failed") as refused:
            run(spark, script, tmp_path / "checkpoint", policy)
        assert "wrong" not in str(refused.value)
        return
    run(spark, script, tmp_path / "checkpoint", policy)
    assert sorted(json.loads(message.value or b"")["id"] for message in broker.read(copies)) == [2, 3]
    broker.drop(copies)
    with pytest.raises(RunError, match=r"batches up to 0 to .*, which no longer exists"):
        run(spark, script, tmp_path / "checkpoint", policy)
