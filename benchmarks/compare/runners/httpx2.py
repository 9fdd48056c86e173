"""httpx2 and dicts: the lowest a Python client gets on the SDKs' transport."""

from __future__ import annotations

import json

import httpx2

from ..replies import Protocol
from ..work import QUESTION, Item, Outcome
from . import wire


class OnHttpx2:
    """A loop without an SDK."""

    def __init__(self, protocol: Protocol, url: str) -> None:
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
        self._client = httpx2.AsyncClient(base_url=url, limits=limits, timeout=600)
        self._protocol: Protocol = protocol
        self._path = wire.PATHS[protocol]

    def prepare(self, model: str, items: list[Item]) -> wire.Prepared:
        """Render the history."""
        return wire.Prepared(model, wire.wire_items(self._protocol, items))

    async def run(self, prepared: wire.Prepared) -> Outcome:
        """Ask until no tool is asked for."""
        out = Outcome()
        items = [*prepared.items, wire.question(QUESTION)]
        again = True
        while again:
            body = wire.request(self._protocol, prepared.model, items)
            reply = await self._client.post(self._path, json=body)
            reply.raise_for_status()
            again = wire.take(self._protocol, json.loads(reply.content), items, out)
        return out

    async def stream(self, prepared: wire.Prepared) -> Outcome:
        """Take the reply event by event."""
        out = Outcome()
        items = [*prepared.items, wire.question(QUESTION)]
        body = wire.request(self._protocol, prepared.model, items)
        body["stream"] = True
        async with self._client.stream("POST", self._path, json=body) as reply:
            reply.raise_for_status()
            async for data in wire.data(reply.aiter_bytes()):
                text = wire.delta(self._protocol, json.loads(data))
                if text is not None:
                    out.deltas.append(text)
        out.text = "".join(out.deltas)
        return out


def make(protocol: Protocol, url: str) -> OnHttpx2:
    """Return the runner."""
    return OnHttpx2(protocol, url)
