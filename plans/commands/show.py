"""``hintplan show``: a plan as a page, a picture, a graph for other tools, or a tree.

It reads the plans and the script, and writes one file or standard output. Other modules draw.

>>> format_of("plan.html"), format_of("plan.gv"), format_of(None)
('html', 'dot', 'tree')
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from hintplan.plans.api.drawing import ENDINGS, FORMATS, check_ids, drawn
from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    allow_module_option,
    evidence_option,
    given_evidence,
    init_option,
    output_option,
)
from hintplan.plans.errors import HintplanError
from hintplan.plans.files.codec import read_plan_bytes, write_plan_bytes
from hintplan.plans.files.named_script import init_of, named_script
from hintplan.plans.files.plan_source import PlanSource, compile_text, init_texts, read_source
from hintplan.plans.show.page_script import Script, page_script
from hintplan.plans.show.tree import show_tree
from hintplan.plans.text.terminal import print_data, print_message
from hintplan.plans.text.text_file import script_text


@click.command("show")
@click.argument("path", metavar="PLAN")
@output_option("Write here; the ending chooses the format.")
@click.option(
    "--format", "layout", type=click.Choice(FORMATS), help="The format; by default, the ending chooses, else tree."
)
@click.option("--diff", "older", metavar="PLAN", help="Mark the differences from this older plan.")
@click.option("--sql", type=click.Path(dir_okay=False), help="The script, if it is not next to the plan.")
@evidence_option
@click.option("--around", "centre", metavar="ID", multiple=True, help="Only this operator and its neighbours.")
@click.option(
    "--hops",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="The distance that --around covers, in operators.",
)
@allow_module_option
@init_option
@allow_fact_edits_option
def show_command(
    path: str,
    output: str | None,
    layout: str | None,
    older: str | None,
    sql: str | None,
    evidence_file: str | None,
    centre: tuple[str, ...],
    hops: int,
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    allow_fact_edits: bool,
) -> None:
    """Draw a plan: a page to look at, a picture, a graph for other tools, or a tree.

    A plan can be a file, '-', git:REVISION:PATH, or a SQL script, which is compiled.

    \b
    hintplan show plan.json -o plan.html
    hintplan show plan.json --diff main.json -o review.html
    hintplan show plan.json --format mermaid
    """
    chosen = layout or format_of(output)
    if chosen == "tree" and (older or centre):
        raise click.UsageError("a tree shows one whole plan; --diff and --around need another --format")
    if sql and chosen != "html":
        raise click.UsageError("only a page shows the script: write one with -o plan.html")
    if evidence_file and chosen != "html":
        raise click.UsageError("only a page shows evidence: write one with -o plan.html")
    if chosen == "html" and output is None and sys.stdout.isatty():
        raise click.UsageError("a page is for a browser; write it to a file with -o plan.html")
    source = read_source(path, allow_modules=allow_modules, init=init, allow_fact_edits=allow_fact_edits)
    plan, before = source.plan, None
    if older:
        before = read_source(older, allow_modules=allow_modules, init=init, allow_fact_edits=allow_fact_edits).plan
    check_ids(centre, plan, before)
    script = _script(source, sql, allow_modules, init) if chosen == "html" else None
    if chosen == "tree" and output is None:
        show_tree(plan)
        return
    # Commands on the page need a file that can be edited.
    file = path if source.file == path and source.places is None else "plan.json"
    evidence = given_evidence(before or plan, file=evidence_file, checkpoint=None)
    text = drawn(chosen, plan, before, centre, hops, script, file, evidence)
    if output is not None:
        write_plan_bytes(text.encode(), output)
    elif chosen in ("html", "svg"):
        # HTML and SVG are escaped already, by the rules of their format.
        click.echo(text, nl=False)
    else:
        print_data(text)


def format_of(output: str | None) -> str:
    """Return the format for the extension of a file; a tree for standard output."""
    if output is None:
        return "tree"
    ending = os.path.splitext(output)[1].lower()
    if ending not in ENDINGS:
        raise click.UsageError(f"'{output}' has no known suffix; write --format {'|'.join(FORMATS)}")
    return ENDINGS[ending]


def _script(source: PlanSource, sql: str | None, allow_modules: Sequence[str], init: Sequence[str]) -> Script | None:
    """Return the given script, or else the script named by the plan if it is next to it; None if there is none."""
    plan = source.plan
    if source.places is not None and sql is None:
        name = os.path.basename(source.file or source.name)
        return page_script(name, source.data.decode(), plan, plan, source.places)
    path = sql
    if path is None and source.file is not None and source.name == source.file:
        path = named_script(plan.source, os.path.dirname(source.file))
    if path is None:
        return None
    text = script_text(read_plan_bytes(path), path)
    try:
        texts = init_texts(init_of(path, plan.init, init))
        compiled = compile_text(text, path, {}, allow_modules, texts)
    except HintplanError as error:
        print_message(f"warning: {path} does not compile, so its lines are not linked: {error.diagnostics[0].message}")
        return Script(file=os.path.basename(path), text=text)
    return page_script(os.path.basename(path), text, plan, compiled.plan, compiled.positions)
