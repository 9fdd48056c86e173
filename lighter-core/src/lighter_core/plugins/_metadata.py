"""The one reader of package metadata. Nothing of a plugin is imported here.

Directories are read directly: their names and `entry_points.txt` are all that most
distributions need to tell that they have no plugins. importlib_metadata reads the
metadata of the others, zip archives, and what other finders know. It is imported late
and nowhere else: its import replaces the standard metadata finder for the whole
process, and its types never leave this module.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ._text import told, visible

if TYPE_CHECKING:
    from importlib_metadata import PackageMetadata

__all__ = [
    "GROUPS",
    "InstalledPlugin",
    "MetadataNote",
    "Scan",
    "normal_name",
    "read_requirements",
    "read_version",
    "scan_installed",
]

logger: logging.Logger = logging.getLogger("lighter.plugins")

GROUPS = {
    "lighter.providers": "providers",
    "lighter.tools": "tools",
    "lighter.hooks": "hooks",
}
"""Entry-point groups and the kind of plugin that each holds."""

_MARK = b"lighter."
_ENTRY_POINTS = "entry_points.txt"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]+")


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point of an installed distribution, not imported yet.

    Attributes:
        kind: `"providers"`, `"tools"` or `"hooks"`.
        name: The entry point's name.
        value: What it points to: `"module"` or `"module:attribute"`.
        dist: The distribution's name, normalised.
        version: The distribution's version, or `"unknown"`.
    """

    kind: str
    name: str
    value: str
    dist: str
    version: str


@dataclass(frozen=True, slots=True)
class MetadataNote:
    """Something about the metadata of a distribution that a person should know.

    Attributes:
        place: The path of the metadata.
        text: What it is, in one line.
        broken: Whether plugins may be missing or wrong because of it.
    """

    place: str
    text: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """What the metadata of all installed distributions says about plugins."""

    plugins: tuple[InstalledPlugin, ...]
    notes: tuple[MetadataNote, ...]


class _Described(Protocol):
    @property
    def metadata(self) -> PackageMetadata: ...


@dataclass(slots=True)
class _Scanner:
    plugins: dict[tuple[str, str, str], InstalledPlugin] = field(
        default_factory=dict[tuple[str, str, str], InstalledPlugin]
    )
    notes: list[MetadataNote] = field(default_factory=list[MetadataNote])
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, place: str, text: str, *, broken: bool = True) -> None:
        self.notes.append(MetadataNote(place, text, broken))
        level = logging.WARNING if broken else logging.DEBUG
        logger.log(level, "%s: %s", place, text)


def scan_installed() -> Scan:
    """Return the plugins of all installed distributions, in a stable order.

    A distribution that cannot be read is left out with a note. Of two copies of one
    distribution the first on the path counts, as it does for imports; of two in one
    directory, the one with the higher version.
    """
    scanner, others = _Scanner(), list[str]()
    places: set[str] = set()
    for entry in sys.path:
        if not isinstance(entry, str):  # imports pass over them too
            continue
        place = entry or "."  # the empty one is the current directory
        real = os.path.realpath(place)
        if real in places:  # lib64 is often a link to lib
            continue
        places.add(real)
        if place.lower().endswith(".egg"):
            others.append(place)
            continue
        try:
            children = os.listdir(place)  # noqa: PTH208 - no Path objects: half the cost
        except NotADirectoryError:
            others.append(place)
        except FileNotFoundError:
            pass
        except OSError as error:
            scanner.note(place, f"this directory cannot be read ({error.strerror})")
        else:
            _read_directory(scanner, place, children)
    _read_others(scanner, others)
    plugins = sorted(
        scanner.plugins.values(), key=lambda each: (each.kind, each.name, each.dist)
    )
    return Scan(tuple(plugins), tuple(scanner.notes))


def _read_directory(scanner: _Scanner, place: str, children: Iterable[str]) -> None:
    here: dict[str, list[str]] = {}
    for child in children:
        stem, _, ending = child.rpartition(".")
        if ending.lower() in ("dist-info", "egg-info"):
            name = normal_name(stem.partition("-")[0])
            here.setdefault(name, []).append(f"{place}{os.sep}{child}")
    for name, paths in here.items():
        if len(paths) > 1:  # the highest version is the newest, most likely
            paths.sort(key=_version_order, reverse=True)
            paths.sort(key=_is_husk)
        for path in paths:
            text = _read_entry_points(scanner, path)
            if text is not None and _counts(scanner, name, path, paths[0]):
                _read_path(scanner, path, name, text)
    for name, paths in here.items():
        scanner.seen.setdefault(name, paths[0])


def _counts(scanner: _Scanner, name: str, path: str, best: str) -> bool:
    """Tell whether a distribution with plugins is the copy that imports see."""
    if name.startswith("~"):
        scanner.note(path, "left behind by pip; delete it", broken=False)
        return False
    if path != best:
        scanner.note(path, f"{best} lies beside it; reinstall {name}")
        return False
    first = scanner.seen.get(name)
    if first is None or _is_husk(first):
        return True
    scanner.note(path, f"ignored: {first} comes first", broken=False)
    return False


def _read_entry_points(scanner: _Scanner, path: str) -> str | None:
    """Return the text if it can hold plugins of Lighter."""
    try:
        with open(f"{path}/{_ENTRY_POINTS}", "rb") as file:  # noqa: PTH123 - as above
            data = file.read()
        return data.decode("utf-8") if _MARK in data else None
    except (
        FileNotFoundError,
        NotADirectoryError,
    ):  # most have none; old ones are files
        return None
    except (OSError, ValueError) as error:
        scanner.note(path, f"{_ENTRY_POINTS} cannot be read: {told(error)}")
        return None


def _read_path(scanner: _Scanner, path: str, name: str, text: str) -> None:
    import importlib_metadata

    distribution = importlib_metadata.Distribution.at(path)  # pyright: ignore[reportUnknownMemberType]
    _read_distribution(scanner, distribution, path, name, text)


def _read_others(scanner: _Scanner, places: list[str]) -> None:
    """Read zip archives, eggs, and what finders other than the standard one know."""
    import importlib_metadata

    try:
        for distribution in importlib_metadata.distributions(path=places):  # pyright: ignore[reportUnknownMemberType]
            path = str(getattr(distribution, "_path", distribution))
            try:
                text = distribution.read_text(_ENTRY_POINTS)
            except Exception as error:  # noqa: BLE001 - each in its own guard
                scanner.note(path, f"{_ENTRY_POINTS} cannot be read: {told(error)}")
                continue
            if text and _MARK.decode() in text:
                _read_distribution(scanner, distribution, path, None, text)
    except Exception as error:  # noqa: BLE001 - a finder of somebody else
        scanner.note("sys.meta_path", f"a finder failed: {told(error)}")


def _read_distribution(
    scanner: _Scanner,
    distribution: _Described,
    path: str,
    expected: str | None,
    text: str,
) -> None:
    entries = list(_entries(scanner, path, text))
    if not entries:
        return
    try:
        metadata = distribution.metadata
        given, version = metadata.get("Name"), metadata.get("Version")
    except Exception as error:  # noqa: BLE001 - each distribution in its own guard
        scanner.note(path, f"its metadata cannot be read: {told(error)}")
        return
    if not given or not _NAME.fullmatch(given):
        said = f"the name {visible(given)!r}" if given else "no name"
        scanner.note(path, f"its metadata has {said}: its plugins are left out")
        return
    dist = normal_name(given)
    if expected not in (None, dist):
        scanner.note(
            path, f"its metadata says {dist!r}, its folder {expected!r}: left out"
        )
        return
    if dist in scanner.seen and expected is None:
        scanner.note(path, f"ignored: {scanner.seen[dist]} comes first", broken=False)
        return
    scanner.seen[dist] = path
    if not version or not _VERSION.fullmatch(version):
        scanner.note(path, "its metadata has no version")
        version = "unknown"
    for kind, name, value in entries:
        entry = InstalledPlugin(kind, name, value, dist, version)
        known = scanner.plugins.setdefault((kind, name, dist), entry)
        if known.value != value:
            scanner.note(path, f"it names {name!r} twice; {known.value} counts")


def _entries(scanner: _Scanner, path: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and value of Lighter's entry points.

    One bad line, or one of another group, takes nothing from the others.
    """
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            group = line[1:-1].strip() if line[-1] == "]" else line
            near = difflib.get_close_matches(group, GROUPS, 1, cutoff=0.85)
            if near and group not in GROUPS:
                scanner.note(path, f"unknown group {group!r}: did you mean {near[0]}?")
            continue
        if group not in GROUPS:
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        value = value.partition("[")[0].strip()  # extras are for installers
        if not (name and equals and value):
            scanner.note(path, f"this line is no entry point: {visible(line)!r}")
        elif group == "lighter.providers" and ":" in name:
            scanner.note(path, f"{name!r} can never be asked for: a model id follows :")
        else:
            yield GROUPS[group], visible(name), value


def _is_husk(path: str) -> bool:
    """Tell a folder that an incomplete removal left behind."""
    place = Path(path)
    return place.is_dir() and not any(
        (place / name).exists() for name in ("METADATA", "PKG-INFO")
    )


def _version_order(path: str) -> tuple[list[int], str]:
    version = path.rpartition(os.sep)[2].rpartition(".")[0].partition("-")[2]
    return [int(number) for number in re.findall(r"\d+", version)], path


def normal_name(name: str) -> str:
    """Return a distribution's name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_version(dist: str) -> str | None:
    """Return the version of an installed distribution, `None` when it has none."""
    import importlib_metadata

    try:
        return importlib_metadata.version(dist)
    except Exception:  # noqa: BLE001 - missing, or corrupt in one of many ways
        return None


def read_requirements(dist: str) -> list[str]:
    """Return the requirements that a distribution declares, as they are written."""
    import importlib_metadata

    try:
        return importlib_metadata.requires(dist) or []
    except Exception:  # noqa: BLE001 - as above
        return []
