"""A job that counts the lines of large files of CSV and JSON in a remote store, which workers read in pieces.

write_lines(system, "lake/in")                        # a file of more than 128 MB and a compressed one, in each format
plan = compile_sql(script("s3a://lake/in", tmp_path / "sums.db"))
assert sums(tmp_path / "sums.db") == EXPECTED         # after the run
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pyarrow.fs as pafs

__all__ = ["EXPECTED", "script", "sums", "write_lines"]

FORMATS = ("csv", "json")
_LINES, _PACKED = 140_000, 1000
"""The numbers of lines of about 1000 bytes in a large file, and of those in a compressed one."""
_KEYS = 3
_PAD = "x" * 970


def _line(file_format: str, number: int) -> bytes:
    """Line ``number`` of a file; some of the values are of a form that workers leave to Spark's parser."""
    key, value = number % _KEYS, str(number) if number % 1000 else f"{number}.0"
    if file_format == "csv":
        return f"{key},{value},{_PAD}\n".encode()
    return f'{{"k": {key}, "v": {value}, "pad": {json.dumps(_PAD)}}}\n'.encode()


def write_lines(system: pafs.FileSystem, directory: str) -> None:
    """Write the files of each format into a directory of its own."""
    for file_format in FORMATS:
        system.create_dir(f"{directory}/{file_format}")
        with system.open_output_stream(f"{directory}/{file_format}/large.{file_format}") as out:
            for first in range(0, _LINES, 10_000):
                out.write(b"".join(_line(file_format, number) for number in range(first, first + 10_000)))
        with system.open_output_stream(f"{directory}/{file_format}/packed.{file_format}.gz", compression=None) as out:
            out.write(gzip.compress(b"".join(_line(file_format, number) for number in range(_PACKED))))


def script(url: str, database: Path) -> str:
    """The job over the directory at ``url``."""
    statements = ["SET 'parallelism.default' = '2';"]
    for file_format in FORMATS:
        options = "'csv.disable-quote-character' = 'true'," if file_format == "csv" else ""
        statements.append(f"""
        CREATE TABLE {file_format}_lines (k INT, v DOUBLE, pad STRING) WITH (
          'connector' = 'filesystem', {options} 'format' = '{file_format}', 'path' = '{url}/{file_format}');
        CREATE TABLE {file_format}_sums (k INT, n BIGINT, v DOUBLE, PRIMARY KEY (k) NOT ENFORCED)
        WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = '{file_format}_sums');
        INSERT INTO {file_format}_sums SELECT k, COUNT(*), SUM(v) FROM {file_format}_lines GROUP BY k;""")
    return "".join(statements)


def _expected() -> list[tuple[int, int, float]]:
    numbers = [*range(_LINES), *range(_PACKED)]
    of_keys = [[number for number in numbers if number % _KEYS == key] for key in range(_KEYS)]
    return [(key, len(found), float(sum(found))) for key, found in enumerate(of_keys)]


EXPECTED = dict.fromkeys(FORMATS, _expected())
"""The rows of the result of each format: computed here from the numbers of the lines."""


def sums(database: Path) -> dict[str, list[tuple[int, int, float]]]:
    """The rows of the result of each format."""
    with sqlite3.connect(database) as found:
        return {name: found.execute(f"SELECT k, n, v FROM {name}_sums ORDER BY k").fetchall() for name in FORMATS}
