"""What a docstring says about a function and its parameters."""

from __future__ import annotations

import inspect

__all__ = ["read_docstring"]


def read_docstring(function: object) -> tuple[str, dict[str, str]]:
    """Return the description and the text of each parameter.

    Google, NumPy, reST and Epydoc styles are understood. The description is the summary
    and the long text, without the sections about parameters, results and errors.
    """
    doc = inspect.getdoc(function) if hasattr(function, "__doc__") else None
    if not doc:
        return "", {}
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(doc)
    except ParseError:
        return doc.strip(), {}
    described = [parsed.short_description, parsed.long_description]
    text = "\n\n".join(part.strip() for part in described if part)
    parameters = {
        each.arg_name: " ".join((each.description or "").split())
        for each in parsed.params
    }
    return text, {name: words for name, words in parameters.items() if words}
