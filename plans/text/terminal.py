"""Output for people: data to stdout, messages to stderr, without control characters from names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import click

from hintplan.plans.text.escapes import clean
from hintplan.plans.text.redaction import SHORTEST, redact

_HIDDEN: dict[str, str] = {}
"""The values of environment variables that are not printed, by name."""


def one_line(text: str) -> str:
    """Return ``text`` on one line, with unprintable characters as escapes."""
    return clean(" ".join(text.split()))


def hide(variables: Iterable[str]) -> None:
    """Print references instead of the current values of these environment variables, from now on.

    Values that are so short that any text may contain them by chance are printed.
    """
    _HIDDEN.update({name: os.environ[name] for name in variables if len(os.environ.get(name, "")) >= SHORTEST})


def without_secrets(text: str) -> str:
    """Return ``text`` without unprintable characters and the values that :func:`hide` names."""
    return clean(redact(text, _HIDDEN))


def print_data(text: str, *, styled: bool = False) -> None:
    """Print data to stdout; ``styled`` text must have been cleaned before it was coloured."""
    text = redact(text, _HIDDEN)
    click.echo(text if styled else clean(text), color=wants_colour() if styled else False)


def print_message(text: str) -> None:
    """Print a message to stderr; ignore errors, such as a full disk or a closed pipe, so that the work continues."""
    with suppress(OSError):
        click.echo(without_secrets(text), err=True, color=False)


def wants_colour() -> bool:
    """Return True if stdout is a terminal and NO_COLOR is not set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
