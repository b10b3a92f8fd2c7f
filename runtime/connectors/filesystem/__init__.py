"""The filesystem connector: directories of files that jobs read, append to and look up rows in."""

from __future__ import annotations

from hintplan.plans.connectors.filesystem import FILESYSTEM
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.filesystem.overwrite import batch_overwriter
from hintplan.runtime.connectors.filesystem.read import read, read_batch, read_files, read_in_arrow
from hintplan.runtime.connectors.filesystem.write import batch_writer, batches_had, micro_batch_writer, writer
from hintplan.runtime.connectors.filesystem.wrong_line import wrong_line
from hintplan.runtime.lookup.source import source_of_classes

__all__ = ["CODE"]

_SOURCE = source_of_classes(FILESYSTEM.name, f"{__name__}.scan", {"full": "FilesScan"})

CODE = ConnectorCode(
    connector=FILESYSTEM,
    read=read,
    read_in_arrow=read_in_arrow,
    read_batch=read_batch,
    read_files=read_files,
    wrong_line=wrong_line,
    writer=writer,
    micro_batch_writer=micro_batch_writer,
    batch_writer=batch_writer,
    batch_overwriter=batch_overwriter,
    batches_had=batches_had,
    counts_all=lambda table: True,
    lookup=lambda options: _SOURCE,
)
