"""Options that the commands share which run plans, or start Spark for something else; and what is wrong usage of them.

    @click.command("run")
    @master_option
    @remote_option
    @conf_option
    def run_command(master: str | None, remote: str | None, conf: dict[str, str]) -> int:
        one_spark(master, remote)

Knows nothing of what a run makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from plans.config_option import key_values
from plans.durations import parse_duration

__all__ = [
    "allow_host_option",
    "allow_plan_module_option",
    "allow_state_drop_option",
    "conf_option",
    "debug_option",
    "master_option",
    "one_spark",
    "remote_option",
    "trigger_option",
]

master_option = click.option(
    "--master", metavar="URL", help="Spark master (default: what Spark is configured to, else local[*])."
)
remote_option = click.option(
    "--remote", envvar="SPARK_REMOTE", metavar="URL", help="Spark Connect server, such as sc://host:15002."
)
conf_option = click.option(
    "--conf",
    multiple=True,
    callback=lambda ctx, parameter, given: key_values(given),
    metavar="KEY=VALUE",
    help="A Spark setting; repeatable.",
)
allow_plan_module_option = click.option(
    "--allow-module", "allow_modules", multiple=True, metavar="MODULE", help="Where a plan's classes may be."
)
allow_host_option = click.option(
    "--allow-host", "allow_hosts", multiple=True, metavar="HOST[:PORT]", help="Whom HTTP lookups may ask."
)
allow_state_drop_option = click.option(
    "--allow-state-drop", is_flag=True, help="Go on without state that the plan does not continue."
)
debug_option = click.option("--debug", is_flag=True, help="Show tracebacks and what Spark says.")


def trigger_option(what: str) -> Callable[[Any], Any]:
    """``--trigger``, a duration with its unit, described as ``what``."""
    return click.option("--trigger", callback=_duration, metavar="DURATION", help=what)


def one_spark(master: str | None, remote: str | None) -> None:
    """Wrong usage if Spark is to be started and connected to."""
    if master and remote:
        raise click.UsageError("--master starts Spark and --remote, or SPARK_REMOTE, connects to it; give one of them")


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            parse_duration(value, require_unit=True)
        except ValueError as error:
            raise click.BadParameter(f"{error}; write a duration such as '5 s'") from error
    return value
