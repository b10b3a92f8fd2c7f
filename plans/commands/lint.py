"""``hintplan lint``: its options, and the description of a rule."""

from __future__ import annotations

import click

from hintplan.plans.commands.options import allow_module_option, init_option, json_format_option
from hintplan.plans.files.git import PREFIX
from hintplan.plans.lint.registry import RULES, rule_called
from hintplan.plans.lint.report import FORMATS, lint_report_text, lint_summary
from hintplan.plans.lint.run import LEVELS, has_failures, lint_files
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.terminal import print_data, print_message


@click.command("lint")
@click.argument("paths", metavar="PLAN...", nargs=-1)
@click.option("--format", "layout", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice((*LEVELS, "never")),
    default="warning",
    show_default=True,
    help="Exit with 1 if there is a finding of this level, or a worse one.",
)
@click.option("--all", "whole", is_flag=True, help="List every finding, not only the first ten of each rule in a plan.")
@click.option("--fix", is_flag=True, help="Fix findings whose fix does not change what runs.")
@click.option("--sql", "script", metavar="FILE", help="The plan's script, to find hints without effect.")
@click.option("--settings", "config", metavar="FILE", help="Read ignores from this hintplan.toml.")
@click.option("--explain", "rule", metavar="RULE", help="Explain a rule: its findings, the reason, and what to do.")
@allow_module_option
@init_option
@click.option("--allow-fact-edits", is_flag=True, help="Accept, and with --fix make, changes of facts.")
@json_format_option
def lint_command(
    paths: tuple[str, ...],
    layout: str,
    fail_on: str,
    whole: bool,
    fix: bool,
    script: str | None,
    config: str | None,
    rule: str | None,
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    allow_fact_edits: bool,
    as_json: bool,
) -> int:
    """Find settings that are valid, and likely mistakes: states that never expire, TTLs that do not fit, idle hints.

    hintplan.toml lists findings to ignore, each with a reason; see docs/lint.md.
    """
    if rule is not None:
        _explain(rule)
        return 0
    if not paths:
        raise click.UsageError("expected PLAN...")
    if script is not None and len(paths) > 1:
        raise click.UsageError("--sql is the script of one plan")
    if fix and "-" in paths:
        raise click.UsageError("--fix writes files, and '-' is none")
    if fix and any(path.startswith(PREFIX) for path in paths):
        raise click.UsageError("--fix writes files, and cannot change commits")
    report = lint_files(
        paths,
        config=config,
        script=script,
        allow_modules=allow_modules,
        init=init,
        allow_fact_edits=allow_fact_edits,
        fix=fix,
    )
    text = lint_report_text(report, "json" if as_json else layout, whole=whole)
    if text:
        print_data(text)
    if layout == "text" and not as_json:
        print_message(lint_summary(report, len(paths)))
    return 1 if has_failures(report, fail_on) else 0


def _explain(name: str) -> None:
    rule = rule_called(name)
    if rule is None:
        valid = [*RULES, *(rule.slug for rule in RULES.values())]
        raise click.UsageError(f"there is no rule '{name}'; {did_you_mean(name, valid, what='rules')}")
    print_data(f"{rule.id} {rule.slug} ({rule.level})\n\n{rule.about}\n{rule.why}\n\nWhat to do: {rule.advice}.")
    if rule.fixable:
        print_data("--fix mends it where that changes nothing that runs.")
