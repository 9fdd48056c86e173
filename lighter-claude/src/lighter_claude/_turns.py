"""Messages to turns: who speaks, and the JSON text of what is said."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lighter_core import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import (
    as_object,
    clean_text,
    dump_json,
    elements,
    load_json,
    normal_call_id,
)

from ._blocks import THOUGHTS, rewritten, sent_and_container
from ._parts import part_block, text_block
from ._target import API, BLANK_LINE, Target

__all__ = ["SystemMode", "Turns"]

SystemMode = Literal["merge", "in_place"]

_FOREIGN = (
    "replies of other providers were sent to Claude as text and tool calls, without"
    " their native context"
)
_EDITED = (
    "replies that were edited were sent to Claude as text and tool calls, without"
    " thinking"
)
_UNSIGNED = (
    "the reasoning of earlier replies was not sent to Claude: it has no signature"
)
_RAW_INPUT = (
    "arguments of tool calls that are no JSON object were sent to Claude as text in"
    " `_raw`"
)
_MOVED = (
    "a system message was sent to Claude with the system prompt: it cannot stand where"
    " it is"
)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class _Turn:
    role: str
    blocks: list[str]


@dataclass
class Turns:
    """The turns of a conversation, consecutive messages of the user in one turn.

    Attributes:
        target: Whom the request is for.
        mode: Whether later system messages stay in their place.
        refused: Replies whose thinking is not sent back.
        system: The texts for the request's `system`.
        notes: What was changed or left out.
        container: The container of the newest reply, if its blocks are sent as they came.
    """

    target: Target
    mode: SystemMode = "merge"
    refused: Container[object] = ()
    system: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    container: str | None = None
    _turns: list[_Turn] = field(default_factory=list[_Turn])
    _waiting: list[str] = field(default_factory=list[str])  # system texts to place
    _sent_ids: set[str] = field(default_factory=set[str])
    _round: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, messages: Sequence[Message]) -> list[str]:
        """Return the JSON text of each turn; fill `system` and `notes`."""
        for message in messages:
            self._take(message)
        self._place_waiting(before=None)
        self._strip_end()
        return [
            f'{{"role":"{turn.role}","content":[{",".join(turn.blocks)}]}}'
            for turn in self._turns
        ]

    @property
    def last_role(self) -> str | None:
        """Who speaks last; `None` when nobody says anything."""
        return self._turns[-1].role if self._turns else None

    def _take(self, message: Message) -> None:
        match message:
            case SystemMessage():
                self._take_system(message.content)
            case UserMessage():
                self._add("user", self._said(message))
            case ToolMessage():
                self._add("user", [self._result(message)])
            case AssistantMessage():
                self._add("assistant", self._reply(message))

    def _add(self, role: str, blocks: list[str]) -> None:
        if not blocks:
            return
        self._place_waiting(before=role)
        if role == "user" and self._turns and self._turns[-1].role == role:
            self._turns[-1].blocks.extend(blocks)
        else:
            self._turns.append(_Turn(role, blocks))

    def _take_system(self, text: str) -> None:
        if not text.strip():
            return
        if self.mode == "merge" or not self._turns:
            self.system.append(text)
        else:
            self._waiting.append(text)

    def _place_waiting(self, *, before: str | None) -> None:
        """Put system texts behind the user's next turn, if none comes into `system`."""
        if not self._waiting or before == "user":
            return
        if self._turns[-1].role == "user":
            text = BLANK_LINE.join(self._waiting)
            self._turns.append(_Turn("system", [text_block(text)]))
        elif before is None:
            self.system += self._waiting
            self._note(_MOVED)
        else:
            return
        self._waiting = []

    def _said(self, message: UserMessage) -> list[str]:
        if isinstance(message.content, str):
            text = message.content
            return [text_block(text)] if text.strip() else []
        found = [part_block(part, self.target) for part in message.content]
        return [block for block in found if block is not None]

    def _result(self, message: ToolMessage) -> str:
        block: dict[str, object] = {
            "type": "tool_result",
            "tool_use_id": self._round.get(message.call_id, message.call_id),
        }
        if message.tool_output.strip():
            block["content"] = message.tool_output
        if message.is_error:
            block["is_error"] = True
        return dump_json(block)

    def _reply(self, message: AssistantMessage) -> list[str]:
        ids = [call.call_id for call in message.tool_calls]
        known = not self._sent_ids.isdisjoint(ids)  # an id may be used once only
        odd = any(_name(call) != call.tool_name for call in message.tool_calls)
        native = message.native
        if native is not None and not (known or odd) and self._may_replay(message):
            self._round = {}
            self._sent_ids.update(ids)
            sent, container = sent_and_container(native.items)
            if sent:
                self.container = container
            if message not in self.refused:
                return [sent] if sent else []
            return [text for value, text in elements(f"[{sent}]") if _visible(value)]
        self.container = None
        self._note_loss(message)
        return self._rebuilt(message)

    def _may_replay(self, message: AssistantMessage) -> bool:
        native = message.native
        return (
            native is not None
            and native.v == 1
            and native.provider == self.target.name
            and native.api == API
            and native.endpoint == self.target.endpoint
            and message.native_intact()
        )

    def _note_loss(self, message: AssistantMessage) -> None:
        native = message.native
        if native is None:
            if message.reasoning:
                self._note(_UNSIGNED)
        elif native.provider != self.target.name or message.native_intact():
            self._note(_FOREIGN)
        else:
            self._note(_EDITED)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _rebuilt(self, message: AssistantMessage) -> list[str]:
        """Return blocks made from public fields: no thinking, it cannot be made up."""
        blocks: list[str] = []
        if message.content.strip():
            blocks.append(text_block(message.content))
        self._round = {}
        for call in message.tool_calls:
            id_ = normal_call_id(call.call_id)
            if id_ in self._sent_ids:
                id_ = normal_call_id(f"{call.call_id} {len(self._sent_ids)}")
            self._sent_ids.add(id_)
            self._round[call.call_id] = id_
            head = dump_json({"type": "tool_use", "id": id_, "name": _name(call)})
            blocks.append(f'{head[:-1]},"input":{self._input(call)}}}')
        return blocks

    def _input(self, call: ToolCall) -> str:
        text = call.arguments
        if not text.strip():
            return "{}"
        try:
            value = as_object(load_json(text))
            if value is not None:
                whole = dump_json(value)
                # An escaped half of a character is legal JSON, and yet it is refused.
                return text.strip() if clean_text(whole) == whole else whole
        except ValueError:
            pass
        self._note(_RAW_INPUT)
        return dump_json({"_raw": text})

    def _strip_end(self) -> None:
        """Strip the white space at the end of a reply that is to be continued."""
        if not self._turns or self._turns[-1].role != "assistant":
            return
        whole = f"[{','.join(self._turns[-1].blocks)}]"
        blocks = [text for _, text in elements(whole)]
        last = as_object(load_json(blocks[-1])) or {}
        text = last.get("text")
        if last.get("type") == "text" and isinstance(text, str):
            if text != text.rstrip():
                blocks[-1] = rewritten(blocks[-1], {"text": dump_json(text.rstrip())})
            self._turns[-1] = _Turn("assistant", blocks)


def _name(call: ToolCall) -> str:
    """Return a name that the service takes; models make up others now and then."""
    return _NAME.sub("_", call.tool_name)[:_LONGEST_NAME] or "_"


def _visible(value: object) -> bool:
    return (as_object(value) or {}).get("type") not in THOUGHTS
