"""The description of an operator that calls a function, for Python workers, as plain data that travels with the task.

:mod:`hintplan.runtime.functions.plan` builds it from the plan on the driver, and
:mod:`hintplan.runtime.functions.worker` opens the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hintplan.plans.declarations.tables import Column, FunctionKind
from hintplan.runtime.functions.call import CallPolicy
from hintplan.runtime.kernels.found_rows import JoinedRows
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.worker.shared import shared_identity


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFunction:
    """A function that an operator calls; ``run`` identifies the run on its cluster.

    ``declared`` are the types of the arguments, and ``returned`` the columns of the returned rows. For an aggregate
    function, ``accumulator`` is the type of its accumulators. ``methods`` are the optional methods of its class that
    the plan relies on. ``given`` is a class that a test gives in place of ``class_name``.
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
    given: type[Any] | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """The operator, and a digest of the run, the class and the settings: the key of an open function."""
        facts = (self.run, self.class_name, self.kind, self.policy, self.declared, self.returned, self.accumulator)
        return shared_identity(self.policy.operator, facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec(CalledFunction):
    """One operator that calls a function for each row.

    ``arguments`` are input columns, in the order of ``eval``. ``rows`` joins the returned rows with the input rows.
    ``pins`` is where results are pinned, if at all.
    """

    arguments: tuple[str, ...]
    rows: JoinedRows
    pins: PinPlace | None = None
