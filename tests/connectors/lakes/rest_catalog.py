"""A REST catalog of Iceberg's own, in Java, with its tables in SQLite: a process of the tests, with a directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connectors.lakes.lakes import IcebergLake
from tests.lookup_sources.servers import free_port, wait_for_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hintplan" / "iceberg"
LISTED = Path(__file__).parents[3] / ".ci" / "iceberg-jars"
SERVER = "org.apache.iceberg.rest.RESTCatalogServer"


class RestLake(IcebergLake):
    """Tables that the catalog at ``url`` knows, which keeps them in the SQLite database of the lake."""

    def __init__(self, root: Path, url: str) -> None:
        super().__init__(root)
        self.url = url

    def options(self, name: str) -> dict[str, str]:
        own = {"catalog-type": "rest", "uri": self.url, "warehouse": f"{self.root}/tables"}
        return {**super().options(name), **own}


def jars() -> list[Path]:
    """All jars that are listed; empty if one is not there."""
    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [CACHE / line.rpartition("/")[2] for line in lines]
    return found if all(path.is_file() for path in found) else []


@contextmanager
def rest_catalog(root: Path) -> Iterator[RestLake]:
    """A lake whose catalog runs meanwhile."""
    port = free_port()
    lake = RestLake(root, f"http://127.0.0.1:{port}")
    environment = {
        "CATALOG_REST_PORT": str(port), "CATALOG_WAREHOUSE": f"file://{root}/tables",
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog", "CATALOG_URI": f"jdbc:sqlite:{lake.catalog}",
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
    }  # fmt: skip
    with (root / "log").open("wb") as log:
        command = ["java", "-Xmx256m", "-cp", ":".join(map(str, jars())), SERVER]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
    try:
        wait_for_port(port)
        yield lake
    finally:
        process.kill()
        process.wait()
