"""A PostgreSQL server of the tests' own: made in a temporary folder, on a Unix socket, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PASSWORD = "sesame & thyme"


def _program(name: str) -> str | None:
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


class Cluster:
    """One server, run by a user without rights: PostgreSQL refuses to run as root."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.as_user: list[str] = []
        if os.getuid() == 0:
            names = [user.pw_name for user in pwd.getpwall()]
            user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        secret = Path(folder, "password")
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        self.run(
            *("initdb", "--pgdata", f"{folder}/data", "--username", "pkdp", "--pwfile", str(secret)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        self.start()

    def run(self, name: str, *arguments: str) -> None:
        log = Path(self.folder, "log")
        with log.open("a", encoding="utf-8") as written:
            done = subprocess.run(
                [*self.as_user, str(_program(name)), *arguments],
                cwd=self.folder,
                stdout=written,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{log.read_text(encoding='utf-8')}")

    def start(self) -> None:
        # fsync: no test pulls the plug of the machine.
        settings = (
            "listen_addresses=''",
            f"unix_socket_directories='{self.folder}'",
            "max_connections=60",
            "fsync=off",
        )
        options = " ".join(f"-c {setting}" for setting in settings)
        self.run("pg_ctl", "--pgdata", f"{self.folder}/data", "--options", options, "--wait", "--silent", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "--pgdata", f"{self.folder}/data", "--mode", mode, "--silent", "stop")

    def url(self, database: str, password: str = PASSWORD) -> str:
        from urllib.parse import quote

        return f"postgresql://pkdp:{quote(password)}@/{database}?host={self.folder}"

    def empty_database(self) -> str:
        import psycopg

        # Making a database takes longer than most tests: there is one, and what is in it goes.
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'ledger'").fetchone() is None:
                connection.execute("CREATE DATABASE ledger")
            connection.execute("ALTER DATABASE ledger RESET ALL")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'ledger'")
        with psycopg.connect(self.url("ledger"), autocommit=True) as connection:
            connection.execute("SET client_min_messages = 'error'")
            connection.execute("DROP SCHEMA IF EXISTS pkdp, public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url("ledger")


@pytest.fixture(scope="session")
def cluster():
    if _program("initdb") is None or _program("pg_ctl") is None:
        missing = "PostgreSQL is not installed; on Debian: apt-get install postgresql."
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="pkdp-postgres-") as folder:
        started = Cluster(folder)
        yield started
        started.stop()


@pytest.fixture
def postgres_url(cluster):
    """The URL of an empty database."""
    return cluster.empty_database()
