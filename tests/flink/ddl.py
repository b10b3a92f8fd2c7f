"""The scripts of declarations in ddl.txt, which are asked of Flink and of us: each begins with the tables of BEFORE."""

from __future__ import annotations

from pathlib import Path

_PARTS = (Path(__file__).parent / "ddl.txt").read_text(encoding="utf-8").split("\n## ")[1:]

DDL: dict[str, str] = {name: script.rstrip("\n") for name, _, script in (part.partition("\n") for part in _PARTS)}
"""Statements by the name of the case, separated by a semicolon and a line break."""

BEFORE = DDL.pop("before")
