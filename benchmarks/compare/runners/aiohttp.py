"""aiohttp and dicts: the lowest a Python client gets on the SDKs' other transport."""

from __future__ import annotations

import json

import aiohttp

from ..replies import Protocol
from ..work import QUESTION, Item, Outcome
from . import wire


class OnAiohttp:
    """A loop without an SDK."""

    def __init__(self, protocol: Protocol, url: str) -> None:
        self._url = f"{url}{wire.PATHS[protocol]}"
        self._protocol: Protocol = protocol
        self._made: aiohttp.ClientSession | None = None

    def _session(self) -> aiohttp.ClientSession:
        """Return the session; it has to be made inside the loop."""
        if self._made is None:
            connector = aiohttp.TCPConnector(limit=1000)
            timeout = aiohttp.ClientTimeout(total=600)
            self._made = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._made

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
            async with self._session().post(self._url, json=body) as reply:
                reply.raise_for_status()
                content = await reply.read()
            again = wire.take(self._protocol, json.loads(content), items, out)
        return out

    async def stream(self, prepared: wire.Prepared) -> Outcome:
        """Take the reply event by event."""
        out = Outcome()
        items = [*prepared.items, wire.question(QUESTION)]
        body = wire.request(self._protocol, prepared.model, items)
        body["stream"] = True
        async with self._session().post(self._url, json=body) as reply:
            reply.raise_for_status()
            async for data in wire.data(reply.content.iter_any()):
                text = wire.delta(self._protocol, json.loads(data))
                if text is not None:
                    out.deltas.append(text)
        out.text = "".join(out.deltas)
        return out


def make(protocol: Protocol, url: str) -> OnAiohttp:
    """Return the runner."""
    return OnAiohttp(protocol, url)
