"""A loop in plain Python on replies that are there already: no network, no service."""

from __future__ import annotations

import json

from ..replies import Protocol, streamed, whole
from ..work import QUESTION, Item, Outcome
from . import wire


class Plain:
    """Decodes replies, runs tools, encodes requests."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol: Protocol = protocol

    def prepare(self, model: str, items: list[Item]) -> wire.Prepared:
        """Render the history and the replies."""
        return wire.Prepared(model, wire.wire_items(self._protocol, items))

    async def run(self, prepared: wire.Prepared) -> Outcome:
        """Do what a run does but send nothing."""
        kind, _, number = prepared.model.partition("-")
        out = Outcome()
        items = [*prepared.items, wire.question(QUESTION)]
        again, turn = True, 0
        while again:
            json.dumps(wire.request(self._protocol, prepared.model, items)).encode()
            reply = whole(self._protocol, kind, int(number), turn)
            body = json.loads(reply[reply.index(b"\r\n\r\n") + 4 :])
            again = wire.take(self._protocol, body, items, out)
            turn += 1
        return out

    async def stream(self, prepared: wire.Prepared) -> Outcome:
        """Decode the events of a stream."""
        kind, _, number = prepared.model.partition("-")
        out = Outcome()
        items = [*prepared.items, wire.question(QUESTION)]
        json.dumps(wire.request(self._protocol, prepared.model, items)).encode()
        for part in streamed(self._protocol, kind, int(number), 0)[1:-1]:
            data = part[part.index(b"data: ") + 6 :].split(b"\n", 1)[0]
            if data == b"[DONE]":
                continue
            text = wire.delta(self._protocol, json.loads(data))
            if text is not None:
                out.deltas.append(text)
        out.text = "".join(out.deltas)
        return out


def make(protocol: Protocol, url: str) -> Plain:  # noqa: ARG001 - as the others
    """Return the runner."""
    return Plain(protocol)
