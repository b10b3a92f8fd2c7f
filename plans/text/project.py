"""``hintplan.toml``: the settings of a project for several commands, in a table for each.

    [[lint.ignore]]     findings not to report             hintplan.plans.lint.ignores
    [run]               the reach of a run                 hintplan.plans.connectors.policy
    [ci]                the folder of scripts              this module
    [policy]            limits for edits of TTLs           hintplan.plans.ci.state_policy
    [[moved]]           operators with a new id            hintplan.plans.merge.moved

>>> read_project(Path("hintplan.toml"))                            # doctest: +SKIP
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hintplan.plans.errors import PlanError
from hintplan.plans.text.links import reason, refuse_leading_out
from hintplan.plans.text.names import did_you_mean

FILE = "hintplan.toml"

_TABLES = ("lint", "run", "ci", "policy")
_LISTS = ("moved",)


def read_toml(file: Path) -> tuple[dict[str, Any], str]:
    """Return the tables and the text of a TOML file; raise PlanError if it cannot be read."""
    import tomllib  # most plans have no such file in their directory

    refuse_leading_out(file)
    try:
        text = file.read_text(encoding="utf-8")
        return tomllib.loads(text), text
    except OSError as error:
        raise PlanError(f"cannot be read: {reason(error, file)}", file=str(file)) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"not valid TOML: {error}", file=str(file)) from error


def read_project(file: Path) -> dict[str, Any]:
    """Return the tables of ``file``; raise PlanError if it cannot be read or has unknown tables."""
    document, _ = read_toml(file)
    for key, table in document.items():
        if key in _LISTS:
            if not isinstance(table, list):
                raise PlanError(f"'{key}' must be a list of tables", file=str(file), hint=f"write [[{key}]]")
            continue
        if key not in _TABLES:
            raise PlanError(f"unknown key '{key}'", file=str(file), hint=did_you_mean(key, (*_TABLES, *_LISTS)))
        if not isinstance(table, dict):
            raise PlanError(f"'{key}' must be a table", file=str(file), hint=f"write [{key}]")
    return document


def project_for(plan: Path) -> Path | None:
    """Return the ``hintplan.toml`` nearest to the plan file, in its folder or above; None if there is none.

    A folder or a dangling link of that name counts, too: the caller then fails to read it.
    """
    return next((place / FILE for place in plan.resolve().parents if os.path.lexists(place / FILE)), None)


def sql_dir_for(plan: Path) -> Path | None:
    """Return the folder of scripts from ``sql-dir`` of ``[ci]`` in the project of ``plan``; None if it is not set."""
    file = project_for(plan)
    if file is None:
        return None
    table = read_project(file).get("ci", {})
    for key, value in table.items():
        if key != "sql-dir":
            raise PlanError(f"unknown key 'ci.{key}'", file=str(file), hint=did_you_mean(key, ("sql-dir",)))
        if not isinstance(value, str):
            raise PlanError(f"'ci.{key}' must be a string", file=str(file), hint='write sql-dir = "sql"')
    return file.parent / table["sql-dir"] if "sql-dir" in table else None
