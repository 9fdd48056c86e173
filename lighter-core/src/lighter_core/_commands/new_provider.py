"""`python -m lighter_core new-provider NAME`: write a distribution with a provider."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from ..plugins._entries import FIRST_PARTY
from ..plugins._metadata import normal_name

__all__ = ["configure", "run"]

_FILES: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "src/$package/__init__.py": "init.py",
    "src/$package/_provider.py": "provider.py",
    "src/$package/plugin.py": "plugin.py",
    "src/$package/py.typed": "",
    "tests/test_provider.py": "test_provider.py",
}
"""Each file that is written, with the template that it is made of."""

_HTTP_FILES: Mapping[str, str] = {
    **_FILES,
    "src/$package/_provider.py": "http_provider.py",
    "src/$package/_wire.py": "http_wire.py",
    "tests/test_provider.py": "http_test_provider.py",
}

_TAKEN = {*FIRST_PARTY, "core", "conformance", "sqlalchemy"}
"""Names whose distribution, `lighter-NAME`, is one of Lighter's own."""

_LONGEST = 28  # a longer name would break the lines of what is written

_WRONG_USAGE = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="the provider's name, as in Model.from_name(NAME); the distribution is"
        " lighter-NAME",
    )
    parser.add_argument(
        "--http",
        action="store_true",
        help="begin with a service over HTTP (Chat Completions) and not with an echo",
    )
    parser.add_argument(
        "--directory",
        metavar="DIR",
        type=Path,
        help="where to write it; a new or an empty folder (default: ./lighter-NAME)",
    )


def run(given: argparse.Namespace) -> int:
    """Write the files; return the exit status."""
    name = normal_name(given.name.strip()).removeprefix("lighter-")
    problem = _problem(name)
    folder = Path(f"lighter-{name}") if given.directory is None else given.directory
    if problem is None and folder.exists() and not _is_empty(folder):
        problem = (
            f"{str(folder)!r} is there and not an empty folder; nothing was written"
        )
    if problem is not None:
        sys.stderr.write(f"new-provider: {problem}\n")
        return _WRONG_USAGE
    try:
        written = _write(name, folder, http=given.http)
    except OSError as error:
        sys.stderr.write(
            f"new-provider: cannot write {str(error.filename)!r}: {error.strerror}\n"
        )
        return 1
    for path in written:
        sys.stdout.write(f"{path}\n")
    sys.stdout.write(
        f"\nNext: cd {folder}; pip install --editable . --group test; pytest\n"
    )
    return 0


def _problem(name: str) -> str | None:
    fits = re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name)
    if not fits or len(name) > _LONGEST:
        return (
            f"{name!r} cannot be a provider's name: letters, digits and single hyphens,"
            f" a letter first, at most {_LONGEST} characters, e.g. acme-cloud"
        )
    if name in _TAKEN:
        owner = FIRST_PARTY.get(name, f"lighter-{name}")
        return f"the name {name!r} belongs to {owner}; choose another"
    return None


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _write(name: str, folder: Path, *, http: bool) -> list[Path]:
    words = _words(name, http=http)
    templates = files(__name__.rpartition(".")[0]) / "provider_template"
    written: list[Path] = []
    for target, source in (_HTTP_FILES if http else _FILES).items():
        text = ""
        if source:
            text = (templates / f"{source}.tmpl").read_text(encoding="utf-8")
        path = folder / Template(target).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            Template(text).substitute(words), encoding="utf-8", newline="\n"
        )
        written.append(path)
    return written


def _words(name: str, *, http: bool) -> dict[str, str]:
    """Return what stands for each `$word` of the templates."""
    class_name = f"{name.title().replace('-', '')}Provider"
    words = {
        "name": name,
        "dist": f"lighter-{name}",
        "package": f"lighter_{name.replace('-', '_')}",
        "class_name": class_name,
        "label": name.title().replace("-", " "),
        "variable": name.upper().replace("-", "_"),
    }
    if not http:
        return words | {
            "about": "As it was generated, it repeats what the user says; replace the"
            f" body of\n`{class_name}._reply` by a call of your service.",
            "contract": "--lighter-lacks tools",
            "environment": "()",
            "requirements": '"lighter-core>=0.1"',
        }
    variables = [
        f"{words['variable']}_{each}" for each in ("API_KEY", "BASE_URL", "MODEL")
    ]
    return words | {
        "about": "It speaks Chat Completions over HTTP. The interface stands in `_wire.py`"
        " alone.\nKey, endpoint and model come from options or from "
        + ", ".join(f"`{each}`" for each in variables)
        + ".",
        "contract": "--lighter-wire chat --lighter-lacks native",
        "environment": "(\n" + "".join(f'    "{each}",\n' for each in variables) + ")",
        "requirements": '"httpx2>=2.7", "lighter-core>=0.1"',
    }
