"""A changelog-normalize operator, of streams only: the kernel on the engine."""

from __future__ import annotations

from plans.operators import ChangelogNormalize
from runtime.build.builder import BoundInputs, OperatorBuilder, with_state
from runtime.operators.changelog_normalize import ChangelogNormalizeOperator


def _bind(operator: ChangelogNormalize, inputs: BoundInputs) -> ChangelogNormalizeOperator:
    return ChangelogNormalizeOperator(
        columns=inputs.schemas[0], key=operator.key, ttl=inputs.ttls[0], kinds=operator.changelog
    )


BUILDER = OperatorBuilder(stream=with_state(_bind), batch=None, bind=_bind)
