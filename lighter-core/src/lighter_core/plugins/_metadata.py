"""The one reader of package metadata. Nothing of a plugin is imported here.

importlib_metadata is imported late and nowhere else: its import replaces the standard
metadata finder for the whole process, and its types never leave this module.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

__all__ = ["GROUPS", "InstalledPlugin", "normal_name", "read_installed"]

logger: logging.Logger = logging.getLogger("lighter.plugins")

GROUPS = {
    "lighter.providers": "providers",
    "lighter.tools": "tools",
    "lighter.hooks": "hooks",
}
"""Entry-point groups and the kind of plugin that each holds."""


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point of an installed distribution, not imported yet.

    Attributes:
        kind: `"providers"`, `"tools"` or `"hooks"`.
        name: The entry point's name.
        value: What it points to: `"module"` or `"module:attribute"`.
        dist: The distribution's name, normalised.
        version: The distribution's version.
    """

    kind: str
    name: str
    value: str
    dist: str
    version: str


def read_installed() -> list[InstalledPlugin]:
    """Return the plugins of all installed distributions, in a stable order.

    A distribution that cannot be read is skipped with a log record. Of two copies of
    one distribution the first on the path counts, as it does for imports.
    """
    import importlib_metadata

    found: dict[tuple[str, str, str], InstalledPlugin] = {}
    seen: set[str] = set()
    for distribution in importlib_metadata.distributions():  # pyright: ignore[reportUnknownMemberType]
        try:
            text = distribution.read_text("entry_points.txt")
            if not text or "lighter." not in text:
                continue
            dist = normal_name(distribution.name)
            if dist in seen:
                logger.debug("second copy of distribution %s ignored", dist)
                continue
            seen.add(dist)
            version = str(distribution.version)
            entries = [
                InstalledPlugin(
                    GROUPS[point.group],
                    point.name,
                    point.value.partition("[")[0].strip(),  # extras are for installers
                    dist,
                    version,
                )
                for point in distribution.entry_points
                if point.group in GROUPS
            ]
        except Exception:
            logger.warning(
                "the metadata of a distribution is unreadable", exc_info=True
            )
            continue
        for entry in entries:
            found.setdefault((entry.kind, entry.name, entry.dist), entry)
    return sorted(found.values(), key=lambda e: (e.kind, e.name, e.dist))


def normal_name(name: str) -> str:
    """Return a distribution's name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()
