"""Loads classes that a plan names, for the runtime.

:mod:`hintplan.plans.declarations.classes` decides which classes are allowed; this module also checks the base class.

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
    """Return the subclass of ``expected`` called ``name``; RunError with ``path`` in the plan if it cannot be loaded.

    ``group`` is the group of entry points that allows classes in addition to ``modules``. With ``methods``, the class
    must be constructible without arguments and have these methods.
    """
    needed = (
        "the module must be importable where the run starts and in the Python workers: "
        "put it on PYTHONPATH here, and --allow-module sends it to the workers; "
        "--conf spark.submit.pyFiles=A.py,B.zip adds its imports"
    )
    try:
        loaded = load_named_class(name, modules, group=group, needed=needed)
    except ClassRefusal as error:
        raise RunError(str(error), hint=error.hint, path=path) from error
    if not issubclass(loaded, expected):
        module_name, _, class_name = name.rpartition(".")
        raise RunError(f"{class_name} in module {module_name} is no {expected.__name__}", path=path)
    if methods:
        try:
            check_shape(loaded, name, methods)
        except ClassRefusal as error:
            raise RunError(str(error), hint=error.hint, path=path) from error
    return loaded
