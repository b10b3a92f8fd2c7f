"""The python connector: looks rows up with a user-defined class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.options import check_secret, option
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

PROPERTY = "properties."
CLASSES: Mapping[LookupMode, str] = {"sync": "class", "async": "async-class", "full": "scan-class"}
"""The option that names the class, by lookup mode."""

_CLASS_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


class UserClasses(LookedUp):
    """Lookups with a user-defined class."""

    name = "python"
    description = "Looks rows up with a class of yours."
    options = (
        option(CLASSES["sync"], description="A LookupFunction, as module.Class, for synchronous lookups."),
        option(CLASSES["async"], description="An AsyncLookupFunction, as module.Class, for asynchronous lookups."),
        option(CLASSES["full"], description="A ScanFunction, as module.Class, for a full cache."),
    )
    families = (PROPERTY,)
    lookup_modes = tuple(CLASSES)
    looked_up_by_users_code = True
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("mongodb", "hbase", "hbase-1.4", "hbase-2.2", "hbase-2.6", "dynamodb"),
        "look up with a class of yours and 'connector' = 'python'; to write, use a topic, and Kafka Connect",
    )

    def lookup_modes_of(self, table: Table) -> Iterable[LookupMode]:
        return (mode for mode, class_option in CLASSES.items() if class_option in table.options)

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        """Require at least one class, each written as ``module.Class``. Refuse literal secrets in properties."""
        class_options = {name: table.options[name] for name in CLASSES.values() if name in table.options}
        if not class_options:
            yield Diagnostic(
                message="the python connector needs one of the options 'class', 'async-class' and 'scan-class'",
                hint="write 'class' = 'module.Class', the name of a LookupFunction",
                path=f"{path}.class",
            )
        for key, value in table.options.items():
            if key.startswith(PROPERTY):
                yield from check_secret(f"{path}.{key}", f"the property {key.removeprefix(PROPERTY)}", value)
        for name, value in class_options.items():
            if not _CLASS_NAME.fullmatch(value):
                yield Diagnostic(
                    message=f"{name!r} is {value!r}, expected the dotted name of a class",
                    hint="write 'module.Class'",
                    path=f"{path}.{name}",
                )


PYTHON = UserClasses()
