"""The hooks plugin `acme-audit`: who called which tool, and how each run ended.

Records go to the logger `lighter_acme_tools.audit`. They hold names, counts and sizes,
never what was said.
"""

from __future__ import annotations

import logging

from lighter_core import AgentResponse, RunContext, ToolMessage, hookimpl

PLUGIN_API = 1

logger: logging.Logger = logging.getLogger("lighter_acme_tools.audit")


@hookimpl.after_tool
def note_result(message: ToolMessage, run: RunContext[object]) -> None:
    """Log a tool call with its result, also one that a gate has denied."""
    logger.info(
        "run %s: tool %s %s, %d characters",
        run.run_id,
        message.tool_name,
        "failed" if message.is_error else "answered",
        len(message.tool_output),
    )


@hookimpl.on_run_end
def note_end(response: AgentResponse[object], run: RunContext[object]) -> None:
    """Log how a run ended; also a cancelled one."""
    logger.info(
        "run %s: %s after %d model calls and %d tool calls",
        run.run_id,
        response.status,
        run.model_calls,
        run.tool_calls,
    )
