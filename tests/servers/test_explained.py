"""An explanation is what the request says of itself, for generated histories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import hand_over
from support.histories import ANY_HISTORIES, valid_histories
from support.servers import NAMES, check_explained, make_model
from support.torture import examples

from lighter_core import AssistantMessage, Message, Model, explain_replay

REPLIES = [
    each
    for source in hand_over.SOURCES
    for row in hand_over.ROWS
    if (each := hand_over.reply(source, row)) is not None
]


def models(name: str) -> list[Model]:
    """Return models at an address of their own, and where the replies came from."""
    here = make_model(name, "http://127.0.0.1:9")
    same = [
        Model(make("m")) for made, make in hand_over.SOURCES.items() if made == name
    ]
    return [here, *same]


@pytest.mark.parametrize("name", NAMES)
def test_generated_histories_are_explained_as_they_are_sent(name: str) -> None:
    """Any mixture of messages, broken or not, replies of real decoders among them."""
    targets = models(name)

    @settings(
        max_examples=examples(150),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        ANY_HISTORIES | valid_histories(),
        st.lists(st.sampled_from(REPLIES), max_size=3),
        st.integers(0, 8),
    )
    def check(
        history: list[Message], replies: list[AssistantMessage], place: int
    ) -> None:
        rounds = [m for each in replies for m in hand_over.history_of(each)]
        history = [*history[:place], *rounds, *history[place:]]
        for target in targets:
            check_explained(history, target)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_the_replies_of_others_leave_findings(name: str) -> None:
    """Else the test above might compare nothing with nothing."""
    (target, *_) = models(name)
    rounds = [m for each in REPLIES for m in hand_over.history_of(each)]
    kinds = {each.kind for each in explain_replay(rounds, target)}
    assert kinds == {"dropped", "rewritten"}
