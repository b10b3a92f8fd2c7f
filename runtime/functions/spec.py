"""Everything a Python worker must know of one operator that calls a function, as plain data that travels with the task.

:mod:`hintplan.runtime.functions.plan` makes it of the plan on the driver; :mod:`hintplan.runtime.functions.worker`
opens what it describes. Times in ms.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hintplan.plans.declarations.tables import Column, FunctionKind
from hintplan.runtime.kernels.found_rows import JoinedRows
from hintplan.runtime.storage.pins import PinPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """How ``operator`` calls ``function``.

    ``capacity`` bounds the calls in flight. A call that fails is made again up to ``retries`` times, ``delay`` apart.
    ``timeout`` covers all calls for a row, 0 for none. Synchronous functions are called once, and take the time that
    they take.
    """

    operator: str
    function: str
    capacity: int = 1
    timeout: int = 0
    retries: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFunction:
    """A function that an operator calls; ``run`` tells runs on one cluster apart.

    ``declared`` are the types of the arguments, and ``returned`` the columns of the rows that the function returns. Of
    an aggregate function, ``accumulator`` is the type of its accumulators, and ``methods`` are those of its class that
    the plan counts on, besides those that each has.
    """

    run: str
    class_name: str
    kind: FunctionKind
    allowed_modules: tuple[str, ...]
    policy: CallPolicy
    declared: tuple[str, ...]
    returned: tuple[Column, ...]
    accumulator: str | None = None
    methods: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, str]:
        """The operator, and a digest of the run, the class and the settings: what an open function is found by."""
        facts = (self.run, self.class_name, self.kind, self.policy, self.declared, self.returned, self.accumulator)
        return self.policy.operator, hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec(CalledFunction):
    """One operator that calls a function for each row.

    ``arguments`` are input columns, in the order of ``eval``. ``rows`` joins what the function returns with its input
    rows. What it returns is pinned at ``pins``, if anywhere.
    """

    arguments: tuple[str, ...]
    rows: JoinedRows
    pins: PinPlace | None = None
