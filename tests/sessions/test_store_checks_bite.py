"""The checks of stores find what is wrong with a store."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
from support.broken_stores import FAULTS

from lighter_conformance.stores import (
    StoreCase,
    StoreViolation,
    all_store_checks,
    run_store_check,
)

CHECKS = {check.id: check for check in all_store_checks()}
PAIRS = [(kind, name) for kind, names in FAULTS.items() for name in names]


@pytest.mark.parametrize(
    ("kind", "name"), PAIRS, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_check_finds_the_fault(kind: type, name: str, tmp_path: Path) -> None:
    case = StoreCase(
        f"support.broken_stores:{kind.__name__}", lambda p: str(p / "x.db")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a store leaves behind that never closes
        with pytest.raises(StoreViolation) as caught:
            run_store_check(CHECKS[name], case, tmp_path)
        text = str(caught.value)
        del caught
        gc.collect()
    assert text.startswith(f"{name} does not hold for support.broken_stores:")
    assert CHECKS[name].contract in text


def test_most_checks_have_a_fault_that_they_find() -> None:
    """The others need a fault of the database, or of the machine."""
    bitten = {name for _, name in PAIRS}
    assert bitten <= CHECKS.keys()
    assert len(bitten) / len(CHECKS) > 0.7, sorted(CHECKS.keys() - bitten)
