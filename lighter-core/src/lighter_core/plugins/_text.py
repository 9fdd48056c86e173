"""Texts that come from plugins and their metadata, made fit for one line of ours."""

from __future__ import annotations

from .._redact import redact

__all__ = ["told", "visible"]

_LONGEST = 300


def told(error: BaseException) -> str:
    """Return an exception's type and text; its own `__str__` may fail.

    Credentials in URLs are taken out: package indexes have them.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - its class may be as broken as the plugin
        text = "(its text cannot be read)"
    return visible(f"{type(error).__name__}: {redact(text)}".removesuffix(": "))


def visible(text: object) -> str:
    """Return a text on one line, without control characters, cut when it is long."""
    try:
        line = " ".join(str(text).split())
    except Exception:  # noqa: BLE001 - as above
        return f"({type(text).__name__} that cannot be shown)"
    line = "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line
    )
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
