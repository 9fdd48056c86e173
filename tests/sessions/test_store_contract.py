"""The contract of stores, tried on each of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.postgres import Server

from lighter_conformance.stores import (
    StoreCase,
    StoreCheck,
    all_store_checks,
    run_store_check,
)

SQLITE = "lighter_core.sessions:SQLiteStore"
SQLALCHEMY = "lighter_sqlalchemy:SQLAlchemyStore"
CHECKS = all_store_checks()


def _file(place: Path) -> str:
    return str(place / "chats.db")


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_sqlite_store(check: StoreCheck, tmp_path: Path) -> None:
    run_store_check(check, StoreCase(SQLITE, _file), tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_sqlalchemy_store_on_sqlite(check: StoreCheck, tmp_path: Path) -> None:
    def url(place: Path) -> str:
        return f"sqlite:///{_file(place)}"

    run_store_check(check, StoreCase(SQLALCHEMY, url), tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_sqlalchemy_store_on_postgresql(
    check: StoreCheck, tmp_path: Path, postgres: Server
) -> None:
    def url(place: Path) -> str:
        return postgres.new_place()

    run_store_check(check, StoreCase(SQLALCHEMY, url), tmp_path)


def test_there_are_enough_checks() -> None:
    """An empty list would pass; names and contracts are unique."""
    assert len(CHECKS) >= 60
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.contract.endswith(".") for check in CHECKS)
