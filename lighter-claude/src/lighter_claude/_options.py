"""The options that end up in every request, checked when the provider is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NoReturn, TypedDict, cast

from lighter_core import ModelError
from lighter_core.adapters import need_integer, need_key, snapshot

from ._encode import Options
from ._target import NAME
from ._turns import SystemMode

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

__all__ = ["ClaudeProviderOptions", "request_options", "secrets_of"]

_RESERVED = frozenset({"messages", "model", "stream", "system"})
_LEAST_BUDGET = 1024


class ClaudeProviderOptions(TypedDict, total=False):
    """The keyword options of `ClaudeProvider`."""

    max_output_tokens: int
    thinking: Mapping[str, object] | None
    effort: str | None
    cache: bool | Literal["5m", "1h"]
    system_messages: Literal["merge", "in_place"]
    hosted_tools: Sequence[Mapping[str, object]]
    recover: bool
    base_url: str | None
    timeout: float | httpx2.Timeout | None
    max_retries: int | None
    client: AsyncAnthropic | None
    http_client: httpx2.AsyncClient | None
    extra_headers: Mapping[str, str] | None
    extra_body: Mapping[str, object] | None


def request_options(
    *,
    max_output_tokens: int,
    thinking: Mapping[str, object] | None,
    effort: str | None,
    cache: object,
    system_messages: object,
    hosted_tools: Sequence[Mapping[str, object]],
    extra_body: Mapping[str, object] | None,
) -> Options:
    """Return copies of the options in the form of the request.

    Raises:
        ModelError: `invalid_request`, naming the option, for what cannot work.
    """
    if cast("object", max_output_tokens) is None:
        _refuse("max_output_tokens must be an int: the service needs one")
    need_integer("max_output_tokens", max_output_tokens, provider=NAME)
    fields: dict[str, object] = {"max_tokens": max_output_tokens}
    if thinking is not None:
        copy = snapshot("thinking", thinking, provider=NAME)
        _need_budget(copy, max_output_tokens)
        fields["thinking"] = copy
    if effort is not None:
        if not isinstance(cast("object", effort), str) or not effort.strip():
            _refuse("effort must be a word such as 'low', 'medium' or 'high'")
        fields["output_config"] = {"effort": effort}
    fields.update(_cache_control(cache))
    if extra_body is not None:
        _add_extra(fields, snapshot("extra_body", extra_body, provider=NAME))
    return Options(
        fields=fields,
        hosted_tools=_hosted(hosted_tools),
        system_messages=_system_mode(system_messages),
    )


def _refuse(text: str) -> NoReturn:
    raise ModelError(text, "invalid_request", provider=NAME)


def _need_budget(thinking: Mapping[str, object], most: int) -> None:
    """Check the budget of thinking that is switched on by hand.

    Every other form goes through: which one a model takes, the service knows better.
    """
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if isinstance(budget, bool) or not isinstance(budget, int):
        _refuse("thinking needs budget_tokens, an int, with the type 'enabled'")
    if not _LEAST_BUDGET <= budget < most:
        _refuse(
            f"budget_tokens of thinking must be at least {_LEAST_BUDGET} and below"
            f" max_output_tokens ({most}), got {budget}"
        )


def _cache_control(cache: object) -> dict[str, object]:
    if cache is False:
        return {}
    if cache is True:
        return {"cache_control": {"type": "ephemeral"}}
    if isinstance(cache, str) and cache in {"5m", "1h"}:
        return {"cache_control": {"type": "ephemeral", "ttl": cache}}
    _refuse(f"cache must be True, False, '5m' or '1h', got {cache!r}")


def _system_mode(mode: object) -> SystemMode:
    if mode == "merge":
        return "merge"
    if mode == "in_place":
        return "in_place"
    _refuse(f"system_messages must be 'merge' or 'in_place', got {mode!r}")


def _hosted(tools: object) -> tuple[dict[str, object], ...]:
    kind = type(tools).__name__
    if isinstance(tools, str | bytes) or not isinstance(tools, Sequence):
        _refuse(f"hosted_tools must be a sequence of mappings, got {kind}")
    given = cast("Sequence[object]", tools)
    return tuple(
        snapshot(f"hosted_tools[{number}]", tool, provider=NAME)
        for number, tool in enumerate(given)
    )


def _add_extra(fields: dict[str, object], extra: Mapping[str, object]) -> None:
    taken = sorted(_RESERVED & extra.keys())
    if taken:
        _refuse(f"extra_body must not hold {taken[0]!r}: Lighter sets it")
    for key, value in extra.items():
        known = fields.get(key)
        if key == "output_config" and known and isinstance(value, Mapping):
            ours = cast("Mapping[str, object]", known)
            value = {**ours, **cast("Mapping[str, object]", value)}  # noqa: PLW2901
        fields[key] = value


def secrets_of(api_key: str | None, client: AsyncAnthropic | None) -> tuple[str, ...]:
    """Return the key, or what a given client authenticates with."""
    if client is None:
        return (need_key(api_key, variable="ANTHROPIC_API_KEY", provider=NAME),)
    known: list[object] = [
        getattr(client, "api_key", None),
        getattr(client, "auth_token", None),
    ]
    return tuple(each for each in known if isinstance(each, str) and each)
