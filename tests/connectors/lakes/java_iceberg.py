"""Another engine on tables of a lake: Iceberg's own library in Java, which commits deletes of single rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from py4j.java_gateway import JavaGateway

from tests.connectors.lakes.lakes import IcebergLake
from tests.connectors.lakes.rest_catalog import jars

_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


class JavaIceberg:
    """Commits to the tables of a lake in SQLite."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.jvm = gateway.jvm.org.apache.iceberg

    @contextmanager
    def table(self, lake: IcebergLake, name: str) -> Iterator[Any]:
        catalog = self.jvm.jdbc.JdbcCatalog()
        catalog.setConf(self.gateway.jvm.org.apache.hadoop.conf.Configuration())
        told = {"uri": f"jdbc:sqlite:{lake.catalog}", "warehouse": f"file://{lake.root}/tables"}
        catalog.initialize("lake", self._map({**told, "jdbc.schema-version": "V1"}))
        try:
            yield catalog.loadTable(self.jvm.catalog.TableIdentifier.parse(f"db.{name}"))
        finally:
            catalog.close()

    def delete_places(self, lake: IcebergLake, name: str, places: Mapping[str, Sequence[int]], part: str = "") -> None:
        """Commit one file of deletes by position, of the rows at ``places`` of data files; ``part`` is ``p=1``."""
        rows = [{"file_path": file, "pos": at} for file in sorted(places) for at in sorted(places[file])]
        self._commit(lake, name, pa.Table.from_pylist(rows, _DELETES), part, lambda file: file.ofPositionDeletes())

    def delete_equal(self, lake: IcebergLake, name: str, column: int, values: pa.Table) -> None:
        """Commit one file of deletes of all rows with ``values`` in the column of that id."""
        ids = self.gateway.new_array(self.gateway.jvm.int, 1)
        ids[0] = column
        schema = pa.schema([values.schema.field(0).with_metadata({"PARQUET:field_id": str(column)})])
        self._commit(lake, name, values.cast(schema), "", lambda file: file.ofEqualityDeletes(ids))

    def _commit(self, lake: IcebergLake, name: str, rows: pa.Table, part: str, kind: Any) -> None:
        number = len(list(lake.root.rglob("deletes-*")))
        path = lake.root / "tables" / "db" / name / "data" / f"deletes-{number}.parquet"
        pq.write_table(rows, path)
        with self.table(lake, name) as table:
            file = kind(self.jvm.FileMetadata.deleteFileBuilder(table.spec())).withPath(f"file://{path}")
            file = file.withFileSizeInBytes(path.stat().st_size).withRecordCount(rows.num_rows)
            file = file.withFormat(self.jvm.FileFormat.PARQUET)
            file = file.withPartitionPath(part) if part else file
            table.newRowDelta().addDeletes(file.build()).commit()

    def _map(self, values: Mapping[str, str]) -> Any:
        found = self.gateway.jvm.java.util.HashMap()
        for name, value in values.items():
            found.put(name, value)
        return found


@contextmanager
def java_iceberg() -> Iterator[JavaIceberg]:
    """Iceberg in a JVM of its own."""
    (bridge,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(bridge), classpath=":".join(map(str, jars())), javaopts=["-Xmx256m"], die_on_exit=True
    )
    try:
        yield JavaIceberg(gateway)
    finally:
        gateway.shutdown()
