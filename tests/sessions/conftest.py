"""A PostgreSQL server for the whole run, started when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.postgres import Server, running_postgres
from support.servers_setup import Missing


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        with running_postgres() as server:
            yield server
    except Missing as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
