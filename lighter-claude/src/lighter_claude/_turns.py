"""Messages to turns: who speaks, and the JSON text of what is said."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from lighter_core import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import (
    ReplayNotes,
    as_object,
    dump_json,
    elements,
    load_json,
    loss_of,
    normal_call_id,
    normal_tool_name,
    object_text,
)

from ._blocks import THOUGHTS, rewritten, sent_and_container
from ._parts import part_block, text_block
from ._replay import (
    NO_NATIVE,
    REPEATED,
    UNFINISHED,
    SystemMode,
    foreign,
    unfinished,
)
from ._target import BLANK_LINE, Target

__all__ = ["SystemMode", "Turns"]

_RAW_INPUT = (
    "arguments of tool calls that are no JSON object were sent to Claude as text in"
    " `_raw`"
)
_NAMES = "calls of tools by names that Claude refuses got other names"
_REFUSED = "thinking that Claude has refused before was not sent again"
_MOVED = (
    "a system message was sent to Claude with the system prompt: it cannot stand where"
    " it is"
)


@dataclass(slots=True)
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
        notes: Takes what is changed or left out, and where.
        system: The texts for the request's `system`.
        container: The container of the newest reply, if its blocks are sent as they came.
    """

    target: Target
    mode: SystemMode = "merge"
    refused: Container[object] = ()
    notes: ReplayNotes = field(default_factory=ReplayNotes)
    system: list[str] = field(default_factory=list[str])
    container: str | None = None
    _turns: list[_Turn] = field(default_factory=list[_Turn])
    _waiting: dict[int, str] = field(default_factory=dict[int, str])  # system texts
    _sent_ids: set[str] = field(default_factory=set[str])
    _round: dict[str, str] = field(default_factory=dict[str, str])
    _unfinished: Container[int] = ()
    _number: int = 0  # of the message that is taken

    def take(self, messages: Sequence[Message]) -> list[str]:
        """Return the JSON text of each turn; fill `system`."""
        self._unfinished = unfinished(messages, self.target, self.mode)
        for number, message in enumerate(messages):
            self._number = number
            self.notes.at(number)
            self._take(message)
        self.notes.at(None)
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
        if isinstance(message, AssistantMessage):
            self._add("assistant", self._reply(message))
        elif isinstance(message, ToolMessage):
            self._add("user", [self._result(message)])
        elif isinstance(message, UserMessage):
            self._add("user", self._said(message))
        else:
            self._take_system(message.content)

    def _add(self, role: str, blocks: list[str]) -> None:
        if not blocks:
            return
        if self._waiting:
            self._place_waiting(before=role)
        turns = self._turns
        if role == "user" and turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(_Turn(role, blocks))

    def _take_system(self, text: str) -> None:
        if not text.strip():
            return
        if self.mode == "merge" or not self._turns:
            self.system.append(text)
        else:
            self._waiting[self._number] = text

    def _place_waiting(self, *, before: str | None) -> None:
        """Put system texts behind the user's next turn, if none comes into `system`."""
        if not self._waiting or before == "user":
            return
        if self._turns[-1].role == "user":
            text = BLANK_LINE.join(self._waiting.values())
            self._turns.append(_Turn("system", [text_block(text)]))
        elif before is None:
            for number, text in self._waiting.items():
                self.system.append(text)
                self.notes.add(_MOVED, "rewritten", number=number)
        else:
            return
        self._waiting = {}

    def _said(self, message: UserMessage) -> list[str]:
        if isinstance(message.content, str):
            text = message.content
            return [text_block(text)] if text.strip() else []
        found: list[str] = []
        for number, part in enumerate(message.content):
            with self.notes.needed(f".content[{number}]"):
                block = part_block(part, self.target)
                found += [] if block is None else [block]
        return found

    def _result(self, message: ToolMessage) -> str:
        id_ = self._round.get(message.call_id, message.call_id)
        text, output = f'"tool_use_id":{dump_json(id_)}', message.tool_output
        if output and not output.isspace():
            text += f',"content":{dump_json(output)}'
        if message.is_error:
            text += ',"is_error":true'
        return f'{{"type":"tool_result",{text}}}'

    def _reply(self, message: AssistantMessage) -> list[str]:
        native, why = message.native, self._obstacle(message)
        if native is None or why is not None:
            self.container = None
            note = loss_of(message, self.target.name, why or NO_NATIVE)
            if note is not None:
                self.notes.add(note, "dropped")
            return self._rebuilt(message)
        self._round = {}
        self._sent_ids.update(call.call_id for call in message.tool_calls)
        sent, container = sent_and_container(native.items)
        if sent:
            self.container = container
        if message not in self.refused:
            return [sent] if sent else []
        found = elements(f"[{sent}]")
        visible = [text for value, text in found if _visible(value)]
        if len(visible) < len(found):
            self.notes.add(_REFUSED, "dropped")
        return visible

    def _obstacle(self, message: AssistantMessage) -> str | None:
        """Return why a reply has to be made from public fields; `None` when not."""
        found = foreign(message, self.target)
        if found is not None:
            return found
        if self._number in self._unfinished:
            return UNFINISHED
        if any(call.call_id in self._sent_ids for call in message.tool_calls):
            return REPEATED
        return None

    def _rebuilt(self, message: AssistantMessage) -> list[str]:
        """Return blocks made from public fields: no thinking, it cannot be made up."""
        blocks: list[str] = []
        if message.content.strip():
            blocks.append(text_block(message.content))
        self._round = {}
        for number, call in enumerate(message.tool_calls):
            part = f".tool_calls[{number}]"
            id_ = normal_call_id(call.call_id)
            if id_ in self._sent_ids:
                id_ = normal_call_id(f"{call.call_id} {len(self._sent_ids)}")
            self._sent_ids.add(id_)
            self._round[call.call_id] = id_
            name = normal_tool_name(call.tool_name)
            if name != call.tool_name:
                self.notes.add(_NAMES, "rewritten", part=part)
            head = f'"type":"tool_use","id":{dump_json(id_)},"name":{dump_json(name)}'
            blocks.append(f'{{{head},"input":{self._input(call, part)}}}')
        return blocks

    def _input(self, call: ToolCall, part: str) -> str:
        text = object_text(call)
        if text is not None:
            return text
        self.notes.add(_RAW_INPUT, "rewritten", part=part)
        return dump_json({"_raw": call.arguments})

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


def _visible(value: object) -> bool:
    return (as_object(value) or {}).get("type") not in THOUGHTS
