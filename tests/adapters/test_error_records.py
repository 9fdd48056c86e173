"""What stands in the log of a request that failed inside the SDK."""

from __future__ import annotations

import logging
import traceback

import pytest
from support.interfaces import failure
from support.loopback import JSON_TYPE, Answer

both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


@both
async def test_a_record_says_where_it_failed(server, make, caplog, streamed):
    """The SDK's own lines, for whoever looks for a fault there."""
    caplog.set_level(logging.DEBUG, logger="lighter")
    server.script(Answer(429, JSON_TYPE, b"{}"))
    error = await failure(make(), streamed=streamed)
    assert error.code == "rate_limit"
    (text,) = [m for m in caplog.messages if "inside the SDK" in m]
    assert "RateLimitError" in text
    assert "_sender.py" in text


@both
async def test_a_traceback_that_cannot_be_written_hides_no_error(
    server, make, caplog, monkeypatch, streamed
):
    """Python 3.11 parses the lines that it shows, and fails when the collector of
    garbage runs code that does so too: "AST constructor recursion depth mismatch".
    """

    def fail(*_: object, **__: object) -> list[str]:
        raise SystemError("AST constructor recursion depth mismatch")

    caplog.set_level(logging.DEBUG, logger="lighter")
    monkeypatch.setattr(traceback, "format_exception", fail)
    server.script(Answer(429, JSON_TYPE, b"{}"))
    error = await failure(make(), streamed=streamed)
    monkeypatch.undo()
    assert error.code == "rate_limit"
    (text,) = [m for m in caplog.messages if "inside the SDK" in m]
    assert "RateLimitError" in text
