"""The measures of the code, of a text whose lines are counted by hand."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house import File, code_lines, comment_lines, import_lines, namesakes, uses_of_found

TEXT = '''"""A module."""

from os import (
    path,
)

# A reason.
def one(found):
    """Return ``found``."""
    import sys  # not a line of its own

    def two():
        return found

    return found


class Three:
    pass
'''


def file(name: str, text: str = TEXT) -> File:
    return File(Path(name), text, ast.parse(text))


def test_lines_are_counted_by_kind() -> None:
    assert import_lines(ast.parse(TEXT)) == 4
    assert comment_lines(TEXT) == 1
    assert code_lines(file("a.py")) == 3 + 1 + 1 + 2 + 1 + 2


def test_a_use_of_found_counts_for_the_function_that_has_it() -> None:
    assert uses_of_found(ast.parse(TEXT)) == (3, 2)


def test_a_name_of_two_modules_is_a_namesake_and_a_private_one_is_not() -> None:
    other = file("b.py", "class Three: ...\ndef _one(): ...\ndef four(): ...\n")
    assert namesakes([file("a.py"), other]) == (1, 3)
