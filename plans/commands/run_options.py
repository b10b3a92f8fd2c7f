"""Options shared by the commands that run plans or otherwise start Spark, and the checks of their usage.

    @click.command("run")
    @master_option
    @remote_option
    @conf_option
    def run_command(master: str | None, remote: str | None, conf: dict[str, str]) -> int:
        one_spark(master, remote)

This module does not know their effect on a run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from hintplan.plans.commands.options import key_value_option
from hintplan.plans.connectors.policy import KEYS, SWITCHES, policy_for, wrong_value
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.text.project import FILE
from hintplan.plans.text.terminal import hide

master_option = click.option(
    "--master", metavar="URL", help="Spark master (default: Spark's configuration, else local[*])."
)
remote_option = click.option(
    "--remote", envvar="SPARK_REMOTE", metavar="URL", help="Spark Connect server, such as sc://host:15002."
)
conf_option = key_value_option("--conf", words="A Spark setting; repeatable.")
allow_state_drop_option = click.option(
    "--allow-state-drop", is_flag=True, help="Drop state that the plan does not continue."
)
keep_state_option = click.option(
    "--keep-state",
    multiple=True,
    metavar="OPERATOR",
    help="Keep the state of this operator, although it would now receive other rows; repeatable.",
)
allow_older_sink_option = click.option(
    "--allow-older-sink", is_flag=True, help="Continue without rows that a sink had and has lost."
)
allow_missing_files_option = click.option(
    "--allow-missing-files",
    is_flag=True,
    help="Continue without source files that were removed after a batch recorded them.",
)
debug_option = click.option("--debug", is_flag=True, help="Show tracebacks and Spark's messages.")


_ALLOWED = {
    "allow-unrestricted-spark": (None, "A Spark session that was started without restricted mode."),
    "allow-module": ("MODULE", "A module from which a plan may load classes."),
    "allow-path": ("DIR", "Allow only local files below this directory; repeatable."),
    "allow-env": ("NAME", "An environment variable that ${env:NAME} may refer to."),
    "allow-host": ("[http://]HOST[:PORT]", "A server to which the plan may connect."),
    "allow-scheme": ("SCHEME[://BUCKET]", "A file system besides local files and the file system of the checkpoint."),
}
_Command = TypeVar("_Command", bound=Callable[..., Any])


def policy_options(command: _Command) -> _Command:
    """Add the options for what a run may reach to a command; they become its parameter ``policy``."""

    @wraps(command)
    def with_policy(*, policy_file: str | None, **given: object) -> object:
        allowed: Any = {field: given.pop(f"policy_{field}") for field in (*KEYS.values(), *SWITCHES.values())}
        policy = policy_for(policy_file, allowed)
        hide(policy.environment)
        return command(policy=policy, **given)

    options: Any = with_policy
    for flag, (metavar, words) in _ALLOWED.items():
        if flag in SWITCHES:
            option = click.option(f"--{flag}", f"policy_{SWITCHES[flag]}", is_flag=True, help=words)
        else:
            option = click.option(
                f"--{flag}", f"policy_{KEYS[flag]}", multiple=True, callback=_good_values, metavar=metavar, help=words
            )
        options = option(options)
    file = click.option(
        "--policy",
        "policy_file",
        metavar="FILE",
        help=f"A policy file; the --allow options add to it (default {FILE}).",
    )
    decorated: _Command = file(options)
    return decorated


def _good_values(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if problem := wrong_value(parameter.opts[0].removeprefix("--"), value):
            raise click.BadParameter(problem)
    return values


def duration_option(flag: str, what: str) -> Callable[[Any], Any]:
    """Return an option that takes a duration with its unit, with ``what`` as its help."""
    return click.option(flag, callback=_duration, metavar="DURATION", help=what)


def trigger_option(what: str) -> Callable[[Any], Any]:
    """Return the option ``--trigger``, the time between two batches, with ``what`` as its help."""
    return duration_option("--trigger", what)


def one_spark(master: str | None, remote: str | None) -> None:
    """Raise UsageError if the options both start Spark and connect to a server."""
    if master and remote:
        raise click.UsageError("--master starts Spark and --remote, or SPARK_REMOTE, connects to it; give one of them")


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            parse_duration(value, require_unit=True)
        except ValueError as error:
            raise click.BadParameter(f"{error}; write a duration such as '5 s'") from error
    return value
