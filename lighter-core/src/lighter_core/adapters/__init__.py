"""The kit for provider adapters.

Keys and options, JSON text, status codes and sentences for failures, one client per
loop, and one request with its reply. Everything here is for authors of providers;
applications need none of it. Nothing here imports an SDK or its transport before the
first request.

An adapter for a vendor's SDK is an `SDKProvider`. It brings a `Sender` that makes the
SDK's client, a `Codec` that knows the vendor's replies and errors, and its own encoding
of requests. What happens then can be had alone too:

```python
exchange = await Exchange.open(sender, body, codec, stream=True, secrets=(key,))
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
from ._connection import Connection, SDKClient
from ._exchange import Codec, Decoder, Exchange, LateDecoder
from ._faults import (
    Service,
    bad_response,
    code_for_status,
    drop_frames,
    redact_chain,
    retry_after_seconds,
    short,
    status_error,
    transport_error,
)
from ._making import make_provider
from ._options import (
    endpoint_of,
    need_base_url,
    need_client,
    need_headers,
    need_integer,
    need_key,
    need_model_id,
    need_timeout,
    normal_call_id,
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
    member_text,
    members,
)
from ._refused import RefusedContext
from ._schemas import closed_schema, map_schema
from ._sender import Reply, Sender, split_query

__all__ = [
    "ClientPool",
    "Codec",
    "Connection",
    "Decoder",
    "EventStreamSplitter",
    "Exchange",
    "LateDecoder",
    "Member",
    "Owned",
    "RefusedContext",
    "Reply",
    "SDKClient",
    "SDKProvider",
    "Sender",
    "Service",
    "ShapeError",
    "TextJoiner",
    "as_list",
    "as_object",
    "bad_response",
    "clean_text",
    "closed_schema",
    "code_for_status",
    "drop_frames",
    "dump_json",
    "elements",
    "encode_json",
    "encode_text",
    "endpoint_of",
    "fast_load",
    "import_sdk",
    "load_json",
    "make_provider",
    "map_schema",
    "member_text",
    "members",
    "need_base_url",
    "need_client",
    "need_headers",
    "need_integer",
    "need_key",
    "need_model_id",
    "need_timeout",
    "normal_call_id",
    "note",
    "plain",
    "redact",
    "redact_chain",
    "require_valid_history",
    "retry_after_seconds",
    "seal_native",
    "secret_headers",
    "short",
    "snapshot",
    "split_query",
    "status_error",
    "transport_error",
]
