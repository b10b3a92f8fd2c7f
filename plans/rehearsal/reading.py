"""Reads a file of tests into a suite. Every mistake is reported with file, line and column, and with a remedy.

    suite = read_suite("paid.test.yaml")

Names of tables and columns are checked when the plan is known (:mod:`hintplan.runtime.rehearsal.scenarios`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.errors import PlanError
from hintplan.plans.rehearsal.row_files import rows_of_file
from hintplan.plans.rehearsal.suite import (
    STEP_KEYS,
    Expected,
    ExpectedPart,
    ExpectedState,
    GivenCell,
    GivenRow,
    GivenRows,
    Plain,
    Scenario,
    ScenarioStep,
    Suite,
)
from hintplan.plans.rehearsal.yaml_nodes import (
    MOST_BYTES,
    ListNode,
    MapNode,
    Node,
    Place,
    TextNode,
    kind_of,
    last_offset,
    read_yaml,
)
from hintplan.plans.text.links import reason, refuse_leading_out
from hintplan.plans.text.names import did_you_mean

SUFFIXES = (".test.yaml", ".test.yml")
"""The ends of the names of files of tests."""

_SUITE_KEYS = ("plan", "sql", "config", "init", "lookups", "functions", "tests")
_PARTS: tuple[ExpectedPart, ...] = ("added", "changelog")
_DURATION_PART = re.compile(r"\s*(\d+\s*[a-zµA-Z]+)")


def is_suite_name(name: str) -> bool:
    """Return True if ``name`` is the name of a file of tests."""
    return name.endswith(SUFFIXES)


def suites_in(paths: Sequence[str]) -> list[str]:
    """Return the files of tests at and beneath ``paths``, sorted within each; PlanError for a path with none.

    Folders whose names begin with a dot are left out, and links are not followed.
    """
    found: list[str] = []
    for path in paths or (".",):
        if os.path.isdir(path):
            here = suites_beneath(path)
            if not here:
                raise PlanError(
                    "has no file of tests",
                    file=path,
                    hint="hintplan init --test PLAN writes a first one; their names end with .test.yaml",
                )
            found += here
        elif is_suite_name(path):
            found.append(path)
        else:
            raise PlanError("is no file of tests", file=path, hint="their names end with .test.yaml")
    return list(dict.fromkeys(found))


def suites_beneath(folder: str) -> list[str]:
    """Return the files of tests in ``folder`` and beneath it, sorted."""
    return sorted(_beneath(folder))


def _beneath(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in files:
            if is_suite_name(name):
                yield os.path.normpath(os.path.join(place, name))


def read_suite(path: str) -> Suite:
    """Return the tests of a file; PlanError if it cannot be read or is wrong."""
    refuse_leading_out(path)
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise PlanError(f"has more than {MOST_BYTES >> 20} MiB", file=path, hint="put rows into files next to it")
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PlanError(f"cannot be read: {reason(error, path)}", file=path) from error
    except UnicodeDecodeError as error:
        raise PlanError("is not UTF-8", file=path, hint="save it as UTF-8") from error
    return suite_of(text, path)


def suite_of(text: str, file: str) -> Suite:
    """Return the tests in ``text``; rows are read from files beneath the folder of ``file``."""
    root = _mapping(read_yaml(text, file), "a file of tests", _SUITE_KEYS)
    folder = os.path.dirname(file)
    parts = {name: value for name, _, value in root.items()}
    if ("plan" in parts) == ("sql" in parts):
        both = "plan and sql are both here" if "plan" in parts else "neither plan nor sql is here"
        raise root.place.error(both, "write plan: job.json for a plan, or sql: job.sql for a script")
    if "plan" in parts:
        for name, key, _ in root.items():
            if name in ("config", "init"):
                raise key.place.error(f"{name} is for a script, and these tests are of a plan", "write sql: job.sql")
    tests = parts.get("tests")
    if tests is None:
        raise root.place.error("there are no tests", "write tests:, and below it a name and its steps")
    return Suite(
        file=file,
        text=text,
        place=root.place,
        plan=_text(parts["plan"], "plan") if "plan" in parts else None,
        sql=_text(parts["sql"], "sql") if "sql" in parts else None,
        config=_config(parts["config"]) if "config" in parts else {},
        init=tuple(_texts(parts["init"], "init")) if "init" in parts else (),
        lookups=tuple(_tables(parts["lookups"], "lookups", folder)) if "lookups" in parts else (),
        functions=tuple(_tables(parts["functions"], "functions", folder)) if "functions" in parts else (),
        scenarios=tuple(_scenarios(tests, folder)),
    )


def _scenarios(tests: Node, folder: str) -> Iterator[Scenario]:
    if not isinstance(tests, MapNode):
        raise tests.place.error(
            f"tests is a mapping, found {kind_of(tests)}", "write the name of a test, then its steps"
        )
    for name, key, steps in tests.items():
        if not isinstance(steps, ListNode) or not steps.items:
            raise steps.place.error(
                f"a test is a list of steps, found {kind_of(steps)}", "begin each step with a dash: - at: 10:00"
            )
        yield Scenario(name=name, steps=tuple(_step(step, folder) for step in steps.items), place=key.place)


def _step(node: Node, folder: str) -> ScenarioStep:
    if not isinstance(node, MapNode):
        raise node.place.error(f"a step is a mapping, found {kind_of(node)}", "write at:, and the rows of sources")
    parts = {name: value for name, _, value in node.items() if name in STEP_KEYS}
    rows = list(_tables(parts["rows"], "rows", folder)) if "rows" in parts else []
    rows += [_rows(name, value, folder, key.place) for name, key, value in node.items() if name not in STEP_KEYS]
    if "at" in parts and "after" in parts:
        raise parts["after"].place.error("a step has a time, or a time after the step before", "remove at or after")
    return ScenarioStep(
        place=node.place,
        at=GivenCell(value=_text(parts["at"], "at").text, place=parts["at"].place) if "at" in parts else None,
        after=_after(_text(parts["after"], "after")) if "after" in parts else None,
        rows=tuple(rows),
        lookups=tuple(_tables(parts["lookups"], "lookups", folder)) if "lookups" in parts else (),
        functions=tuple(_tables(parts["functions"], "functions", folder)) if "functions" in parts else (),
        expected=tuple(_expected(parts["expect"], folder)) if "expect" in parts else (),
        states=tuple(_states(parts["state"])) if "state" in parts else (),
        ends=_flag(parts["ends"]) if "ends" in parts else False,
    )


def _expected(node: Node, folder: str) -> Iterator[Expected]:
    if not isinstance(node, MapNode):
        raise node.place.error(f"expect is a mapping, found {kind_of(node)}", "write the name of a sink, then its rows")
    for name, key, value in node.items():
        parts = {part: (part_key, rows) for part, part_key, rows in value.items()} if isinstance(value, MapNode) else {}
        if not parts.keys() & set(_PARTS):
            yield Expected(part="table", rows=_rows(name, value, folder, key.place))
            continue
        for part, (part_key, rows) in parts.items():
            if part not in _PARTS:
                raise part_key.place.error(f"unknown key '{part}'", did_you_mean(part, _PARTS, what="keys"))
            yield Expected(
                part="added" if part == "added" else "changelog", rows=_rows(name, rows, folder, part_key.place)
            )


def _states(node: Node) -> Iterator[ExpectedState]:
    if not isinstance(node, MapNode):
        raise node.place.error(f"state is a mapping, found {kind_of(node)}", "write state: {join_o_p.leftState: 1}")
    for name, _, value in node.items():
        text = _text(value, name)
        if not re.fullmatch(r"\d{1,12}", text.text or ""):
            raise value.place.error(f"{kind_of(value)} is no number of rows", f"write {name}: 1")
        yield ExpectedState(state=name, rows=int(text.text or ""), place=value.place)


def _tables(node: Node, what: str, folder: str) -> Iterator[GivenRows]:
    if not isinstance(node, MapNode):
        raise node.place.error(
            f"{what} is a mapping, found {kind_of(node)}", "write the name of a table, then its rows"
        )
    for name, key, value in node.items():
        yield _rows(name, value, folder, key.place)


def _rows(table: str, node: Node, folder: str, key: Place) -> GivenRows:
    """Return the rows of ``table``: a list, or a file beneath ``folder``."""
    owner = Place(
        file=node.place.file,
        line=node.place.line,
        column=node.place.column,
        begin=node.place.begin,
        end=last_offset(node),
    )
    match node:
        case ListNode(items=items):
            return GivenRows(table=table, rows=tuple(_row(item) for item in items), place=key, owner=owner)
        case TextNode(text=str()):
            return GivenRows(table=table, rows=tuple(rows_of_file(node, folder)), place=key)
        case MapNode(entries=((TextNode(text="file"), TextNode() as file),)):
            return GivenRows(table=table, rows=tuple(rows_of_file(file, folder)), place=key)
    raise node.place.error(
        f"the rows of '{table}' are a list or a file, found {kind_of(node)}",
        f"write {table}: [{{column: value}}], {table}: [] for none, or {table}: rows.csv",
    )


def _row(node: Node) -> GivenRow:
    if not isinstance(node, MapNode):
        raise node.place.error(f"a row is a mapping, found {kind_of(node)}", "write {column: value}")
    cells = {name: GivenCell(value=_plain(value), place=value.place) for name, _, value in node.items()}
    return GivenRow(cells=cells, place=node.place, keys={name: key.place for name, key, _ in node.items()})


def _plain(node: Node) -> Plain:
    match node:
        case TextNode(text=text):
            return text
        case ListNode(items=items):
            return [_plain(item) for item in items]
        case MapNode():
            return {name: _plain(value) for name, _, value in node.items()}


def _after(node: TextNode) -> int:
    text = node.text or ""
    try:
        return milliseconds(text)
    except DurationError as error:
        raise node.place.error(f"'{text}' is no duration", "write after: 3 h 1 min") from error


def milliseconds(text: str) -> int:
    """Return a duration in ms, which may have several parts: ``3 h 1 min``; DurationError if it is none."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join("".join(parts).split()) != "".join(text.split()):
        return parse_duration(text, require_unit=True)
    return sum(parse_duration(part) for part in parts)


def _flag(node: Node) -> bool:
    text = _text(node, "ends").text
    if text not in ("true", "false"):
        raise node.place.error(f"ends is true or false, found {kind_of(node)}", "write ends: true")
    return text == "true"


def _config(node: Node) -> dict[str, str]:
    if not isinstance(node, MapNode):
        raise node.place.error(
            f"config is a mapping, found {kind_of(node)}", "write config: {table.exec.state.ttl: 1 d}"
        )
    return {name: _text(value, name).text or "" for name, _, value in node.items()}


def _texts(node: Node, what: str) -> Iterator[TextNode]:
    if isinstance(node, ListNode):
        yield from (_text(item, what) for item in node.items)
    else:
        yield _text(node, what)


def _text(node: Node, what: str) -> TextNode:
    if not isinstance(node, TextNode) or node.text is None:
        raise node.place.error(f"{what} is a text, found {kind_of(node)}")
    return node


def _mapping(node: Node, what: str, keys: Sequence[str]) -> MapNode:
    if not isinstance(node, MapNode):
        raise node.place.error(f"{what} is a mapping, found {kind_of(node)}", f"its keys: {', '.join(keys)}")
    for name, key, _ in node.items():
        if name not in keys:
            raise key.place.error(f"unknown key '{name}'", did_you_mean(name, keys, what="keys"))
    return node
