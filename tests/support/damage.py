"""Damages recorded replies, in the ways that services, proxies and models damage them.

```python
body = damaged(recorded, random.Random(7))
```

The same generator state gives the same damage.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

_DEEP = "@@deep@@"
_HUGE = "@@huge@@"
_RAW = {
    _DEEP: lambda chance: (
        "[" * (depth := chance.choice([60, 900, 20_000])) + "]" * depth
    ),
    _HUGE: lambda chance: "9" * chance.choice([20, 400, 5_000]),
}
_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**63, 2**80, -(2**80), 1e308),
    *(float("nan"), float("inf"), _HUGE, _DEEP, [], {}, [None], [[]], {"": None}),
    *("", " ", "x", "0", "null", "\ud800", "a\udfffb", "\x00", "é" * 3, "[DONE]"),
    *("error", "completed", "stop", "tool_calls", "tool_use", "end_turn", "text"),
    *("function_call", "reasoning", "thinking", "message", "pause_turn", "{", '{"a":'),
    *([{"type": "text"}], [{"index": 10**9}], {"type": "function"}, [1, "x", None]),
]
_CUTS = (
    b"",
    b"\n",
    b"\n\n",
    b"data: ",
    b"data: {\n\n",
    b"\xff\xfe",
    b": \n\n",
    b"\x00",
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container inside a JSON value with each of its keys or indexes."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            keys = list(each) if isinstance(each, dict) else list(range(len(each)))
            for key in keys:
                yield each, key
                waiting.append(each[key])


def _delete(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    del holder[key]


def _retype(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    # A copy: what is changed next may lie inside it.
    holder[key] = deepcopy(chance.choice(_VALUES))


def _repeat(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), _copy(holder[key]))
    else:
        holder[f"{key}_"] = _copy(holder[key])


def _wrap(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    holder[key] = chance.choice(
        [[holder[key]], {"value": holder[key]}, str(holder[key])]
    )


def _swap(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    first, second = chance.randrange(len(events)), chance.randrange(len(events))
    events[first], events[second] = events[second], events[first]


def _move(events: list[Any], holder: Any, key: Any, chance: random.Random) -> None:
    other, place = chance.choice(list(places(events)))
    holder[key] = _copy(other[place])


_CHANGES: list[Callable[[list[Any], Any, Any, random.Random], None]] = [
    *(_delete, _retype, _retype, _retype, _repeat, _wrap, _swap, _move),
]


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def damaged(body: bytes, chance: random.Random) -> bytes:
    """Return a body, an event stream or a JSON value, with some of it changed."""
    text = body.decode("utf-8", "replace")
    events, streamed = _events(text)
    if events and chance.random() < 0.9:
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            found = list(places(events))
            if not found:
                break
            holder, key = chance.choice(found)
            chance.choice(_CHANGES)(events, holder, key, chance)
        text = _written(events, streamed=streamed)
        for mark, make in _RAW.items():
            while f'"{mark}"' in text:
                text = text.replace(f'"{mark}"', make(chance), 1)
        body = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.2:
        place = chance.randrange(len(body) + 1)
        rest = body[place + chance.choice([0, 1, 7, len(body)]) :]
        body = body[:place] + chance.choice(_CUTS) + rest
    return body


def _events(text: str) -> tuple[list[Any], bool]:
    try:
        return [json.loads(text)], False
    except ValueError:
        lines = text.splitlines()
    found: list[Any] = []
    for line in lines:
        if line.startswith("data:"):
            try:
                found.append(json.loads(line[5:]))
            except ValueError:
                found.append(line[5:].strip())
    return found, True


def _written(events: list[Any], *, streamed: bool) -> str:
    if not streamed:
        return json.dumps(events[0]) if events else ""
    lines: list[str] = []
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("type"), str):
            lines.append(f"event: {ascii(event['type'])[1:-1]}\n")
        data = event if event == "[DONE]" else json.dumps(event)
        lines.append(f"data: {data}\n\n")
    return "".join(lines)
