"""A command whose help lists its options in sections, each with an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from hintplan.plans.frozen import frozen


@frozen
class Section:
    """The ``flags`` of a section of the help, and an ``example`` of their use."""

    flags: tuple[str, ...]
    example: str


class SectionedCommand(click.Command):
    """A command whose help lists its options by ``sections``, after the options in no section."""

    def __init__(
        self,
        name: str | None,
        *,
        sections: Mapping[str, Section],
        callback: Callable[..., Any] | None = None,
        params: list[click.Parameter] | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(name, callback=callback, params=params, help=help)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        unlisted = {
            parameter.opts[0]: record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None
        }
        parts = [
            ([unlisted.pop(flag) for flag in section.flags], name, section.example)
            for name, section in self.sections.items()
        ]
        for records, name, example in ((list(unlisted.values()), "Options", ""), *parts):
            with formatter.section(name):
                formatter.write_dl(records)
                if example:
                    formatter.write_text(f"$ {example}")
