"""``hintplan set``: edit and check settings of a plan."""

from __future__ import annotations

from dataclasses import replace

import click

from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    changes_with_costs,
    checkpoint_option,
    evidence_option,
    given_evidence,
    json_option,
    show_json,
)
from hintplan.plans.files.codec import loads, read_plan_bytes, write_plan_bytes
from hintplan.plans.text.terminal import print_data, print_message


@click.command("set")
@click.argument("path", metavar="PLAN")
@click.argument("assignments", metavar="PATH=VALUE...", nargs=-1)
@click.option("--remove", "removals", multiple=True, metavar="PATH", help="Remove a config key or a table option.")
@click.option("--reason", metavar="TEXT", help="Keep this note with the settings; '' removes the old note.")
@evidence_option
@checkpoint_option
@allow_fact_edits_option
@json_option
def set_command(
    path: str,
    assignments: tuple[str, ...],
    removals: tuple[str, ...],
    reason: str | None,
    evidence_file: str | None,
    checkpoint: str | None,
    allow_fact_edits: bool,
    as_json: bool,
) -> None:
    """Edit settings of a plan; nothing is written unless all edits are valid.

    \b
    hintplan set plan.json join_o_c.state.leftState.ttl='3 d' --reason 'late payments, see RFC 12'
    hintplan set plan.json '*.leftState.ttl'='3 d'
    hintplan set plan.json config.table.exec.state.ttl='2 h'
    hintplan set plan.json lookup_rates.async.capacity=50
    hintplan set plan.json lookup_rates.retry='3 x 10 s'
    hintplan set plan.json tables.orders.options.path=data/orders
    hintplan set plan.json --remove config.table.exec.state.ttl
    """
    from hintplan.plans.analysis.repeated import one_sided_changes
    from hintplan.plans.compare.diff import compare_plans
    from hintplan.plans.compare.json_report import changes_json
    from hintplan.plans.compare.report import changes_text
    from hintplan.plans.edit.assign import apply_edits
    from hintplan.plans.files.rewrite import rewrite
    from hintplan.plans.model.reasons import outdated_reasons

    if not assignments and not removals:
        raise click.UsageError("nothing to do: give PATH=VALUE or --remove PATH")
    data = read_plan_bytes(path)
    # The edit may repair the plan, so its meaning is checked afterwards.
    plan = loads(data, file=path, allow_fact_edits=allow_fact_edits, check_meaning=False)
    evidence = given_evidence(plan, file=evidence_file, checkpoint=checkpoint)
    edited = apply_edits(plan, map(_pair, assignments), removals, reason=reason)
    written = rewrite(data, plan, edited)
    loads(written, file=path, allow_fact_edits=allow_fact_edits)
    if written != data:
        write_plan_bytes(written, path)
    changes = changes_with_costs(compare_plans(plan, edited), evidence)
    if as_json:
        show_json(changes_json(changes))
    else:
        print_data(changes_text(changes))
    for old, was in () if reason is not None else outdated_reasons(plan, replace(edited, reasons=plan.reasons)):
        print_message(f"note: {old}: the reason was for {was} and is removed; set another one with --reason TEXT")
    for warning in one_sided_changes(plan, edited):
        print_message(f"note: {warning.path}: {warning.message}")


def _pair(assignment: str) -> tuple[str, str]:
    setting, equals, value = assignment.partition("=")
    if not equals:
        raise click.UsageError(f"expected PATH=VALUE, found '{assignment}'")
    return setting, value
