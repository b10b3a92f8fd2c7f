"""Secrets of the environment and of scripts: every command that reads plans, every option that may hold one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import hintplan
from hintplan.plans.commands.root import root
from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.connector import LookedUp, Readable
from hintplan.plans.connectors.messages.format_options import OF_REGISTRY
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.declarations.tables import Table, TableColumn

pytestmark = pytest.mark.usefixtures("worded_for_commands")

CANARY = "canary-hunter2-7f3a"
COLUMNS = (TableColumn(name="k", type="BIGINT"), TableColumn(name="v", type="STRING"))
ORDERS = """
CREATE TABLE orders (k BIGINT, proc_time AS PROCTIME()) WITH (
  'connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');
CREATE TABLE result (k BIGINT, v STRING) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO result SELECT o.k, d.v FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.k = d.k;"
BASES = {
    "delta": {
        "table-path": "s3://lake/d", "s3.access-key-id": "${env:CANARY}", "s3.secret-access-key": "${env:CANARY}",
    },
    "iceberg": {
        "catalog-name": "c", "catalog-type": "rest", "uri": "http://localhost:1", "catalog-database": "d",
        "catalog-table": "d", "location": "s3://lake/d", "s3.access-key-id": "${env:CANARY}",
        "s3.secret-access-key": "${env:CANARY}",
    },
    "jdbc": {"url": "jdbc:postgresql://localhost/shop", "table-name": "d"},
    "redis": {"host": "localhost", "key-pattern": "{k}"},
    "http": {"url": "http://localhost/{k}"},
    "python": {"class": "shop.Rates"},
    "kafka": {
        "properties.bootstrap.servers": "localhost:9092", "topic": "t", "format": "avro-confluent",
        "avro-confluent.url": "http://localhost:8081", "scan.startup.mode": "earliest-offset",
    },
    "upsert-kafka": {
        "properties.bootstrap.servers": "localhost:9092", "topic": "t", "key.format": "json", "value.format": "json",
    },
}  # fmt: skip
OF_FORMATS = ("key.", "value.")
"""Families of options that no reference may stand in."""
OF_S3 = ("s3.secret-access-key", "s3.session-token")
OF_CATALOGS = ("credential", "token")
MAY_HOLD = [
    *(("delta", option, "{}") for option in ("s3.access-key-id", *OF_S3)),
    *(("iceberg", option, "{}") for option in ("s3.access-key-id", *OF_S3, *OF_CATALOGS)),
    *(("jdbc", option, "{}") for option in ("username", "password")),
    ("jdbc", "url", "jdbc:postgresql://localhost:{}/shop"),
    *(("redis", option, "{}") for option in ("username", "password")),
    ("redis", "key-pattern", "{}:{{k}}"),
    ("http", "url", "http://localhost/{{k}}?token={}"),
    *(("http", option, "{}") for option in ("authorization", "header.X-Api-Key", "header.X-Client")),
    ("python", "properties.token", "{}"),
    ("kafka", "properties.sasl.jaas.config", "{}"),
    *(
        ("kafka", f"{format_}.{option}", "{}")
        for format_ in OF_REGISTRY
        for option in ("basic-auth.user-info", "bearer-auth.token")
    ),
    ("upsert-kafka", "properties.ssl.key.password", "{}"),
]
COMMANDS = [
    ["compile", "job.sql"],
    ["validate", "plan.json"],
    ["explain", "plan.json"],
    ["explain", "plan.json", "--json"],
    *(["show", "plan.json", "--format", layout] for layout in ("svg", "mermaid", "dot", "tree")),
    ["show", "plan.json", "-o", "page.html"],
    *(["diff", "other.json", "plan.json", "--format", layout] for layout in ("text", "markdown", "json", "html",
                                                                            "github", "sarif", "junit")),
    ["flat", "plan.json"],
    ["fmt", "--diff", "plan.json"],
    ["lint", "plan.json"],
    ["why", "plan.json", "lookup_d.async.timeout"],
    ["set", "plan.json", "name=other"],
    ["rebase", "other.json", "--onto", "plan.json"],
    ["merge", "other.json", "other.json", "plan.json"],
    ["check", "plan.json", "--checkpoint", "none"],
]  # fmt: skip


def run(*words: str) -> Result:
    return CliRunner().invoke(root, list(words), catch_exceptions=True)


def base_of(connector: str, option: str) -> dict[str, str]:
    """The options of a table that may have ``option``, which a format may be asked for."""
    base = BASES[connector]
    if (format_ := option.partition(".")[0]) not in OF_REGISTRY:
        return base
    others = {name: value for name, value in base.items() if name not in ("format", "avro-confluent.url")}
    return {**others, "format": format_, f"{format_}.url": "http://localhost:8081"}


def written(options: dict[str, str]) -> str:
    body = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    key = ", PRIMARY KEY (k) NOT ENFORCED" if options["connector"] == "upsert-kafka" else ""
    connector = CONNECTORS[options["connector"]]
    query = QUERY if isinstance(connector, LookedUp) else "INSERT INTO result SELECT k, v FROM d;"
    reads = isinstance(connector, Readable) and connector.in_streams
    query = query if isinstance(connector, LookedUp) or reads else "INSERT INTO d SELECT k, 'x' FROM orders;"
    return f"{ORDERS}CREATE TABLE d (k BIGINT, v STRING{key}) WITH ({body});\n{query}"


def test_every_option_that_may_refer_to_the_environment_is_tried() -> None:
    open_to = {
        (name, option.name)
        for name, spec in CONNECTORS.items()
        for option in spec.options
        if (option.environment or option.secret)
    }
    families = {(name, family) for name, spec in CONNECTORS.items() for family in spec.families}
    families = {(name, family) for name, family in families if family not in OF_FORMATS}
    tried = {(name, option) for name, option, _ in MAY_HOLD}
    in_families = {(name, option.partition(".")[0] + ".") for name, option in tried if "." in option}
    assert {
        (name, option) for name, option in tried if (name, option.partition(".")[0] + ".") not in families
    } == open_to
    assert in_families & families == families


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CANARY", CANARY)
    return tmp_path


@pytest.mark.parametrize(("connector", "option", "pattern"), MAY_HOLD, ids=lambda value: value)
def test_no_command_shows_what_the_environment_says(project: Path, connector: str, option: str, pattern: str) -> None:
    options = {"connector": connector, **base_of(connector, option)}
    (project / "job.sql").write_text(written(options))
    assert run("compile", "job.sql", "-o", "other.json").exit_code == 0
    (project / "job.sql").write_text(written({**options, option: pattern.format("${env:CANARY}")}))
    done = run("compile", "job.sql", "-o", "plan.json")
    assert done.exit_code == 0, done.output
    for words in COMMANDS:
        if words[0] == "why" and not isinstance(CONNECTORS[connector], LookedUp):
            words = [*words[:2], f"tables.d.options.{option}"]
        done = run(*words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
        assert CANARY not in done.output, words
    for file in project.iterdir():
        assert CANARY not in file.read_text(), file
    refused = run("run", "plan.json", "--once")
    assert refused.exit_code == 1 or refused.exception is not None
    assert "--allow-env CANARY" in str(refused.exception) + refused.output
    assert CANARY not in str(refused.exception) + refused.output


SECRETS = [*(("delta", option) for option in OF_S3),
           *(("iceberg", option) for option in (*OF_S3, *OF_CATALOGS)),
           ("jdbc", "password"), ("redis", "password"), ("http", "authorization"), ("http", "header.X-Api-Key"),
           ("python", "properties.token"), ("kafka", "properties.sasl.jaas.config"),
           *(("kafka", f"{format_}.{option}") for format_ in OF_REGISTRY
             for option in ("basic-auth.user-info", "bearer-auth.token")),
           ("upsert-kafka", "properties.ssl.truststore.password")]  # fmt: skip


@pytest.mark.parametrize(("connector", "option"), SECRETS)
def test_no_command_shows_a_secret_that_was_written_out(project: Path, connector: str, option: str) -> None:
    options = {"connector": connector, **base_of(connector, option)}
    (project / "job.sql").write_text(written(options))
    assert run("compile", "job.sql", "-o", "other.json").exit_code == 0
    shutil.copy("other.json", "plan.json")
    (project / "job.sql").write_text(written({**options, option: CANARY}))
    text = Path("plan.json").read_text().replace(f'"connector": "{connector}"', f'"connector": "{connector}",\n'
                                                 f'        "{option}": "{CANARY}"')  # fmt: skip
    (project / "plan.json").write_text(text)
    with pytest.raises(hintplan.PlanError):
        hintplan.load("plan.json", allow_fact_edits=True)
    for words in COMMANDS:
        done = run(*words)
        assert CANARY not in done.output + str(done.exception), words
    assert not any(CANARY in file.read_text() for file in project.glob("*.html"))


def test_secrets_have_a_place_in_the_list_of_those_that_are_written_out() -> None:
    known = {(name, option.name) for name, spec in CONNECTORS.items() for option in spec.options if option.secret}
    assert known <= set(SECRETS)
    for connector, option in SECRETS:
        options = {"connector": connector, **BASES[connector], option: CANARY}
        problems = check_table("d", Table(columns=COLUMNS, options=options))
        assert problems
        assert not any(CANARY in str(problem) for problem in problems)
