"""Every function that Flink has built in is answered, or refused by its name with the reason: none is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_script
from hintplan.planner.expressions.functions.refused import unsupported_function
from hintplan.planner.expressions.scalars import known_functions
from hintplan.plans.errors import SqlError
from tests.planner.expressions.one_expression import ROW

HERE = Path(__file__).parent
BUILTIN: dict[str, dict[str, str]] = json.loads((HERE / "builtin_functions.json").read_text(encoding="utf-8"))


def sections() -> dict[str, dict[str, str]]:
    """Of builtin_functions.txt: the names of each section, and what stands behind each."""
    found: dict[str, dict[str, str]] = {}
    for line in (HERE / "builtin_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            name, _, rest = line.partition(": ")
            section[name] = rest
    return found


SECTIONS = sections()


def compiled(query: str) -> str:
    """The message of the refusal of ``query``; empty if there is none but for the type of the sink."""
    columns = ", ".join(f"`{name}` {declared}" for name, (declared, _) in ROW.items())
    query = query if query.startswith("SELECT") else f"SELECT {query} FROM row1"
    try:
        compile_script(
            f"CREATE TABLE row1 ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
            f"CREATE TABLE result (r STRING) WITH ('connector' = 'print'); INSERT INTO result {query};"
        )
    except SqlError as error:
        message = error.diagnostics[0].message
        return "" if message.startswith("column 'r' of sink") else message
    return ""


def test_each_function_of_flink_is_in_one_section() -> None:
    names = [name for section in SECTIONS.values() for name in section]
    missing = sorted(set(BUILTIN) - set(names))
    assert missing == [], f"write {missing} into a section of tests/flink/builtin_functions.txt"
    assert sorted(names) == sorted(BUILTIN)
    assert len(set(names)) == len(names)


OF_THE_MOMENT = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "NOW", "PROCTIME"),
    *("RAND", "RAND_INTEGER", "UUID", "CURRENT_DATABASE", "CEILING"),
)
"""Functions whose answers are others each time, or are those of a function with another name."""


def test_every_function_is_compared_with_what_flink_answers() -> None:
    asked = "".join(
        (HERE / name).read_text(encoding="utf-8") for name in ("functions.txt", "functions_of_rows.txt", "nested.txt")
    )
    missing = [name for name in known_functions() if not re.search(rf"\b{name}\b", asked) and name not in OF_THE_MOMENT]
    where = "tests/flink/functions_of_rows.txt, and record Flink's answers with make flink-goldens"
    assert missing == [], f"write calls of {missing} into {where}"


@pytest.mark.parametrize("name", SECTIONS["answered"])
def test_a_function_is_answered(name: str) -> None:
    assert compiled(SECTIONS["answered"][name]) == ""


@pytest.mark.parametrize("name", SECTIONS["refused"])
def test_a_function_is_refused_by_name_with_the_reason(name: str) -> None:
    message = compiled(SECTIONS["refused"][name])
    called = re.match(r"(\w+)\(", SECTIONS["refused"][name])
    if called and "OVER (" not in SECTIONS["refused"][name]:
        assert message.startswith(f"{called[1]} is not supported: ")
    else:
        assert "not supported" in message
        assert not message.startswith("function ")


@pytest.mark.parametrize("name", [n for n in SECTIONS["elsewhere"] if re.fullmatch("[A-Z]+_(START|END|ROWTIME)", n)])
def test_a_function_of_windows_is_refused_with_the_reason(name: str) -> None:
    if name not in ("WINDOW_START", "WINDOW_END", "MATCH_ROWTIME"):
        assert unsupported_function(name) is not None


def test_the_documentation_counts_them() -> None:
    page = (HERE.parents[1] / "docs" / "functions" / "index.md").read_text(encoding="utf-8")
    counts = dict(re.findall(r"^\| (supported|refused|missing) \| (\d+) \|", page, re.MULTILINE))
    answered, refused = (f"{len(SECTIONS[section])}" for section in ("answered", "refused"))
    told = "write the numbers of docs/functions/index.md as tests/flink/builtin_functions.txt has them"
    assert counts == {"supported": answered, "refused": refused, "missing": "0"}, told
    for name in SECTIONS["refused"]:
        assert f"`{name}`" in page, "the page names each that is refused"
