"""What would become of a history at a provider, said before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .history import check_history, repair_with_origins
from .messages import Message
from .model import Model
from .provider import Provider, ReplayFinding, replay_report_of

__all__ = ["explain_replay"]


def explain_replay(
    messages: Sequence[Message], provider: Provider | Model
) -> list[ReplayFinding]:
    """Return what would be dropped, rewritten or refused if the history were sent.

    First comes what `check_history` finds, as refused: a run of an agent repairs it on
    a copy, a direct call of a provider fails. Then comes what the provider says of the
    repaired history, with the places of the messages that were given. Nothing is sent
    and nothing is changed. Hooks, which may change a request, are not asked.

    A provider that is no `SupportsReplayReport` cannot be asked: then only native
    context of other providers is named.

    Args:
        messages: A history, valid or not, without the agent's system prompt.
        provider: Whom it is for.

    Raises:
        TypeError: When something is no message, or the provider is none.

    Example:
        ```python
        for finding in explain_replay(history, ClaudeProvider()):
            print(finding.path, finding.kind, finding.text)
        ```
    """
    target: object = provider.provider if isinstance(provider, Model) else provider
    if not isinstance(target, Provider) or isinstance(target, type):
        raise TypeError(f"explain_replay takes a Provider or a Model, got {provider!r}")
    found = [
        ReplayFinding(
            problem.path,
            "refused",
            f"{problem.text}: every service refuses that; Agent.run repairs it, as"
            " repair_history does",
        )
        for problem in check_history(messages)
    ]
    repaired, origins = repair_with_origins(messages)
    found += [
        replace(each, path=_original(each.path, origins))
        for each in replay_report_of(target, repaired.messages)
    ]
    return list(dict.fromkeys(found))


def _original(path: str, origins: Sequence[str]) -> str:
    """Return a place of the repaired history as one of the given history."""
    head, bracket, rest = path.partition("[")
    number, _, rest = rest.partition("]")
    if head != "messages" or not bracket or not number.isdigit():
        return path
    origin = origins[int(number)]
    made_up = origin.endswith("]") and ".tool_calls[" in origin
    return origin if made_up else f"{origin}{rest}"
