"""Every provider of this repository keeps the contract."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from support.conformance_cases import FakeCase, ReplayCase, echo_class

from lighter_conformance import (
    Case,
    ChatWire,
    ClassCase,
    ContractViolation,
    NamedCase,
    NotApplicable,
    all_checks,
    run_check,
)
from lighter_core import ModelError, ModelRequest, UserMessage
from lighter_core.fallback import FallbackProvider
from lighter_core.retry import RetryProvider
from lighter_openai import OpenAIChatProvider

SERVICES = ("claude", "deepseek", "openai", "openai-chat")
CASES: dict[str, Case] = {
    **{name: NamedCase(name) for name in SERVICES},
    "fake": FakeCase(),
    "replay": ReplayCase(),
    "fake-retry": FakeCase(RetryProvider, name="fake-retry"),
    "fake-fallback": FakeCase(
        lambda provider: FallbackProvider([provider]), name="fake-fallback"
    ),
    "retry": ClassCase(
        lambda **options: RetryProvider(OpenAIChatProvider(**options), wait=0.01),
        {"max_retries": 0, "model_id": "test-model"},
        name="retry",
        wire=ChatWire(),
        lacks=["model_id"],
    ),
    "fallback": ClassCase(
        lambda **options: FallbackProvider(
            [OpenAIChatProvider(**options), OpenAIChatProvider(**options)]
        ),
        {"max_retries": 0, "model_id": "test-model"},
        name="fallback",
        wire=ChatWire(),
        lacks=["model_id"],
    ),
    "echo": ClassCase(echo_class(), name="echo", has=["validates"]),
    "local": NamedCase(
        "local",
        {"model_id": "smollm2", "max_output_tokens": 200, "context_size": 1024},
        has=["validates"],
        prompt="Answer with one word: capital of France?",
    ),
}


@pytest.fixture(scope="session")
def local_model():
    """Keep the small model loaded, or skip, saying how to get it."""
    from lighter_local._models import SMOLLM2, find_model

    try:
        find_model(SMOLLM2.alias)
    except ModelError:
        pytest.skip("no local model: run `python -m lighter_local fetch`")
    holder = CASES["local"].make()
    request = ModelRequest([UserMessage("Say yes.")])
    asyncio.run(holder.invoke(request))
    yield
    asyncio.run(holder.aclose())


AROUND = {"streams", "lifecycle", "secrets"}
"""What a provider around another can break; the rest is the other's own."""

READS = ("replay", "import-is-light")
"""It reads its file when it is made; a test below says what it loads for that."""

PAIRS = [
    pytest.param(name, check, id=f"{name}-{check.id}")
    for name, case in CASES.items()
    for check in all_checks()
    if not any(map(case.why_not, check.needs))
    if name not in {"retry", "fallback"} or check.family in AROUND
    if (name, check.id) != READS
]


@pytest.mark.parametrize(("name", "check"), PAIRS)
def test_it_keeps_the_contract(
    name: str, check, request: pytest.FixtureRequest
) -> None:
    """One check, on a fresh event loop."""
    if name == "local":
        request.getfixturevalue("local_model")
    try:
        run_check(check, CASES[name])
    except NotApplicable as reason:
        pytest.skip(str(reason))


def test_replay_loads_what_reads_messages_and_nothing_else() -> None:
    """No SDK and no transport: the recording is checked at once, by pydantic-core."""
    name, id_ = READS
    (check,) = (each for each in all_checks() if each.id == id_)
    with pytest.raises(ContractViolation) as caught:
        run_check(check, CASES[name])
    assert "imported: ['pydantic_core', 'typing_extensions']" in str(caught.value)


def test_the_services_skip_nothing() -> None:
    """Each check is tried on each of Lighter's adapters; others have a good many."""
    tried = Counter(param.values[0] for param in PAIRS)
    everything = len(all_checks())
    assert {name: tried[name] for name in SERVICES} == dict.fromkeys(
        SERVICES, everything
    )
    assert all(tried[name] >= 15 for name in CASES), tried


def test_there_are_enough_checks() -> None:
    """Their ids differ, and each states its contract in a sentence."""
    checks = all_checks()
    assert len(checks) >= 60
    assert len({check.id for check in checks}) == len(checks)
    assert [check.number for check in checks] == list(range(1, len(checks) + 1))
    for check in checks:
        assert check.contract.endswith("."), check.id
