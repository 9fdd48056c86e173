"""The comparison measures only runners that do all of the work, each with the same."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROTOCOLS = ("responses", "chat", "messages")
SCENARIOS = ("text", "tools-3", "stream-20", "paced-5", "history-8", "3x2")

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


def module(name: str) -> Any:
    """A module of the benchmarks, which are no distribution."""
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"benchmarks.{name}")
    finally:
        sys.path.remove(str(ROOT))


work = module("compare.work")
worker = module("compare.worker")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The mock service, in a process of its own."""
    with module("compare.measuring").service() as url:
        yield url


def measured(runner: Any, *scenarios: str) -> list[dict[str, Any]]:
    """One measurement of each, as the process of a runner makes them."""
    with asyncio.Runner() as loop:
        try:
            return [
                worker.measure(loop, runner, {}, {"scenario": each, "times": 1})
                for each in scenarios
            ]
        finally:
            client = getattr(runner, "_client", None)
            if client is not None:
                loop.run(client.aclose())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["httpx2", "plain"])
def test_a_runner_that_does_the_work_is_measured(
    name: str, protocol: str, url: str
) -> None:
    """Text, calls, deltas, history, and runs at the same time: all of it is right."""
    runner = module(f"compare.runners.{name}").make(protocol, url)
    for found in measured(runner, *SCENARIOS):
        assert "left_out" not in found
        assert found["cpu"] >= 0
        assert found["peak_mb"] > 1


@pytest.mark.parametrize(
    ("scenario", "fault", "why"),
    [
        ("text", "text", "the text"),
        ("stream-20", "delta", "19 of 20 deltas"),
        ("tools-3", "values", "tool calls with the right values"),
        ("tools-3", "call", "2 tool calls with the right values, not 3"),
        ("history-8", "history", "400"),
    ],
)
def test_a_runner_that_leaves_some_of_it_out_is_named_with_the_reason(
    scenario: str, fault: str, why: str, url: str
) -> None:
    """A figure for less work would be a figure for something else."""
    plain = module("compare.runners.httpx2").make("responses", url)

    class Cheat:
        _client = plain._client

        def prepare(self, model: str, items: list[Any]) -> Any:
            kept = items[4:] if fault == "history" else items
            return plain.prepare(model, kept)

        async def run(self, prepared: Any) -> Any:
            out = await plain.run(prepared)
            if fault == "text":
                out.text = out.text[:-1]
            if fault == "values":
                out.calls[0] = (7, 7)
            if fault == "call":
                out.calls.pop()
            return out

        async def stream(self, prepared: Any) -> Any:
            out = await plain.stream(prepared)
            out.deltas.pop()
            return out

    try:
        (found,) = measured(Cheat(), scenario)
    except Exception as error:  # the service refuses; the process reports it
        found = {"left_out": str(error)}
    assert why in found["left_out"]


def test_results_of_another_language_are_checked_too() -> None:
    """What a runner on Node.js sends back goes through the same proof."""
    checked = module("compare.turns").checked
    what = work.scenario("tools-2")
    good = {"text": work.ANSWER, "deltas": [], "calls": [[0, 0], [1, 1]]}
    assert checked(what, 1, {"cpu": 1.0, "done": [good]}) == {"cpu": 1.0}
    bad = {**good, "calls": [[0, 0]]}
    assert "left_out" in checked(what, 2, {"cpu": 1.0, "done": [good, bad]})
    assert checked(what, 2, {"cpu": 1.0, "done": [good]})["left_out"] == (
        "not every run was done"
    )


def cell(cpu: float, ratio: float) -> dict[str, float]:
    return {"cpu": cpu, "ratio": ratio, "wall": cpu, "peak_mb": 50.0}


def test_figures_of_several_measurements_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own ratio; the page shows medians, dashes and reasons."""
    figures, page = module("compare.figures"), module("compare.page")
    monkeypatch.setattr(figures, "PATH", tmp_path / "figures.json")
    found = figures.none()
    found["peer_versions"] = {"agno": {"agno": "9.9"}, "llm": {"llm": "8.8"}}
    found["load"] = [1.0]
    first = {"sdk": [cell(2.0, 1.0)], "lighter": [cell(1.0, 0.5)], "llm": "it fell"}
    figures.put(found, "responses", "text", first)
    figures.write(found)
    again = figures.read()
    figures.put(again, "responses", "text", {"agno": [cell(9.0, 3.0), cell(3, 1.5)]})
    assert figures.has(again, "responses", "text", ["sdk", "lighter", "agno"])
    assert not figures.has(again, "responses", "text", ["sdk", "httpx2"])
    assert not figures.has(again, "chat", "text", ["sdk"])
    (tmp_path / "performance.md").write_text(f"a\n{page.BEGIN}\nold\n{page.END}\nb\n")
    page.write(again, tmp_path)
    written = (tmp_path / "performance.md").read_text()
    assert written.startswith("a\n")
    assert written.endswith("b\n")
    assert "| **Lighter** | 0.50 |\n| its target | ≤ 0.60 |" in written
    assert "| agno 9.9 | 2.25 |" in written
    assert "| llm 8.8 | \N{EN DASH} |" in written
    assert "- Left out of `text`: llm 8.8: it fell" in written
    assert "old" not in written
    assert (tmp_path / "performance.svg").read_text().count("<title>") == 3
