"""The driver's translation of a correlate operator into the data for workers (:mod:`hintplan.runtime.functions.spec`).

It loads the class of the function. So a class that is not allowed, is missing, or has changed since the plan was
compiled is refused before anything starts. ``plans`` has checked before that the plan is valid. This module knows no
Spark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Function
from hintplan.plans.operators import Correlate
from hintplan.runtime.functions.call import CallPolicy
from hintplan.runtime.functions.spec import CalledFunction, FunctionSpec
from hintplan.runtime.functions.worker import load_function
from hintplan.runtime.kernels.found_rows import JoinedRows
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.storage.pins import PinPlace


def function_spec(
    op: Correlate,
    function: Function,
    arguments: tuple[str, ...],
    rows: JoinedRows,
    run: RequestRun,
    pins: PinPlace | None = None,
    *,
    given: type[Any] | None = None,
) -> FunctionSpec:
    """Bind ``op`` to its function, settings and run; ``arguments`` are columns. RunError for a class it cannot use.

    ``pins`` is where results are pinned, unless the function is deterministic. ``given`` is called instead of the class
    that the plan names.
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
        given=given,
    )
    function_class = load_function(spec)
    return spec if function_class.deterministic else replace(spec, pins=pins)


def called_function(operator: str, name: str, function: Function, run: RequestRun) -> CalledFunction:
    """Return an aggregate function for calls by this operator; its class is not loaded yet."""
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
