"""The documentation says what the code does: names are complete, commands parse, excerpts and outputs are current."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import hintplan
from hintplan import compile_sql
from hintplan.planner.expressions import scalars
from hintplan.planner.translation import aggregates
from hintplan.plans.commands.root import COMMANDS, root
from hintplan.plans.connectors.connector import COLUMN_OPTIONS, Readable, Writable
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS
from hintplan.plans.edit.edit import set_value
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.config import canonical_key, known_keys
from hintplan.plans.operators import BY_OP as OPS
from hintplan.plans.settings.cached import STORAGE_LEVELS
from hintplan.plans.settings.calls import CALL_KINDS, CONFIG_SYNONYMS, call_groups
from hintplan.plans.settings.flink_keys import refused_key, why_idle
from hintplan.plans.settings.lookup import SETTINGS
from hintplan.plans.settings.setting import value_text as written
from hintplan.plans.show.explain import plan_tree
from tests.docs import commands_page, metrics_page
from tests.docs.site import documents
from tests.planner import declared
from tests.plans.in_process import hintplan as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
FLIGHTS = "examples/flights/README.md"
PAGES = (
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *documents(),
    *sorted((ROOT / "examples").glob("*/README.md")),
)


PAGE_NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


def text(name: str) -> str:
    """The text of a page, or of all pages of a folder."""
    path = ROOT / name
    pages = sorted(path.glob("*.md")) if path.is_dir() else [path]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def lacking(names: Iterator[str] | tuple[str, ...] | list[str], page: str) -> list[str]:
    """The names that do not stand in code on ``page``, as a word of their own."""
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text(page), re.DOTALL))
    return [name for name in names if not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", code)]


def commands() -> dict[str, click.Command]:
    context = click.Context(root)
    found = {name: root.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def sessions(page: str) -> Iterator[tuple[str, str]]:
    """Each command line of the console blocks on ``page``, with the output that stands below it."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.replace("\\\n", "").partition("\n")
            yield re.sub(" +", " ", line), output.rstrip("\n")


def command_lines() -> list[str]:
    """Every ``hintplan ...`` that a reader could copy."""
    found = [line for page in PAGES for line, _ in sessions(str(page.relative_to(ROOT)))]
    helped = (line for block in blocks("docs/commands", "text") for line in block.splitlines())
    found += [part for line in helped if not re.search(r"\[OPTIONS\]|\w\|\w", line) for part in line.split(" && ")]
    inline = (code for page in PAGES for code in re.findall(r"`(hintplan [^`\n]+)`", page.read_text(encoding="utf-8")))
    # Words in capitals stand for something: they show a form, not a command.
    found += [code for code in inline if not re.search(r"\b[A-Z]{3,}\b", code)]
    return list(dict.fromkeys(line for line in found if line.startswith("hintplan ")))


def test_the_pages_of_commands_are_what_they_say_of_themselves() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in commands_page.FOLDER.iterdir()}
    assert pages == commands_page.pages(), "run python -m tests.docs.commands_page"


def test_every_command_is_on_one_page() -> None:
    named = [name for group in commands_page.GROUPS.values() for name in group.commands]
    assert sorted(named) == sorted(COMMANDS)


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    assert text("docs/metrics.md") == metrics_page.page(), "run python -m tests.docs.metrics_page"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_stands_in_its_section(name: str) -> None:
    (section,) = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", text("docs/commands"), re.MULTILINE | re.DOTALL)
    options = [p for p in commands()[name].params if isinstance(p, click.Option) and p.name != "debug"]
    flags = [flag for option in options for flag in (*option.opts, *option.secondary_opts)]
    assert [flag for flag in flags if f"`{flag}`" not in section] == []
    assert all(option.help or option.show_default for option in options)


def test_the_pages_of_commands_do_not_depend_on_the_terminal() -> None:
    narrow = {**os.environ, "COLUMNS": "40", "TERM": "dumb", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    shown = "from tests.docs.commands_page import pages; print('\\n'.join(pages().values()), end='')"
    done = subprocess.run([sys.executable, "-c", shown], env=narrow, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode() == "\n".join(commands_page.pages().values())


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_parses(line: str) -> None:
    words = shlex.split(line)[1:]
    if words[0].startswith("--"):
        assert words[0] in ["--help", *(flag for p in root.params for flag in p.opts)]
        return
    command = commands()[words[0]]
    try:
        command.make_context(words[0], words[1:])
    except click.MissingParameter:
        # Prose may name a command, or one of its options, without its arguments.
        assert line not in [copied for page in ("README.md", FLIGHTS) for copied, _ in sessions(page)]


def test_every_configuration_key_is_documented() -> None:
    assert lacking(known_keys(), "docs/plan-format") == []


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_connector_option_and_its_default_is_documented(name: str) -> None:
    page = text(f"docs/connectors/{name}.md") + (text("docs/connectors/kafka-formats.md") if name == "kafka" else "")
    rows = {m[1]: m[2].strip() for m in re.finditer(r"^\| `([^`:]+)` \|([^|]*)\|", page, re.MULTILINE)}
    spec = CONNECTORS[name]
    for option in spec.options:
        assert option.name in rows
        if option.required:
            assert rows[option.name] == "required"
        elif option.default is not None:
            assert rows[option.name] == f"`{option.default}`"
        for choice in option.choices:
            assert f"`{choice}`" in page
    fields = {f"{COLUMN_OPTIONS}<column>.{option.name}" for option in spec.column_options}
    fields |= {f"{family}<name>" for family in spec.families}
    documented = {row for row in rows if "." in row or row in {o.name for o in spec.options}}
    assert documented == {o.name for o in spec.options} | fields


def test_what_connectors_read_and_write_is_documented() -> None:
    rows = re.findall(
        r"^\| \[`([\w-]+)`\]\(\1\.md\) \| (yes)? ?\| (yes)? ?\|", text("docs/connectors/index.md"), re.MULTILINE
    )
    documented = {name: (bool(reads), bool(writes)) for name, reads, writes in rows}
    assert documented == {
        name: (isinstance(spec, Readable), isinstance(spec, Writable)) for name, spec in CONNECTORS.items()
    }


@pytest.mark.parametrize("op", OPS)
def test_every_operator_kind_has_a_section_with_an_excerpt(op: str) -> None:
    section = re.search(rf"^### {op}\n\n```json\n(.*?)```", text("docs/plan-format"), re.MULTILINE | re.DOTALL)
    assert section is not None
    assert json.loads(section[1])["op"] == op


def schema_keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from schema_keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from schema_keys(value)


def test_every_key_of_the_schema_is_documented() -> None:
    keys = sorted(set(schema_keys(json.loads(schema_text()))))
    assert "join-type" in keys
    page = text("docs/plan-format")
    assert [key for key in keys if f'"{key}":' not in page and f"`{key}`" not in page] == []
    assert lacking(keys, "docs/plan-format") == []


def test_every_function_is_documented() -> None:
    undocumented = lacking(sorted({*scalars.known_functions(), *aggregates.NAMES}), "docs/functions")
    assert undocumented == [], f"write a row for each of {undocumented} in docs/functions/"
    unlisted = lacking(sorted(ALLOWED_FUNCTIONS), "docs/plan-format/expressions.md")
    assert unlisted == [], f"write {unlisted} into the list in docs/plan-format/expressions.md"


def test_the_functions_documented_for_plans_are_those_allowed() -> None:
    lists = re.findall(
        r"^- (?:text|numbers|time|arrays|choice|JSON): ((?:.+\n)+?)(?=-|\n)",
        text("docs/plan-format/expressions.md"),
        re.MULTILINE,
    )
    listed = {name for names in lists for name in re.findall(r"`(\w+)`", names)}
    absent = sorted(listed - ALLOWED_FUNCTIONS)
    assert absent == [], (
        f"add {absent} to plans/declarations/functions.py, or take them out of docs/plan-format/expressions.md"
    )
    assert listed == ALLOWED_FUNCTIONS, f"list {sorted(ALLOWED_FUNCTIONS - listed)} in docs/plan-format/expressions.md"


def test_every_documented_duration_unit_is_one() -> None:
    section = text("docs/plan-format/settings.md").partition("## Durations")[2].partition("In a plan file")[0]
    units = [unit for unit in re.findall(r"`([^`]+)`", section) if unit != "PT1H30M"]
    assert len(units) > 20
    assert all(parse_duration(f"1000000000 {unit}") >= 1000 for unit in units)


def test_the_whole_plan_is_what_its_sql_compiles_to() -> None:
    (sql,) = blocks("docs/plan-format/example.md", "sql")
    (whole,) = blocks("docs/plan-format/example.md", "json")
    assert whole == hintplan.dumps(compile_sql(sql)).decode()
    assert hintplan.dumps(hintplan.loads(whole)).decode() == whole


def test_the_batch_job_of_the_docs_is_what_its_sql_compiles_to() -> None:
    sql, _ = blocks("docs/batch/index.md", "sql")
    plan = compile_sql(sql)
    assert blocks("docs/batch/index.md", "json")[-1] == hintplan.dumps(plan).decode()
    assert f"```\n{plan_tree(plan)}\n```\n" in text("docs/batch/index.md")


def test_the_trees_of_upserts_are_those_of_their_sql() -> None:
    scripts = blocks("docs/upserts.md", "sql")
    assert len(scripts) == 3
    for sql in scripts:
        tree = plan_tree(compile_sql(sql)).partition("\n\n")[2]
        assert f"```\n{tree}\n```\n" in text("docs/upserts.md")


def test_every_storage_level_is_documented() -> None:
    assert lacking(list(STORAGE_LEVELS), "docs/batch/cached-results.md") == []


def parts_of(value: Any) -> Iterator[Any]:
    yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts_of(child)


def test_the_excerpts_of_the_plan_format_stand_in_the_whole_plan() -> None:
    (whole,) = blocks("docs/plan-format/example.md", "json")
    excerpts = [excerpt for excerpt in blocks("docs/plan-format", "json") if excerpt != whole]
    # What only batch plans have, calls of functions, grouping sets, UNNEST, VALUES, rows that replace each other, and
    # windows stand elsewhere.
    files = (ROOT / "tests" / "plans" / f"{name}_orders.json" for name in ("located", "rolled_up"))
    upserts = (hintplan.dumps(compile_sql(sql)).decode() for sql in blocks("docs/upserts.md", "sql"))
    written = (file.read_text(encoding="utf-8") for file in files)
    (tables,) = blocks("docs/sql/index.md", "sql")
    of_values = (
        hintplan.dumps(compile_sql(f"{tables} INSERT INTO result {query};")).decode()
        for query in documented_queries()
        if "VALUES" in query
    )
    (unnests,) = (sql for sql in blocks("docs/sql/joins.md", "sql") if "UNNEST(tags)" in sql)
    unnested = hintplan.dumps(compile_sql(unnests)).decode()
    over = hintplan.dumps(compile_sql("".join(blocks("docs/batch/index.md", "sql")))).decode()
    windows = (hintplan.dumps(compile_sql(script)).decode() for script in scripts_of_windows())
    in_time = [
        hintplan.dumps(compile_sql(blocks(f"docs/event-time/{page}.md", "sql")[0])).decode()
        for page in ("interval-joins", "temporal-joins", "over")
    ]
    in_time.append(hintplan.dumps(compile_sql(blocks("docs/event-time/first-rows-and-sorting.md", "sql")[1])).decode())
    of_batches = blocks("docs/batch/index.md", "json")[-1]
    known = (whole, of_batches, *written, *upserts, *of_values, unnested, over, *windows, *in_time)
    parts = [part for plan in known for part in parts_of(json.loads(plan))]
    assert len(excerpts) > len(OPS)
    assert [excerpt for excerpt in excerpts if json.loads(excerpt) not in parts] == []


def test_every_edit_on_the_pages_about_plans_is_one() -> None:
    plan = hintplan.loads(blocks("docs/plan-format/example.md", "json")[0])
    timed = compile_sql(scripts_of_windows()[0])
    lines = [line for block in blocks("docs/plan-format", "text") for line in block.splitlines() if "set plan" in line]
    edits = [shlex.split(line)[3].partition("=") for line in lines]
    assert len(edits) > 5
    for path, _, value in edits:
        # The page has the operator of the function from another plan.
        if not path.startswith("correlate_"):
            assert set_value(timed if path.startswith("watermark_") else plan, path, value)[1]


def test_the_documented_refusals_of_hand_edits_are_what_loading_says() -> None:
    whole = json.loads(blocks("docs/plan-format/example.md", "json")[0])
    join = next(i for i, operator in enumerate(whole["operators"]) if operator["op"] == "join")

    def edited(change: Any, *, allow: bool = False) -> str:
        document = json.loads(json.dumps(whole))
        change(document, document["operators"][join])
        with pytest.raises(hintplan.PlanError) as caught:
            hintplan.loads(json.dumps(document), allow_fact_edits=allow)
        return str(caught.value)

    def renamed(entry: dict[str, str], old: str, new: str) -> None:
        entry[new] = entry.pop(old)

    said = {
        "misspelt key": edited(lambda d, j: renamed(j["state"][0], "ttl", "tll")),
        "duration without a unit": edited(lambda d, j: j["state"][0].update(ttl="3")),
        "state entry removed": edited(lambda d, j: j["state"].pop()),
        "state index twice": edited(lambda d, j: j["state"][1].update(index=0)),
        "`config` changed, origins not": edited(lambda d, j: d["config"].update({"table.exec.state.ttl": "2 h"})),
        "any fact changed": edited(lambda d, j: j.update({"join-type": "inner"})),
        "operator added or renamed": edited(lambda d, j: d["digests"]["operators"].pop("sink_report")),
        "operator removed": edited(lambda d, j: d["digests"]["operators"].update(scan_x="0" * 16)),
        "digests removed": edited(lambda d, j: d.pop("digests")),
        "with `--allow-fact-edits`: a key that is no column": edited(
            lambda d, j: j["keys"][0].update(left="custmer"), allow=True
        ),
        "with `--allow-fact-edits`: an input that does not exist": edited(
            lambda d, j: j["inputs"].__setitem__(0, "union_c"), allow=True
        ),
    }
    section = text("docs/plan-format/index.md").partition("## What hand edits are refused")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (`.+`) \|$", section, re.MULTILINE)
    assert {edit for edit, _ in rows} == said.keys()
    for edit, messages in rows:
        for message in re.findall(r"`([^`]+)`", messages):
            assert message in said[edit], edit


# Pages whose first block declares tables, or is a list of queries that have tests of their own.
TESTED_ELSEWHERE = [f"docs/sql/{name}.md" for name in ("index", "joins", "queries", "tables", "types")]


def examples(folder: str) -> list[Any]:
    """The first block of SQL on each page of a folder."""
    pages = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / folder).glob("*.md"))]
    found = {page: blocks(page, "sql") for page in pages}
    return [pytest.param(page, sql[0], id=page) for page, sql in found.items() if sql]


@pytest.mark.parametrize(
    ("page", "sql"), [*examples("docs/functions"), *(e for e in examples("docs/sql") if e.id not in TESTED_ELSEWHERE)]
)
def test_the_example_at_the_top_of_a_page_about_sql_compiles(page: str, sql: str) -> None:
    """All its statements in one script; a query alone makes a table."""
    files = "WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'json')"
    carts = f"CREATE TABLE carts (tags ARRAY<STRING>, prices MAP<STRING, DOUBLE>) {files};"
    events = f"CREATE TABLE events (id BIGINT, doc STRING) {files};"
    (tables,) = blocks("docs/sql/index.md", "sql")
    assert compile_sql(f"{tables}{carts}{events}{with_answers(sql)}").operators, page


def with_answers(sql: str) -> str:
    """The statements of a script, where each query makes a table."""
    statements = [statement.strip() for statement in sql.split(";") if statement.strip()]
    return "".join(
        f"CREATE TABLE answer_{number} WITH ('connector' = 'print') AS {statement};"
        if statement.startswith("SELECT")
        else f"{statement};"
        for number, statement in enumerate(statements)
    )


def scripts_of_windows() -> list[str]:
    """The queries of the pages of windows, with their table."""
    scripts = []
    for page in ("docs/event-time/windows.md", "docs/event-time/processing-time.md"):
        declared, *queries = blocks(page, "sql")
        scripts += [declared + with_answers(query) for query in queries]
    return scripts


@pytest.mark.parametrize("script", scripts_of_windows())
def test_a_script_of_the_page_of_windows_compiles(script: str) -> None:
    assert any(operator.op.startswith("window-") for operator in compile_sql(script).operators)


def test_the_page_of_interval_joins_shows_what_the_commands_print(tmp_path: Path) -> None:
    page = "docs/event-time/interval-joins.md"
    (tmp_path / "orders.sql").write_text(blocks(page, "sql")[0], encoding="utf-8")
    for line, shown in sessions(page):
        assert executed(line, tmp_path) == shown, line


@pytest.mark.parametrize(("page", "sql"), examples("docs/connectors"))
def test_the_example_of_a_connector_compiles(page: str, sql: str) -> None:
    """Each table is written with rows of its own kind if it can be, or else read; lookups have examples elsewhere."""
    for name, rest in re.findall(r"(?s)CREATE TABLE (\w+) (.*?);\n", sql):
        connector = CONNECTORS[re.search(r"'connector' = '([\w-]+)'", rest)[1]]  # type: ignore[index]
        if isinstance(connector, Writable):
            like = f"LIKE {name} (EXCLUDING OPTIONS)"
            rows = f"CREATE TABLE given WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'json') {like};"
            query = f"{rows} INSERT INTO {name} SELECT * FROM given"
        elif isinstance(connector, Readable):
            query = f"CREATE TABLE answer WITH ('connector' = 'print') AS SELECT * FROM {name}"
        else:
            continue
        assert compile_sql(f"CREATE TABLE {name} {rest}; {query};").operators, page


def documented_queries() -> list[str]:
    queries = blocks("docs/sql/queries.md", "sql")[0] + blocks("docs/sql/joins.md", "sql")[0]
    return [query.strip() for query in queries.split(";") if query.strip()]


def refusals() -> list[tuple[str, str]]:
    return re.findall(r"^\| `([^`]+)` \| ([^|`]+) \|", text("docs/sql/refusals.md"), re.MULTILINE)


@pytest.mark.parametrize("query", documented_queries())
def test_a_documented_query_compiles(query: str) -> None:
    assert compile_sql(f"{blocks('docs/sql/index.md', 'sql')[0]} INSERT INTO result {query};").operators


def test_documented_tables_made_of_others_compile() -> None:
    (declared,) = blocks("docs/sql/index.md", "sql")
    like, filled, *_ = blocks("docs/sql/tables.md", "sql")
    plan = compile_sql(f"{declared}{like}{filled}INSERT INTO copies SELECT *, name FROM old_orders;")
    assert [column.name for column in plan.tables["totals"].columns] == ["note", "customer", "total"]
    assert plan.tables["old_orders"].options["path"] == "data/old"
    assert [column.name for column in plan.tables["copies"].columns][-2:] == ["ts", "kind"]


@pytest.mark.parametrize(("query", "message"), refusals())
def test_a_documented_refusal_is_refused_as_documented(query: str, message: str) -> None:
    with pytest.raises(hintplan.SqlError) as caught:
        compile_sql(f"{blocks('docs/sql/index.md', 'sql')[0]} INSERT INTO result {query};")
    assert message in str(caught.value)
    assert all(diagnostic.hint for diagnostic in caught.value.diagnostics)


def lookup_queries() -> list[str]:
    return [query.strip() for query in blocks("docs/lookup-join.md", "sql")[1].split(";") if query.strip()]


@pytest.mark.parametrize("query", lookup_queries())
def test_a_documented_lookup_compiles_as_hinted(query: str) -> None:
    tables = blocks("docs/lookup-join.md", "sql")[0]
    assert compile_sql(f"{tables} INSERT INTO result {query};", strict_hints=True).operator("lookup_r")


def lookup_options() -> dict[str, str]:
    """The options in the tables of the page on lookup joins, with their defaults."""
    rows = re.findall(r"^\| `([\w.-]+)` \|[^|]*\|\s*([^|]*?)\s*\|", text("docs/lookup-join.md"), re.MULTILINE)
    return {name: default for name, default in rows if "-" in name or "." in name or name in HINTED}


HINTED = {spec.hint for specs in SETTINGS.values() for spec in specs.values() if spec.hint is not None}


def test_every_setting_of_a_lookup_and_its_default_is_documented() -> None:
    documented = lookup_options()
    assert set(documented) == HINTED | set(SETTINGS["cache"])
    for specs in SETTINGS.values():
        for spec in specs.values():
            name = spec.hint or spec.name
            if name in documented and spec.default is not None:
                assert documented[name] == f"`{written(spec.default)}`"


def test_every_edit_of_a_lookup_that_is_documented_is_one() -> None:
    tables, queries = blocks("docs/lookup-join.md", "sql")
    plan = compile_sql(f"{tables} INSERT INTO result {queries.split(';')[3]};")
    (edits,) = blocks("docs/lookup-join.md", "text")
    for line in edits.splitlines():
        path, _, value = shlex.split(line)[3].partition("=")
        assert set_value(plan, path, value)[1]


DECLARED = {"locate": declared.DocumentedLocate, "words": declared.Words, "clean": declared.Clean}


def call_script(query: str) -> str:
    """The query among the tables of the page on functions, whose classes ``DECLARED`` stands for."""
    tables = re.sub(r"CREATE FUNCTION .*;\n", "", blocks("docs/table-functions.md", "sql")[0])
    return f"{tables}INSERT INTO result {query};"


def call_queries() -> list[str]:
    return [query.strip() for query in blocks("docs/table-functions.md", "sql")[1].split(";") if query.strip()]


@pytest.mark.parametrize("query", call_queries())
def test_a_documented_call_compiles(query: str) -> None:
    plan = compile_sql(call_script(query), functions=DECLARED)
    assert any(operator.id.startswith("correlate_") for operator in plan.operators)


def test_every_setting_of_calls_and_its_default_and_other_name_is_documented() -> None:
    row = r"^\| `(\w+)\.([\w-]+)` \| `([\w-]+)` \| `([^`]+)` \| (?:`([\w-]+)`)? ?\|"
    rows = re.findall(row, text("docs/table-functions.md"), re.MULTILINE)
    documented = {(group, name): (key, default, other) for group, name, key, default, other in rows}
    synonyms = {known.rpartition(".")[2]: other.rpartition(".")[2] for other, known in CONFIG_SYNONYMS.items()}
    for kind in CALL_KINDS:
        groups = {group.name: group.settings for group in call_groups(kind)}
        expected = {
            (group, s.name): (str(s.config).rpartition(".")[2], written(s.default), synonyms.get(s.name, ""))
            for group, specs in groups.items()
            for s in specs.values()
            if s.default is not None
        }
        assert documented == expected, kind


def test_every_edit_of_a_call_that_is_documented_is_one() -> None:
    plan = compile_sql(call_script(call_queries()[0]), functions=DECLARED)
    (edits,) = [block for block in blocks("docs/table-functions.md", "text") if block.startswith("hintplan set")]
    for line in edits.splitlines():
        path, _, value = shlex.split(line)[3].partition("=")
        assert set_value(plan, path, value)[1]


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_links_resolve(page: Path) -> None:
    found = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", found):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.\w+)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).is_file()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of ``page``, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_state_entry_of_the_ttl_page_is_its_query_with_its_edit() -> None:
    tables = """
    CREATE TABLE orders (o_custkey BIGINT) WITH ('connector' = 'datagen');
    CREATE TABLE customers (c_custkey BIGINT, c_country STRING) WITH ('connector' = 'datagen');
    CREATE TABLE result (country STRING, orders BIGINT) WITH ('connector' = 'print');
    """
    (query,) = blocks("docs/state-ttl.md", "sql")
    (entry,) = blocks("docs/state-ttl.md", "json")
    plan = compile_sql(f"{tables} INSERT INTO result {query}", {"table.exec.state.ttl": "1 h"}, strict_hints=True)
    edited, _ = set_value(plan, "join_o_c.state.leftState.ttl", "3 d")
    assert entry.strip() in hintplan.dumps(edited).decode()
    shown = next(line for line in plan_tree(edited).splitlines() if "leftState" in line)
    assert re.search(r"3 d +edit · hint 1 d · config 1 h$", shown)
    assert "3 d  edit · hint 1 d · config 1 h" in text("docs/state-ttl.md")


def test_the_operator_of_the_flights_stands_in_their_plan() -> None:
    example = ROOT / "examples" / "flights" / "flights.sql"
    plan = hintplan.dumps(compile_sql(example.read_text(encoding="utf-8"), file="flights.sql"))
    (excerpt,) = blocks(FLIGHTS, "json")
    assert json.loads(excerpt) in json.loads(plan)["operators"]


def test_the_states_in_the_readme_stand_in_its_plan() -> None:
    (sql,), (excerpt,) = blocks("README.md", "sql"), blocks("README.md", "json")
    plan = hintplan.dumps(compile_sql(sql, file="paid.sql")).decode()
    assert textwrap.indent(excerpt, " " * 6) in plan


def executed(line: str, folder: Path) -> str:
    """What a command line prints and says in ``folder``, with ``hintplan`` on the path; in this process if it can."""
    words = shlex.split(line)
    if words[0] == "hintplan" and words[1] != "run" and not re.search(r"[|<>;&$*]", line):
        return command(*words[1:], folder=folder, together=True).stdout.rstrip("\n")
    launcher = folder / "bin" / "hintplan"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hintplan "$@"\n')
    launcher.chmod(0o755)
    path = os.pathsep.join([str(launcher.parent), os.environ["PATH"]])
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.stdout.rstrip("\n")


def test_what_the_flights_show_is_what_the_commands_print(tmp_path: Path) -> None:
    """Every command of the tour in order, in a copy of the example; what needs Spark or the data is left out."""
    shutil.copy(ROOT / "examples" / "flights" / "flights.sql", tmp_path)
    ran = 0
    for line, shown in sessions(FLIGHTS):
        if re.match(r"make |cd |mv |python |hintplan run ", line):
            continue
        assert executed(line, tmp_path) == shown, line
        ran += 1
    assert ran >= 12


def run_session(text: str) -> doctest.TestResults:
    """Type in what the Python blocks of ``text`` show, in order, and compare what comes out."""
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    typed = "\n".join(re.sub(r"^$\n", "<BLANKLINE>\n", block, flags=re.MULTILINE) for block in found)
    test = doctest.DocTestParser().get_doctest(typed, {}, "docs/python.md", None, None)
    return doctest.DocTestRunner().run(test)


def test_what_the_python_page_shows_is_what_python_prints() -> None:
    done = run_session(text("docs/python.md").partition("\n## Running\n")[0])
    assert done.attempted >= 12
    assert done.failed == 0


def test_the_story_of_one_query_is_true() -> None:
    done = run_session(text("docs/one-query.md"))
    assert done.attempted >= 30
    assert done.failed == 0


@pytest.mark.each_gate
@pytest.mark.spark
def test_what_the_python_page_runs_is_what_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    # The JVM of the tests has been started in another directory.
    page = text("docs/python.md").replace('"state"', repr(str(tmp_path / "state")))
    page = page.replace('"data/', f'"{tmp_path}/data/')
    assert run_session(page).failed == 0


def test_the_python_page_names_all_that_there_is() -> None:
    assert lacking(hintplan.__all__, "docs/python.md") == []


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_what_examples_take_from_hintplan_is_there(page: Path) -> None:
    code = blocks(str(page.relative_to(ROOT)), "python")
    names = {name for block in code for name in re.findall(r"\bhintplan\.(\w+)", block)}
    assert [name for name in names if not hasattr(hintplan, name)] == []


def test_what_the_readme_shows_is_what_the_commands_print(tmp_path: Path) -> None:
    (tmp_path / "paid.sql").write_text(blocks("README.md", "sql")[0], encoding="utf-8")
    for line, shown in sessions("README.md"):
        if not line.startswith("hintplan run "):
            assert executed(line, tmp_path) == shown, line


@pytest.mark.parametrize(
    "page",
    [
        *("docs/init-files.md", "docs/moving-from-flink.md"),
        *(f"docs/event-time/{page}.md" for page in ("group-windows", "over", "temporal-joins")),
    ],
)
def test_what_a_page_shows_of_its_scripts_is_what_the_commands_print(page: str, tmp_path: Path) -> None:
    for sql in blocks(page, "sql"):
        (tmp_path / sql.partition("\n")[0].removeprefix("-- ")).write_text(sql, encoding="utf-8")
    for line, shown in sessions(page):
        assert executed(line, tmp_path) == shown, line


def test_what_the_page_for_jobs_of_flink_counts_is_so() -> None:
    page = " ".join(text("docs/moving-from-flink.md").split())
    scripts = len([*(ROOT / "tests" / "flink" / "jobs").glob("*.sql")])
    keys = json.loads(text("tests/flink/keys.json"))
    carried = [key for key in keys if canonical_key(key) in known_keys()]
    noted = [key for key in keys if why_idle(key) is not None]
    refused = [key for key in keys if refused_key(key) is not None]
    assert f"has {scripts} typical scripts" in page
    assert f"Flink 2.3 documents {len(keys)} keys." in page
    assert f"{len(carried)} keys with Flink's meaning" in page
    assert f"It accepts {len(noted)} keys with a note" in page
    assert f"It refuses {len(refused)} keys" in page


def test_what_moves_from_flink_with_a_note_is_refused_or_taken_as_the_page_says() -> None:
    tables = """
    CREATE TABLE t (id BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'datagen');
    CREATE TABLE s (ts TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
    """
    hour = "SELECT FLOOR(ts TO HOUR), COUNT(*) FROM t GROUP BY FLOOR(ts TO HOUR)"
    assert compile_sql(f"{tables} INSERT INTO s {hour}").operators
    with pytest.raises(hintplan.SqlError, match="TUMBLE needs a rowtime") as caught:
        compile_sql(f"{tables} INSERT INTO s {hour.replace('FLOOR(ts TO HOUR)', 'TUMBLE(ts, INTERVAL 1 HOUR)')}")
    assert "declare WATERMARK" in str(caught.value.diagnostics[0].hint)


def test_the_bundle_of_the_docs_is_what_the_command_writes(tmp_path: Path) -> None:
    """Of the plan of the README; size and platform are those of this machine."""
    (tmp_path / "paid.sql").write_text(blocks("README.md", "sql")[0], encoding="utf-8")
    executed("hintplan compile paid.sql -o paid.json", tmp_path)
    found = [session for session in sessions("docs/deployment/bundles.md") if session[0].startswith("hintplan bundle")]
    ((line, shown),) = found
    printed = executed(line, tmp_path)
    of_here = r"[\d.]+ MiB, for linux-\w+"
    assert re.sub(of_here, "SIZE", printed) == re.sub(of_here, "SIZE", shown)
    assert re.search(of_here, printed)


@pytest.mark.each_gate
@pytest.mark.spark
def test_the_run_of_the_readme_prints_what_it_shows(tmp_path: Path) -> None:
    """The run itself; times are others, and rows and what is said of them are two streams."""
    (tmp_path / "paid.sql").write_text(blocks("README.md", "sql")[0], encoding="utf-8")
    *before, (run, shown) = sessions("README.md")
    for line, _ in before:
        executed(line, tmp_path)
    assert run.startswith("hintplan run ")
    assert sorted(said(executed(run, tmp_path))) == sorted(timeless(shown))


@pytest.mark.part(of=2)
@pytest.mark.parametrize("page", ["docs/event-time/index.md", "docs/event-time/late-rows.md"])
@pytest.mark.spark
def test_the_pages_of_event_time_show_what_the_commands_print(tmp_path: Path, page: str) -> None:
    (tmp_path / "bids.sql").write_text(blocks(page, "sql")[0], encoding="utf-8")
    for line, shown in sessions(page):
        printed = executed(line, tmp_path)
        assert sorted(said(printed)) == sorted(timeless(shown)), line


def said(printed: str) -> list[str]:
    """The lines of a run without those of slow machines, that it is alive, and of Sparks older than the pages'."""
    others = re.compile(r" at work for |^starting Spark |^planning( · .*)?$|^Spark 4\.[0-2] has no restricted mode: ")
    return [each for each in timeless(printed) if not others.search(each)]


def timeless(output: str) -> list[str]:
    return re.sub(r"(\d+ min )?\d+(\.\d+)? m?s\b", "TIME", output).splitlines()
