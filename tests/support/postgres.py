"""A real PostgreSQL server for the tests: found, started on a folder of its own, ended.

The binaries are those of the system, e.g. Debian's package `postgresql`. What cannot be
had skips the tests that need it, with the reason.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .servers_setup import Missing, free_port

__all__ = ["Server", "running_postgres"]

_SECONDS = 60
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/bin")


class Server:
    """A running server, on a loopback port, with a user `lighter` without a password."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._names = itertools.count(1)

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        """Return the address of a database."""
        return f"{driver}://lighter@127.0.0.1:{self.port}/{database}"

    def new_place(self) -> str:
        """Make an empty schema; return an address for SQLAlchemy that leads into it.

        A database of its own would be some hundred files for each test.
        """
        import psycopg

        name = f"chats_{os.getpid()}_{next(self._names)}"
        with psycopg.connect(
            self.url("postgres", "postgresql"), autocommit=True
        ) as connection:
            connection.execute(f'CREATE SCHEMA "{name}"')
        return f"{self.url('postgres')}?options=-csearch_path%3D{name}"


@contextmanager
def running_postgres() -> Iterator[Server]:
    """Run a server until the block is left.

    Raises:
        Missing: Without the binaries or a user to run them; when the server fails.
    """
    binaries = _folder()
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="lighter-pg-"))
    process = None
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data = folder / "data"
        options = [
            "--username=lighter",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
        ]
        _run([f"{binaries}/initdb", *options, "--no-sync", "-D", str(data)], user)
        port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 100,
            "shared_buffers": "32MB",
            "fsync": "off",  # the tests kill clients, not the server
        }
        command = [f"{binaries}/postgres", "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        log = (folder / "log").open("wb")
        process = subprocess.Popen(
            command, user=user, cwd="/", stdout=log, stderr=log, env=_environment()
        )
        log.close()
        server = Server(port)
        _wait(server, process, folder / "log")
        yield server
    finally:
        if process is not None:
            process.send_signal(2)  # SIGINT: end all sessions, then the server
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    """Return the folder of the binaries; what is on the PATH may only lead there."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(os.path.realpath(found)).parent
    for pattern in _PLACES:
        for place in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            if (place / "initdb").exists():
                return place
    raise Missing("PostgreSQL is not installed (no initdb)")


def _user() -> str | None:
    """Return whom the server must run as: it refuses to be root."""
    if os.name != "posix" or os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise Missing("PostgreSQL refuses to run as root, and there is no other user")


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _run(command: Sequence[str], user: str | None) -> None:
    done = subprocess.run(
        command,
        user=user,
        cwd="/",
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no word").splitlines()[-1]
        raise Missing(f"{Path(command[0]).name} failed: {last[:200]}")


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server takes connections."""
    import psycopg

    end = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            psycopg.connect(server.url("postgres", "postgresql")).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise Missing(f"the server did not start: {log.read_text()[-300:]}")
