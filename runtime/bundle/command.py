"""``hintplan bundle``: writes the archive and the program of a plan for clusters, and prints how to submit them.

It refuses a plan and options that a run would refuse. The same input gives the same bytes.
"""

from __future__ import annotations

import io
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import click

from hintplan.plans.connectors.policy import KEYS, SWITCHES, Policy
from hintplan.plans.files.codec import fingerprint, read_plan_bytes, write_plan_bytes
from hintplan.plans.text.links import refuse_symlinks
from hintplan.plans.text.terminal import print_data
from hintplan.runtime.bundle.contents import contents
from hintplan.runtime.bundle.distributions import PLATFORMS
from hintplan.runtime.bundle.program import program_text
from hintplan.runtime.bundle.submission import submission_text
from hintplan.runtime.code_files import write_zip
from hintplan.runtime.run.command import RunOptions, checked_plan, refuse_wrong_usage, with_run_options

_SAID_OTHERWISE = frozenset({"--expect", "--policy", *(f"--{key}" for key in (*KEYS, *SWITCHES))})


@click.command("bundle")
@click.argument("path", metavar="PLAN")
@click.argument("options", nargs=-1, metavar="[-- OPTIONS]")
@click.option(
    "-o", "--output", metavar="DIR", default=".", help="The directory for the two files (default: this directory)."
)
@click.option(
    "--platform",
    type=click.Choice(tuple(PLATFORMS)),
    default=sysconfig.get_platform,
    help="The platform of the cluster (default: the platform of this machine).",
)
def bundle_command(path: str, options: tuple[str, ...], output: str, platform: str) -> int:
    """Pack a plan, and everything that it needs, for a cluster without hintplan.

    Options of hintplan run after -- become options of the bundle; spark-submit can add more.

    \b
    hintplan bundle revenue.json -o dist -- --checkpoint hdfs:///state/revenue
    spark-submit --py-files dist/revenue.zip dist/revenue_main.py --once
    """
    if path == "-":
        raise click.UsageError("a bundle is called after the file of its plan: write the plan to one")
    run: RunOptions = _as_run.main([path, *options], prog_name="hintplan run", standalone_mode=False)
    if run.spark.master or run.spark.remote:
        raise click.UsageError("spark-submit decides where a bundle runs: remove --master and --remote")
    refuse_wrong_usage(run)
    plan = checked_plan(run)
    name = re.sub(r"[^\w.-]", "_", Path(path).stem)
    bundled = contents(plan, modules=run.policy.modules, platform=platform)
    program = program_text(name=name, options=_options(options, run.policy, fingerprint(plan)), platform=platform)
    files = {**bundled.files, f"{name}.json": read_plan_bytes(path), "__main__.py": program.encode()}
    archive, main = Path(output, f"{name}.zip"), Path(output, f"{name}_main.py")
    refuse_symlinks(archive)
    refuse_symlinks(main)
    Path(output).mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    write_zip(packed, files, squeezed=True)
    write_plan_bytes(packed.getvalue(), archive)
    write_plan_bytes(program.encode(), main)
    print_data(submission_text(plan, bundled, archive, main, platform))
    return 0


@click.command("run")
@with_run_options
def _as_run(options: RunOptions) -> RunOptions:
    return options


def _options(given: Sequence[str], policy: Policy, digest: str) -> list[str]:
    """Return the first options of the program: the digest, the ``given`` options, and all that ``policy`` allows.

    A policy file is not packed.
    """
    words, kept = iter(given), []
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in _SAID_OTHERWISE:
            kept.append(word)
        elif not equals and flag.removeprefix("--") not in SWITCHES:
            next(words)
    allowed = (f"--{key}={value}" for key, field in KEYS.items() for value in dict.fromkeys(getattr(policy, field)))
    switched = (f"--{key}" for key, field in SWITCHES.items() if getattr(policy, field))
    return [f"--expect={digest}", *kept, *allowed, *switched]
