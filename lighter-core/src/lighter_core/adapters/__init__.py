"""The kit for provider adapters.

Keys and options, JSON text, status codes and sentences for failures, one client per
loop, and one request with its reply. Everything here is for authors of providers;
applications need none of it. Nothing here imports an SDK or its transport before the
first request.

An adapter for a vendor's SDK is an `SDKProvider`. It brings a `Sender` that makes the
SDK's client, a `Codec` that knows the vendor's replies and errors, and its own encoding
of requests. What happens then can be had alone too:

```python
secrets = Secrets([key])
exchange = await Exchange.open(sender, body, codec, stream=True, secrets=secrets)
async with aclosing(exchange.events()) as events:
    async for event in events:
        yield event
```
"""

from __future__ import annotations

from .._clients import ClientPool, import_sdk
from .._closing import Owned
from .._json import (
    TextJoiner,
    clean_text,
    dump_json,
    encode_json,
    encode_text,
    load_json,
)
from .._notes import note
from .._redact import redact
from .._sse import EventStreamSplitter
from ..history import require_valid_history
from ..messages import seal_native
from ._answers import (
    AnswerForms,
    answer_events,
    answer_name,
    answer_of,
    ask_by_tool,
    ask_in_words,
)
from ._bodies import body_object, json_values_only
from ._calls import arguments_text, is_object, normal_call_id, normal_tool_name
from ._codec import Codec, Decoder, LateDecoder
from ._connection import Connection, SDKClient
from ._exchange import Exchange
from ._faults import (
    Service,
    bad_response,
    code_for_status,
    short,
    status_error,
    transport_error,
)
from ._losses import ReplayNotes, loss_of
from ._making import make_provider
from ._options import (
    endpoint_of,
    need_base_url,
    need_client,
    need_headers,
    need_http_client,
    need_integer,
    need_key,
    need_model_id,
    need_timeout,
    plain,
    secret_headers,
    snapshot,
)
from ._provider import SDKProvider
from ._raw import (
    Member,
    ShapeError,
    as_list,
    as_object,
    elements,
    fast_load,
    integer_in,
    is_empty,
    member_elements,
    member_text,
    members,
)
from ._refused import RefusedContext
from ._retries import retry_after_seconds
from ._schemas import closed_schema, map_schema
from ._secrets import Secrets
from ._sender import Reply, Sender, split_query
from ._transport import Transport
from ._writing import MessageWriter, writer_of_run

__all__ = [
    "AnswerForms",
    "ClientPool",
    "Codec",
    "Connection",
    "Decoder",
    "EventStreamSplitter",
    "Exchange",
    "LateDecoder",
    "Member",
    "MessageWriter",
    "Owned",
    "RefusedContext",
    "ReplayNotes",
    "Reply",
    "SDKClient",
    "SDKProvider",
    "Secrets",
    "Sender",
    "Service",
    "ShapeError",
    "TextJoiner",
    "Transport",
    "answer_events",
    "answer_name",
    "answer_of",
    "arguments_text",
    "as_list",
    "as_object",
    "ask_by_tool",
    "ask_in_words",
    "bad_response",
    "body_object",
    "clean_text",
    "closed_schema",
    "code_for_status",
    "dump_json",
    "elements",
    "encode_json",
    "encode_text",
    "endpoint_of",
    "fast_load",
    "import_sdk",
    "integer_in",
    "is_empty",
    "is_object",
    "json_values_only",
    "load_json",
    "loss_of",
    "make_provider",
    "map_schema",
    "member_elements",
    "member_text",
    "members",
    "need_base_url",
    "need_client",
    "need_headers",
    "need_http_client",
    "need_integer",
    "need_key",
    "need_model_id",
    "need_timeout",
    "normal_call_id",
    "normal_tool_name",
    "note",
    "plain",
    "redact",
    "require_valid_history",
    "retry_after_seconds",
    "seal_native",
    "secret_headers",
    "short",
    "snapshot",
    "split_query",
    "status_error",
    "transport_error",
    "writer_of_run",
]
