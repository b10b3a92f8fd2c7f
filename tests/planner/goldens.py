"""Golden cases in text files: prose, a command, SQL, ``----``, and what must come out.

A file in ``cases/`` is a sequence of cases, each of them

    # Why the answer below is what it is.
    compile
    INSERT INTO s SELECT a FROM t
    ----
    scan_t: t(a)
    sink_s <- scan_t: s

``compile strict`` compiles with strict hints. ``tables`` instead of ``compile`` gives declarations for the cases that
follow; they make up the first line of each script, so line 2 is the first one shown. ``python -m
tests.planner.goldens --rewrite`` writes the answers of the planner into the files; read the difference before
committing it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.python_words import for_a_command
from tests.planner.listing import listing

ALLOWED = ("tests.planner.declared",)
CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    prose: tuple[str, ...]
    command: str
    sql: str
    expected: str

    @property
    def title(self) -> str:
        return " ".join(self.prose)


def read_cases(path: Path) -> tuple[Case, ...]:
    found: list[Case] = []
    lines = path.read_text().split("\n")
    index = 0
    while index < len(lines):
        if not lines[index].strip():
            index += 1
            continue
        start = index
        while lines[index].startswith("#"):
            index += 1
        prose = tuple(line[1:].strip() for line in lines[start:index])
        command = lines[index]
        end = lines.index("----", index)
        sql = "\n".join(lines[index + 1 : end])
        index = stop = end + 1
        while index < len(lines) and not lines[index].startswith("#"):
            index += 1
            if lines[index - 1].strip():
                stop = index
        found.append(Case(prose=prose, command=command, sql=sql, expected="\n".join(lines[end + 1 : stop])))
    return tuple(found)


def with_tables(cases: tuple[Case, ...]) -> Iterator[tuple[str, Case]]:
    """Each case with the declarations before it, if it is not some itself."""
    tables = ""
    for case in cases:
        if case.command == "tables":
            tables = " ".join(case.sql.split())
        yield tables, case


def answer(tables: str, case: Case) -> str:
    """What the planner makes of a case; nothing, of declarations."""
    if case.command == "tables":
        return ""
    try:
        strict = case.command == "compile strict"
        with for_a_command():
            script = f"{tables}\n{case.sql}"
            return listing(compile_script(script, file="job", strict_hints=strict, allow_modules=ALLOWED))
    except SqlError as error:
        return f"error {error}"


def print_cases(cases: list[Case]) -> str:
    parts = ("\n".join((*(f"# {p}".rstrip() for p in c.prose), c.command, c.sql, "----", c.expected)) for c in cases)
    return "\n\n".join(p.rstrip() for p in parts) + "\n"


if __name__ == "__main__":
    for path in sorted(CASES.glob("*.test")):
        fresh = print_cases([replace(case, expected=answer(t, case)) for t, case in with_tables(read_cases(path))])
        if fresh != path.read_text():
            print(path.name, "differs" if sys.argv[1:] != ["--rewrite"] else "rewritten")
            if sys.argv[1:] == ["--rewrite"]:
                path.write_text(fresh)
