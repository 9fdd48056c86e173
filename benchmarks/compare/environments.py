"""The peers' environments: one each, since their requirements exclude each other."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Peer:
    """A peer and what has to be installed for it."""

    requirements: tuple[str, ...]
    protocols: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The distributions whose versions are shown."""
        return tuple(
            each.partition("==")[0].partition("[")[0] for each in self.requirements
        )


PEERS = {
    "pydantic_ai": Peer(
        ("pydantic-ai-slim[openai,anthropic]==2.68.0",),
        ("responses", "chat", "messages"),
    ),
    "openai_agents": Peer(("openai-agents==0.24.0",), ("responses", "chat")),
    "langchain": Peer(
        ("langchain==1.5.2", "langchain-openai==1.7.4", "langchain-anthropic==1.7.10"),
        ("responses", "chat", "messages"),
    ),
    "agno": Peer(
        ("agno==3.1.10", "openai==3.57.0", "anthropic==2.14.0"),
        ("responses", "chat", "messages"),
    ),
}
LEFT_OUT = {
    "strands": "no runner is written yet",
    "llm": "no runner is written yet",
    "smolagents": "no runner is written yet",
    "Vercel AI SDK, pi-agent-core (Node)": "no runner is written yet",
}


def chosen(names: str) -> list[str]:
    """Return the peers that are asked for.

    Raises:
        SystemExit: For a name that there is none of.
    """
    wanted = (
        list(PEERS) if names == "all" else [each for each in names.split(",") if each]
    )
    unknown = [each for each in wanted if each not in PEERS]
    if unknown:
        raise SystemExit(f"no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    return wanted


def python_of(name: str) -> Path | str:
    """Return the interpreter of a peer's environment, made now; else why there is none."""
    folder = ROOT / f".venv-bench-{name.replace('_', '-')}"
    python = folder / "bin" / "python"
    done = folder / ".made"
    wanted = "\n".join(PEERS[name].requirements)
    if done.exists() and done.read_text() == wanted:
        return python
    uv = Path(sys.executable).parent / "uv"
    command = str(uv) if uv.exists() else "uv"
    for step in (
        [
            command,
            "venv",
            "--quiet",
            "--clear",
            "--python",
            sys.executable,
            str(folder),
        ],
        [
            command,
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python),
            *PEERS[name].requirements,
        ],
    ):
        try:
            ended = subprocess.run(
                step, cwd=ROOT, stdin=subprocess.DEVNULL, check=False
            )
        except FileNotFoundError:
            return "uv is needed to install it"
        if ended.returncode:
            return "it could not be installed"
    done.write_text(wanted)
    return python
