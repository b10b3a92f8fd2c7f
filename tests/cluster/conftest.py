"""Fixtures of tests with the installed wheel: a standalone cluster, a Spark Connect server, a command to run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.installed import environment, installed
from tests.cluster.standalone import Cluster, running_cluster, running_connect_server
from tests.cluster.yarn import Yarn, running_yarn
from tests.hostile_modules import lay_out

DEADLINE_SECONDS = 300


@pytest.hookimpl(tryfirst=True)  # before the gate takes its share of tests with these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster with two workers of one core each, which stay alive."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="session")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """YARN with a node, which stays alive."""
    # A short path: YARN puts files of containers deep below it.
    with running_yarn(tmp_path_factory.mktemp("yarn")) as found:
        yield found


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Spark Connect server with two cores."""
    with running_connect_server(tmp_path_factory.mktemp("connect")) as found:
        yield found


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """``run("plan.json", "--once")`` is ``hintplan run plan.json --once`` in ``tmp_path``, as it is installed.

    There are modules beside the plan that have the names of what a run imports, and that nobody imports, neither on
    the driver nor on workers.
    """
    imported = lay_out(tmp_path)

    def run(*arguments: str, hintplan: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [hintplan or installed().hintplan, "run", *arguments],
            cwd=tmp_path,
            env=environment(**more),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    yield run
    assert not imported.exists(), imported.read_text()
