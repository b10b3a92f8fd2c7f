"""A sink-materialize operator, of streams only: the kernel on the engine."""

from __future__ import annotations

from plans.operators import SinkMaterialize
from runtime.build.builder import BoundInputs, OperatorBuilder, with_state
from runtime.operators.sink_materialize import SinkMaterializeOperator


def _bind(operator: SinkMaterialize, inputs: BoundInputs) -> SinkMaterializeOperator:
    return SinkMaterializeOperator(
        columns=inputs.schemas[0], key=operator.key, changelog=inputs.changelog[0], ttl=inputs.ttls[0]
    )


BUILDER = OperatorBuilder(stream=with_state(_bind), batch=None, bind=_bind)
