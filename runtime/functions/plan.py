"""A correlate operator of the plan as what workers are told (:mod:`hintplan.runtime.functions.spec`); on the driver, no
Spark.

Loads the class, so that one that is not allowed, is missing, or has changed since the plan was compiled is refused
before anything starts. What a plan may say at all is checked before, in ``plans``.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Function
from hintplan.plans.operators import Correlate
from hintplan.runtime.functions.spec import CalledFunction, CallPolicy, FunctionSpec
from hintplan.runtime.functions.worker import load_function
from hintplan.runtime.kernels.found_rows import JoinedRows
from hintplan.runtime.lookup.plan import LookupRun
from hintplan.runtime.storage.pins import PinPlace


def function_spec(
    op: Correlate,
    function: Function,
    arguments: tuple[str, ...],
    rows: JoinedRows,
    run: LookupRun,
    pins: PinPlace | None = None,
) -> FunctionSpec:
    """Bind ``op`` to its function, settings and run; ``arguments`` are columns. RunError for a class it cannot use.

    ``pins`` is where what it returns is pinned, unless it always returns the same.
    """
    spec = FunctionSpec(
        run=run.token,
        class_name=function.class_name,
        kind=function.kind,
        allowed_modules=run.allowed_modules,
        policy=_policy(op),
        arguments=arguments,
        declared=function.arguments,
        returned=function.output,
        rows=rows,
    )
    found = load_function(spec)
    return spec if found.deterministic else replace(spec, pins=pins)


def called_function(operator: str, name: str, function: Function, run: LookupRun) -> CalledFunction:
    """An aggregate function as the operator of this id calls it; its class is not loaded yet."""
    return CalledFunction(
        run=run.token,
        class_name=function.class_name,
        kind=function.kind,
        allowed_modules=run.allowed_modules,
        policy=CallPolicy(operator=operator, function=name),
        declared=function.arguments,
        returned=function.output,
        accumulator=function.accumulator,
        methods=function.methods,
    )


def _policy(op: Correlate) -> CallPolicy:
    if op.async_ is None:
        return CallPolicy(operator=op.id, function=op.function)
    retries = op.retry is not None and op.retry.strategy == "fixed_delay"
    return CallPolicy(
        operator=op.id,
        function=op.function,
        capacity=op.async_.buffer_capacity,
        timeout=parse_duration(op.async_.timeout),
        retries=op.retry.max_attempts if op.retry is not None and retries else 0,
        delay=parse_duration(op.retry.fixed_delay) if op.retry is not None and retries else 0,
    )
