"""A sink-materialize, for streams only: the kernel on the engine."""

from __future__ import annotations

from hintplan.runtime.build.builder import OperatorBuilder, with_state

BUILDER = OperatorBuilder(stream=with_state(), batch=None)
