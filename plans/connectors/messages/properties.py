"""The ``properties.*`` options of a table: the properties of a broker's client that a plan may safely set.

Plans are untrusted, and some properties load classes, run log-ins or read files. Therefore this module lists the
allowed properties, and requires secrets to refer to the environment.

>>> sorted(server.host for server in servers("a.example.com:9092, b.example.com:9093"))
['a.example.com', 'b.example.com']
>>> servers("a.example.com")
Traceback (most recent call last):
    ...
ValueError: 'a.example.com' is not of the form host:port
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hintplan.plans.connectors.options import bad_value, option
from hintplan.plans.connectors.reach import HostPlace, Place, local_file
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.setting import Setting
from hintplan.plans.text.names import nearest

PROPERTY = "properties."
SERVERS = f"{PROPERTY}bootstrap.servers"

_PORT = 9092
_JAAS = "sasl.jaas.config"
_ALLOWS = "a run reads with --allow-env"
_LISTED = "remove it, or see docs/connectors/kafka.md#properties-of-kafkas-client for the supported ones"
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_FILES = ("ssl.truststore.location", "ssl.keystore.location")
_SECRETS = (_JAAS, "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password")
_TEXTS = ("client.id", "client.rack", "group.id", "sasl.kerberos.service.name")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "acks": ("all", "-1"),
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "enable.idempotence": ("true",),
    "isolation.level": ("read_uncommitted", "read_committed"),
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "ssl.endpoint.identification.algorithm": ("https",),
    "ssl.keystore.type": ("JKS", "PKCS12", "PEM"),
    "ssl.truststore.type": ("JKS", "PKCS12", "PEM"),
}
_NUMBERS = (
    "batch.size",
    "buffer.memory",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "delivery.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "heartbeat.interval.ms",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "max.request.size",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)
_OFFSETS = "offsets are kept in the checkpoint, not in the broker"
_MEMBERS = "partitions go to tasks, not to the members of a group"
_NO_TRANSACTIONS = "no transactions are written"
_REASONS: Mapping[str, str] = {
    "auto.commit.interval.ms": _OFFSETS,
    "auto.offset.reset": "'scan.startup.mode' sets where reading starts",
    "commit.offsets.on.checkpoint": _OFFSETS,
    "enable.auto.commit": _OFFSETS,
    "group.instance.id": _MEMBERS,
    "key.deserializer": "'key.format' sets the format of keys",
    "key.serializer": "'key.format' sets the format of keys",
    "partition.assignment.strategy": _MEMBERS,
    "partition.discovery.interval.ms": "new partitions are found before each micro-batch",
    "transaction.timeout.ms": _NO_TRANSACTIONS,
    "transactional.id": _NO_TRANSACTIONS,
    "value.deserializer": "'format' sets the format of values",
    "value.serializer": "'format' sets the format of values",
}
IDLE: Mapping[str, str] = {PROPERTY + name: reason for name, reason in _REASONS.items()}
"""Properties that have no effect here, whatever their value, and the reason."""
_LOGS_IN = "log in with 'properties.sasl.mechanism' = 'SCRAM-SHA-512', or 'PLAIN', 'GSSAPI' or a certificate"
_INSTEAD: Mapping[str, str] = {
    "client.id.prefix": "write 'properties.client.id'",
    "connector.client.endpoint": "write 'properties.bootstrap.servers'",
    "sasl.client.callback.handler.class": _LOGS_IN,
    "sasl.login.callback.handler.class": _LOGS_IN,
    "sasl.oauthbearer.token.endpoint.url": _LOGS_IN,
    "schema.registry.url": "write 'avro-confluent.url', with the format avro-confluent",
    "zookeeper.connect": "remove it: 'properties.bootstrap.servers' is enough",
}
"""Hints for refused properties."""
_VALUES: Mapping[tuple[str, str], str] = {
    ("sasl.mechanism", "AWS_MSK_IAM"): _LOGS_IN,
    ("sasl.mechanism", "OAUTHBEARER"): _LOGS_IN,
    ("ssl.endpoint.identification.algorithm", ""): "the certificates of the brokers must have the names of "
    "'properties.bootstrap.servers' (subjectAltName): if they do not, reissue them; then remove this",
    ("acks", "0"): "write 'all': otherwise rows that a broker loses would be missing",
    ("acks", "1"): "write 'all': otherwise rows that a broker loses would be missing",
}
"""Hints for refused values of properties."""
_LOADS = re.compile(r"\bclass(es)?\b|interceptor|reporter|provider|callback|assignor|partitioner|oauthbearer|engine")


def _settings() -> Iterator[Setting]:
    for name in (*_TEXTS, *_FILES):
        yield option(name)
    for name in _SECRETS:
        yield option(name, secret=True)
    for name, choices in _CHOICES.items():
        yield option(name, choices=choices)
    for name in _NUMBERS:
        yield option(name, "int", minimum=0, maximum=2**31 - 1)


ALLOWED: Mapping[str, Setting] = {setting.name: setting for setting in _settings()}
"""The properties that a table may have, in addition to the servers."""


def client_properties(table: Table) -> Mapping[str, str]:
    """Return the properties of a checked table under the client's names, with unresolved secrets."""
    return {key.removeprefix(PROPERTY): value for key, value in table.options.items() if key.startswith(PROPERTY)}


def servers(text: str) -> tuple[HostPlace, ...]:
    """Return the servers of ``host:port,host:port``. Raise ValueError for any other text."""
    places = []
    for server in filter(None, (part.strip() for part in text.split(","))):
        match = _SERVER.fullmatch(server)
        if match is None or not 1 <= int(match["port"]) <= 65535:
            raise ValueError(f"{server!r} is not of the form host:port")
        places.append(HostPlace(SERVERS, match["host"].strip("[]").lower(), int(match["port"]), _PORT))
    if not places:
        raise ValueError("there is no server")
    return tuple(places)


def places_of_servers(table: Table) -> Iterator[Place]:
    """Yield the servers of a checked table, and the certificate files of its properties."""
    yield from servers(table.options[SERVERS])
    for name in _FILES:
        if (path := table.options.get(PROPERTY + name)) is not None:
            yield local_file(PROPERTY + name, path)


def check_properties(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of the properties of ``table``."""
    if (text := table.options.get(SERVERS)) is not None:
        if "${" in text:
            problem = "the environment must not set the servers of a table"
            yield Diagnostic(message=problem, hint="write host:port", path=f"{path}.{SERVERS}")
        else:
            try:
                servers(text)
            except ValueError as error:
                hint = f"write '{SERVERS}' = 'host:9092', with commas between several"
                yield Diagnostic(message=f"'{SERVERS}': {error}", hint=hint, path=f"{path}.{SERVERS}")
    for name, value in client_properties(table).items():
        key = PROPERTY + name
        if key == SERVERS:
            continue
        setting = ALLOWED.get(name)
        if setting is None:
            yield _refused(name, f"{path}.{key}")
        elif problem_and_hint := bad_value(replace(setting, name=key), value):
            message, hint = problem_and_hint
            advice = _VALUES.get((name, value), hint)
            if name == _JAAS:
                advice = (
                    f"write '${{env:KAFKA_JAAS}}', and put the whole line into KAFKA_JAAS, which {_ALLOWS} KAFKA_JAAS"
                )
            yield Diagnostic(message=message, hint=advice, path=f"{path}.{key}")


def _refused(name: str, path: str) -> Diagnostic:
    if name in _REASONS:
        return Diagnostic(message=f"the property {name!r} cannot be set: {_REASONS[name]}", hint="remove it", path=path)
    if _LOADS.search(name):
        message = (
            f"the property {name!r} is refused, because a plan must not choose the classes that a client loads or "
            f"the servers that it contacts"
        )
        return Diagnostic(message=message, hint=_INSTEAD.get(name, "remove it"), path=path)
    close = None if name in _INSTEAD else nearest(name, tuple(ALLOWED))
    hint = f"did you mean '{PROPERTY}{close}'?" if close else _INSTEAD.get(name, _LISTED)
    return Diagnostic(message=f"the property {name!r} is not one that a plan may set", hint=hint, path=path)
