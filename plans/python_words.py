"""What options of commands are called in Python, so that one message serves both: errors are worded for whoever asked.

Messages name options. A command shows them as they are; whoever calls ``hintplan.execute`` or the like reads what to
write there. This is the one list of the options that have such a counterpart.

>>> in_python("whoever starts the run can allow it: --allow-host db:5433")
"whoever starts the run can allow it: policy=hintplan.Policy(hosts=('db:5433',))"
>>> in_python("put back what was there; --allow-missing-files goes on without")
'put back what was there; allow_missing_files=True goes on without'
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
"""The options that name what a run may reach, and the fields of a policy that have the same."""

POLICY_SWITCHES: Mapping[str, str] = {"allow-unrestricted-spark": "unrestricted_spark"}
"""Those without a value."""

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
"""The options that are arguments of functions."""

_COMMAND = r"hintplan (?!run\b)[a-z-]+ [^\n;]*"
_ALLOWED = rf"(?<=allow it: )--(?P<allowed>{'|'.join(POLICY)}) (?P<value>[^\n;]+)"
_POLICY = rf"--(?P<policy>{'|'.join(POLICY)})\b(?!-)"
_SWITCH = rf"--(?P<switch>{'|'.join(POLICY_SWITCHES)})\b(?!-)"
_ARGUMENT = (
    rf"(?P<run>hintplan run )?--(?P<argument>{'|'.join(ARGUMENTS)})\b(?!-)(?: (?P<given>'[^']*'|[A-Z]+)(?![\w']))?"
)
_CONF = r"--conf (?P<key>spark\.[\w.]+)=(?P<setting>[^\s;,]+(?:,[^\s;,]+)*)"
_KEEP = r"(?P<kept>--keep-state (?!is\b)[a-z]\w*(?:,? --keep-state [a-z]\w*)*)|(?P<keeps>--keep-state\b)"
_WORDS = re.compile("|".join((f"(?P<command>{_COMMAND})", _ALLOWED, _POLICY, _SWITCH, _KEEP, _ARGUMENT, _CONF)))

_CLIENT = "; 'hintplan sql' runs such scripts"
"""Advice for whoever is at a shell."""

_commands = 0


@contextmanager
def for_a_command() -> Iterator[None]:
    """Leave messages as they are for the time of the block, in all threads: a command shows them."""
    global _commands
    _commands += 1
    try:
        yield
    finally:
        _commands -= 1


def is_for_a_command() -> bool:
    """True if a command shows the messages, or a task of Spark raises them, whose driver knows who shows them."""
    tasks = sys.modules.get("pyspark.taskcontext")
    return _commands > 0 or (tasks is not None and tasks.TaskContext.get() is not None)


def in_python(text: str, *, compiling: bool = False) -> str:
    """Return ``text`` with what Python has for options; ``compiling`` if it is of a script, which no run has a policy
    for.
    """

    def called(found: re.Match[str]) -> str:
        if found["command"]:
            return found[0]
        if found["allowed"] or found["policy"]:
            name = POLICY[found["allowed"] or found["policy"]]
            value = f"({found['value']!r},)" if found["allowed"] else "..."
            if compiling:
                return f"allow_{name}={value}"
            return f"policy=hintplan.Policy({name}={value})" if found["allowed"] else f"Policy({name}={value})"
        if found["kept"]:
            names = tuple(re.findall(r"--keep-state (\w+)", found["kept"]))
            return f"{ARGUMENTS['keep-state']}{names!r}"
        if found["keeps"]:
            return ARGUMENTS["keep-state"].rstrip("=")
        if found["switch"]:
            return f"policy=hintplan.Policy({POLICY_SWITCHES[found['switch']]}=True)"
        if found["key"]:
            return f'SparkSession.builder.config("{found["key"]}", "{found["setting"]}")'
        word = ARGUMENTS[found["argument"]]
        if word.endswith("=") and found["given"]:
            word += repr(found["given"].strip("'"))
        elif found["given"]:
            word += f" {found['given']}"
        return f"hintplan.execute(..., {word})" if found["run"] else word

    return _WORDS.sub(called, text.replace(_CLIENT, ""))
