"""Classes that a plan names, for the runtime: loaded as :mod:`hintplan.plans.declarations.classes` allows, and checked
for what they extend.

>>> load_class("os.PathLike", ("shop",), object, path="operators.lookup_r.cache.lookup.partial-cache.class")
Traceback (most recent call last):
  ...
hintplan.plans.errors.RunError: operators.lookup_r.cache.lookup.partial-cache.class: the class os.PathLike may not be
loaded: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hintplan.plans.declarations.class_shape import Method, check_shape
from hintplan.plans.declarations.classes import LOOKUPS, ClassRefusal, load_named_class
from hintplan.plans.errors import RunError


def load_class(
    name: str,
    modules: Sequence[str],
    expected: type,
    *,
    path: str,
    group: str = LOOKUPS,
    methods: Sequence[Method] = (),
) -> Any:
    """The subclass of ``expected`` called ``name``; RunError, naming ``path`` in the plan, if it is not to be had.

    ``group`` is the group of entry points that allows classes besides ``modules``. With ``methods`` the class is one
    that is created without arguments, and can be called like that.
    """
    needed = (
        "the module must be importable where the run starts and in the Python workers: "
        "put it on PYTHONPATH here, and --allow-module sends it to the workers; "
        "--conf spark.submit.pyFiles=A.py,B.zip takes along what it imports"
    )
    try:
        found = load_named_class(name, modules, group=group, needed=needed)
    except ClassRefusal as error:
        raise RunError(str(error), hint=error.hint, path=path) from error
    if not issubclass(found, expected):
        module_name, _, class_name = name.rpartition(".")
        raise RunError(f"{class_name} in module {module_name} is no {expected.__name__}", path=path)
    if methods:
        try:
            check_shape(found, name, methods)
        except ClassRefusal as error:
            raise RunError(str(error), hint=error.hint, path=path) from error
    return found
