"""A provider on the Responses interface, whichever service speaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from lighter_core import ModelError
from lighter_core.adapters import ReplayNotes, snapshot, writer_of_run

from ._base import BaseProvider, Connection
from ._codec import ServiceCodec
from ._decode import decode_body
from ._dialect import Dialect
from ._encode import encode_request
from ._input import InputItems
from ._stream import StreamDecoder

if TYPE_CHECKING:
    from lighter_core import ModelRequest

__all__ = ["ResponsesProvider"]

_UNREADABLE = "invalid_encrypted_content"


class ResponsesProvider(BaseProvider):
    """Talks to a service through the Responses interface.

    Args:
        dialect: What is particular to the service.
        model_id: The model.
        connection: How the service is reached.
        fields: Fields of every request.
        extra_body: Further fields; they win, `tools` and `include` are joined.
        hosted_tools: The service's own tools, in its own form.
        recover: Whether a request is sent once more without native context, when the
            service says that it cannot read the reasoning in it.

    Raises:
        ModelError: For values that cannot work.
    """

    _reserved: ClassVar[frozenset[str]] = frozenset({"input", "model", "stream"})

    def __init__(
        self,
        dialect: Dialect,
        model_id: str | None,
        connection: Connection,
        *,
        fields: Mapping[str, object],
        extra_body: Mapping[str, object] | None = None,
        hosted_tools: Sequence[Mapping[str, object]] | None = None,
        recover: bool = True,
    ) -> None:
        fields = dict(fields)
        if hosted_tools is not None:
            fields["tools"] = _hosted(hosted_tools, dialect.name)
        super().__init__(
            dialect,
            model_id,
            connection,
            fields=fields,
            extra_body=extra_body,
            recover=recover,
        )
        self._reads = ServiceCodec(self._target, decode_body, StreamDecoder)

    def _encode(
        self, request: ModelRequest, notes: ReplayNotes, *, stream: bool
    ) -> bytes:
        key = self, self._refused.version
        with writer_of_run(key, request.messages, notes, self._writer) as writer:
            return encode_request(
                request,
                self._target,
                self._options,
                stream=stream,
                writer=writer,
                notes=notes,
            )

    def _writer(self) -> InputItems:
        return InputItems(self._target, self._refused)

    def _codec(self, request: ModelRequest) -> ServiceCodec:  # noqa: ARG002
        return self._reads

    def _lost(self, error: ModelError) -> str | None:
        if error.vendor_code != _UNREADABLE:
            return None
        # Another key or organisation cannot read the reasoning in the history, and
        # never will: without it the conversation can go on.
        return (
            f"{self.name!r} could not read the reasoning of earlier replies"
            f" ({_UNREADABLE}): the request was sent again without native context"
        )


def _hosted(tools: object, name: str) -> list[object]:
    """Return a copy of the definitions of hosted tools.

    Raises:
        ModelError: `invalid_request` for anything that is none.
    """
    if not isinstance(tools, Sequence) or isinstance(tools, str | bytes):
        problem = f"a sequence of mappings, got {type(tools).__name__}"
        raise ModelError(
            f"hosted_tools must be {problem}", "invalid_request", provider=name
        )
    found: list[object] = []
    for number, tool in enumerate(cast("Sequence[object]", tools)):
        definition = snapshot(f"hosted_tools[{number}]", tool, provider=name)
        kind = definition.get("type")
        if not isinstance(kind, str) or not kind or kind == "function":
            raise ModelError(
                f"hosted_tools[{number}] needs the `type` of one of the service's own"
                f" tools, got {kind!r}; functions are the agent's `tools`",
                "invalid_request",
                provider=name,
            )
        found.append(definition)
    return found
