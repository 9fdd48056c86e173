"""The recorded exchanges that stand beside the repository; tests skip without them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .loopback import Answer

FOLDER = Path(__file__).parents[3] / "shared" / "recordings"
REASON = "the recorded exchanges are not there (../shared/recordings)"
_FRAMING = {"content-length", "transfer-encoding", "content-encoding", "date", "server"}


@dataclass(frozen=True)
class Exchange:
    """One recorded request with its response."""

    id: str
    conversation: str
    index: int
    tags: frozenset[str]
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: bytes
    abrupt: bool

    @property
    def streamed(self) -> bool:
        """Whether the request asked for a stream."""
        return bool((self.request.get("json") or {}).get("stream"))

    def answer(self, pieces: list[bytes] | None = None) -> Answer:
        """The response for the loopback server."""
        return Answer(
            status=self.status,
            headers=self.headers,
            body=self.body if pieces is None else pieces,
            end="cut" if self.abrupt else "complete",
        )


@cache
def exchanges(vendor: str) -> tuple[Exchange, ...]:
    """Return the exchanges of a vendor, in order; empty without the recordings."""
    index = FOLDER / "index.json"
    if not index.is_file():
        return ()
    found = [
        _read(FOLDER / entry["file"])
        for entry in json.loads(index.read_text("utf-8"))
        if entry["vendor"] == vendor
    ]
    return tuple(sorted(found, key=lambda each: (each.conversation, each.index)))


def parameters(vendor: str) -> list[Any]:
    """Return parameters for `pytest.mark.parametrize`; one that skips without any."""
    found = exchanges(vendor)
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=REASON))]
    return [pytest.param(each, id=each.id.partition("/")[2]) for each in found]


def conversations(vendor: str) -> dict[str, list[Exchange]]:
    """Return the exchanges of a vendor by conversation."""
    found: dict[str, list[Exchange]] = {}
    for each in exchanges(vendor):
        found.setdefault(each.conversation, []).append(each)
    return found


def _read(path: Path) -> Exchange:
    data = json.loads(path.read_text("utf-8"))
    response = data["response"]
    headers = {k.lower(): v for k, v in response["headers"].items()}
    return Exchange(
        id=data["id"],
        conversation=data["conversation"],
        index=data["index"],
        tags=frozenset(data["tags"]),
        request=data["request"],
        status=response["status"],
        headers={k: v for k, v in headers.items() if k not in _FRAMING},
        body=response["body"].encode("utf-8"),
        abrupt=response.get("close") == "abrupt",
    )
