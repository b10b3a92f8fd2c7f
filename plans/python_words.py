"""The Python counterparts of command options, so that one error message serves both commands and Python callers.

Messages name options, and a command shows them unchanged. A caller of a Python function, such as ``hintplan.execute``,
sees the corresponding arguments instead. This is the only list of options that have such a counterpart.

>>> in_python("whoever starts the run can allow it: --allow-host db:5433")
"whoever starts the run can allow it: policy=hintplan.Policy(hosts=('db:5433',))"
>>> in_python("restore the files; --allow-missing-files continues without them")
'restore the files; allow_missing_files=True continues without them'
>>> in_python("--keep-state join_o_c --keep-state aggregate_o keeps both")
"keep_state=('join_o_c', 'aggregate_o') keeps both"
>>> in_python("hintplan compile a.sql -o a.json --keep-edits a.json --allow-fact-edits")
'hintplan compile a.sql -o a.json --keep-edits a.json --allow-fact-edits'
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

POLICY: Mapping[str, str] = {
    "allow-scheme": "schemes",
    "allow-host": "hosts",
    "allow-env": "environment",
    "allow-path": "paths",
    "allow-module": "modules",
}
"""Options that allow a run to reach something, each with the field of a policy for the same values."""

POLICY_SWITCHES: Mapping[str, str] = {"allow-unrestricted-spark": "unrestricted_spark"}
"""Options of a policy that take no value."""

ARGUMENTS: Mapping[str, str] = {
    "allow-fact-edits": "allow_fact_edits=True",
    "allow-missing-files": "allow_missing_files=True",
    "allow-older-sink": "allow_older_sink=True",
    "allow-state-drop": "allow_state_drop=True",
    "checkpoint": "checkpoint=",
    "keep-state": "keep_state=",
    "lease": "lease=",
    "once": "once=True",
    "take-over": "take_over=True",
    "trigger": "trigger=",
    "wait": "waiting=",
}
"""Options that are arguments of functions."""

_COMMAND = r"hintplan (?!run\b)[a-z-]+ [^\n;]*"
_ALLOWED = rf"(?<=allow it: )--(?P<allowed>{'|'.join(POLICY)}) (?P<value>[^\n;]+)"
_POLICY = rf"--(?P<policy>{'|'.join(POLICY)})\b(?!-)"
_SWITCH = rf"--(?P<switch>{'|'.join(POLICY_SWITCHES)})\b(?!-)"
_ARGUMENT = (
    rf"(?P<run>hintplan run )?--(?P<argument>{'|'.join(ARGUMENTS)})\b(?!-)(?: (?P<given>'[^']*'|[A-Z]+)(?![\w']))?"
)
_CONF = r"--conf (?P<key>spark\.[\w.]+)=(?P<setting>[^\s;,]+(?:,[^\s;,]+)*)"
_KEEP = r"(?P<kept>--keep-state (?!is\b)[a-z]\w*(?:,? --keep-state [a-z]\w*)*)|(?P<keeps>--keep-state\b)"
_WORDS = "|".join((f"(?P<command>{_COMMAND})", _ALLOWED, _POLICY, _SWITCH, _KEEP, _ARGUMENT, _CONF))
"""Compiled when it is used, which commands do not."""

_CLIENT = "; 'hintplan sql' runs such scripts"
"""Advice for whoever is at a shell."""

_commands = 0


@contextmanager
def for_a_command() -> Iterator[None]:
    """Leave messages unchanged during the block, in all threads, because a command shows them."""
    global _commands
    _commands += 1
    try:
        yield
    finally:
        _commands -= 1


def is_for_a_command() -> bool:
    """Return True if a command shows the messages, or if a Spark task raises them: the driver chooses their words."""
    tasks = sys.modules.get("pyspark.taskcontext")
    return _commands > 0 or (tasks is not None and tasks.TaskContext.get() is not None)


def in_python(text: str, *, compiling: bool = False) -> str:
    """Return ``text`` with Python arguments in place of options.

    ``compiling`` is set for messages about a script, for which there is no policy of a run.
    """

    def called(match: re.Match[str]) -> str:
        if match["command"]:
            return match[0]
        if match["allowed"] or match["policy"]:
            name = POLICY[match["allowed"] or match["policy"]]
            value = f"({match['value']!r},)" if match["allowed"] else "..."
            if compiling:
                return f"allow_{name}={value}"
            return f"policy=hintplan.Policy({name}={value})" if match["allowed"] else f"Policy({name}={value})"
        if match["kept"]:
            names = tuple(re.findall(r"--keep-state (\w+)", match["kept"]))
            return f"{ARGUMENTS['keep-state']}{names!r}"
        if match["keeps"]:
            return ARGUMENTS["keep-state"].rstrip("=")
        if match["switch"]:
            return f"policy=hintplan.Policy({POLICY_SWITCHES[match['switch']]}=True)"
        if match["key"]:
            return f'SparkSession.builder.config("{match["key"]}", "{match["setting"]}")'
        word = ARGUMENTS[match["argument"]]
        if word.endswith("=") and match["given"]:
            word += repr(match["given"].strip("'"))
        elif match["given"]:
            word += f" {match['given']}"
        return f"hintplan.execute(..., {word})" if match["run"] else word

    return re.sub(_WORDS, called, text.replace(_CLIENT, ""))
