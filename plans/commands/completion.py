"""``hintplan completion``: completions for the Tab key in bash, zsh and fish.

Click provides the scripts and the protocol; this module computes the completions. It must be quick: it imports a
command only for the names and values of its options, and reads a plan as plain JSON. ``completes`` in
:data:`hintplan.plans.commands.root.COMMANDS` lists the kinds of a command's arguments.

>>> [item.value for item in shell_completions(["completion"], "z")]
['zsh']
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from hintplan.plans.commands.completion_paths import (
    Offer,
    assignments,
    operators,
    readable_document,
    setting_paths,
    stepwise,
)
from hintplan.plans.commands.root import COMMANDS, root
from hintplan.plans.text.terminal import print_data

VARIABLE = "_HINTPLAN_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_FILES = [CompletionItem("", type="file")]

_BASH = """\
# The line up to the cursor goes to hintplan as it is: bash would cut "path=value" in three.
%(complete_func)s() {
    local IFS=$'\\n' line type value
    COMPREPLY=()
    for line in $(env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null); do
        type="${line%%%%,*}"
        value="${line#*,}"
        case "$type" in
            file) compopt -o default ;;
            open) compopt -o nospace; COMPREPLY+=("$value") ;;
            *) COMPREPLY+=("$value") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local -a whole open answer
    (( ! $+commands[%(prog_name)s] )) && return 1
    answer=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for type key words_on_it in ${answer}; do
        case "$type" in
            file) _path_files -f ;;
            open) open+=("${key//:/\\\\:}:$words_on_it") ;;
            *) whole+=("${key//:/\\\\:}:$words_on_it") ;;
        esac
    done
    (( $#whole )) && _describe -V unsorted whole
    (( $#open )) && _describe -V unsorted open -S ''
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion_command(shell: str) -> None:
    """Print the script that completes commands, options, operators and settings.

    \b
    bash:  eval "$(hintplan completion bash)"                     in ~/.bashrc
    zsh:   eval "$(hintplan completion zsh)"                      in ~/.zshrc, after compinit
    fish:  hintplan completion fish > ~/.config/fish/completions/hintplan.fish
    """
    classes: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
    print_data(classes[shell](root, {}, "hintplan", VARIABLE).source().rstrip("\n"))


def register() -> None:
    """Register the completions of this module with click."""
    for cls in (_Bash, _Zsh, _Fish):
        add_completion_class(cls)


def shell_completions(words: Sequence[str], typed: str) -> list[CompletionItem[str]]:
    """Return the completions of ``typed`` after ``words``, which follow the program's name."""
    if not words:
        names = [(name, command.help) for name, command in COMMANDS.items()]
        if typed.startswith("-"):
            names = [("--help", "List them."), ("--version", "Show the version.")]
        return [CompletionItem(name, help=words) for name, words in names if name.startswith(typed)]
    command, *before = words
    if command not in COMMANDS:
        return []
    if typed.startswith("-"):
        options = (p for p in _command(command).params if isinstance(p, click.Option) and not p.hidden)
        flags = [(flag, option.help or "") for option in options for flag in option.opts]
        return [CompletionItem(flag, help=words) for flag, words in flags if flag.startswith(typed)]
    plan = _plan_among(before)
    if before and before[-1].startswith("-"):
        option = _option(command, before[-1])
        if option is not None and not option.is_flag:
            return _values(option.type, option.metavar or "", plan, typed)
    kinds = COMMANDS[command].completes
    if plan is None or len(kinds) < 2:
        first = kinds[0] if kinds else "file"
        return _FILES if first == "file" else _matching((Offer(text=name) for name in first.split("|")), typed)
    return _values(None, kinds[1], plan, typed)


def _values(kind: object, metavar: str, plan: str | None, typed: str) -> list[CompletionItem[str]]:
    """Return the values of an option or argument, by its type or by its name in the help."""
    if isinstance(kind, click.Choice):
        return _matching((Offer(text=str(choice)) for choice in kind.choices), typed)
    if metavar.startswith("KEY="):
        from hintplan.plans.model.config import KEYS

        return _matching((Offer(text=f"{key}=", help=spec.description) for key, spec in KEYS.items()), typed)
    document = readable_document(plan) if plan is not None and metavar in ("ID", "PATH=VALUE", "PATH") else None
    if document is None:
        return _FILES
    if metavar == "ID":
        return _matching(operators(document), typed)
    if metavar == "PATH=VALUE":
        return _matching(assignments(document, typed), typed)
    offers = [*operators(document), *(Offer(text=path) for path, _, _ in setting_paths(document, typed))]
    return _matching(stepwise([offer for offer in offers if offer.text.startswith(typed)], typed), typed)


def _matching(offers: Iterable[Offer], typed: str) -> list[CompletionItem[str]]:
    # After '=' and '.', the user types on, so the shell must add no blank.
    return [
        CompletionItem(o.text, type="open" if o.text.endswith(("=", ".")) else "plain", help=o.help)
        for o in offers
        if o.text.startswith(typed)
    ]


def _plan_among(words: Sequence[str]) -> str | None:
    """Return the plan on the line: the first word that is a file and no option."""
    return next((word for word in words if not word.startswith("-") and os.path.isfile(word)), None)


def _command(name: str) -> click.Command:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    return command


def _option(command: str, flag: str) -> click.Option | None:
    options = (p for p in _command(command).params if isinstance(p, click.Option))
    return next((option for option in options if flag in option.opts), None)


class _Bash(BashComplete):
    source_template = _BASH

    @staticmethod
    def _check_version() -> None:
        """Skip the check: it would run bash once more, and the script itself fails if bash is too old."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)[1:]
        typed = words.pop() if words and not line.endswith((" ", "\t")) else ""
        return words, typed

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        return shell_completions(args, incomplete)

    def format_completion(self, item: CompletionItem[str]) -> str:
        # Bash replaces only the text after the last word break, such as the value after "=".
        typed = self.get_completion_args()[1]
        breaks = [c for c in "=:" if c in os.environ.get("COMP_BREAKS", "=:")]
        cut = max((typed.rfind(c) + 1 for c in breaks), default=0)
        return f"{item.type},{item.value[cut:].replace(' ', chr(92) + ' ')}"


class _Zsh(ZshComplete):
    source_template = _ZSH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        return shell_completions(args, incomplete)

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type}\n{item.value}\n{item.help or item.value}"


class _Fish(FishComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        # Fish itself adds no blank after "=" and ".".
        items = shell_completions(args, incomplete)
        return [CompletionItem(i.value, "plain" if i.type == "open" else i.type, i.help) for i in items]
