"""The file of a recorded run: one JSON object a line, a header and then the exchanges.

A request repeats the whole conversation, so an exchange names how many of its messages
are those of an earlier one and holds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from .._json import dump_json, escape_surrogates, load_json
from ..documents import messages_from_data, messages_to_data
from ..errors import HistoryError, ModelError, ModelErrorCode, RecordingError
from ..events import (
    HostedToolItem,
    MessageEvent,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from ..messages import AssistantMessage, Message
from ..requests import JSONObject, ModelRequest, OutputSpec, ToolSpec

__all__ = ["Exchange", "Header", "Writer", "cleaned", "read_recording", "request_data"]

VERSION = 1
_EVENTS: Mapping[str, Callable[..., ProviderStreamEvent]] = {
    "text_delta": TextDelta,
    "reasoning_delta": ReasoningDelta,
    "tool_call_delta": ToolCallDelta,
    "hosted_tool_item": HostedToolItem,
}
_ERROR = (
    "message",
    "code",
    "http_status",
    "response_status",
    "provider",
    "retry_after",
    "request_id",
    "vendor_code",
)


@dataclass(frozen=True, slots=True)
class Header:
    """Who was recorded."""

    provider: str
    model_id: str | None = None
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One call of a provider.

    Attributes:
        request: What was asked.
        events: What came, in order; of `invoke`, the message alone.
        error: What was raised, `None` for nothing.
        left: Whether the caller left before the end.
    """

    request: ModelRequest
    events: Sequence[ProviderStreamEvent] = ()
    error: ModelError | None = None
    left: bool = False

    @property
    def message(self) -> AssistantMessage | None:
        """The complete reply, if there was one."""
        last = self.events[-1] if self.events else None
        return last.message if isinstance(last, MessageEvent) else None


class Writer:
    """Appends exchanges to a file, each as one line, at once.

    Args:
        path: The file; it is made anew.
        header: Who is recorded.
        clean: Takes out of each text what must not be written.
    """

    def __init__(self, path: Path, header: Header, clean: Callable[[str], str]) -> None:
        self._path = path
        self._clean = clean
        self._known: list[Sequence[Message]] = []
        first: dict[str, object] = {
            "lighter_recording": VERSION,
            "provider": header.provider,
            "model_id": header.model_id,
            "capabilities": sorted(header.capabilities),
        }
        path.write_text(self._line(first), encoding="utf-8")

    def add(self, exchange: Exchange) -> None:
        """Write an exchange."""
        request = exchange.request
        after, shared = self._shared(request.messages)
        self._known.append(tuple(request.messages))
        value: dict[str, object] = {
            "after": after,
            "shared": shared,
            "messages": messages_to_data(request.messages[shared:]),
            **request_data(request),
        }
        value["events"] = [_event_to_data(each) for each in exchange.events]
        if exchange.error is not None:
            value["error"] = {name: getattr(exchange.error, name) for name in _ERROR}
        if exchange.left:
            value["left"] = True
        line = self._line(value)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line)

    def _shared(self, messages: Sequence[Message]) -> tuple[int | None, int]:
        """Return the latest exchange whose messages these go on from, and their number."""
        for number in reversed(range(len(self._known))):
            known = self._known[number]
            if known and len(known) <= len(messages) and known[0] == messages[0]:
                same = _common(known, messages)
                if same == len(known):
                    return number, same
        return None, 0

    def _line(self, value: Mapping[str, object]) -> str:
        return escape_surrogates(dump_json(cleaned(value, self._clean))) + "\n"


def _common(one: Sequence[Message], other: Sequence[Message]) -> int:
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def request_data(request: ModelRequest) -> dict[str, object]:
    """Return what a request asks for besides its messages, as plain data."""
    output = request.output
    return {
        "tool_specs": [_spec_to_data(each) for each in request.tool_specs],
        "output": output and {"name": output.name, "schema": output.schema},
        "tool_choice": request.tool_choice,
    }


def cleaned(value: object, clean: Callable[[str], str]) -> object:
    """Return plain data with each text cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: cleaned(each, clean) for key, each in items}
    if isinstance(value, Sequence):
        return [cleaned(each, clean) for each in cast("Sequence[object]", value)]
    return value


def _spec_to_data(spec: ToolSpec) -> dict[str, object]:
    return {each.name: getattr(spec, each.name) for each in fields(spec)}


def _event_to_data(event: ProviderStreamEvent) -> dict[str, object]:
    if isinstance(event, MessageEvent):
        return {"type": "message", "messages": messages_to_data([event.message])}
    return {each.name: getattr(event, each.name) for each in fields(event)}


def read_recording(path: Path) -> tuple[Header, list[Exchange]]:
    """Return what a file holds; a last line that was cut off is left out.

    Raises:
        RecordingError: When it is no recording, naming the line.
        OSError: When it cannot be read.
    """
    lines = path.read_text("utf-8").split("\n")
    if lines[-1]:  # the process died while it was written
        del lines[-1]
    exchanges: list[Exchange] = []
    header: Header | None = None
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            value = cast("Mapping[str, object]", load_json(line))
            if header is None:
                header = _header(value)
            else:
                exchanges.append(_exchange(value, exchanges))
        except (TypeError, ValueError, KeyError, IndexError, HistoryError) as error:
            told = str(error) or type(error).__name__
            raise RecordingError(
                f"{path.name}, line {number}: this is no line of a recording: {told}"
            ) from None
    if header is None:
        raise RecordingError(f"{path.name}: this is no recording: it has no header")
    return header, exchanges


def _header(value: Mapping[str, object]) -> Header:
    if value["lighter_recording"] != VERSION:
        raise ValueError(
            f"it has version {value['lighter_recording']!r}, this version of"
            f" lighter-core reads {VERSION}"
        )
    words = cast("Sequence[str]", value["capabilities"])
    return Header(
        str(value["provider"]),
        cast("str | None", value["model_id"]),
        frozenset(words),
    )


def _exchange(value: Mapping[str, object], known: Sequence[Exchange]) -> Exchange:
    messages: list[Message] = []
    if value["after"] is not None:
        earlier = known[cast("int", value["after"])].request.messages
        messages += earlier[: cast("int", value["shared"])]
    messages += messages_from_data(value["messages"])
    output = cast("Mapping[str, object] | None", value.get("output"))
    request = ModelRequest(
        messages,
        tool_specs=[
            _spec(each) for each in cast("Sequence[object]", value["tool_specs"])
        ],
        output=None
        if output is None
        else OutputSpec(str(output["name"]), cast("JSONObject", output["schema"])),
        tool_choice=cast("str | None", value.get("tool_choice")),
    )
    error = cast("Mapping[str, object] | None", value.get("error"))
    return Exchange(
        request=request,
        events=[_event(each) for each in cast("Sequence[object]", value["events"])],
        error=None if error is None else _error(error),
        left=value.get("left") is True,
    )


def _spec(value: object) -> ToolSpec:
    given = cast("Mapping[str, object]", value)
    return ToolSpec(
        str(given["name"]),
        str(given["description"]),
        cast("JSONObject", given["parameters"]),
        strict=given["strict"] is True,
    )


def _event(value: object) -> ProviderStreamEvent:
    given = dict(cast("Mapping[str, object]", value))
    kind = str(given.pop("type"))
    if kind == "message":
        (message,) = messages_from_data(given["messages"])
        if not isinstance(message, AssistantMessage):
            raise TypeError("a message event holds no assistant message")
        return MessageEvent(message)
    if not all(isinstance(each, str) for each in given.values()):
        raise TypeError(f"an event of the type {kind!r} holds other things than text")
    return _EVENTS[kind](**given)


def _error(value: Mapping[str, object]) -> ModelError:
    given = {name: value[name] for name in _ERROR[2:]}
    return ModelError(
        str(value["message"]),
        cast("ModelErrorCode", value["code"]),
        **cast("dict[str, None]", given),
    )
