"""Messages to turns: who speaks, and the JSON text of what is said."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from lighter_core import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import (
    MessageWriter,
    ReplayNotes,
    arguments_text,
    as_object,
    dump_json,
    elements,
    load_json,
    loss_of,
    normal_call_id,
    normal_tool_name,
)

from ._blocks import THOUGHTS, rewritten, sent_and_container
from ._parts import part_block, text_block
from ._replay import (
    NO_NATIVE,
    REPEATED,
    UNFINISHED,
    SystemMode,
    foreign,
    has_hosted,
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

    def text(self) -> str:
        return f'{{"role":"{self.role}","content":[{",".join(self.blocks)}]}}'


class Turns(MessageWriter):
    """The turns of a conversation, consecutive messages of the user in one turn.

    Args:
        target: Whom requests are for.
        mode: Whether later system messages stay in their place.
        refused: Replies whose thinking is not sent back.

    Attributes:
        system: The texts for the request's `system`.
        container: The container of the newest reply, if its blocks are sent as they came.
        last_role: Who speaks last; `None` when nobody says anything.
    """

    def __init__(
        self,
        target: Target,
        mode: SystemMode = "merge",
        refused: Container[object] = (),
    ) -> None:
        super().__init__()
        self.system: list[str] = []
        self.container: str | None = None
        self.last_role: str | None = None
        self._target = target
        self._mode: SystemMode = mode
        self._refused = refused
        self._system: list[str] = []  # what stays there, however the history goes on
        self._turns: list[_Turn] = []  # only the last one may still grow
        self._waiting: dict[int, str] = {}  # system texts
        self._sent_ids: set[str] = set()
        self._round: dict[str, str] = {}
        self._hosted = False  # then later messages decide how earlier ones are sent
        self._unfinished: Container[int] = ()

    def texts(self, messages: Sequence[Message], notes: ReplayNotes) -> Sequence[str]:
        """Return the JSON text of each turn; set the attributes."""
        self._hosted = any(map(has_hosted, messages[len(self._known) :]))
        if self._hosted:
            self._unfinished = unfinished(messages, self._target, self._mode)
        return super().texts(messages, notes)

    def fits(self, messages: Sequence[Message]) -> bool:
        """Tell whether the messages go on behind those that were written."""
        if self._hosted or not super().fits(messages):
            return False
        return not any(map(has_hosted, messages[len(self._known) :]))

    def _write(self, message: Message) -> Iterable[str]:
        self._take(message)
        done = len(self._texts)
        return [turn.text() for turn in self._turns[done:-1]]

    def _finished(self) -> Sequence[str]:
        """Return the texts with the last turn as it stands at the end of a request."""
        last = self._turns[-1] if self._turns else None
        self.system, end = list(self._system), [last] if last is not None else []
        if last is not None and last.role == "user" and self._waiting:
            end.append(self._system_turn())
        else:
            for number, text in self._waiting.items():
                self.system.append(text)
                self._notes.add(_MOVED, "rewritten", number=number)
        if last is not None and last.role == "assistant":
            end = [_stripped(last)]
        self.last_role = end[-1].role if end else None
        return [*self._texts, *(turn.text() for turn in end)]

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
        turns = self._turns
        if role == "user" and turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
            return
        # System texts stand behind a turn of the user, and wait for one.
        if self._waiting and turns[-1].role == "user":
            turns.append(self._system_turn())
            self._waiting = {}
        turns.append(_Turn(role, blocks))

    def _take_system(self, text: str) -> None:
        if not text.strip():
            return
        if self._mode == "merge" or not self._turns:
            self._system.append(text)
        else:
            self._waiting[self._number] = text

    def _system_turn(self) -> _Turn:
        return _Turn("system", [text_block(BLANK_LINE.join(self._waiting.values()))])

    def _said(self, message: UserMessage) -> list[str]:
        if isinstance(message.content, str):
            text = message.content
            return [text_block(text)] if text.strip() else []
        found: list[str] = []
        for number, part in enumerate(message.content):
            with self._notes.needed(f".content[{number}]"):
                block = part_block(part, self._target)
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
            note = loss_of(message, self._target.name, why or NO_NATIVE)
            if note is not None:
                self._notes.add(note, "dropped")
            return self._rebuilt(message)
        self._round = {}
        self._sent_ids.update(call.call_id for call in message.tool_calls)
        sent, container = sent_and_container(native.items)
        if sent:
            self.container = container
        if message not in self._refused:
            return [sent] if sent else []
        found = elements(f"[{sent}]")
        visible = [text for value, text in found if _visible(value)]
        if len(visible) < len(found):
            self._notes.add(_REFUSED, "dropped")
        return visible

    def _obstacle(self, message: AssistantMessage) -> str | None:
        """Return why a reply has to be made from public fields; `None` when not."""
        found = foreign(message, self._target)
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
                self._notes.add(_NAMES, "rewritten", part=part)
            head = f'"type":"tool_use","id":{dump_json(id_)},"name":{dump_json(name)}'
            blocks.append(f'{{{head},"input":{self._input(call, part)}}}')
        return blocks

    def _input(self, call: ToolCall, part: str) -> str:
        text = arguments_text(call)
        if text is not None:
            return text
        self._notes.add(_RAW_INPUT, "rewritten", part=part)
        return dump_json({"_raw": call.arguments})


def _stripped(turn: _Turn) -> _Turn:
    """Return a reply that is to be continued without the white space at its end."""
    blocks = [text for _, text in elements(f"[{','.join(turn.blocks)}]")]
    last = as_object(load_json(blocks[-1])) or {}
    text = last.get("text")
    if last.get("type") == "text" and isinstance(text, str) and text != text.rstrip():
        blocks[-1] = rewritten(blocks[-1], {"text": dump_json(text.rstrip())})
    return _Turn("assistant", blocks)


def _visible(value: object) -> bool:
    return (as_object(value) or {}).get("type") not in THOUGHTS
