"""The tools plugin `acme-books`."""

from __future__ import annotations

from typing import TypedDict

from lighter_core import Tool, ToolError, hookimpl, tool

PLUGIN_API = 1

_PRICES = {"Moby-Dick": 12, "Emma": 9, "Walden": 7}


class Book(TypedDict):
    """A book of the store, with its price in crowns."""

    title: str
    price: int


@tool
def find_book(words: str) -> list[Book]:
    """Find books by words of their title.

    Args:
        words: Part of a title.
    """
    return [
        Book(title=title, price=price)
        for title, price in _PRICES.items()
        if words.casefold() in title.casefold()
    ]


@tool
def order_book(title: str, copies: int = 1) -> str:
    """Order a book and tell what it costs.

    Args:
        title: The exact title.
        copies: How many.
    """
    if title not in _PRICES:
        raise ToolError(f"there is no book {title!r}; find_book shows what there is")
    return f"{copies} x {title}: {copies * _PRICES[title]} crowns"


@hookimpl.get_tools
def tools() -> list[Tool]:
    """Return the tools."""
    return [find_book, order_book]
