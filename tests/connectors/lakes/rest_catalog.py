"""A REST catalog of Iceberg's own, in Java, with its tables in SQLite: a process of the tests, with a directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connectors.lakes.lakes import IcebergLake
from tests.connectors.lookup_sources.servers import free_port, wait_for_port

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


class RestCatalog:
    """The server, which can be killed; what it knows stays where it is. ``more`` is configuration of the catalog."""

    def __init__(self, root: Path, **more: str) -> None:
        self.port = free_port()
        self.lake = RestLake(root, f"http://127.0.0.1:{self.port}")
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {
            "CATALOG_REST_PORT": str(self.port), "CATALOG_WAREHOUSE": f"file://{root}/tables",
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{self.lake.catalog}",
            "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
            # When the catalog starts again, its search for its tables leaves a read open, which would lock out any
            # other connection that writes.
            "CATALOG_CLIENTS": "1", **more,
        }  # fmt: skip

    def start(self) -> None:
        command = ["java", "-Xmx256m", "-cp", ":".join(map(str, jars())), SERVER]
        with (self.lake.root / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env={**os.environ, **self._environment}, stdout=log, stderr=log)
        wait_for_port(self.port)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def jars() -> list[Path]:
    """All jars that are listed; empty if one is not there."""
    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [CACHE / line.rpartition("/")[2] for line in lines]
    return found if all(path.is_file() for path in found) else []


@contextmanager
def rest_catalog(root: Path, **more: str) -> Iterator[RestCatalog]:
    """A catalog that runs meanwhile, for a lake below ``root``."""
    catalog = RestCatalog(root, **more)
    catalog.start()
    try:
        yield catalog
    finally:
        catalog.kill()
