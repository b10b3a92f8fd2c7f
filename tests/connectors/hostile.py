"""Texts in the rows of a table that somebody else fills: none is anything but a text, whatever reads it."""

from __future__ import annotations

from pathlib import Path

CANARY = "HINTPLAN_TEST_CANARY"
"""A variable that no run is allowed to read."""
SECRET = "hunter2-of-the-environment"

TEXTS = (
    "plain",
    f"${{env:{CANARY}}}",
    f"${CANARY}",
    "../../outside/x",
    "../outside",
    "..",
    ".",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3a://elsewhere/x",
    "http://127.0.0.1:9/x",
    "'); DROP TABLE r; --",
    '"; DROP TABLE r; --',
    "`; DROP TABLE r; --",
    "x' OR '1'='1",
    "\\'; DROP TABLE r; --",
    "*",
    "%",
    "_",
    "?",
    ":n",
    "%s%n",
    "%2e%2e%2foutside",
    "{k}",
    "{{7*7}}",
    "${7*7}",
    "$(touch outside)",
    "`touch outside`",
    "=cmd|'/c calc'!A1",
    '{"__class__": "os.system"}',
    "!!python/object/apply:os.system ['touch outside']",
    "cos\nsystem\n(S'touch outside'\ntR.",
    "a/b",
    "a\\b",
    "a=b",
    "day=1/x",
    "_spark_metadata",
    "__HIVE_DEFAULT_PARTITION__x",
    "\x1b]0;title\x07",
    "a\r\nSet-Cookie: x",
    "\u202egnp.exe",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "SELECT 1",
    "+I",
    "null",
    "\u00e9\U0001d11e",
    "x" * 5_000,
)


def seen(folder: Path) -> set[str]:
    """The names of all files and folders below ``folder``."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
