"""Runs the scripts of jobs/ on Flink, and writes the rows that each of their sinks ends with to jobs.json.

A script runs as it stands, with one exception: Flink's filesystem connector takes and gives changes only in the formats
of CDC tools, so tables that are written to, and sources that are changelogs, get other options (``WITH``). Runs in an
environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``; with ``--missing`` it asks
only for scripts that have no answer yet, and with names only for these.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent
JOBS = HERE / "jobs"
RECORDED = HERE / "jobs.json"
TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/|;|\w+|\S", re.DOTALL)
TABLE = re.compile(r"CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?`?(\w+)`?", re.IGNORECASE)
OPTIONS = re.compile(r"\bWITH\s*\(\s*('[^)]*)\)", re.IGNORECASE)
OPTION = re.compile(r"'([^']*)'\s*=\s*'([^']*)'")
SELECTED = re.compile(r"\bAS\s+(SELECT|WITH)\b", re.IGNORECASE)
WRITTEN = re.compile(r"INSERT\s+INTO\s+`?(\w+)`?", re.IGNORECASE)
SET = re.compile(r"SET\s+'([^']*)'\s*=\s*'([^']*)'", re.IGNORECASE)
SIGNS = {"+I": "c", "+U": "c", "-U": "d", "-D": "d"}


def statements(script: str) -> list[str]:
    """The statements of a script; those of a statement set one by one."""
    found, current = [], ""
    end = 0
    for token in TOKEN.finditer(script):
        comment = token[0].startswith(("--", "/*")) and not token[0].startswith("/*+")
        current += script[end : token.start()] + ("" if comment else token[0])
        end = token.end()
        if token[0] == ";" or re.fullmatch(r"\s*EXECUTE\s+STATEMENT\s+SET\s+BEGIN", current, re.IGNORECASE):
            found.append(current.strip().rstrip(";"))
            current = ""
    markers = re.compile(r"EXECUTE\s+STATEMENT\s+SET\s+BEGIN|BEGIN\s+STATEMENT\s+SET|END|", re.IGNORECASE)
    return [text for text in found if not markers.fullmatch(text)]


def answer(script: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each sink of ``script``, sorted."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = tables.get_config()
    config.set("table.local-time-zone", "UTC")
    # Flink puts the same above upserts as above a changelog that may repeat itself, and has a connector here for these.
    upserts = re.search(r"'source.changelog'\s*=\s*'upsert'", script)
    parts = statements(script)
    sinks = {name for part in parts for name in WRITTEN.findall(part)}
    jobs = tables.create_statement_set()
    for part in parts:
        if setting := SET.match(part):
            config.set(setting[1], setting[2])
        elif WRITTEN.match(part):
            jobs.add_insert_sql(part)
        elif created := TABLE.match(part):
            selected = SELECTED.search(part)
            if selected:
                sinks.add(created[1])
            text = substituted(part, created[1], created[1] in sinks, folder)
            done = tables.execute_sql(text)
            if selected:
                done.wait()
        else:
            tables.execute_sql(part)
        config.set("parallelism.default", "1")
        config.set("table.exec.source.cdc-events-duplicate", "true" if upserts else "false")
    if any(WRITTEN.match(part) for part in parts):
        jobs.execute().wait()
    keys = {name: tables.from_path(name).get_resolved_schema().get_primary_key() for name in sorted(sinks)}
    return {name: folded(folder / name, key.get_columns() if key else []) for name, key in keys.items()}


def substituted(statement: str, name: str, sink: bool, folder: Path) -> str:
    """``CREATE TABLE`` with options by which Flink can read or write changes, where it has to."""
    options = OPTIONS.search(statement)
    if options is None and sink:  # It has those of the table that it is like.
        statement = re.sub(r"\bLIKE\b", "WITH ('' = '') LIKE", statement, count=1, flags=re.IGNORECASE)
        options = OPTIONS.search(statement)
    if options is None:
        return statement
    given = dict(OPTION.findall(options[1]))
    if sink:
        (folder / name).mkdir()
        path = folder / name
    elif "source.changelog" in given:
        path = folder / f"{name}.json"
        changes = [json.loads(line) for line in Path(given["path"]).read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps(debezium(change)) + "\n" for change in changes), encoding="utf-8")
    else:
        return statement
    files = f"'connector' = 'filesystem', 'format' = 'debezium-json', 'path' = '{path}'"
    if sink:
        files += ", 'debezium-json.encode.decimal-as-plain-number' = 'true'"
    return statement[: options.start(1)] + files + statement[options.end(1) :]


def debezium(change: dict[str, Any]) -> dict[str, Any]:
    sign = SIGNS[change.pop("op")]
    return {"before": change if sign == "d" else None, "after": change if sign == "c" else None, "op": sign}


def folded(directory: Path, key: list[str]) -> list[dict[str, Any]]:
    """The rows that the changes in files of ``directory`` leave.

    With a primary key, a row replaces the one of its key: what Flink puts below a sink to keep its key may leave out
    the row that goes.
    """
    left: Counter[str] = Counter()
    by_key: dict[str, str] = {}
    # Without checkpoints Flink leaves the files as they were written, under names that begin with a dot.
    for path in sorted(directory.rglob("*")):
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            change = json.loads(line, parse_float=str)
            row = change["after"] if change["op"] == "c" else change["before"]
            text = json.dumps(row, ensure_ascii=False)
            left[text] += 1 if change["op"] == "c" else -1
            owner = json.dumps([row[column] for column in key])
            if change["op"] == "c":
                by_key[owner] = text
            elif by_key.get(owner) == text:
                del by_key[owner]
    assert key or all(count >= 0 for count in left.values()), left
    return [json.loads(row) for row in sorted(by_key.values() if key else left.elements())]


def main() -> None:
    os.chdir(JOBS)
    names = [argument for argument in sys.argv[1:] if argument != "--missing"]
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if sys.argv[1:] else {}
    scripts = {path.stem: path for path in sorted(JOBS.glob("*.sql"))}
    answers = {name: rows for name, rows in known.items() if name in scripts and name not in names}
    failed = []
    for name in names or [name for name in scripts if name not in answers]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                answers[name] = answer(scripts[name].read_text(encoding="utf-8"), Path(folder))
            except Exception as error:  # noqa: BLE001 - the other scripts still have answers
                failed.append(name)
                print(f"{name}: {str(error)[-3000:]}", file=sys.stderr)
                continue
        print(name, {sink: len(rows) for sink, rows in answers[name].items()}, file=sys.stderr)
        write(dict(sorted(answers.items())))
    sys.exit(f"no answer for {', '.join(failed)}" if failed else 0)


def write(answers: dict[str, Any]) -> None:
    lines = []
    for name, sinks in answers.items():
        listed = [
            f"  {json.dumps(sink)}: [\n"
            + ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in rows)
            + "\n  ]"
            for sink, rows in sinks.items()
        ]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(listed) + "\n }")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
