"""The command ``hintplan compile``. It compiles a SQL script to a plan, and prints warnings and errors.

This module owns the command's options and the display of findings with their source text. The root of the command line
maps errors to exit codes.

>>> compile_command.name
'compile'
"""

from __future__ import annotations

import os

import click

from hintplan.plans.commands.options import allow_module_option, config_option, init_option, plan_output_option
from hintplan.plans.commands.rebase import rebase_options, write_rebased
from hintplan.plans.errors import PlanError, SqlError
from hintplan.plans.files.codec import dumps, put_plan_bytes
from hintplan.plans.files.plan_source import init_texts
from hintplan.plans.merge.overwrite import refuse_overwrite
from hintplan.plans.text.findings import errors_text, findings_text
from hintplan.plans.text.terminal import print_message
from hintplan.plans.text.text_file import read_text

_STDIN = "<stdin>"


@click.command("compile", help="Compile a SQL script to a plan; '-' reads the script from standard input.")
@click.argument("script", type=click.Path(dir_okay=False, allow_dash=True))
@plan_output_option
@config_option
@click.option("--strict-hints", is_flag=True, help="Treat warnings about hints as errors.")
@allow_module_option
@init_option
@click.option("--name", help="The plan's name, unless the script sets 'pipeline.name'.")
@click.option("--keep-edits", metavar="OLD", help="Carry the edits of this plan over, as 'hintplan rebase' does.")
@click.option("--overwrite", is_flag=True, help="Replace the file of -o even if it has edits, or is no plan.")
@click.option("--verbose", is_flag=True, help="List the settings of Flink that have no effect here, and why.")
@click.option("--json", "as_json", is_flag=True, help="With --keep-edits: print the outcome of each edit as JSON.")
@rebase_options
def compile_command(
    script: str,
    output: str | None,
    config: dict[str, str],
    strict_hints: bool,
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    name: str | None,
    keep_edits: str | None,
    overwrite: bool,
    verbose: bool,
    as_json: bool,
    moves: tuple[str, ...],
    drop_orphans: bool,
    allow_fact_edits: bool,
) -> int:
    """Compile ``script`` and write the plan. Findings go to standard error."""
    if keep_edits is None and (as_json or moves or drop_orphans or allow_fact_edits):
        raise click.UsageError("--json, --map, --drop-orphans and --allow-fact-edits go with --keep-edits")
    if overwrite and output is None:
        raise click.UsageError("--overwrite goes with -o")
    file = _STDIN if script == "-" else script
    text = read_text(script, file)
    texts = init_texts(init)
    from hintplan.planner.compile import compile_script  # sqlglot loads slowly, and --help does not need it

    try:
        compilation = compile_script(
            text, config, name=name, file=file, strict_hints=strict_hints, allow_modules=allow_modules, init=texts
        )
    except SqlError as error:
        shown = errors_text(error.diagnostics, lambda name: texts.get(name or "", text))
        raise click.ClickException(shown) from error
    for line in findings_text(compilation.findings, lambda name: texts.get(name or "", text), verbose=verbose):
        print_message(line)
    missing = keep_edits is not None and not os.path.exists(keep_edits)
    if missing and keep_edits != output:
        raise PlanError("the plan whose edits should be kept does not exist", file=keep_edits)
    if output is not None and output != keep_edits and not overwrite:
        refuse_overwrite(output)
    if keep_edits is not None and not missing:
        return write_rebased(
            compilation.plan,
            keep_edits,
            output,
            moves=moves,
            drop_orphans=drop_orphans,
            allow_fact_edits=allow_fact_edits,
            as_json=as_json,
        )
    put_plan_bytes(dumps(compilation.plan), output)
    return 0
