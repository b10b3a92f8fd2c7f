"""Write the pages below ``docs/commands/`` from the declarations of the commands.

    python -m tests.docs.commands_page

The pages come from the parameters of the commands, not from the printed help, which depends on the width of the
terminal and on the version of click.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from hintplan.plans.commands.root import COMMANDS, root

FOLDER = Path(__file__).parents[2] / "docs" / "commands"


class Group(NamedTuple):
    """Commands that share a page, with what stands above them."""

    title: str
    introduction: str
    commands: tuple[str, ...]


GROUPS = {
    "plans.md": Group(
        "Make and edit plans",
        """\
Compile a script to a plan, look at the plan, and change its settings:

```console
$ hintplan compile job.sql -o job.json
$ hintplan explain job.json
$ hintplan set job.json join_o_c.leftState.ttl='3 d'
```
""",
        ("compile", "validate", "explain", "show", "advise", "set", "fmt"),
    ),
    "review.md": Group(
        "Review changes",
        """\
Compare two versions of a plan, find the origin of a setting, and check a change before it runs:

```console
$ hintplan diff git:main:job.json job.json
$ hintplan check job.json --checkpoint state
```
""",
        ("diff", "why", "lint", "test", "ci", "check"),
    ),
    "versions.md": Group(
        "Recompile and merge",
        """\
Carry edits over to a newer plan, and let git compare and merge plans by meaning:

```console
$ hintplan rebase old.json new.json -o job.json
$ hintplan git-setup
```
""",
        ("rebase", "merge", "git-setup", "flat"),
    ),
    "run.md": Group(
        "Run plans",
        """\
Run a plan, pack it for a cluster, inspect its state, or run statements one by one:

```console
$ hintplan run job.json --checkpoint state
$ hintplan state job.json --checkpoint state
```
""",
        ("run", "bundle", "state", "sql"),
    ),
    "setup.md": Group(
        "Set up editors and shells",
        """\
Let VS Code and your shell complete names, and get the schema of plans for other editors:

```console
$ hintplan init
$ hintplan completion bash
```
""",
        ("init", "completion", "schema"),
    ),
}

# For each command, the pages with more: the text of the link, and its target below docs/.
READ_MORE = {
    "compile": (
        ("SQL", "sql/index.md"),
        ("state TTL", "state-ttl.md"),
        ("recompile and keep edits", "rebase.md"),
    ),
    "validate": (("refused edits", "plan-format/index.md#what-hand-edits-are-refused"),),
    "show": (("pictures of plans", "show.md"),),
    "advise": (("how long state is needed", "evidence.md"),),
    "set": (("settings and facts", "plan-format/index.md#settings-and-facts"),),
    "diff": (("review a change", "review.md#diff"),),
    "why": (("review a change", "review.md#why"),),
    "rebase": (("recompile and keep edits", "rebase.md"),),
    "merge": (("merge two versions", "rebase.md#merging-two-versions"),),
    "git-setup": (("plans in git", "rebase.md#git"),),
    "flat": (("plans in git", "rebase.md#git"),),
    "fmt": (("layout of plans", "plan-format/index.md#layout"),),
    "lint": (("rules", "lint.md"),),
    "test": (("tests with a clock", "hintplan-test.md"),),
    "ci": (("plans in CI", "review.md#ci"), ("a policy for states", "evidence.md#a-policy")),
    "check": (("the fate of state", "check.md"),),
    "run": (
        ("operations", "operations.md"),
        ("the page of a run", "live-page.md"),
        ("metrics", "metrics.md"),
        ("deployment", "deployment/index.md"),
        ("security", "security.md"),
        ("faults", "faults/index.md"),
    ),
    "bundle": (("bundles", "deployment/bundles.md"),),
    "state": (
        ("inspect state", "state/index.md"),
        ("copy or compact", "state/snapshots.md"),
    ),
    "sql": (("SQL client", "sql-client.md"), ("security", "security.md")),
    "init": (("editors", "editors.md"),),
    "completion": (("shells", "editors.md"),),
    "schema": (("the plan format", "plan-format/index.md"),),
}

NOTE = "<!-- Made by `python -m tests.docs.commands_page`; do not edit. -->\n"
HEAD = """\
# Commands

Find the options of a command here. `hintplan --help` and `hintplan COMMAND --help` print the same in a terminal:

```console
$ hintplan --help
```
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


def pages() -> dict[str, str]:
    """Return the text of each page, by the name of its file."""
    texts = {"index.md": NOTE + index()}
    for file, group in GROUPS.items():
        parts = (f"# {group.title}\n\n{group.introduction}", *(section(name) for name in group.commands))
        texts[file] = NOTE + "\n".join(parts)
    return texts


def index() -> str:
    """Return the first page: a table of the commands by group, and what all commands have in common."""
    tables = []
    for file, group in GROUPS.items():
        rows = [f"| [`{name}`]({file}#{name}) | {COMMANDS[name].help} |" for name in group.commands]
        tables.append("\n".join((f"## {group.title}\n", "| command | |", "|---|---|", *rows, "")))
    differ = ", ".join(f"`{name} {option.opts[0]}`" for name in COMMANDS for option in options(name) if tells(option))
    return "\n".join((HEAD, *tables, FOR_ALL.format(differ=differ)))


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
        links = ", ".join(f"[{text}](../{target})" for text, target in READ_MORE[name])
        yield f"More: {links}.\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
