"""Finds English in docstrings, comments and messages that a reader must read twice.

Such are questions for first words, and words of our own.

python -m tests.english                     # how many in each folder of the code
python -m tests.english plans/show runtime  # each of them, with file and line, below these paths
"""

from __future__ import annotations

import ast
import inspect
import io
import itertools
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tests.test_order_of_folders import ROOT

CODE = ("plans", "planner", "runtime")
# A docstring begins with a command or a statement. Each of these begins a clause without a verb of its own.
FIRST_WORDS = re.compile(r"(What|Whether|How|Why|Where|Which|When|Who|Whom|Whose|Of|As|That|Than|Those|But)\b")
PHRASES = {
    "but for": "except",
    "is told": "receives, is given, gets",
    "are told": "receive, are given, get",
    "tells": "reports, prints, returns",
    "told": "reported, given",
    "says": "reports, states, sets, has",
    "go on": "continue",
    "goes on": "continues",
    "going on": "continuing",
    "went on": "continued",
    "pass over": "ignore, skip",
    "passes over": "ignores, skips",
    "passed over": "ignored, skipped",
    "that of": "repeat the noun",
    "those of": "repeat the noun",
    "those that": "repeat the noun",
    "those which": "repeat the noun",
    "the one that": "repeat the noun",
    "the ones that": "repeat the noun",
    "as far as": "if, except",
    "beside": "next to, compared with, in addition to",
    "anew": "again, from scratch",
    "any more": "no longer",
    "leave it out": "remove it, omit it",
    "is there already": "already exists",
    "what there is": "name it",
}
PHRASE = re.compile(rf"\b({'|'.join(PHRASES).replace(' ', chr(92) + 's+')})\b", re.IGNORECASE)


class Fault(NamedTuple):
    """Words at a line of a text, and what to write instead."""

    line: int
    words: str
    instead: str


WORDS_OF_A_MESSAGE = 4


def faults(source: str) -> list[Fault]:
    """Return the faults of the docstrings, comments and messages of Python ``source``, in order of lines."""
    texts = [*docstrings(source), *_comments(source), *_messages(source)]
    return sorted(fault for line, text, is_docstring in texts for fault in _faults_of(line, text, is_docstring))


def _faults_of(line: int, text: str, is_docstring: bool) -> Iterator[Fault]:
    first = FIRST_WORDS.match(text) if is_docstring else None
    if first is not None:
        yield Fault(line, f"{first[0]} ...", "a command or a statement")
    for match in PHRASE.finditer(re.sub(r"``[^`]*``", "``", text)):
        words = " ".join(match[0].split())
        yield Fault(line, words, PHRASES[words.lower()])


def docstrings(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line and text of each docstring, and of each string below an assignment; the last value is True."""
    for node in _nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text, True
            yield from _attribute_docstrings(node.body)


def _attribute_docstrings(body: list[ast.stmt]) -> Iterator[tuple[int, str, bool]]:
    """Yield the strings that stand below assignments, and document what was assigned."""
    for assignment, below in itertools.pairwise(body):
        is_documented = isinstance(assignment, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr)
        if is_documented and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield below.lineno, inspect.cleandoc(below.value.value), True


def _comments(source: str) -> Iterator[tuple[int, str, bool]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False


@lru_cache(maxsize=1)
def _nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def _messages(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the strings of several words that are no docstrings; the last value is True for a sentence of its own."""
    nodes = _nodes(source)
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        if len(text.split()) >= WORDS_OF_A_MESSAGE:
            yield node.lineno, text, text.endswith(".")


def files(paths: tuple[Path, ...]) -> list[Path]:
    """Return the Python files at and below ``paths``, sorted."""
    return sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))


def main(names: list[str]) -> None:
    """Print the faults below the paths that are named, or the number in each folder of the code."""
    counts: Counter[str] = Counter()
    for file in files(tuple(ROOT / name for name in names or CODE)):
        where = file.relative_to(ROOT)
        for fault in faults(file.read_text(encoding="utf-8")):
            counts["/".join(where.parts[:2])] += 1
            if names:
                print(f"{where}:{fault.line}: '{fault.words}': write {fault.instead}")
    for folder, count in counts.most_common():
        print(f"{count:5} {folder}")
    print(f"{counts.total():5} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
