"""What an agent brings into every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._chain import HookChain
from .limits import RunLimits
from .messages import SystemMessage
from .provider import Provider
from .requests import ToolSpec
from .tools import Tool

__all__ = ["LoopSetup"]


@dataclass(frozen=True, slots=True)
class LoopSetup:
    """What an agent brings into every run; shared by its runs, never changed."""

    provider: Provider
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    system: SystemMessage | None
    chain: HookChain
    limits: RunLimits
