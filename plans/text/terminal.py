"""Prints for people: data to stdout, talk to stderr, without control characters that came in with a name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import click

from hintplan.plans.text.redaction import SHORTEST, redacted
from hintplan.plans.text.unprintable import clean

_HIDDEN: dict[str, str] = {}
"""Values of environment variables that are not printed, by name."""


def one_line(text: str) -> str:
    """``text`` on one line, with characters that do not print as escapes."""
    return clean(" ".join(text.split()))


def hide(variables: Iterable[str]) -> None:
    """Print references instead of the values that these environment variables have now, from now on.

    Values that any text may hold by chance are printed.
    """
    _HIDDEN.update({name: os.environ[name] for name in variables if len(os.environ.get(name, "")) >= SHORTEST})


def show(text: str, *, styled: bool = False) -> None:
    """Print data to stdout; ``styled`` text was cleaned before it was given colours."""
    text = redacted(text, _HIDDEN)
    click.echo(text if styled else clean(text), color=wants_colour() if styled else False)


def say(text: str) -> None:
    """Print talk to stderr. Where that is a full disk or nobody reads it, what is done goes on without."""
    with suppress(OSError):
        click.echo(clean(redacted(text, _HIDDEN)), err=True, color=False)


def wants_colour() -> bool:
    """Whether stdout is a terminal and nobody asked for no colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
