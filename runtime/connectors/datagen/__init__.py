"""The datagen connector: a source of generated rows."""

from __future__ import annotations

from hintplan.runtime.connectors.datagen.source import GeneratedRows

__all__ = ["CODE"]

CODE = GeneratedRows()
