"""A streamed reply to events. Pure: the data of one event in, values out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from lighter_core import (
    AssistantMessage,
    HostedToolItem,
    ModelError,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
)
from lighter_core.adapters import (
    ShapeError,
    as_list,
    as_object,
    bad_response,
    clean_text,
    fast_load,
    is_empty,
    member_text,
)

from ._assembly import Channel, Event, PartKey, Slot, Slots
from ._decode import BLANK_LINE, build_message, items_in, require_completed
from ._dialect import Target
from ._errors import error_in_reply
from ._items import (
    Item,
    ReasoningKind,
    message_texts,
    need_item,
    reasoning_kind,
    reasoning_texts,
    tool_call,
)

__all__ = ["StreamDecoder"]


class StreamDecoder:
    """Turns the events of one reply into Lighter's events and a message.

    Example:
        ```python
        decoder = StreamDecoder(target)
        for data in splitter.feed(chunk):
            for event in decoder.feed(data):
                ...
        if decoder.message is None:
            raise decoder.ended_early()
        ```
    """

    def __init__(self, target: Target) -> None:
        self.message: AssistantMessage | None = None
        self.ignored = 0
        self._target = target
        self._load = fast_load()
        self._slots = Slots()
        self._text = Channel("")
        self._reasoning = Channel(BLANK_LINE)
        self._status: str | None = None

    def feed(self, data: bytes) -> list[ProviderStreamEvent]:
        """Take the data of one event; return the deltas that it brings.

        After the event that ends a good reply, `message` is set.

        Raises:
            ModelError: For an error event, for a reply that failed or is incomplete,
                and for events that are not shaped as documented.
        """
        if is_empty(data):
            return []
        try:
            event = as_object(self._load(data))
        except ValueError as err:
            what = "an event is not JSON"
            raise bad_response(
                self._target, what, response_status=self._status
            ) from err
        if event is None:
            self.ignored += 1
            return []
        try:
            return self._take(event, data)
        except (ShapeError, ValueError) as err:
            raise bad_response(
                self._target, str(err), response_status=self._status
            ) from err

    def ended_early(self) -> ModelError:
        """Return the error for a stream that ended without saying how."""
        what = "the stream ended before the reply was complete; try again"
        return bad_response(self._target, what, response_status=self._status)

    def _take(self, event: Event, data: bytes) -> list[ProviderStreamEvent]:
        type_ = event.get("type")
        if type_ is None and as_object(event.get("error")):
            type_ = "error"  # some gateways write no type beside the error
        handler = self._HANDLERS.get(type_) if isinstance(type_, str) else None
        if handler is None:
            self.ignored += 1
            return []
        return handler(self, event, data)

    def _on_status(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        status = (as_object(event.get("response")) or {}).get("status")
        self._status = status if isinstance(status, str) else self._status
        return []

    def _on_error(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        error = as_object(event.get("error")) or event
        raise error_in_reply(self._target, error, response_status="error")

    def _on_text(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        if "delta" in event:
            text = self._piece(self._text, event, "content_index")
            return [TextDelta(text)] if text else []
        name = "text" if event["type"] == "response.output_text.done" else "refusal"
        return _shown_text(self._whole(self._text, event, name, "content_index"))

    def _on_arguments(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        return [*self._slots.find(event).add_arguments(_delta(event))]

    def _on_item_added(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        item = as_object(event.get("item"))
        if item is None:
            raise ShapeError("an output item is no object")
        slot = self._slots.find(event, item)
        call_id, name = item.get("call_id"), item.get("name")
        known = isinstance(call_id, str) and isinstance(name, str)
        if item.get("type") == "function_call" and known and call_id and name:
            slot.call = clean_text(str(call_id)), clean_text(str(name))
        return [*slot.delta()]

    def _key(self, event: Event, index_name: str, slot: Slot) -> PartKey:
        index = event.get(index_name)
        if isinstance(index, int):
            return slot.number, index
        return slot.number, slot.closed.get(index_name, 0)

    def _piece(self, channel: Channel, event: Event, index_name: str) -> str:
        slot = self._slots.find(event)
        return channel.add(self._key(event, index_name, slot), _delta(event))

    def _whole(self, channel: Channel, event: Event, name: str, index_name: str) -> str:
        slot = self._slots.find(event)
        key = self._key(event, index_name, slot)
        slot.closed[index_name] = key[1] + 1
        text = event.get(name)
        return channel.settle(key, text) if isinstance(text, str) else ""

    def _on_reasoning(self, event: Event, _: bytes) -> list[ProviderStreamEvent]:
        summary = str(event["type"]).startswith("response.reasoning_summary")
        kind: ReasoningKind = "summary" if summary else "content"
        index_name = f"{kind}_index"
        slot = self._slots.find(event)
        if slot.kind not in {None, kind}:
            return []  # an item shows one of its two texts, the one that came first
        if "delta" in event:
            shown = self._piece(self._reasoning, event, index_name)
        else:
            shown = self._whole(self._reasoning, event, "text", index_name)
        if shown:
            slot.kind = kind
        return _shown_reasoning(shown)

    def _on_item_done(self, event: Event, data: bytes) -> list[ProviderStreamEvent]:
        item = need_item(event.get("item"), member_text(data.decode(), "item", event))
        slot = self._slots.find(event, item.value)
        slot.item = item
        if item.type == "message":
            pieces = [
                self._text.settle((slot.number, index), whole)
                for index, whole in message_texts(item)
            ]
            return _shown_text("".join(pieces))
        if item.type == "reasoning":
            slot.kind = slot.kind or reasoning_kind(item)
            pieces = [
                self._reasoning.settle((slot.number, index), whole)
                for index, whole in reasoning_texts(item, slot.kind)
            ]
            return _shown_reasoning("".join(pieces))
        return _shown_item(item, slot)

    def _on_end(self, event: Event, data: bytes) -> list[ProviderStreamEvent]:
        response = as_object(event.get("response"))
        if response is None:
            raise ShapeError("the event that ends the stream has no response object")
        kind = str(event["type"]).removeprefix("response.")
        if kind != "completed":
            response = {**response, "status": kind}
        require_completed(response, self._target, kind)
        items, kinds, late = self._final_items(response, event, data)
        message = build_message(items, kinds, response, self._target)
        events = [
            *_shown_reasoning(self._reasoning.finish(message.reasoning or "")),
            *_shown_text(self._text.finish(message.content)),
            *late,
        ]
        self.message = message
        return events

    def _final_items(
        self, response: dict[str, object], event: Event, data: bytes
    ) -> tuple[list[Item], list[ReasoningKind], list[ProviderStreamEvent]]:
        """Return the items, from their own events unless the last event has more.

        What only the last event has comes with the events that show it.
        """
        slots = self._slots.finished()
        items = [slot.item for slot in slots if slot.item is not None]
        output = as_list(response.get("output"))
        if output is None and not items:
            raise ShapeError("it has no array of output items")
        if output is not None and len(output) > len(items):
            items = items_in(member_text(data.decode(), "response", event), response)
            by_id = {slot.id: slot for slot in self._slots.all if slot.id}
            ids = [str(item.value.get("id")) for item in items]
            slots = [by_id.pop(id_, Slot(-1, None, None)) for id_ in ids]
        kinds: list[ReasoningKind] = []
        late: list[ProviderStreamEvent] = []
        for item, slot in zip(items, slots, strict=True):
            if item.type == "reasoning":
                kinds.append(slot.kind or reasoning_kind(item))
            elif item.type not in {"message", ""}:
                late += _shown_item(item, slot)
        missing = {*self._slots.all} - {*slots}
        if any(slot.shown_call for slot in missing):
            raise ShapeError("it lacks a call whose arguments came in pieces")
        return items, kinds, late

    _HANDLERS: ClassVar[Mapping[str, Callable[..., list[ProviderStreamEvent]]]] = {
        "response.output_text.delta": _on_text,
        "response.output_text.done": _on_text,
        "response.refusal.delta": _on_text,
        "response.refusal.done": _on_text,
        "response.reasoning_summary_text.delta": _on_reasoning,
        "response.reasoning_summary_text.done": _on_reasoning,
        "response.reasoning_text.delta": _on_reasoning,
        "response.reasoning_text.done": _on_reasoning,
        "response.function_call_arguments.delta": _on_arguments,
        "response.output_item.added": _on_item_added,
        "response.output_item.done": _on_item_done,
        "response.created": _on_status,
        "response.queued": _on_status,
        "response.in_progress": _on_status,
        "response.completed": _on_end,
        "response.incomplete": _on_end,
        "response.failed": _on_end,
        "response.cancelled": _on_end,
        "error": _on_error,
    }


def _shown_text(text: str) -> list[ProviderStreamEvent]:
    return [TextDelta(text)] if text else []


def _shown_reasoning(text: str) -> list[ProviderStreamEvent]:
    return [ReasoningDelta(text)] if text else []


def _shown_item(item: Item, slot: Slot) -> list[ProviderStreamEvent]:
    """Return what of an item, that is neither text nor reasoning, is still to be shown.

    Raises:
        ShapeError: When the arguments of a call differ from their pieces.
    """
    if item.type == "function_call":
        return [*slot.finish_call(tool_call(item))]
    if slot.shown or not item.type:
        return []
    slot.shown = True
    return [HostedToolItem(item.type, item.text)]


def _delta(event: Event) -> str:
    delta = event.get("delta")
    if not isinstance(delta, str):
        raise ShapeError(f"a delta is {type(delta).__name__}, not text")
    return delta
