"""What the providers of this distribution share: options, keys, clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypedDict

from lighter_core import ModelError
from lighter_core.adapters import (
    Connection,
    SDKProvider,
    Transport,
    endpoint_of,
    need_key,
    need_model_id,
    secret_headers,
    snapshot,
)

from ._client import Clients
from ._dialect import Dialect, Target

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["BaseProvider", "Connection", "ConnectionOptions", "need_text"]


class ConnectionOptions(TypedDict, total=False):
    """The keyword options that say how a service is reached."""

    base_url: str | None
    timeout: float | httpx2.Timeout | None
    max_retries: int | None
    client: AsyncOpenAI | None
    http_client: httpx2.AsyncClient | None
    transport: Transport | None
    extra_headers: Mapping[str, str] | None
    extra_body: Mapping[str, object] | None


class BaseProvider(SDKProvider):
    """A provider on the SDK of OpenAI.

    Args:
        dialect: What is particular to the service.
        model_id: The model.
        connection: How the service is reached.
        fields: Fields of every request.
        extra_body: Further fields; they win.
        recover: Whether a request whose native context is refused is sent once more.

    Raises:
        ModelError: `auth_error` without a key, `invalid_request` for other values that
            cannot work.
    """

    _clients_type: ClassVar[type[Clients]] = Clients
    _reserved: ClassVar[frozenset[str]]

    def __init__(
        self,
        dialect: Dialect,
        model_id: str | None,
        connection: Connection,
        *,
        fields: Mapping[str, object],
        extra_body: Mapping[str, object] | None,
        recover: bool = False,
    ) -> None:
        name = dialect.name
        url = connection.check(
            provider=name,
            client="openai.AsyncOpenAI",
            variable=dialect.base_url_variable,
            default=dialect.base_url,
        )
        model, key = self._model_and_key(model_id, dialect, connection)
        self._options = self._merged(fields, extra_body, name)
        self._target = Target(dialect, endpoint_of(url), model)
        # What the environment says goes with its own key, to its own or OpenAI's URL.
        isolated = dialect.isolated or connection.api_key is not None
        if connection.base_url is not None:
            isolated |= self._target.endpoint != endpoint_of(dialect.base_url)
        clients = self._clients_type(key, url, connection, isolated=isolated)
        # A word such as "none" for a local server is no secret, and stands in any text.
        secrets = (key, *secret_headers(connection.extra_headers))
        super().__init__(self._target, clients, secrets=secrets, recover=recover)

    @classmethod
    def _merged(
        cls,
        fields: Mapping[str, object],
        extra_body: Mapping[str, object] | None,
        name: str,
    ) -> dict[str, object]:
        """Return the fields of every request; lists of tools are joined."""
        options = dict(fields)
        extra = {}
        if extra_body is not None:
            extra = snapshot("extra_body", extra_body, provider=name)
        taken = sorted(cls._reserved & extra.keys())
        if taken:
            raise ModelError(
                f"extra_body must not hold {taken[0]!r}: Lighter sets it",
                "invalid_request",
                provider=name,
            )
        tools, more = options.get("tools"), extra.get("tools")
        if isinstance(tools, list) and isinstance(more, list):
            extra["tools"] = [*tools, *more]
        return {**options, **extra}

    @classmethod
    def _model_and_key(
        cls, model_id: str | None, dialect: Dialect, connection: Connection
    ) -> tuple[str, str | None]:
        """Return both; where both are missing, one error says so.

        Raises:
            ModelError: `invalid_request` for the model, else `auth_error` for the key.
        """
        name = dialect.name
        try:
            model = need_model_id(
                model_id, variable=dialect.model_variable, provider=name
            )
        except ModelError as err:
            try:
                cls._key(dialect, connection)
            except ModelError as also:
                text = f"{err.message}; {also.message}"
                raise ModelError(text, err.code, provider=name) from None
            raise
        return model, cls._key(dialect, connection)

    @classmethod
    def _key(cls, dialect: Dialect, connection: Connection) -> str | None:
        if connection.client is not None:
            known: object = getattr(connection.client, "api_key", None)
            return known if isinstance(known, str) else None
        return need_key(
            connection.api_key, variable=dialect.key_variable, provider=dialect.name
        )

    @property
    def capabilities(self) -> frozenset[str]:
        """The fields of a request, and the parts of a message, that are understood."""
        return frozenset({"output", "tool_choice"}) | self._target.dialect.parts


def need_text(name: str, value: object, provider: str) -> None:
    """Refuse a value that is no text, naming the option.

    Raises:
        ModelError: `invalid_request`.
    """
    if not isinstance(value, str) or not value.strip():
        raise ModelError(
            f"{name} must be a text that is not blank, got {value!r}",
            "invalid_request",
            provider=provider,
        )
