"""The contract of session stores, as checks that run against any of them.

```python
@pytest.mark.parametrize("check", all_store_checks(), ids=str)
def test_contract(check, tmp_path):
    case = StoreCase("acme_store:AcmeStore", lambda place: str(place / "chats"))
    run_store_check(check, case, tmp_path)
```
"""

from __future__ import annotations

from ._registry import (
    StoreCase,
    StoreCheck,
    StoreViolation,
    all_store_checks,
    run_store_check,
)

__all__ = [
    "StoreCase",
    "StoreCheck",
    "StoreViolation",
    "all_store_checks",
    "run_store_check",
]
