"""The hooks plugin `acme-policy`: a gate before tools.

The variable `ACME_DENIED_TOOLS` names the tools that may not run, with commas between.
A gate answers a call itself to deny it. Should it raise, the run fails and the tool
does not run either.
"""

from __future__ import annotations

import os

from lighter_core import ToolCall, ToolMessage, hookimpl

PLUGIN_API = 1


class Policy:
    """Denies tools by their names, without regard to case."""

    @hookimpl.before_tool
    def deny(self, call: ToolCall) -> ToolMessage | None:
        """Answer a call of a denied tool; let every other pass."""
        listed = os.environ.get("ACME_DENIED_TOOLS", "")
        denied = {name.strip().casefold() for name in listed.split(",")}
        if call.tool_name.casefold() not in denied:
            return None
        return ToolMessage(
            call_id=call.call_id,
            tool_name=call.tool_name,
            tool_output="denied by policy: do not try again, tell the user",
            is_error=True,
        )


policy = Policy()
"""What the entry point names: an object may be a plugin as well as a module."""
