"""Options of every command that compiles: ``-c KEY=VALUE`` overrides a SET, ``--allow-module`` lets functions load.

>>> key_values(("a=1", "b = x=y"))
{'a': '1', 'b': 'x=y'}
"""

from __future__ import annotations

from collections.abc import Iterable

import click

__all__ = ["allow_module_option", "config_option", "key_values"]


def key_values(given: Iterable[str]) -> dict[str, str]:
    """The values by key, of several for one key the last; wrong usage for what is not ``key=value``."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected key=value, found '{text}'")
        found[key.strip()] = value.strip()
    return found


config_option = click.option(
    "-c",
    "--config",
    multiple=True,
    callback=lambda ctx, parameter, given: key_values(given),
    metavar="KEY=VALUE",
    help="Override a SET of the script.",
)

allow_module_option = click.option(
    "--allow-module",
    "allow_modules",
    multiple=True,
    metavar="MODULE",
    help="Where the script's functions may be; their code is loaded.",
)
