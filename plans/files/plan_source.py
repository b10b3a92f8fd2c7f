"""The sources of a plan for commands: a file, standard input, a revision of git, or a SQL script to compile.

    plan.json     -     git:main:plans/orders.json     job.sql     git:main:job.sql

The planner is imported only for scripts, so that other sources do not wait for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import Any, Protocol

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import is_script, loads, plan_bytes
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.findings import CompilerFinding
from hintplan.plans.text.terminal import print_message
from hintplan.plans.text.text_file import script_text


class HintOutcome(Protocol):
    """The outcome of one key of a hint."""

    @property
    def hint(self) -> str:
        """The name of the hint."""

    @property
    def key(self) -> str:
        """The key."""

    @property
    def offset(self) -> int:
        """The offset of the key in the script."""

    @property
    def status(self) -> str:
        """``applied``, or the reason why not."""

    @property
    def detail(self) -> str:
        """The target, the overriding key, or the reason."""


class ScriptPositions(Protocol):
    """The text of a script, which maps offsets to lines."""

    def diagnostic(self, message: str, offset: int) -> Diagnostic:
        """Return a diagnostic at ``offset``."""


class CompiledScript(Protocol):
    """The parts of the planner's ``Compilation`` that this package uses."""

    @property
    def plan(self) -> Plan:
        """The plan."""

    @property
    def hints(self) -> Sequence[HintOutcome]:
        """The outcome of each key of each hint."""

    @property
    def findings(self) -> Sequence[CompilerFinding]:
        """The warnings and notes for the user."""

    @property
    def positions(self) -> Mapping[tuple[str, str, str], Any]:
        """The position of each setting, by operator id, path of the setting and layer."""

    @property
    def source(self) -> ScriptPositions:
        """The text of the script."""


@frozen
class PlanSource:
    """A plan and the text it came from. ``file`` is the path of that text, None for standard input.

    ``places`` is the planner's map from operator id, path of the setting and layer to offset, line and column in the
    script; None for a plan file. ``init`` are the texts of a script's init files, by name.
    """

    name: str
    file: str | None
    data: bytes
    plan: Plan
    places: Mapping[tuple[str, str, str], Any] | None = None
    init: Mapping[str, str] = field(default_factory=dict)


def read_source(
    name: str,
    *,
    config: Mapping[str, str] | None = None,
    allow_modules: Sequence[str] = (),
    init: Sequence[str] = (),
    allow_fact_edits: bool = False,
    check_meaning: bool = False,
) -> PlanSource:
    """Read or compile the plan that ``name`` refers to.

    For a script, ``config`` overrides SET, ``allow_modules`` may contain its functions, and ``init`` are its init
    files. The init files are read at the revision of the script.
    """
    data, file, shown = read_bytes(name)
    if is_script(name):
        text = script_text(data, shown)
        texts = init_texts(at_revision(init, name))
        compiled = compile_text(text, file or shown, config or {}, allow_modules, texts)
        for finding in compiled.findings:
            print_message(f"{finding.severity}: {finding.diagnostic}")
        return PlanSource(
            name=name, file=file, data=text.encode(), plan=compiled.plan, places=compiled.positions, init=texts
        )
    plan = loads(data, file=shown, allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)
    return PlanSource(name=name, file=file, data=data, plan=plan)


def compile_text(
    text: str,
    file: str,
    config: Mapping[str, str],
    allow_modules: Sequence[str] = (),
    init: Mapping[str, str] | None = None,
) -> CompiledScript:
    """Return the planner's ``Compilation`` of a script; raise SqlError for its errors."""
    compile_script: Callable[..., CompiledScript] = import_module("hintplan.planner.compile").compile_script
    return compile_script(text, config, file=file, allow_modules=allow_modules, init=init)


def init_texts(names: Sequence[str]) -> dict[str, str]:
    """Return the texts of init files by name, in order; raise PlanError or SqlError for one that cannot be read."""
    texts: dict[str, str] = {}
    for name in names:
        data, _, shown = read_bytes(name)
        if name in texts:
            raise PlanError("is given twice with --init", file=name, hint="name it once")
        texts[shown] = script_text(data, shown)
    return texts


def at_revision(init: Sequence[str], script: str) -> tuple[str, ...]:
    """Return the names of ``init`` at the revision of ``script``, if the script has one."""
    if not script.startswith(git.PREFIX):
        return tuple(init)
    revision = git.parse(script).revision
    relative = [name if name.startswith(("./", "../")) else f"./{name}" for name in init]
    return tuple(
        name if name.startswith(git.PREFIX) else f"{git.PREFIX}{revision}:{path}"
        for name, path in zip(init, relative, strict=True)
    )


def read_bytes(name: str) -> tuple[bytes, str | None, str]:
    """Return the bytes, the path of the file if there is one, and the name for messages."""
    if name.startswith(git.PREFIX):
        path = git.parse(name)
        return git.read(path, shown=name), os.path.normpath(path.path), name
    data, shown = plan_bytes(name)
    return data, None if name == "-" else name, shown


_KEYS = ("format", "mode", "config")
"""Keys of every plan; no other JSON, not even the schema of plans, has all of them at its top level."""


def is_plan_like(data: bytes) -> bool:
    """Return True for a JSON object with the keys of a plan, and for invalid JSON that contains these keys.

    A review must not ignore a plan because of an unexpected layout or encoding.

    >>> is_plan_like(b'{"format": "1.0", "mode": "streaming", "config": {}}'), is_plan_like(b'{"name": "a package"}')
    (True, False)
    """
    text = data.decode(json.detect_encoding(data), errors="replace").removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return all(f'"{key}"' in text for key in _KEYS)
    return isinstance(value, dict) and value.keys() >= set(_KEYS)
