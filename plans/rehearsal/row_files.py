"""Rows in files next to a file of tests: CSV with a header, JSON (an array, or an object per line), or Parquet.

The files may come from a pull request with the tests, so their paths stay beneath the folder of the tests.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hintplan.plans.errors import HintplanError, PlanError
from hintplan.plans.lazy import load
from hintplan.plans.rehearsal.suite import GivenCell, GivenRow
from hintplan.plans.rehearsal.yaml_nodes import MOST_BYTES, Place, TextNode
from hintplan.plans.text.links import is_inside, reason


def beneath(node: TextNode, folder: str) -> str:
    """Return the path of a file that ``node`` names beneath ``folder``; PlanError at the node for any other."""
    name = node.text or ""
    path = os.path.normpath(os.path.join(folder, name))
    if os.path.isabs(name) or not is_inside(path, folder or "."):
        raise node.place.error(f"'{name}' is not beneath the folder of the tests", "put the file there")
    if not os.path.isfile(path):
        raise node.place.error(f"there is no file '{name}' in {folder or 'this folder'}")
    return path


def rows_of_file(node: TextNode, folder: str) -> Iterator[GivenRow]:
    """Yield the rows of a file; PlanError at the node, or in the file, for one that cannot be read."""
    path = beneath(node, folder)
    if os.path.getsize(path) > MOST_BYTES:
        raise node.place.error(f"'{node.text}' has more than {MOST_BYTES >> 20} MiB", "take fewer rows")
    match Path(path).suffix.lower():
        case ".csv":
            yield from _of_csv(_text_of(path, node), path)
        case ".json" | ".jsonl" | ".ndjson":
            yield from _of_json(_text_of(path, node), path)
        case ".parquet":
            yield from _of_parquet(path, node)
        case _:
            raise node.place.error(
                f"'{node.text}' is no CSV, JSON or Parquet file", "write rows as a list, or such a file"
            )


def _text_of(path: str, node: TextNode) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise node.place.error(f"'{node.text}' cannot be read: {reason(error, path)}") from error
    except UnicodeDecodeError as error:
        raise node.place.error(f"'{node.text}' is not UTF-8", "save it as UTF-8") from error


def _of_csv(text: str, path: str) -> Iterator[GivenRow]:
    """Yield the rows of a CSV text; an empty field is NULL."""
    lines = csv.reader(io.StringIO(text, newline=""))
    header = next(lines, None)
    if not header:
        raise PlanError("has no line with the names of the columns", file=path, line=1, column=1)
    for fields in lines:
        if not fields:
            continue
        place = Place(file=path, line=lines.line_num, column=1)
        if len(fields) != len(header):
            raise place.error(f"the line has {len(fields)} fields, and the first line {len(header)}")
        values = (field if field else None for field in fields)
        yield _row(dict(zip(header, values, strict=True)), place)


def _of_json(text: str, path: str) -> Iterator[GivenRow]:
    """Yield the rows of a JSON text, with numbers as they are written."""
    if text.lstrip().startswith("["):
        whole = _parsed(text, path, 1)
        values = [(Place(file=path, line=1, column=1), value) for value in whole]
    else:
        lines = enumerate(text.split("\n"), 1)
        values = [
            (Place(file=path, line=number, column=1), _parsed(line, path, number))
            for number, line in lines
            if line.strip()
        ]
    for place, value in values:
        if not isinstance(value, dict):
            raise place.error("a row is an object")
        yield _row(value, place)


def _parsed(text: str, path: str, line: int) -> Any:
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        place = Place(file=path, line=line + error.lineno - 1, column=error.colno)
        raise place.error(f"the text is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise Place(file=path, line=line, column=1).error("the values are nested too deep") from error


def _of_parquet(path: str, node: TextNode) -> Iterator[GivenRow]:
    try:
        rows = load("hintplan.runtime.rehearsal.parquet_rows:parquet_rows")(path)
    except HintplanError as error:
        raise node.place.error(f"'{node.text}' {error.diagnostics[0].message}") from error
    for number, row in enumerate(rows, 1):
        yield _row(row, Place(file=path, line=number, column=1))


def _row(values: Mapping[str, object], place: Place) -> GivenRow:
    cells = {name: GivenCell(value=value, place=place) for name, value in values.items()}
    return GivenRow(cells=cells, place=place, may_have_more=True)
