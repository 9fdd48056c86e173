"""Loopback services that refuse every request which breaks the vendor's rules.

```python
async with StrictServer() as server:
    server.openai.script(Turn((Think("Add."), Call("add", '{"a": 1}'))), Turn())
    ...  # talk to server.base_url("openai")
    assert server.refusals == []
```

A service remembers what it has issued: ids, signatures and encrypted texts that come back
are held against that. Behind the end of its script a service says "ok.".
"""

from __future__ import annotations

import json
from typing import Any

from .loopback import EVENT_STREAM, JSON_TYPE, Answer, Loopback, cut_randomly
from .strict_chat import StrictChat
from .strict_deepseek import StrictDeepSeek
from .strict_messages import StrictMessages
from .strict_responses import StrictResponses
from .strict_service import Event, StrictService
from .strict_turns import Call, Part, Refused, Say, Think, Turn, parse_strictly

__all__ = ["Call", "Part", "Say", "StrictServer", "Think", "Turn"]


class StrictServer(Loopback):
    """All services on one port, each below a prefix of its own.

    Args:
        seed: Cut replies into pieces at random places; `None` sends them whole.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self.openai = StrictResponses("/openai/v1/responses")
        self.claude = StrictMessages("/claude/v1/messages")
        self.deepseek = StrictDeepSeek("/deepseek/responses")
        self.chat = StrictChat("/chat/v1/chat/completions")
        self.deepseek_chat = StrictChat(
            "/deepseek-chat/chat/completions", reasoning="demanded"
        )
        self.services: dict[str, StrictService] = {
            "openai": self.openai,
            "claude": self.claude,
            "deepseek": self.deepseek,
            "openai-chat": self.chat,
            "deepseek-chat": self.deepseek_chat,
        }
        self._seed = seed

    def base_url(self, name: str) -> str:
        """Return what a provider takes as its `base_url`."""
        path = self.services[name].path
        for end in ("/responses", "/v1/messages", "/chat/completions"):
            path = path.removesuffix(end)
        return self.url + path

    @property
    def refusals(self) -> list[str]:
        """What was refused, except for what a client may try once and then mend."""
        return [
            f"{name}: {text}"
            for name, service in self.services.items()
            for text in service.refusals
        ]

    def _next(self, path: str) -> Answer:
        service = next((s for s in self.services.values() if s.path == path), None)
        if service is None:
            body = b'{"error": {"message": "there is no such path"}}'
            return Answer(404, dict(JSON_TYPE), body)
        request = self.requests[-1]
        try:
            if request.headers.get("content-type", "") != "application/json":
                raise Refused("the content type is not application/json")
            body = parse_strictly(request.body)
            service.check(body, request.headers)
        except Refused as err:
            service.remember_refusal(err)
            return _json(service.error(400, str(err), err.code), status=400)
        service.accepted.append(body)
        turn = service.turns.popleft() if service.turns else Turn()
        if turn.status != 200:
            error = service.error(turn.status, "scripted", None)
            return _json(error, status=turn.status)
        reply, events = service.reply(turn.parts, body)
        if not body.get("stream"):
            return self._ended(json.dumps(reply).encode(), JSON_TYPE, turn)
        return self._ended(_event_bytes(events), EVENT_STREAM, turn)

    def _ended(self, body: bytes, headers: dict[str, str], turn: Turn) -> Answer:
        if turn.end != "complete":
            body = body[: int(len(body) * turn.at)]
        pieces: bytes | list[bytes] = body
        if self._seed is not None:
            self._seed += 1
            pieces = cut_randomly(body, self._seed)
        return Answer(headers=dict(headers), body=pieces, end=turn.end)


def _json(value: dict[str, Any], *, status: int) -> Answer:
    headers = {**JSON_TYPE, "x-should-retry": "false"}
    return Answer(status, headers, json.dumps(value).encode())


def _event_bytes(events: list[Event]) -> bytes:
    blocks: list[str] = []
    for event in events:
        if isinstance(event, str):
            blocks.append(event)
            continue
        name, value = event
        line = f"event: {name}\n" if name else ""
        blocks.append(f"{line}data: {json.dumps(value)}\n\n")
    return "".join(blocks).encode()
