"""The built distributions, and fresh environments to install them into.

Wheels and sdists are built once a session, by the script that `make build` runs. What they
need from elsewhere comes through uv, whose cache makes an environment in a second.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from configparser import ConfigParser
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"


@dataclass(frozen=True)
class Built:
    """A distribution as it is published."""

    name: str
    wheel: Path
    sdist: Path

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    @property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            (path,) = (
                n for n in archive.namelist() if n.endswith(".dist-info/METADATA")
            )
            return Parser().parsestr(archive.read(path).decode())

    @property
    def version(self) -> str:
        return str(self.metadata["Version"])

    @property
    def requirements(self) -> list[Requirement]:
        """What is needed without extras."""
        found = map(Requirement, self.metadata.get_all("Requires-Dist", []))
        return [each for each in found if "extra ==" not in str(each.marker)]

    @property
    def entry_points(self) -> dict[str, dict[str, str]]:
        """What each group of the wheel's entry points declares."""
        parser = ConfigParser(delimiters="=")
        with zipfile.ZipFile(self.wheel) as archive:
            for path in archive.namelist():
                if path.endswith(".dist-info/entry_points.txt"):
                    parser.read_string(archive.read(path).decode())
        return {group: dict(parser[group]) for group in parser.sections()}


class Distributions(dict[str, Built]):
    """All that were built, by name."""

    def with_needs(self, *names: str) -> list[Built]:
        """Return the named ones and those of ours that they need."""
        wanted: dict[str, Built] = {}
        waiting = list(names)
        while waiting:
            if (name := waiting.pop()) not in wanted:
                wanted[name] = self[name]
                needs = (each.name for each in self[name].requirements)
                waiting += [need for need in needs if need in self]
        return list(wanted.values())

    def providers(self, *names: str) -> list[str]:
        """Return what discovery says when these are installed."""
        return sorted(
            f"{provider} {name} {self[name].version}"
            for name in names
            for provider in self[name].entry_points.get("lighter.providers", {})
        )

    def foreign(self, *names: str) -> list[str]:
        """Return what these need of others."""
        return sorted(
            {
                str(each)
                for built in self.with_needs(*names)
                for each in built.requirements
                if each.name not in self
            }
        )


class Environment:
    """A virtual environment that knows nothing of the checkout."""

    def __init__(self, folder: Path, *, pip: bool = False) -> None:
        self.python = folder / "bin" / "python"
        self._elsewhere = folder.parent
        seed = ["--seed"] if pip else []
        _run(_uv(), "venv", "--quiet", *seed, "--python", sys.executable, str(folder))

    def install(self, *what: str | Path) -> None:
        _uv_pip(self.python, "install", *map(str, what))

    def uninstall(self, *names: str) -> None:
        _uv_pip(self.python, "uninstall", *names)

    def check(self) -> None:
        """Fail when something that is installed lacks what it needs."""
        _uv_pip(self.python, "check")

    def pip(self, *arguments: str | Path) -> str:
        """Run the environment's own pip, which may fetch nothing."""
        pip = (str(self.python), "-m", "pip", "--disable-pip-version-check")
        return _run(*pip, *map(str, arguments), PIP_NO_INDEX="1")

    def run(self, code: str) -> list[str]:
        """Return the lines that the code prints, without the user's or our paths."""
        printed = _run(
            str(self.python), "-I", "-W", "error", "-c", code, cwd=self._elsewhere
        )
        return printed.splitlines()


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    assert found, "uv is missing: scripts/venv.sh installs it"
    return found


def _uv_pip(python: Path, command: str, *arguments: str) -> str:
    limits = (
        ["--constraints", str(ROOT / "constraints.txt")] if command == "install" else []
    )
    return _run(
        _uv(), "pip", command, "--quiet", "--python", str(python), *limits, *arguments
    )


def _run(
    *command: str, cwd: Path | None = None, may_fail: bool = False, **variables: str
) -> str:
    hidden = re.compile("PYTHON|VIRTUAL_ENV|LIGHTER_|OPENAI_|ANTHROPIC_|DEEPSEEK_")
    environment = {
        k: v for k, v in os.environ.items() if not hidden.match(k)
    } | variables
    done = subprocess.run(
        command,
        cwd=cwd or ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    printed = f"{done.stdout}{done.stderr}"
    assert may_fail or done.returncode == 0, f"{' '.join(command)}\n{printed}"
    return printed if may_fail else done.stdout


@pytest.fixture(scope="session")
def run() -> Callable[..., str]:
    """Run a command from the repository's root, without the user's variables."""
    return _run


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Build all distributions, as `make build` does; once for all workers of a run."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "dist"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = folder.with_suffix(".part")
            _run("scripts/build.sh", sys.executable, str(made), SOURCE_DATE_EPOCH=EPOCH)
            made.rename(folder)
    found = Distributions()
    for wheel in folder.glob("*.whl"):
        package, version = wheel.name.split("-")[:2]
        name = package.replace("_", "-")
        found[name] = Built(name, wheel, folder / f"{package}-{version}.tar.gz")
    return found


@pytest.fixture(scope="session")
def fresh(
    distributions: Distributions, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Iterable[str]], Environment]:
    """Return a function that makes an environment with the named distributions."""
    _need_index(distributions, tmp_path_factory.mktemp("probe"))

    def make(names: Iterable[str]) -> Environment:
        environment = Environment(tmp_path_factory.mktemp("environment") / "venv")
        environment.install(*(each.wheel for each in distributions.with_needs(*names)))
        return environment

    return make


@pytest.fixture(scope="session")
def with_pip(fresh: object, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an empty environment that has pip."""
    return Environment(tmp_path_factory.mktemp("pip") / "venv", pip=True)


def _need_index(distributions: Distributions, folder: Path) -> None:
    wanted = folder / "requirements.txt"
    wanted.write_text("\n".join(distributions.foreign(*distributions)))
    limits = ["--constraints", str(ROOT / "constraints.txt")]
    try:
        _run(_uv(), "pip", "compile", "--quiet", *limits, str(wanted), cwd=folder)
    except AssertionError as error:
        away = re.search(
            r"(?i)failed to fetch|error sending|network was disabled", str(error)
        )
        if away is None or os.environ.get("CI"):
            raise
        pytest.skip(
            "no package index can be reached, and uv's cache lacks what is needed"
        )
