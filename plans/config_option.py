"""The option ``-c KEY=VALUE`` of every command that compiles: a configuration key that overrides the script's SET.

>>> key_values(("a=1", "b = x=y"))
{'a': '1', 'b': 'x=y'}
"""

from __future__ import annotations

from collections.abc import Iterable

import click

__all__ = ["config_option", "key_values"]


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
