"""The options of commands that start Spark or connect to it, collected in one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from hintplan.plans.commands.run_options import one_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """``--master`` or ``--remote``, ``--conf`` and ``--debug``."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str]
    debug: bool


def with_spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``command`` take a single parameter ``spark`` in place of the four options.

    The caller declares the options themselves, in the order of the command's help. A usage error if they name two
    Sparks.
    """

    @wraps(command)
    def collected(*, master: str | None, remote: str | None, conf: Mapping[str, str], debug: bool, **given: Any) -> Any:
        one_spark(master, remote)
        return command(spark=SparkOptions(master=master, remote=remote, conf=conf, debug=debug), **given)

    return collected
