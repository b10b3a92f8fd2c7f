"""``hintplan sql``: a script from beginning to end, or a shell.

Owns the command's options, what becomes of errors in a script, and exit codes: 0, 1 if a statement was wrong or failed,
130 and 143 if a signal stopped one.

>>> sql_command.name
'sql'
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from plans.client.client import Client
from plans.config_option import config_option, key_values
from plans.durations import parse_duration
from plans.errors import SqlError
from plans.lazy import load
from plans.terminal import say
from plans.text_file import read_text

__all__ = ["sql_command"]

_STDIN = "<stdin>"


def _pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    return key_values(values)


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            parse_duration(value, require_unit=True)
        except ValueError as error:
            raise click.BadParameter(f"{error}; write a duration such as '5 s'") from error
    return value


@click.command("sql")
@click.argument("script", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--continue-on-error", is_flag=True, help="Go on with the next statement after one that fails.")
@config_option
@click.option("--strict-hints", is_flag=True, help="Make hints that do not do what they say errors.")
@click.option("--checkpoint", metavar="DIR", help="Where INSERTs keep state between runs, a directory per plan.")
@click.option("--trigger", callback=_duration, metavar="DURATION", help="Time between batches of background jobs.")
@click.option("--master", metavar="URL", help="Spark master (default local[*]).")
@click.option("--remote", metavar="URL", help="Spark Connect server, such as sc://host:15002.")
@click.option("--conf", multiple=True, callback=_pairs, metavar="KEY=VALUE", help="A Spark setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON, an object a line.")
@click.option("--allow-module", "allow_modules", multiple=True, metavar="MODULE", help="Where a plan's classes may be.")
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="HOST[:PORT]", help="Whom HTTP lookups may ask.")
@click.option("--allow-fact-edits", is_flag=True, help="Accept operators and tables that were changed by hand.")
@click.option("--debug", is_flag=True, help="Show tracebacks and what Spark says.")
def sql_command(
    script: str | None,
    continue_on_error: bool,
    config: dict[str, str],
    strict_hints: bool,
    as_json: bool,
    allow_fact_edits: bool,
    **options: Any,
) -> int:
    """Run the statements of SCRIPT in order, in one session; '-' reads them from standard input.

    Without SCRIPT, on a terminal, statements are typed in.
    """
    if options["master"] and options["remote"]:
        raise click.UsageError("--master starts Spark and --remote connects to it; give one of them")
    typed = script is None and sys.stdin.isatty() and not as_json
    file = None if typed else _STDIN if script in (None, "-") else script
    text = "" if typed else read_text(script or "-", file or _STDIN)
    open_session = load("planner.session:Session").open
    client = Client(
        session=open_session(config, file=file, strict_hints=strict_hints, allow_modules=options["allow_modules"]),
        open_engine=lambda: load("runtime.engine:Engine")(as_json=as_json, **options),
        as_json=as_json,
        allow_fact_edits=allow_fact_edits,
        typed=typed,
    )
    try:
        if typed:
            run_shell: Callable[..., int] = load("plans.client.shell:run_shell")
            return run_shell(client, debug=options["debug"])
        return _run_script(client, text, continue_on_error=continue_on_error, debug=options["debug"])
    finally:
        client.close()


def _run_script(client: Client, text: str, *, continue_on_error: bool, debug: bool) -> int:
    failed: list[int] = []
    source = client.session.source
    for unit in client.units(text):
        try:
            code = client.run(unit)
        except SqlError as error:
            if debug:
                say(traceback.format_exc())
            for problem in error.diagnostics:
                client.say_problem(problem, "error")
            failed.append(source.place(unit.start)[0])
            if not continue_on_error:
                break
        else:
            if code:
                return code
    if failed and continue_on_error:
        lines = ", ".join(map(str, failed))
        what = f"{len(failed)} of {client.statement} statements failed"
        say(f"{what}, at line {lines}" if len(failed) == 1 else f"{what}, at lines {lines}")
    code = 0 if failed and not continue_on_error else client.wait()
    return code or (1 if failed else 0)
