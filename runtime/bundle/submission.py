"""The output of ``hintplan bundle``: the written files, the requirements of a cluster, and the commands to submit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hintplan.plans.connectors.table import spark_packages
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import human_bytes
from hintplan.runtime.bundle.contents import Contents
from hintplan.runtime.bundle.distributions import extra_requirements
from hintplan.runtime.spark.versions import VERSIONS, package_version

PYTHON_RUNNER = "org.apache.spark.deploy.PythonRunner"
"""The class that spark-submit itself uses to start Python."""


def submission_text(plan: Plan, contents: Contents, archive: Path, program: Path, platform: str) -> str:
    """Return the lines about a bundle that has been written to ``archive`` and ``program``."""
    first, *_, last = VERSIONS
    there = [f"Spark {first} to {last}, Python 3.11 or newer with {_quoted(extra_requirements('state'))}"]
    if contents.to_install:
        there.append(f"for the plan's connectors {_quoted(contents.to_install)}")
    if contents.installed:
        there.append(f"{' '.join(contents.installed)}, which is installed here, too, and not in the archive")
    if contents.local:
        there.append(f"files of tables on local disks: {shlex.join(contents.local)}")
    along = [f"for the plan's connectors {_quoted(contents.drivers)}"] if contents.drivers else []
    along += [shlex.join(contents.definitions)] if contents.definitions else []
    parts = [
        ("written", [f"{archive}, {human_bytes(archive.stat().st_size)}, for {platform}", str(program)]),
        *([("goes along", along)] if along else []),
        ("must be there, for the driver and on every worker", there),
        ("to submit it", _client_mode(plan, archive, program)),
        ("or, with the driver in YARN or Kubernetes", _cluster_mode(plan, archive, program)),
        ("or, with the driver in a standalone cluster, all of which must reach the .jar", _standalone(plan, archive)),
    ]
    return "\n".join(line for title, lines in parts for line in (f"{title}:", *(f"  {item}" for item in lines)))


def _client_mode(plan: Plan, archive: Path, program: Path) -> Iterator[str]:
    yield shlex.join([*_submit(plan), "--py-files", str(archive), str(program)])


def _cluster_mode(plan: Plan, archive: Path, program: Path) -> Iterator[str]:
    yield shlex.join([*_submit(plan), "--deploy-mode", "cluster", "--py-files", str(archive), str(program)])


def _standalone(plan: Plan, archive: Path) -> Iterator[str]:
    jar = archive.with_suffix(".jar")
    yield shlex.join(["cp", str(archive), str(jar)])
    yield shlex.join([*_submit(plan), "--deploy-mode", "cluster", "--class", PYTHON_RUNNER, str(jar), jar.name, ""])


def _submit(plan: Plan) -> list[str]:
    """Return the beginning of each command.

    The name is the plan's in any case, but a cluster shows the program's name until the program starts.
    """
    spark_version, _ = package_version(_spark_here())
    written = {sink.table for sink in plan.sinks}
    packages = ",".join(f"{package}:{spark_version}" for package in spark_packages(plan.tables, written))
    return ["spark-submit", "--master", "URL", "--name", plan.name, *(["--packages", packages] if packages else [])]


def _spark_here() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return list(VERSIONS)[-1]


def _quoted(requirements: Sequence[str]) -> str:
    return shlex.join(requirements)
