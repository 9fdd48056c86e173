r"""A process that uses a store; started by the checks.

python -m lighter_conformance.stores._child \
    FACTORY ARGUMENT append SESSION COUNT TEXT [SIZE]
"""

from __future__ import annotations

import asyncio
import sys

from lighter_core import SessionConflictError, SessionNotFoundError
from lighter_core.sessions import Store

from ._registry import make_store
from ._steps import said

__all__ = ["append"]


async def append(store: Store, session_id: str, *texts: str) -> None:
    """Append user messages, again after each conflict."""
    while True:
        try:
            after = (await store.load(session_id)).info.head
        except SessionNotFoundError:
            after = None
        try:
            await store.append(session_id, said(*texts), after=after)
        except SessionConflictError:
            continue
        return


async def _main(
    factory: str,
    argument: str,
    action: str,
    session_id: str,
    count: str,
    text: str,
    size: str = "1",
) -> None:
    if action != "append":
        raise SystemExit(__doc__)
    store = make_store(factory, argument)
    for n in range(int(count)):
        await append(store, session_id, *[f"{text}{n}"] * int(size))
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
