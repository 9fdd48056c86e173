"""Making a provider from what an application gave by name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

__all__ = ["make_provider"]

_ProviderT = TypeVar("_ProviderT")


def make_provider(
    make: Callable[..., _ProviderT], name: str, options: Mapping[str, object]
) -> _ProviderT:
    """Call a provider's class with the options; the body of most `create_provider`s.

    Args:
        make: The class; its keyword arguments are the options.
        name: The name that the application asked for.
        options: What it passed.

    Raises:
        TypeError: For an option that there is not, naming those that there are.

    Example:
        ```python
        @hookimpl
        def create_provider(name: str, options: Mapping[str, object]) -> Provider:
            return make_provider(AcmeProvider, name, options)
        ```
    """
    known = sorted(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, 1)
            hint = f"did you mean {near[0]!r}? It" if near else "it"
            raise TypeError(
                f"provider {name!r} has no option {option!r}; {hint} has"
                f" {', '.join(known)}"
            )
    return make(**cast("dict[str, Any]", dict(options)))
