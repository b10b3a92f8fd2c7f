"""A pull request with hostile files, through every command that a build server or a reviewer runs on it.

Each command runs in an interpreter that notes what Python opens and connects to. Outside the repository are a secret
file, a variable of the environment, and a server that must never be asked. Most commands run in copies of one process,
which has loaded hintplan; of each kind, one plan has an interpreter of its own, another one at each commit.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

import hintplan
from hintplan import compile_sql
from hintplan.plans.commands.diff import FORMATS as DIFFS
from hintplan.plans.commands.show import FORMATS as SHOWS
from hintplan.plans.declarations.tables import Table
from hintplan.plans.edit.edit import set_value
from hintplan.plans.operators import Operator, Union
from tests.plans.commands.test_diff_command import git
from tests.sample import gate_seed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CANARY = "canary-hunter2-7f3a"
SPOKEN = "<script>alert(7)</script> ::error file=x::pwned | [b](javascript:x) ![c](//evil/c) @everyone"
ESCAPES = "\x1b[2J\u202e\r\n::error file=x::pwned\n``` </span>"
ORDERS = "(id BIGINT, total DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');"
SINK = "CREATE TABLE result (id BIGINT, n BIGINT) WITH ('connector' = 'print');"
SQL = f"CREATE TABLE orders {ORDERS}{SINK} INSERT INTO result SELECT id, COUNT(*) FROM orders GROUP BY id;"
FUNCTION = f"""CREATE TABLE orders {ORDERS}{SINK}
CREATE FUNCTION f AS 'evil.F' LANGUAGE PYTHON;
INSERT INTO result SELECT o.id, t.n FROM orders AS o, LATERAL TABLE(f(o.id)) AS t(n);"""
WATCH = """
import os, sys
log = os.open(os.environ["WATCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def hook(event, arguments):
    if event in ("open", "socket.connect", "socket.getaddrinfo"):
        os.write(log, f"{event} {arguments!r:.500}\\n".encode("utf-8", "replace"))
sys.addaudithook(hook)
"""
# Runs each command of its standard input in a copy of itself, which writes to the files `out` and `err`.
SERVER = """
import json, os, pkgutil, sys, traceback
import hintplan.plans.cli, hintplan.plans.commands
for module in pkgutil.iter_modules(hintplan.plans.commands.__path__):
    __import__("hintplan.plans.commands." + module.name)
for line in sys.stdin:
    words, out, err = json.loads(line)
    child = os.fork()
    if not child:
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 1
        try:
            hintplan.plans.cli.main(words)
        except SystemExit as request:
            code = request.code or 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
SECONDS = 60
TEXTS = {"html": "page.html", "svg": "page.svg"}


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    folder: Path
    outside: Path
    server: socket.socket
    environment: dict[str, str]
    log: Path
    loaded: subprocess.Popen[str]

    def run(self, *words: str, makes: str | None = None, fresh: bool = False) -> str:
        """All that a command says and makes; it ends by itself, and nothing else happened."""
        self.log.write_text("")
        code, said = (self._in_an_interpreter if fresh else self._in_a_copy)(words)
        assert code in (0, 1), said
        assert "Traceback" not in said
        assert "internal error" not in said
        made = self.folder / makes if makes else None
        if made is not None and made.is_file() and not made.is_symlink():
            said += made.read_text()
            made.unlink()
        self._nothing_happened(said)
        return said

    def _in_an_interpreter(self, words: tuple[str, ...]) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "hintplan", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, timeout=SECONDS, check=False
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    def _in_a_copy(self, words: tuple[str, ...]) -> tuple[int, str]:
        files = [str(self.log.with_name(name)) for name in ("out", "err")]
        assert self.loaded.stdin is not None
        assert self.loaded.stdout is not None
        self.loaded.stdin.write(json.dumps([words, *files]) + "\n")
        self.loaded.stdin.flush()
        assert select.select([self.loaded.stdout], [], [], SECONDS)[0], f"{words} does not end"
        return int(self.loaded.stdout.readline()), "".join(Path(file).read_text() for file in files)

    def _nothing_happened(self, said: str) -> None:
        assert CANARY not in said
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert not list(self.folder.glob("**/pwned")), "code of the pull request ran"
        assert {path.name: path.read_text() for path in self.outside.iterdir()} == OUTSIDE
        noted = self.log.read_text().splitlines()
        assert any(line.startswith("open ") for line in noted), "nothing was watched"
        wrong = [line for line in noted if str(self.outside) in line or "environ" in line or line.startswith("socket.")]
        assert wrong == []
        with pytest.raises(BlockingIOError):
            self.server.accept()


OUTSIDE = {
    "precious": f"precious {CANARY}",
    "secret.json": json.dumps({"format": "1.0", "operators": CANARY}),
    "secret.sql": f"-- {CANARY}\n",
}


def hostile(port: int) -> dict[str, str]:
    """The text of each hostile plan, by the name of its file, with digests that fit, as its author would see to."""
    plan = compile_sql(SQL, name="orders")
    servers = {
        "web": ("filesystem", {"path": f"http://127.0.0.1:{port}/${{env:TOKEN}}", "format": "json"}),
        "db": ("jdbc", {"url": f"jdbc:postgresql://127.0.0.1:{port}/x", "table-name": "t", "password": CANARY}),
        "kv": ("redis", {"host": "127.0.0.1", "port": str(port), "key-pattern": "{id}", "password": "${env:TOKEN}"}),
        "api": ("http", {"url": f"http://127.0.0.1:{port}/{{id}}?t=${{env:TOKEN}}"}),
    }
    columns = plan.tables["orders"].columns
    tables = {name: Table(columns=columns, options={"connector": c, **o}) for name, (c, o) in servers.items()}
    scan, aggregate, *rest = plan.operators
    doubled: list[Operator] = [scan]
    for number in range(40):
        doubled.append(Union(id=f"union_{number}", inputs=(doubled[-1].id, doubled[-1].id)))
    bomb = (*doubled, replace(aggregate, inputs=(doubled[-1].id,)), *rest)  # type: ignore[call-arg]
    spoken = compile_sql(SQL.replace("TABLE orders", f"TABLE `{SPOKEN}`").replace("FROM orders", f"FROM `{SPOKEN}`"))
    state = next(operator.id for operator in spoken.operators if operator.id.startswith("aggregate"))
    spoken = set_value(spoken, f"{state}.groupAggregateState.ttl", "1 d", reason=SPOKEN + ESCAPES)[0]
    made = {
        "linked_script.json": replace(plan, source="environ.sql"),
        "climbs.json": replace(plan, source="../../outside/secret.sql"),
        "sends.json": replace(plan, tables={**plan.tables, **tables}),
        "speaks.json": replace(spoken, name=SPOKEN + ESCAPES),
        "runs.json": replace(plan, source="runs.sql"),
        "doubles.json": replace(plan, operators=bomb),
    }
    return {**{name: hintplan.dumps(one).decode() for name, one in made.items()}, "nested.json": "[" * 200_000}


PLANS = (*hostile(0), "linked_plan.json")


@pytest.fixture(scope="module")
def pull_request(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PullRequest]:
    base = tmp_path_factory.mktemp("hostile")
    folder, outside, watch = base / "repo", base / "outside", base / "watch"
    for place in (folder / "plans", outside, watch):
        place.mkdir(parents=True)
    for name, text in OUTSIDE.items():
        (outside / name).write_text(text)
    (watch / "sitecustomize.py").write_text(WATCH)
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    hintplan.dump(compile_sql(SQL, name="orders"), folder / "plans" / "orders.json")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "main")
    git(folder, "checkout", "-q", "-b", "change")
    for name, text in hostile(server.getsockname()[1]).items():
        (folder / "plans" / name).write_text(text)
    (folder / "plans" / "linked_plan.json").symlink_to(outside / "secret.json")
    (folder / "plans" / "environ.sql").symlink_to("/proc/self/environ")
    (folder / "plans" / "runs.sql").write_text(FUNCTION)
    # What would run if it were imported, from here or from the folder of the plans.
    for place in ("evil.py", "plans/evil.py", "plans/__init__.py", "planner.py", "click.py", "sitecustomize.py"):
        (folder / place).write_text(f"open({str(folder / 'pwned')!r}, 'w')\n")
    (folder / "comment.md").symlink_to(outside / "precious")
    (folder / "hintplan.toml").write_text(
        '[run]\nallow-host = ["*"]\nallow-env = ["TOKEN"]\nallow-scheme = ["http"]\nallow-module = ["evil"]\n'
    )
    (folder / ".gitattributes").write_text("*.json diff=evil filter=evil merge=evil\n")
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-q", "-m", "change")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(watch), str(ROOT)]),
        "NO_COLOR": "1",
        "TOKEN": CANARY,
        "WATCH_LOG": str(base / "log"),
    }
    command = [sys.executable, "-P", "-c", SERVER]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as loaded:
        yield PullRequest(
            folder=folder, outside=outside, server=server, environment=environment, log=base / "log", loaded=loaded
        )
        loaded.kill()


def is_drawn(name: str, kind: str) -> bool:
    """Tell whether commands of a ``kind`` on this plan have an interpreter of their own: those on one plan have."""
    return name == Random(f"{gate_seed()} {kind}").choice(PLANS)


def says_nothing_for_others(text: str, layout: str) -> None:
    """What a plan says is text there: no markup, no mention, no link, no command to the build server."""
    if layout == "markdown":
        text = re.sub(r"(`+).*?\1", "", text, flags=re.DOTALL)
        assert not re.search(r"<script|javascript:|//evil|@everyone", text)
    if layout in ("html", "svg"):
        assert "<script>alert" not in text
        assert not re.search(r"(?:href|src)\s*=\s*[\"'](?:javascript|//|https?://(?!www\.w3\.org))", text)
    if layout == "github":
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert not [line for line in commands if line.startswith("::error file=x::pwned")]


def test_the_build_server_fails_and_says_why(pull_request: PullRequest) -> None:
    words = ("ci", "--base", "git:main", "--github", "--sarif", "plans.sarif")
    said = pull_request.run(*words, makes="plans.sarif", fresh=True)
    for name in PLANS:
        # What has no operators in git is no plan, and not looked at: a link is the path that it leads to.
        assert (f"plans/{name}" in said) == (name not in ("nested.json", "linked_plan.json"))
    says_nothing_for_others(said, "github")
    said = pull_request.run("ci", "--base", "git:main", "--comment", "comment.md")
    assert "comment.md: is a symbolic link, and links are not followed" in said
    says_nothing_for_others(pull_request.run("ci", "--base", "git:main", "--junit", "p.xml", makes="p.xml"), "junit")
    commented = pull_request.run("ci", "--base", "git:main", "--comment", "other.md", makes="other.md")
    says_nothing_for_others(commented[commented.index("| plan") :], "markdown")


@pytest.mark.sampled
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("layout", SHOWS)
def test_showing_a_hostile_plan_is_harmless(pull_request: PullRequest, name: str, layout: str) -> None:
    made = TEXTS.get(layout)
    words = ["-o", made] if made else ["--format", layout]
    said = pull_request.run("show", f"plans/{name}", *words, makes=made, fresh=is_drawn(name, f"show {layout}"))
    says_nothing_for_others(said, layout)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("layout", DIFFS)
def test_comparing_a_hostile_plan_is_harmless(pull_request: PullRequest, name: str, layout: str) -> None:
    words = ("diff", "git:main:plans/orders.json", f"plans/{name}", "--format", layout)
    says_nothing_for_others(pull_request.run(*words, fresh=is_drawn(name, f"diff {layout}")), layout)
    if layout in ("text", "markdown", "json"):
        pull_request.run(*words, "--sql")


@pytest.mark.part(of=2)
@pytest.mark.parametrize("name", PLANS)
def test_looking_at_a_hostile_plan_is_harmless(pull_request: PullRequest, name: str) -> None:
    file = f"plans/{name}"
    if name.startswith("linked_plan"):
        assert "leads out of this folder" in pull_request.run("validate", file)
    for words in (
        ["validate", file],
        ["explain", file],
        ["lint", file],
        ["flat", "--lenient", file],
        ["fmt", "--diff", file],
        ["why", file, "name"],
        ["merge", file, "plans/orders.json", file],
        ["rebase", file, "--onto", "plans/orders.json"],
        ["check", file, "--checkpoint", "none"],
    ):
        pull_request.run(*words, fresh=is_drawn(name, words[0]))
