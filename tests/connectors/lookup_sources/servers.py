"""PostgreSQL, MariaDB and Redis servers of the tests' own, on free ports of the loopback interface."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path

PASSWORD = "correct-horse-7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A cluster in ``directory`` that listens on ``port``; user ``hintplan``, database ``shop``."""

    directory: Path
    port: int
    binaries: Path
    user: str | None

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/shop"

    def dsn(self, database: str = "shop") -> str:
        return f"host=127.0.0.1 port={self.port} dbname={database} user=hintplan password={PASSWORD}"

    def execute(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.directory} -c listen_addresses=127.0.0.1 -c fsync=off"
        self.run("pg_ctl", "start", "-w", "-t", "60", "-l", str(self.directory / "log"), "-o", options)

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-w", "-t", "60", "-m", "fast")

    def kill(self) -> None:
        """End it without letting it write anything."""
        self.run("pg_ctl", "stop", "-w", "-t", "60", "-m", "immediate")

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), "-D", str(self.directory / "data"), *arguments]
        # pg_ctl leaves the server its own standard output, so it must not be a pipe that someone reads to the end.
        with (self.directory / "commands").open("ab") as log:
            done = subprocess.run(
                command, user=self.user, cwd=self.directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                timeout=90, check=False,
            )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{command} failed: {(self.directory / 'commands').read_text()[-2000:]}")


@contextmanager
def postgres_server() -> Iterator[Postgres | None]:
    """A running server with its data in a directory that goes away; None if PostgreSQL is not installed."""
    found = [*glob("/usr/lib/postgresql/*/bin/initdb"), shutil.which("initdb") or ""]
    initdb = next((path for path in sorted(found, reverse=True) if path), None)
    if initdb is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="hintplan-pg-"))
    try:
        user = _unprivileged() if os.geteuid() == 0 else None
        server = Postgres(directory=directory, port=free_port(), binaries=Path(initdb).parent, user=user)
        (directory / "password").write_text(PASSWORD)
        if user is not None:
            for path in (directory, directory / "password"):
                shutil.chown(path, user)
        server.run(
            "initdb", "--username=hintplan", f"--pwfile={directory / 'password'}", "--auth=scram-sha-256",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        server.start()
        try:
            import psycopg

            with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
                connection.execute("CREATE DATABASE shop")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Mariadb:
    """A server with its data in ``directory`` that listens on ``port``; user ``hintplan``, database ``shop``."""

    def __init__(self, program: str, directory: Path, user: str | None) -> None:
        self.port = free_port()
        self._program, self._directory, self._user = program, directory, user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/shop"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                self._program, "--no-defaults", f"--datadir={self._directory}/data", f"--port={self.port}",
                f"--socket={self._directory}/socket", "--bind-address=127.0.0.1", f"--pid-file={self._directory}/pid",
                "--innodb-buffer-pool-size=64M",
            ],
            user=self._user, cwd=self._directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for_port(self.port)

    def kill(self) -> None:
        """End it without letting it write anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def connection(self, **how):
        import pymysql

        where = {"host": "127.0.0.1", "port": self.port, "user": "hintplan", "password": PASSWORD, "database": "shop"}
        return pymysql.connect(**{**where, "autocommit": True, "init_command": "SET time_zone = '+00:00'", **how})

    def execute(self, *statements: str) -> None:
        with self.connection() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def set_up(self) -> None:
        """Make the user and the database."""
        where = {"unix_socket": f"{self._directory}/socket", "host": None, "user": "root", "password": ""}
        with self.connection(**where, database=None) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop")
            cursor.execute(f"CREATE USER hintplan IDENTIFIED BY '{PASSWORD}'")
            cursor.execute("GRANT ALL ON shop.* TO hintplan")


@contextmanager
def mariadb_server() -> Iterator[Mariadb | None]:
    """A running server with its data in a directory that goes away; None if MariaDB is not installed."""
    program = next(filter(None, (shutil.which("mariadbd"), *glob("/usr/sbin/mariadbd"))), None)
    install = shutil.which("mariadb-install-db")
    if program is None or install is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="hintplan-mariadb-"))
    user = _unprivileged() if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(directory, user)
    server = Mariadb(program, directory, user)
    try:
        subprocess.run(
            [
                install, "--no-defaults", f"--datadir={directory}/data", "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            user=user, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=90, check=True,
        )  # fmt: skip
        server.start()
        server.set_up()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Redis:
    """A server on ``port`` that demands a password, and keeps its data over :meth:`stop` and :meth:`start`."""

    def __init__(self, program: str, directory: Path) -> None:
        self.port = free_port()
        self._program = program
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory),
                "--requirepass", PASSWORD, "--save", "3600 100000", "--daemonize", "no",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for_port(self.port)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()  # saves to disk, as "save" is configured
            self._process.wait(timeout=30)
            self._process = None

    def client(self):
        import redis

        return redis.Redis(host="127.0.0.1", port=self.port, password=PASSWORD)


@contextmanager
def redis_server() -> Iterator[Redis | None]:
    """A running server with its data in a directory that goes away; None if Redis is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="hintplan-redis-"))
    server = Redis(program, directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Return when something listens on ``port``; TimeoutError after 30 seconds."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)  # another process starts; there is nothing to wait on
    raise TimeoutError(f"nothing listens on port {port}")
