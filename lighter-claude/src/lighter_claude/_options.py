"""The options that end up in every request, checked when the provider is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NoReturn, TypedDict, cast, get_args

from lighter_core import ModelError
from lighter_core.adapters import Transport, need_integer, need_key, snapshot

from ._answers import StructuredOutput
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
    structured_output: StructuredOutput
    hosted_tools: Sequence[Mapping[str, object]]
    recover: bool
    base_url: str | None
    timeout: float | httpx2.Timeout | None
    max_retries: int | None
    client: AsyncAnthropic | None
    http_client: httpx2.AsyncClient | None
    transport: Transport | None
    extra_headers: Mapping[str, str] | None
    extra_body: Mapping[str, object] | None


def request_options(
    *,
    max_output_tokens: int,
    thinking: Mapping[str, object] | None,
    effort: str | None,
    cache: object,
    system_messages: object,
    structured_output: object,
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
        structured_output=_answer_mode(structured_output, fields),
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


def _answer_mode(mode: object, fields: Mapping[str, object]) -> StructuredOutput:
    known = get_args(StructuredOutput)
    if mode not in known:
        words = ", ".join(map(repr, known))
        _refuse(f"structured_output must be one of {words}, got {mode!r}")
    if mode == "tool" and thinks(fields):
        _refuse(
            "structured_output='tool' cannot work with thinking: the service forces no"
            " tool on a model that thinks; take 'auto' or 'instruction'"
        )
    return cast("StructuredOutput", mode)


def thinks(fields: Mapping[str, object]) -> bool:
    """Tell whether the fields of a request switch thinking on."""
    thinking = fields.get("thinking")
    if not isinstance(thinking, Mapping):
        return False
    return cast("Mapping[str, object]", thinking).get("type") != "disabled"


def _hosted(tools: object) -> tuple[dict[str, object], ...]:
    kind = type(tools).__name__
    if isinstance(tools, str | bytes) or not isinstance(tools, Sequence):
        _refuse(f"hosted_tools must be a sequence of mappings, got {kind}")
    found: list[dict[str, object]] = []
    names: set[object] = set()
    for number, tool in enumerate(cast("Sequence[object]", tools)):
        where = f"hosted_tools[{number}]"
        definition = snapshot(where, tool, provider=NAME)
        # Toolsets have no name, so it may be absent.
        for key in ("type", "name") if "name" in definition else ("type",):
            value = definition.get(key)
            wrong = not isinstance(value, str) or not value.strip()
            if wrong or (key == "type" and value in {"custom", "function"}):
                _refuse(
                    f"{where} needs the {key!r} of one of the service's own tools, got"
                    f" {value!r}; functions are the agent's `tools`"
                )
        name = definition.get("name")
        if name is not None and name in names:
            _refuse(f"{where} has the name {name!r}, as one before it has")
        names.add(name)
        found.append(definition)
    return tuple(found)


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
