"""What pytest loads in every run: the options. The checks come when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["pytest_addoption", "pytest_configure"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("lighter", "the contract of Lighter's providers")
    group.addoption(
        "--lighter-provider",
        metavar="NAME|module:factory",
        help="check this provider: the name of an installed plugin, or a function"
        " that makes a provider or a lighter_conformance.Case",
    )
    group.addoption(
        "--lighter-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option for the provider, as JSON or as plain text; may be repeated",
    )
    group.addoption(
        "--lighter-wire",
        metavar="chat|messages|responses",
        help="the interface that the provider speaks, so that its service can be played",
    )
    group.addoption(
        "--lighter-lacks",
        action="append",
        default=[],
        metavar="TRAIT",
        help="something the provider does not do, e.g. reasoning; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the checks if a provider is named."""
    if config.getoption("--lighter-provider"):
        from ._collect import Collection

        config.pluginmanager.register(Collection(config), "lighter-conformance-checks")
