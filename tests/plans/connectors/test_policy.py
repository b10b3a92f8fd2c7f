"""What a run may reach: every connector, every kind of place, by flags and by the policy file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.policy import KEYS, OPEN, Policy, policy_for, read_policy, refuse_reach
from hintplan.plans.connectors.table import CONNECTORS, places
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import PlanError, RunError

pytestmark = pytest.mark.usefixtures("worded_for_commands")

COLUMNS = (TableColumn(name="k", type="STRING"), TableColumn(name="v", type="STRING"))


def files(path: str) -> dict[str, str]:
    return {"connector": "filesystem", "format": "json", "path": path}


def postgres(address: str, **more: str) -> dict[str, str]:
    return {"connector": "jdbc", "url": f"jdbc:postgresql://{address}", "table-name": "t", **more}


def redis(host: str, **more: str) -> dict[str, str]:
    return {"connector": "redis", "host": host, "key-pattern": "{k}", **more}


def http(address: str, **more: str) -> dict[str, str]:
    return {"connector": "http", "url": f"{address}/{{k}}", **more}


def kafka(servers: str, **more: str) -> dict[str, str]:
    return {"connector": "kafka", "properties.bootstrap.servers": servers, "topic": "t", "format": "json", **more}


def upsert_kafka(servers: str) -> dict[str, str]:
    formats = {"key.format": "json", "value.format": "json"}
    return {"connector": "upsert-kafka", "properties.bootstrap.servers": servers, "topic": "t", **formats}


def sqlite(path: str) -> dict[str, str]:
    return {"connector": "jdbc", "url": f"jdbc:sqlite:{path}", "table-name": "t"}


def delta(path: str, **more: str) -> dict[str, str]:
    return {"connector": "delta", "table-path": path, **more}


def iceberg(uri: str, place: str, **more: str) -> dict[str, str]:
    names = {"catalog-name": "c", "catalog-database": "d", "catalog-table": "t"}
    kind = "jdbc" if uri.startswith("jdbc:") else "rest"
    return {"connector": "iceberg", **names, "catalog-type": kind, "uri": uri, "location": place, **more}


OPEN_PLACES = [
    iceberg("jdbc:sqlite:c.db", "data/t"),
    iceberg("http://localhost:8181", "/data/t"),
    delta("data/t"),
    delta("file:///data/t"),
    files("data/in"),
    files("/data/in"),
    files("file:///data/in"),
    files("/data/a:b"),
    sqlite("out.db"),
    sqlite("webhdfs://host/out.db"),  # a file in a directory of that name
    postgres("localhost/shop"),
    postgres("127.0.0.1:5433/shop?sslrootcert=/etc/ca.pem"),
    postgres("[::1]:5433/shop"),
    redis("127.0.0.1"),
    redis("::1"),
    http("http://localhost:8080"),
    http("https://127.8.9.1"),
    kafka("localhost:9092, 127.0.0.1:9093"),
    kafka("[::1]:9092", **{"properties.ssl.truststore.location": "/etc/trust.jks"}),
    upsert_kafka("localhost:9092"),
    {"connector": "print"},
    {"connector": "dataframe"},
    {"connector": "blackhole"},
    {"connector": "datagen"},
    {"connector": "python", "class": "shop.Rates"},
]

CLOSED_PLACES = [
    (iceberg("jdbc:sqlite:c.db", "s3://lake/t"), "--allow-scheme s3://lake"),
    (iceberg("https://catalog.example.com", "t"), "--allow-host catalog.example.com"),
    (
        iceberg("http://localhost", "t", **{"oauth2-server-uri": "https://login.example.com/t"}),
        "--allow-host login.example.com",
    ),
    (delta("s3://lake/t"), "--allow-scheme s3://lake"),
    (delta("s3a://lake/t"), "--allow-scheme s3a://lake"),
    (files("webhdfs://host:9870/x"), "--allow-scheme webhdfs://host:9870"),
    (files("WEBHDFS://host/x"), "--allow-scheme webhdfs://host"),
    (files("ftp://host/x"), "--allow-scheme ftp://host"),
    (files("hdfs:///x"), "--allow-scheme hdfs"),
    (files("hdfs:/x"), "--allow-scheme hdfs"),
    (files("s3a://lake/x/y"), "--allow-scheme s3a://lake"),
    (files("http://127.0.0.1/x"), "--allow-scheme http://127.0.0.1"),
    (files("file://host/x"), "--allow-scheme file://host"),
    (postgres("db.example.com/shop"), "--allow-host db.example.com"),
    (postgres("DB.example.com:5432/shop"), "--allow-host db.example.com"),
    (postgres("db.example.com:5433/shop"), "--allow-host db.example.com:5433"),
    (postgres("[fd00::1]:5433/shop"), "--allow-host [fd00::1]:5433"),
    (postgres("2130706433/shop"), "--allow-host 2130706433"),
    (redis("cache.example.com"), "--allow-host cache.example.com"),
    (redis("cache.example.com", port="6380"), "--allow-host cache.example.com:6380"),
    (http("https://rates.example.com"), "--allow-host rates.example.com"),
    (http("https://rates.example.com:8443"), "--allow-host rates.example.com:8443"),
    (http("http://rates.example.com"), "--allow-host http://rates.example.com"),
    (http("http://0x7f000001"), "--allow-host http://0x7f000001"),
    (http("http://127.0.0.1.example.com"), "--allow-host http://127.0.0.1.example.com"),
    (kafka("localhost:9092,kafka.example.com:9092"), "--allow-host kafka.example.com"),
    (upsert_kafka("kafka.example.com:9093"), "--allow-host kafka.example.com:9093"),
    (
        kafka("localhost:9092", **{"format": "avro-confluent", "avro-confluent.url": "https://registry.example.com"}),
        "--allow-host registry.example.com",
    ),
    (
        kafka(
            "localhost:9092",
            **{
                "key.fields": "k",
                "key.format": "avro-confluent",
                "key.avro-confluent.url": "http://keys.example.com:8081",
            },
        ),
        "--allow-host http://keys.example.com:8081",
    ),
]


def table(options: dict[str, str]) -> Table:
    found = Table(
        columns=COLUMNS, options=options, primary_key=("k",) if options["connector"] == "upsert-kafka" else ()
    )
    assert [str(problem) for problem in check_table("t", found)] == []
    return found


def refusal(options: dict[str, str], policy: Policy, checkpoint: str | None = None) -> str:
    try:
        refuse_reach({"t": table(options)}, policy, checkpoint)
    except RunError as error:
        return str(error)
    return ""


def flagged(flag: str) -> Policy:
    """The policy of one flag as it is typed."""
    name, value = flag.removeprefix("--").split(" ")
    return policy_for(None, {KEYS[name]: (value,)})


def test_every_connector_is_in_the_matrix() -> None:
    tried = {options["connector"] for options in OPEN_PLACES} | {options["connector"] for options, _ in CLOSED_PLACES}
    assert tried == set(CONNECTORS)


@pytest.mark.parametrize("options", OPEN_PLACES, ids=lambda options: str([*options.values()][1:2]))
def test_local_files_and_this_machine_are_open(options: dict[str, str]) -> None:
    assert refusal(options, OPEN) == ""


@pytest.mark.parametrize(("options", "flag"), CLOSED_PLACES, ids=lambda value: value if isinstance(value, str) else "")
def test_other_places_are_refused_with_the_flag_that_allows_exactly_them(
    options: dict[str, str], flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"hint: whoever starts the run can allow it: {flag}" in refusal(options, OPEN).splitlines()[1]
    assert refusal(options, flagged(flag)) == ""
    for other in {each for _, each in CLOSED_PLACES} - {flag}:
        # A scheme without a bucket or server allows all of them.
        if not place_of(flag).startswith(f"{place_of(other)}://"):
            assert refusal(options, flagged(other)) != "", other


def place_of(flag: str) -> str:
    return flag.partition(" ")[2]


def test_plain_http_is_not_what_a_host_without_scheme_allows() -> None:
    host = Policy(hosts=("rates.example.com", "https://rates.example.com"))
    assert "--allow-host http://rates.example.com" in refusal(http("http://rates.example.com"), host)
    assert refusal(http("https://rates.example.com"), Policy(hosts=("http://rates.example.com",)))
    assert refusal(http("https://rates.example.com"), Policy(hosts=("https://rates.example.com",))) == ""


def test_the_file_system_of_the_checkpoint_is_open_and_no_other_of_its_scheme() -> None:
    assert refusal(files("s3a://lake/in"), OPEN, "s3a://lake/checkpoints/1") == ""
    assert "--allow-scheme s3a://pond" in refusal(files("s3a://pond/in"), OPEN, "s3a://lake/checkpoints/1")
    assert "--allow-scheme hdfs://lake" in refusal(files("hdfs://lake/in"), OPEN, "s3a://lake/checkpoints/1")


def test_schemes_are_told_from_each_other_without_case() -> None:
    for allowed in ("S3A", "s3a:", "S3A://lake", "s3a://lake/"):
        assert refusal(files("s3a://lake/in"), Policy(schemes=(allowed,))) == ""
    assert refusal(files("s3a://lake/in"), Policy(schemes=("s3a://LAKE", "s3", "s3a://lak")))


@pytest.mark.parametrize("write", [files, lambda path: files(f"file://{path}"), sqlite], ids=["path", "file", "sqlite"])
def test_allowed_paths_narrow_local_files(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "data" / "out").symlink_to(tmp_path)
    policy = Policy(paths=(str(tmp_path / "data"),))
    for good in ("data/in", "data/none", "data/in/../in"):
        assert refusal(write(f"{tmp_path}/{good}"), policy) == ""
    for bad in ("", "data2", "data/../data2", "data/out", "data/out/x"):
        where = f"{tmp_path}/{bad}"
        assert f"--allow-path {os.path.realpath(where)}" in refusal(write(where), policy)


def test_the_certificates_of_a_connection_are_a_local_file_too(tmp_path: Path) -> None:
    options = postgres("localhost/shop?sslrootcert=/etc/shadow")
    assert "--allow-path /etc/shadow" in refusal(options, Policy(paths=(str(tmp_path),)))


@pytest.mark.parametrize(
    "options",
    [
        postgres("localhost:${env:SECRET}/shop"),
        postgres("localhost/shop", username="${env:SECRET}"),
        postgres("localhost/shop", password="${env:SECRET}"),
        redis("localhost", password="${env:SECRET}"),
        redis("localhost") | {"key-pattern": "${env:SECRET}:{k}"},
        http("http://localhost/${env:SECRET}"),
        http("http://localhost", authorization="${env:SECRET}"),
        http("http://localhost") | {"header.X-Key": "${env:SECRET}"},
        {"connector": "python", "class": "shop.Rates", "properties.token": "${env:SECRET}"},
    ],
    ids=lambda options: f"{options['connector']} {[k for k, v in options.items() if '$' in v]}",
)
def test_variables_of_the_environment_are_read_if_they_are_allowed(options: dict[str, str]) -> None:
    said = refusal(options, Policy(environment=("SECRETS", "OTHER")))
    assert "the run may not read the environment variable SECRET\n" in said
    assert "--allow-env SECRET" in said
    assert refusal(options, Policy(environment=("SECRET",))) == ""


def test_a_port_from_the_environment_is_for_this_machine_only() -> None:
    allowed = Policy(environment=("PORT",), hosts=("db.example.com",))
    assert "write the port itself" in refusal(postgres("db.example.com:${env:PORT}/shop"), allowed)


@pytest.mark.parametrize(
    "options",
    [
        files("/data/${env:TOKEN}"),
        files("webhdfs://host/x/${env:TOKEN}"),
        files("/data") | {"json.ignore-parse-errors": "${env:TOKEN}"},
        files("/data") | {"format": "csv", "csv.null-literal": "${env:TOKEN}"},
        sqlite("${env:TOKEN}.db"),
        sqlite("x.db") | {"table-name": "${env:TOKEN}"},
        postgres("${env:TOKEN}/shop"),
        postgres("x.${env:TOKEN}:5432/shop"),
        postgres("localhost/${env:TOKEN}"),
        postgres("localhost/shop?application_name=${env:TOKEN}"),
        postgres("localhost/shop") | {"table-name": "${env:TOKEN}"},
        redis("${env:TOKEN}"),
        http("https://${env:TOKEN}"),
        http("https://${env:TOKEN}.example.com"),
        http("https://example.com:${env:TOKEN}"),
        http("${env:TOKEN}://example.com"),
        {"connector": "print", "print-identifier": "${env:TOKEN}"},
        {"connector": "python", "class": "${env:TOKEN}"},
    ],
    ids=lambda options: f"{[v for v in options.values() if '$' in v]}",
)
def test_the_environment_says_no_place_and_nothing_that_is_shown(options: dict[str, str]) -> None:
    (problem, *_) = check_table("t", Table(columns=COLUMNS, options=options))
    assert re.search("environment|expected|host", problem.message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (files("ftp://me:pw@host/x"), "a path must not contain a user"),
        (files("s3a://KEY:SECRET@lake/x"), "a path must not contain a user"),
        (files("s3://lake/x?endpoint_override=evil.example"), "parameters do not belong into the path"),
    ],
)
def test_paths_hold_no_credentials_and_no_other_address(options: dict[str, str], message: str) -> None:
    assert any(message in problem.message for problem in check_table("t", Table(columns=COLUMNS, options=options)))


def test_a_host_of_several_tables_is_refused_once() -> None:
    tables = {name: table(redis("far")) for name in ("a", "b", "c")}
    with pytest.raises(RunError) as caught:
        refuse_reach(tables, OPEN)
    (problem,) = caught.value.diagnostics
    assert problem.path == "tables.a.options.host"
    assert problem.message.endswith("(also for 2 other options)")
    assert "--allow-host far" in (problem.hint or "")


def test_all_refusals_are_told_at_once() -> None:
    tables = {"a": table(files("ftp://host/x")), "b": table(redis("far", password="${env:PW}"))}
    with pytest.raises(RunError) as caught:
        refuse_reach(tables, OPEN)
    assert [problem.path for problem in caught.value.diagnostics] == [
        "tables.a.options.path",
        "tables.b.options.host",
        "tables.b.options.password",
    ]


def test_a_policy_file_says_the_same_as_flags_and_flags_add_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert policy_for(None, {}) == OPEN
    file = tmp_path / "hintplan.toml"
    file.write_text(
        '[run]\nallow-scheme = ["s3a://lake"]\nallow-host = ["db.example.com"]\nallow-env = ["PW"]\n'
        'allow-path = ["data"]\nallow-module = ["shop"]\n[[lint.ignore]]\nrule = "HP201"\nreason = "few"\n'
    )
    wanted = Policy(
        schemes=("s3a://lake",),
        hosts=("db.example.com",),
        environment=("PW",),
        paths=(str(tmp_path / "data"),),
        modules=("shop",),
    )
    assert policy_for(None, {}) == read_policy(file) == wanted
    assert policy_for(None, {"hosts": ("other",)}).hosts == ("db.example.com", "other")
    monkeypatch.chdir("/")
    assert policy_for(None, {}) == OPEN
    assert policy_for(str(file), {}) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\nallow-hots = []", "unknown key 'run.allow-hots'\n  hint: did you mean 'allow-host'?"),
        ('[run]\nallow-host = "x"', "'run.allow-host' must be a list of strings"),
        ('[run]\nallow-host = ["https://x/y"]', "'https://x/y' is no host"),
        ('[run]\nallow-host = ["ftp://x"]', "'ftp://x' is no host"),
        ('[run]\nallow-scheme = ["s3a://x/y"]', "'s3a://x/y' is no scheme"),
        ('[run]\nallow-env = [""]', "a value is empty"),
        ("run = 1", "'run' must be a table"),
        ("[run", "not valid TOML"),
    ],
)
def test_a_wrong_policy_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "hintplan.toml"
    file.write_text(text)
    with pytest.raises(PlanError) as caught:
        read_policy(file)
    assert message in str(caught.value)


def test_places_of_a_table_are_what_its_connector_says() -> None:
    assert [str(place) for place in places(table(postgres("db:5433/shop?sslrootcert=/ca.pem")))] == ["db:5433", ""]
    assert places(table({"connector": "print"})) == ()


LINKED = {
    "filesystem": (files("data"), "data"),
    "filesystem by a url": (files("file://{}/data"), "data"),
    "delta": (delta("data"), "data"),
    "iceberg": (iceberg("jdbc:sqlite:c.db", "data"), "data"),
}


@pytest.mark.parametrize("kind", ["file", "directory", "nothing", "upwards"])
@pytest.mark.parametrize("below", ["", "day=1/hour=2"])
@pytest.mark.parametrize("connector", LINKED)
def test_a_link_in_the_directory_of_a_table_must_lead_to_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connector: str, below: str, kind: str
) -> None:
    here, outside = tmp_path / "here", tmp_path / "outside"
    (here / "data" / below).mkdir(parents=True)
    (outside / "folder").mkdir(parents=True)
    (outside / "secret.json").write_text("{}")
    monkeypatch.chdir(here)
    options = {name: value.format(here) for name, value in LINKED[connector][0].items()}
    tables = {"t": Table(columns=COLUMNS, options=options)}
    inside = here / "data" / "plain.json"
    inside.write_text("{}")
    (here / "data" / below / "good").symlink_to(inside)
    (here / "data" / below / "round").symlink_to(here / "data")
    refuse_reach(tables, Policy(paths=(str(here),)))
    link = here / "data" / below / "2.json"
    targets = {"file": outside / "secret.json", "directory": outside / "folder", "nothing": outside / "none"}
    link.symlink_to(targets.get(kind, Path(os.path.relpath(outside / "secret.json", link.parent))))
    refuse_reach(tables, OPEN)
    refuse_reach(tables, Policy(paths=(str(here), str(outside))))
    with pytest.raises(RunError, match=r"may not reach .*2\.json") as caught:
        refuse_reach(tables, Policy(paths=(str(here),)))
    assert f"--allow-path {os.path.realpath(link)}" in str(caught.value)


def test_a_directory_with_many_links_is_told_by_some(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(50):
        (tmp_path / "data" / str(number)).symlink_to("/etc/hostname")
    tables = {"t": Table(columns=COLUMNS, options=files(str(tmp_path / "data")))}
    with pytest.raises(RunError) as caught:
        refuse_reach(tables, Policy(paths=(str(tmp_path),)))
    assert len(caught.value.diagnostics) == 10
