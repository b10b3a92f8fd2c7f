"""``hintplan sql``: run a script from beginning to end, or a shell.

This module owns the command's options, the handling of errors in a script, and the exit codes: 0; 1 if a statement was
wrong or failed; 64 if one needs Spark and it is not installed; 130 or 143 if a signal stopped one.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

import click

from hintplan.plans.client.client import Client
from hintplan.plans.client.interfaces import PlannerSession
from hintplan.plans.commands.options import allow_fact_edits_option, config_option, init_option
from hintplan.plans.commands.run_options import (
    allow_missing_files_option,
    allow_older_sink_option,
    allow_state_drop_option,
    conf_option,
    debug_option,
    master_option,
    one_spark,
    policy_options,
    remote_option,
    trigger_option,
)
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import SqlError
from hintplan.plans.files.plan_source import init_texts
from hintplan.plans.lazy import load
from hintplan.plans.text.terminal import print_message
from hintplan.plans.text.text_file import read_text

_STDIN = "<stdin>"


class EngineOptions(TypedDict):
    """The options that the engine takes as they are."""

    checkpoint: str | None
    trigger: str | None
    master: str | None
    remote: str | None
    conf: Mapping[str, str]
    policy: Policy
    allow_state_drop: bool
    allow_older_sink: bool
    allow_missing_files: bool
    debug: bool


@click.command("sql")
@click.argument("script", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--continue-on-error", is_flag=True, help="Continue with the next statement after a statement that fails."
)
@config_option
@init_option
@click.option("--strict-hints", is_flag=True, help="Treat warnings about hints as errors.")
@click.option("--checkpoint", metavar="DIR", help="The directory for the state of INSERTs, with a directory per plan.")
@trigger_option("Time between batches of background jobs.")
@master_option
@remote_option
@conf_option
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON, one object per line.")
@policy_options
@allow_state_drop_option
@allow_older_sink_option
@allow_missing_files_option
@allow_fact_edits_option
@debug_option
def sql_command(
    script: str | None,
    continue_on_error: bool,
    config: dict[str, str],
    init: tuple[str, ...],
    strict_hints: bool,
    as_json: bool,
    allow_fact_edits: bool,
    **options: Unpack[EngineOptions],
) -> int:
    """Run the statements of SCRIPT in order, in one session; '-' reads them from standard input.

    Without SCRIPT, on a terminal, you type the statements.
    """
    one_spark(options["master"], options["remote"])
    typed = script is None and sys.stdin.isatty() and not as_json
    file = None if typed else _STDIN if script in (None, "-") else script
    text = "" if typed else read_text(script or "-", file or _STDIN)
    open_session: Callable[..., PlannerSession] = load("hintplan.planner.execute_statement:open_session")
    client = Client(
        session=open_session(config, file=file, strict_hints=strict_hints, allow_modules=options["policy"].modules),
        open_engine=lambda: load("hintplan.runtime.run.sql_client:open_engine")(as_json=as_json, **options),
        as_json=as_json,
        allow_fact_edits=allow_fact_edits,
        typed=typed,
        policy=options["policy"],
    )
    try:
        if not _read_init_files(client, init, debug=options["debug"]):
            return 1
        if typed:
            run_shell: Callable[..., int] = load("hintplan.plans.client.shell:run_shell")
            return run_shell(client, debug=options["debug"])
        return _run_script(client, text, continue_on_error=continue_on_error, debug=options["debug"])
    finally:
        client.close()


def _read_init_files(client: Client, names: Sequence[str], *, debug: bool) -> bool:
    """Read the init files and print all findings on them; return False if they could not be read."""
    session = client.session
    try:
        load("hintplan.planner.init_files:read_init_files")(session, init_texts(names))
        session.source.raise_problems()
    except SqlError as error:
        if debug:
            print_message(traceback.format_exc())
        client.say_errors(error)
        return False
    for finding in session.findings:
        client.say_problem(finding.diagnostic, finding.severity)
    return True


def _run_script(client: Client, text: str, *, continue_on_error: bool, debug: bool) -> int:
    failed: list[int] = []
    source = client.session.source
    for unit in client.units(text):
        try:
            code = client.run(unit)
        except SqlError as error:
            if debug:
                print_message(traceback.format_exc())
            client.say_errors(error)
            failed.append(source.place(unit.start)[0])
            if not continue_on_error:
                break
        else:
            if code:
                return code
    if failed and continue_on_error:
        lines = ", ".join(map(str, failed))
        summary = f"{len(failed)} of {client.statement} statements failed"
        print_message(f"{summary}, at line {lines}" if len(failed) == 1 else f"{summary}, at lines {lines}")
    code = 0 if failed and not continue_on_error else client.wait()
    return code or (1 if failed else 0)
