"""``hintplan schema``: the JSON Schema of plans."""

from __future__ import annotations

import click

from hintplan.plans.text.terminal import print_data


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of plans, for editors and other tools."""
    from hintplan.plans.format.editor_schema import editor_schema_text

    print_data(editor_schema_text().rstrip("\n"))
