"""Files of recorded answers: read for ``--missing``, and replaced as a whole when all answers are there.

>>> missing({"a": 1, "gone": 2}, ["a", "b"])
(['b'], {'a': 1})
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def recorded(path: Path) -> dict[str, Any]:
    """The answers in ``path``, of which none is asked for again with ``--missing``; none without it."""
    if "--missing" not in sys.argv or not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def missing(known: Mapping[str, Any], wanted: Collection[str]) -> tuple[list[str], dict[str, Any]]:
    """Those of ``wanted`` without an answer, and the answers that are still wanted."""
    return [text for text in wanted if text not in known], {text: known[text] for text in wanted if text in known}


def replace(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, which stays as it is if that fails."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def lines_of(path: Path) -> list[str]:
    """The expressions in a file of them, without comments."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def by_expression(answers: Mapping[str, Any]) -> str:
    """Answers as JSON, a line for each expression."""
    lines = (f"  {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in answers.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
