"""Makes ``docs/commands.md`` of what the commands say of themselves.

    python -m tests.docs.commands_page

The page is made of the parameters of the commands, not of the help as it is printed, which goes by the width of the
terminal and the version of click.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from hintplan.plans.commands.root import COMMANDS, root

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

READ_MORE = {
    "compile": ("sql.md", "state-ttl.md", "rebase.md"),
    "validate": ("plan-format.md#what-hand-edits-are-refused",),
    "show": ("show.md",),
    "set": ("plan-format.md#settings-and-facts",),
    "diff": ("review.md#diff",),
    "why": ("review.md#why",),
    "rebase": ("rebase.md",),
    "merge": ("rebase.md#merging-two-versions",),
    "git-setup": ("rebase.md#git",),
    "flat": ("rebase.md#git",),
    "fmt": ("plan-format.md#layout",),
    "lint": ("lint.md",),
    "ci": ("review.md#ci",),
    "check": ("check.md",),
    "run": ("operations.md", "metrics.md", "deployment.md", "security.md", "faults.md"),
    "bundle": ("deployment.md#bundles",),
    "state": ("state.md",),
    "sql": ("sql-client.md", "security.md"),
    "init": ("editors.md",),
    "completion": ("editors.md",),
    "schema": ("plan-format.md",),
}

HEAD = """\
<!-- Made by `python -m tests.docs.commands_page`; do not edit. -->
# Commands

This page lists every command and option. `hintplan --help` and `hintplan COMMAND --help` print the same in a terminal.
"""

FOR_ALL = """\
## Common to all

All commands take `-h`, `--help` and `--debug` (tracebacks). `hintplan --version` prints the version. A plan can be `-`,
standard input, except in `set`, `ci` and `bundle`. Data goes to standard output, messages to standard error. Commands
obey `NO_COLOR`.

| exit code | means |
|---|---|
| 0 | done |
| 1 | the input is wrong, or the run failed |
| 2 | there are differences: {differ} |
| 64 | wrong usage, or something is not installed, which the last line names |
| 130, 143 | stopped by a signal |
"""


def page() -> str:
    """The page as the file has it."""
    rows = [f"| [`{name}`](#{name}) | {command.help} |" for name, command in COMMANDS.items()]
    table = "\n".join(("| command | does |", "|---|---|", *rows))
    differ = ", ".join(f"`{name} {option.opts[0]}`" for name in COMMANDS for option in options(name) if tells(option))
    return "\n".join((HEAD, f"{table}\n", FOR_ALL.format(differ=differ), *(section(name) for name in COMMANDS)))


def command_of(name: str) -> click.Command:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    return command


def options(name: str) -> list[click.Option]:
    """The options of a command, without those of all commands."""
    found = (option for option in command_of(name).params if isinstance(option, click.Option))
    return [option for option in found if option.name != "debug"]


def tells(option: click.Option) -> bool:
    """Whether the option makes the exit code say that there are differences."""
    return re.search(r"exit with 2\b", option.help or "", re.IGNORECASE) is not None


def section(name: str) -> str:
    """One command: usage, what it says of itself, its options, where to read more."""
    command = command_of(name)
    rows = [f"| {names(option)} | {meaning(option)} |" for option in options(name)]
    table = ["\n".join(("| option | |", "|---|---|", *rows, ""))] if rows else []
    usage = " ".join(("hintplan", name, *(["[OPTIONS]"] if rows else []), *arguments(command)))
    return "\n".join((f"## {name}\n", f"```text\n{usage}\n```\n", *paragraphs(command), *table, *more(name)))


def arguments(command: click.Command) -> Iterator[str]:
    for argument in command.params:
        if isinstance(argument, click.Argument):
            kind = argument.type
            shown = argument.metavar or "|".join(
                kind.choices if isinstance(kind, click.Choice) else [str(argument.name).upper()]
            )
            several = "..." if argument.nargs == -1 and not shown.endswith("...") else ""
            yield (shown if argument.required or shown.startswith("[") else f"[{shown}]") + several


def paragraphs(command: click.Command) -> Iterator[str]:
    r"""The help of a command as Markdown; what is laid out by hand (behind ``\b``) as it stands."""
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        if part.startswith("\b"):
            yield f"```text\n{part.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        else:
            yield f"{part}\n"


def names(option: click.Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    return flags if option.is_flag else f"{flags} `{value(option)}`"


def value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "\\|".join(option.type.choices)
    return "N" if isinstance(option.type, click.types.IntParamType) else option.type.name.upper()


def meaning(option: click.Option) -> str:
    """What the option does, with its default and its bounds."""
    notes = []
    if option.required:
        notes.append("required")
    if option.show_default and option.default is not None:
        notes.append(f"default `{option.default}`")
    if isinstance(option.type, click.IntRange):
        least, most = option.type.min, option.type.max
        notes.append(f"at least {least}" if most is None else f"{least} to {most}")
    text = re.sub(r"(?<!`)(\$\{env:NAME\}|--[a-z][a-z-]*)", r"`\1`", option.help or "")
    return " ".join((*([text] if text else []), *([f"({', '.join(notes)})"] if notes else [])))


def more(name: str) -> Iterator[str]:
    if name in READ_MORE:
        links = ", ".join(f"[{target.partition('#')[0]}]({target})" for target in READ_MORE[name])
        yield f"More: {links}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
