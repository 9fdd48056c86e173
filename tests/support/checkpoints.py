"""Counts the places where a coroutine waits, and breaks in at a chosen one.

```python
counted = Checkpoints(main())
await counted                     # counted.seen places
await Checkpoints(main(), at=3, act=lambda _: task.cancel())
```
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

__all__ = ["Checkpoints"]


class Checkpoints:
    """A coroutine whose suspensions are counted.

    Args:
        coroutine: It is driven when this object is awaited.
        at: The suspension to break in at, from 0.
        act: Called there, with the future that is waited for (`None` for a bare yield).
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        *,
        at: int | None = None,
        act: Callable[[Any], object] | None = None,
    ) -> None:
        self._coroutine, self._at, self._act = coroutine, at, act
        self.seen = 0
        self.acted = False

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited = inner.send(value) if error is None else inner.throw(error)
            except StopIteration as end:
                return end.value
            here = self.seen == self._at
            self.seen += 1
            value, error = None, None
            if here and self._act is not None:
                self.acted = True
                self._act(waited)
            try:
                value = yield waited
            except BaseException as thrown:
                error = thrown
