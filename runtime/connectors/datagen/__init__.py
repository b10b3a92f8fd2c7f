"""The datagen connector: a source of generated rows."""

from __future__ import annotations

from hintplan.plans.connectors.datagen import DATAGEN
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.datagen.source import read, read_batch

__all__ = ["CODE"]

CODE = ConnectorCode(connector=DATAGEN, read=read, read_batch=read_batch)
