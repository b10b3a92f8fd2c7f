"""The files, hosts and modules that a run may use. Flags or a policy file allow them, never the plan.

    [run]
    allow-scheme = ["s3a://lake"]           # other file systems: all of a scheme, or one bucket or server of it
    allow-host = ["rates.example.com"]      # servers; HOST:PORT for another port, http://HOST without encryption
    allow-env = ["RATES_TOKEN"]             # environment variables that ${env:NAME} may stand for
    allow-path = ["/data"]                  # if set, local files must be at or below one of these paths
    allow-module = ["my_lookups"]           # modules that may contain classes of the plan
    allow-unrestricted-spark = true         # a Spark session that was started without restricted mode

Every run may use local files, the file system of the checkpoint, and the servers of this machine. The policy file is
``hintplan.toml`` in the current directory, or the file that ``--policy`` names. Flags extend the file.

>>> Policy(hosts=("db.example.com:5433",)).allows(HostPlace("url", "db.example.com", 5433, 5432))
True
>>> Policy(schemes=("s3a://lake",)).allows(FilePlace("path", "s3a", "pond", "s3a://pond/orders"))
False
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hintplan.plans.connectors.options import ENVIRONMENT
from hintplan.plans.connectors.reach import FilePlace, HostPlace, Place, file_place, is_loopback
from hintplan.plans.connectors.table import places
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic, PlanError, RunError
from hintplan.plans.frozen import frozen
from hintplan.plans.python_words import POLICY, POLICY_SWITCHES
from hintplan.plans.text.counts import count
from hintplan.plans.text.links import is_inside
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.project import FILE, read_project

KEYS, SWITCHES = POLICY, POLICY_SWITCHES
"""The flags with a value and the switches, each with its field of :class:`Policy`.

The policy file has the same keys.
"""


@frozen
class Policy:
    """The permissions that extend :data:`OPEN`. ``paths`` restricts: if it is empty, all local files are allowed.

    ``unrestricted_spark`` allows a session that was started without Spark's restricted mode. Then only hintplan's own
    list of functions prevents an expression of a plan from calling into the JVM. The constructor raises RunError for a
    wrong value.
    """

    schemes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    unrestricted_spark: bool = False

    def __post_init__(self) -> None:
        for flag, name in KEYS.items():
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Collection):
                message = f"Policy({name}={values!r}): expected several texts"
                raise RunError(message, hint=f"write Policy({name}=({str(values)!r},))")
            for value in values:
                problem = wrong_value(flag, value) if isinstance(value, str) else f"{value!r} is no text"
                if problem is not None:
                    raise RunError(f"Policy({name}=...): {problem}")
            object.__setattr__(self, name, tuple(values))
        for name in SWITCHES.values():
            if not isinstance(getattr(self, name), bool):
                raise RunError(f"Policy({name}={getattr(self, name)!r}): expected True or False")

    @classmethod
    def of(cls, given: Policy | Mapping[str, Any]) -> Policy:
        """Return ``given``, or a policy with the fields of a mapping. Raise RunError for unknown fields."""
        if isinstance(given, Policy):
            return given
        names = (*KEYS.values(), *SWITCHES.values())
        if not isinstance(given, Mapping):
            hint = f"give hintplan.Policy(...), or a mapping with {', '.join(names)}"
            raise RunError(f"the policy is a {type(given).__name__}", hint=hint)
        for name in given:
            if name not in names:
                field = {**KEYS, **SWITCHES}.get(str(name).removeprefix("--"))
                hint = f"write {field!r}" if field else did_you_mean(str(name), names, what="fields")
                raise RunError(f"a policy has no field {name!r}", hint=hint)
        return cls(**given)

    def __or__(self, other: Policy) -> Policy:
        """Return a policy that allows everything that either policy allows."""
        lists: dict[str, Any] = {name: (*getattr(self, name), *getattr(other, name)) for name in KEYS.values()}
        switches = {name: getattr(self, name) or getattr(other, name) for name in SWITCHES.values()}
        return Policy(**lists, **switches)

    @property
    def absolute_paths(self) -> tuple[str, ...]:
        """Return the paths made absolute from the current directory of this process, for use by other processes."""
        return tuple(map(os.path.abspath, self.paths))

    def allows(self, place: Place, checkpoint: str | None = None) -> bool:
        """Return True if a run on ``checkpoint`` may reach ``place``."""
        if isinstance(place, HostPlace):
            return is_loopback(place.host) or any(_is_host(place, host) for host in self.hosts)
        if place.is_local:
            return not self.paths or any(is_inside(place.local_path, path) for path in self.paths)
        if checkpoint is not None:
            checkpoint_place = file_place("", checkpoint)
            if (checkpoint_place.scheme, checkpoint_place.authority) == (place.scheme, place.authority):
                return True
        allowed = {str(file_place("", scheme if ":" in scheme else f"{scheme}:")) for scheme in self.schemes}
        return not allowed.isdisjoint((place.scheme, str(place)))


_MOST_LINKS = 10
"""The maximum number of forbidden links of a table that an error lists."""

OPEN = Policy()
"""The policy without additional permissions."""


def _is_host(place: HostPlace, allowed: str) -> bool:
    split = urlsplit(allowed if "://" in allowed else f"//{allowed}")
    if (split.scheme == "http") != (place.scheme == "http"):
        return False
    return (split.hostname or "").lower() == place.host and (split.port or place.usual) == place.port


def refuse_reach(tables: Mapping[str, Table], policy: Policy, checkpoint: str | None = None) -> None:
    """Raise RunError if a table of a plan reaches a forbidden location. The hints name the flags that allow it."""
    problems = [problem for name, table in tables.items() for problem in _problems(name, table, policy, checkpoint)]
    if problems:
        raise RunError(diagnostics=tuple(_once_each(problems)))


def _once_each(problems: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per message, at its first path, with the number of other options that have the problem."""
    paths: dict[str, list[Diagnostic]] = {}
    for problem in problems:
        paths.setdefault(problem.message, []).append(problem)
    for message, (first, *others) in paths.items():
        also = f" (also for {count(len(others), 'other option')})" if others else ""
        yield replace(first, message=f"{message}{also}")


def _problems(name: str, table: Table, policy: Policy, checkpoint: str | None) -> Iterator[Diagnostic]:
    for place in places(table):
        path = f"tables.{name}.options.{place.option}"
        if not policy.allows(place, checkpoint):
            yield refusal(place, path)
        elif policy.paths and isinstance(place, FilePlace) and place.is_local:
            for link in islice(links_out(place.local_path, policy.paths), _MOST_LINKS):
                yield _not_below(link, path)
    for option, value in table.options.items():
        for reference in ENVIRONMENT.findall(value):
            variable = reference.removeprefix("${env:").removesuffix("}")
            if variable not in policy.environment:
                yield Diagnostic(
                    message=f"the run may not read the environment variable {variable}",
                    hint=f"whoever starts the run can allow it: --allow-env {variable}",
                    path=f"tables.{name}.options.{option}",
                )


def links_out(folder: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield the symbolic links at or below ``folder`` whose target is outside all ``paths``."""
    waiting, seen = [folder], set()
    while waiting:
        current = waiting.pop()
        if (real := os.path.realpath(current)) in seen or not os.path.isdir(current):
            continue
        seen.add(real)
        for entry in os.scandir(current):
            if entry.is_symlink() and not any(is_inside(entry.path, path) for path in paths):
                yield entry.path
            elif entry.is_dir():
                waiting.append(entry.path)


def refusal(place: Place, path: str | None) -> Diagnostic:
    """Return the problem of ``place``, a forbidden location in the option at ``path`` of a plan."""
    if isinstance(place, FilePlace) and place.is_local:
        return _not_below(place.local_path, path)
    if isinstance(place, FilePlace):
        return Diagnostic(
            message=f"the run may not reach the file system {place}",
            hint=f"whoever starts the run can allow it: --allow-scheme {place}",
            path=path,
        )
    if place.port is None:
        return Diagnostic(
            message=f"the run cannot determine whether it may reach {place}, whose port comes from the environment",
            hint="write the port itself",
            path=path,
        )
    return Diagnostic(
        message=f"the run may not reach the host {place}",
        hint=f"whoever starts the run can allow it: --allow-host {place}",
        path=path,
    )


def _not_below(shown: str, path: str | None) -> Diagnostic:
    return Diagnostic(
        message=f"the run may not reach {shown}",
        hint=f"whoever starts the run can allow it: --allow-path {os.path.realpath(shown)}",
        path=path,
    )


def policy_for(file: str | None, allowed: Mapping[str, Sequence[str] | bool]) -> Policy:
    """Return the policy of ``file``, extended by flags.

    The default file is ``hintplan.toml`` in this directory, if it exists. ``allowed`` has fields of :class:`Policy`.
    Raise PlanError if the file is wrong.
    """
    from_flags = Policy(**allowed)  # type: ignore[arg-type]
    if file is None and not os.path.lexists(FILE):
        return from_flags
    return read_policy(Path(file or FILE)) | from_flags


def read_policy(file: Path) -> Policy:
    """Return the policy in ``file``, with paths relative to its folder. Raise PlanError if the file is wrong."""
    run = read_project(file).get("run", {})
    fields: dict[str, Any] = {}
    fields_of_keys = {**KEYS, **SWITCHES}
    for key, values in run.items():
        if key not in fields_of_keys:
            raise PlanError(
                f"unknown key 'run.{key}'", file=str(file), hint=did_you_mean(key, fields_of_keys, what="keys")
            )
        if key in SWITCHES and not isinstance(values, bool):
            raise PlanError(f"'run.{key}' must be true or false", file=str(file), hint=f"write {key} = true")
        fields[fields_of_keys[key]] = values if key in SWITCHES else _texts(key, values, file)
    base = file.absolute().parent
    return Policy(**{**fields, "paths": tuple(str(base / path) for path in fields.get("paths", ()))})


def _texts(key: str, values: object, file: Path) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise PlanError(f"'run.{key}' must be a list of strings", file=str(file), hint=f'write {key} = ["..."]')
    problems = (problem for value in values if (problem := wrong_value(key, value)))
    if (problem := next(problems, None)) is not None:
        raise PlanError(f"'run.{key}': {problem}", file=str(file))
    return tuple(values)


def wrong_value(key: str, value: str) -> str | None:
    """Return the problem of a flag's value, or None."""
    if not value.strip():
        return "a value is empty"
    if key == "allow-host":
        try:
            split = urlsplit(value if "://" in value else f"//{value}")
            good = split.hostname and split.scheme in ("", "http", "https") and not split.path.strip("/")
            good = good and split.port != 0 and not (split.query or split.fragment or split.username)
        except ValueError:
            good = False
        return None if good else f"{value!r} is no host; write HOST, HOST:PORT, or http://HOST for plain HTTP"
    if key == "allow-scheme" and ("/" in value.partition("://")[0] or value.partition("://")[2].rstrip("/").count("/")):
        return f"{value!r} is no scheme; write SCHEME, such as s3a, or SCHEME://BUCKET"
    return None
