"""A plugin lab: distributions with handwritten metadata on a path of their own."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lighter_core.plugins import registry


class Lab:
    """Makes distributions in temporary directories and puts them on `sys.path`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.places: list[Path] = []

    def place(self, name: str) -> Path:
        """Return a directory on the path; later ones go first."""
        place = self.root / name
        if place not in self.places:
            place.mkdir()
            self.places.append(place)
            sys.path.insert(0, str(place))
        return place

    def dist(
        self,
        name: str,
        entry_points: Mapping[str, Mapping[str, str]] | str,
        *,
        version: str = "1.0",
        at: str = "site",
        metadata: str | None = None,
    ) -> Path:
        """Write the metadata of a distribution; return its directory."""
        info = self.place(at) / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata, encoding="utf-8")
        if not isinstance(entry_points, str):
            entry_points = "\n".join(
                f"[lighter.{kind}]\n"
                + "".join(f"{key} = {value}\n" for key, value in points.items())
                for kind, points in entry_points.items()
            )
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        self.rescan()
        return info

    def module(self, name: str, source: str, *, at: str = "site") -> Path:
        """Write a module."""
        path = self.place(at) / f"{name}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        importlib.invalidate_caches()
        return path

    def rescan(self) -> None:
        """Forget the scan of this process and its default registry."""
        importlib.invalidate_caches()
        registry._scanned = None
        registry._default = None


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A lab whose path, modules and scan are gone after the test."""
    monkeypatch.delenv("LIGHTER_PLUGINS_ALLOW", raising=False)
    monkeypatch.delenv("LIGHTER_PLUGINS_BLOCK", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Lab(tmp_path)
    made.rescan()
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
    made.rescan()


PROVIDER = """
    from lighter_core import hookimpl, MessageEvent, AssistantMessage

    seen = []

    class Echo:
        name = "echo"

        async def invoke(self, request):
            return AssistantMessage(request.messages[-1].text)

        async def stream(self, request):
            yield MessageEvent(await self.invoke(request))

    @hookimpl
    def create_provider(name, options):
        seen.append((name, dict(options)))
        return Echo()
"""


@pytest.fixture
def provider_source() -> str:
    """A module that is a provider plugin and records what it is asked."""
    return PROVIDER
