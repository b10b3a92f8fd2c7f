"""A temporal join: in streams the kernel on the engine; Flink has none in batch jobs, and neither have we."""

from __future__ import annotations

from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.join import joined_on_engine

BUILDER = OperatorBuilder(stream=joined_on_engine, batch=None)
