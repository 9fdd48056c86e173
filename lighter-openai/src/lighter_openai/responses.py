"""For providers of services that speak OpenAI's Responses interface with an accent.

```python
ACME = Dialect(
    name="acme",
    label="Acme",
    key_variable="ACME_API_KEY",
    model_variable="ACME_MODEL",
    base_url_variable=None,
    base_url="https://api.acme.example",
    isolated=True,
)


class AcmeProvider(ResponsesProvider):
    def __init__(self, api_key: str | None = None, model_id: str | None = None) -> None:
        super().__init__(ACME, model_id, Connection(api_key=api_key), fields={})
```
"""

from __future__ import annotations

from ._base import Connection, ConnectionOptions
from ._dialect import PLACEHOLDER, Dialect
from ._responses import ResponsesProvider

__all__ = [
    "PLACEHOLDER",
    "Connection",
    "ConnectionOptions",
    "Dialect",
    "ResponsesProvider",
]
