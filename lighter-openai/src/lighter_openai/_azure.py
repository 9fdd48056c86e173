"""Azure's deployments: the SDK finds them only in bodies that it writes itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["at_deployment"]


def at_deployment(client: AsyncOpenAI | None, model: object) -> AsyncOpenAI | None:
    """Return an Azure client that sends chat requests to a model's deployment.

    Where the SDK writes the body itself, it puts the deployment into the path; the body
    is written here, so the base URL names it, on the client's own connections. Other
    clients are returned as they are, and so are clients with a deployment of their own.
    """
    if "openai" not in sys.modules:  # then it cannot be one of the SDK's
        return client
    import openai

    if not isinstance(client, openai.AsyncAzureOpenAI) or not isinstance(model, str):
        return client
    if not model.strip() or "/deployments" in client.base_url.path:
        return client
    base = str(client.base_url).rstrip("/")
    return client.with_options(base_url=f"{base}/deployments/{quote(model, safe='')}")
