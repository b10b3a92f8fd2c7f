"""All commands by name: their location for lazy imports, their line in the help, and their completions.

>>> COMMANDS["run"].target
'hintplan.runtime.run.command:run_command'
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import click

from hintplan.plans.frozen import frozen
from hintplan.plans.lazy import load
from hintplan.plans.text.names import nearest


@frozen
class LazyCommand:
    """The location of a command (``module:attribute``) and its line in the help, which must not import the command.

    ``completes`` lists the completions of its arguments: ``file``, or words separated by ``|``. After a file, it may be
    the name in the help, ``ID``, ``PATH`` or ``PATH=VALUE``. The last argument may be repeated.
    """

    target: str
    help: str
    completes: tuple[str, ...] = ("file",)


SECTIONS = {
    "Compile and read": ("compile", "validate", "explain", "show", "why", "lint", "flat"),
    "Edit": ("advise", "set", "rebase", "merge", "fmt"),
    "Review": ("diff", "test", "ci", "git-setup"),
    "Run": ("run", "check", "state", "sql", "bundle"),
    "Set up": ("init", "completion", "schema"),
}
"""The commands by purpose, as the help lists them."""
_EXAMPLES = {
    "Compile and read": "hintplan compile job.sql -o plan.json",
    "Edit": "hintplan set plan.json join_o_c.leftState.ttl='3 d'",
    "Review": "hintplan diff git:main:plan.json plan.json",
    "Run": "hintplan run plan.json --checkpoint checkpoint",
    "Set up": "hintplan init",
}

COMMANDS = {
    "compile": LazyCommand(target="hintplan.planner.cli:compile_command", help="Compile a SQL script to a plan."),
    "validate": LazyCommand(
        target="hintplan.plans.commands.validate:validate_command", help="Check plans without running them."
    ),
    "explain": LazyCommand(
        target="hintplan.plans.commands.explain:explain_command",
        help="Show operators, state, and the origin of settings.",
    ),
    "show": LazyCommand(
        target="hintplan.plans.commands.show:show_command", help="Draw a plan: page, picture, graph or tree."
    ),
    "set": LazyCommand(
        target="hintplan.plans.commands.set:set_command",
        help="Edit settings of a plan, checked.",
        completes=("file", "PATH=VALUE"),
    ),
    "advise": LazyCommand(
        target="hintplan.plans.commands.advise:advise_command",
        help="Find the TTL that each state needs, by a run.",
    ),
    "diff": LazyCommand(target="hintplan.plans.commands.diff:diff_command", help="Compare two plans by meaning."),
    "why": LazyCommand(
        target="hintplan.plans.commands.why:why_command",
        help="Show every layer of a setting, and which one wins.",
        completes=("file", "PATH"),
    ),
    "rebase": LazyCommand(
        target="hintplan.plans.commands.rebase:rebase_command", help="Carry edits over to a newer plan."
    ),
    "merge": LazyCommand(target="hintplan.plans.commands.merge:merge_command", help="Merge two plans by meaning."),
    "git-setup": LazyCommand(
        target="hintplan.plans.commands.git_setup:git_setup_command", help="Let git diff and merge plans."
    ),
    "flat": LazyCommand(
        target="hintplan.plans.commands.fmt:flat_command", help="Print one line for each fact and setting."
    ),
    "fmt": LazyCommand(target="hintplan.plans.commands.fmt:fmt_command", help="Lay plans out in the canonical way."),
    "lint": LazyCommand(
        target="hintplan.plans.commands.lint:lint_command", help="Find settings that are likely mistakes."
    ),
    "test": LazyCommand(
        target="hintplan.plans.commands.test:test_command", help="Test plans with rows and a clock, in milliseconds."
    ),
    "ci": LazyCommand(
        target="hintplan.plans.commands.ci:ci_command", help="Check a change of plans: layout, meaning, effects."
    ),
    "check": LazyCommand(
        target="hintplan.runtime.inspect.check:check_command",
        help="Report what a run on a checkpoint does with each state.",
    ),
    "run": LazyCommand(target="hintplan.runtime.run.command:run_command", help="Run a plan on Spark."),
    "bundle": LazyCommand(
        target="hintplan.runtime.bundle.command:bundle_command",
        help="Pack a plan and its dependencies for spark-submit.",
    ),
    "state": LazyCommand(
        target="hintplan.runtime.inspect.command:state_command",
        help="Show the state in a checkpoint; copy or compact it.",
    ),
    "sql": LazyCommand(
        target="hintplan.plans.commands.sql:sql_command", help="Run statements, from a script or typed in."
    ),
    "init": LazyCommand(
        target="hintplan.plans.commands.init:init_command", help="Let VS Code complete and check plans."
    ),
    "completion": LazyCommand(
        target="hintplan.plans.commands.completion:completion_command",
        help="Print the script that completes in a shell.",
        completes=("bash|zsh|fish",),
    ),
    "schema": LazyCommand(
        target="hintplan.plans.commands.validate:schema_command", help="Print the JSON Schema of plans."
    ),
}


class _Root(click.Group):
    """The root command: it loads commands from ``COMMANDS``, gives each ``--debug``, and prints its help by default."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        with _no_collection():
            command: click.Command = load(COMMANDS[name].target)
        if not any(option.name == "debug" for option in command.params):
            command.params.append(_debug_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            similar = nearest(args[0], COMMANDS)
            advice = f"; did you mean '{similar}'?" if similar else ""
            raise click.UsageError(f"there is no command '{args[0]}'{advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:<{widest}}", COMMANDS[name].help) for name in names])
                formatter.write_text(f"$ {_EXAMPLES[section]}")


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from looking for cycles among modules being loaded, which all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _debug_option() -> click.Option:
    # Only for the parser and the help; main() reads the flag itself, to show the traceback of a failed import, too.
    return click.Option(["--debug"], is_flag=True, expose_value=False, help="Show tracebacks.")


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"hintplan {version('hintplan')}")
        except PackageNotFoundError:
            click.echo("hintplan (not installed)")
        ctx.exit()


root = _Root(
    "hintplan",
    help="Compile hinted SQL to a plan; read, edit and review the plan; run it on Spark.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Show the version.",
        ),
        _debug_option(),
    ],
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
