"""The hot paths do their work in both trees' ways; time goes to the layer that it is of."""

from __future__ import annotations

import asyncio
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks are no distribution."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.parametrize("group", ["core", "responses", "chat", "messages"])
def test_each_path_does_its_work_between_marks(group: str) -> None:
    """Every path checks what it did; floors that are named are there."""
    paths: Any = importlib.import_module("benchmarks.paths")
    found = paths.paths(group)
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    assert {each.floor for each in found} <= {None, *names}
    for path in found:
        marks: list[None] = []
        paths.run(path, lambda marks=marks: marks.append(None))
        assert len(marks) == 4


def test_a_path_that_leaves_work_out_is_not_counted() -> None:
    """A count of less work would be a count of something else."""
    paths: Any = importlib.import_module("benchmarks.paths")
    handing = paths.Handing(paths._pieces("responses", 19), kind="text/event-stream")
    agent = paths.Agent(handing.provider("responses"))
    wrong = paths.Path("wrong", 1, paths.awaited(lambda: paths._drain(agent, 20)))
    with pytest.raises(SystemExit, match="not all of the work"):
        paths.run(wrong, lambda: None)


def test_a_call_grown_by_a_turn_sends_what_a_new_one_sends() -> None:
    """The path of grown histories sends all of it, not only the turn."""
    paths: Any = importlib.import_module("benchmarks.paths")
    bodies: list[bytes] = []

    class Noting(paths.Handing):
        async def post(self, body: bytes, *, stream: bool) -> Any:
            bodies.append(body)
            return await super().post(body, stream=stream)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "Handing", Noting)
        paths.run(paths.Path("x", 1, lambda n: paths._grown("chat", n)), lambda: None)
    assert all(len(each) > 10_000 for each in bodies)
    assert bodies[1].startswith(bodies[0][: bodies[0].rindex(b"}]") + 1])


def test_histories_are_sent_as_the_service_wrote_them() -> None:
    """A reply that stands in a history twice is not; it would be another path."""
    paths: Any = importlib.import_module("benchmarks.paths")
    handing = paths._whole(paths.body("responses", "text"))
    request = paths.ModelRequest(
        paths._asking(paths.interfaces.conversation("responses", 40))
    )
    asyncio.run(handing.provider("responses").invoke(request))
    assert handing.sent.count(b'"annotations"') == 40


def test_time_is_counted_to_the_layer_of_the_caller() -> None:
    """Built-ins and the standard library's helpers serve whoever called them."""
    profiles: Any = importlib.import_module("benchmarks.profiles")
    core = ("/x/lighter_core/_loop.py", 1, "run_loop")
    adapter = ("/x/lighter_core/adapters/_exchange.py", 1, "_next")
    helper = ("/usr/lib/python3/contextlib.py", 1, "__enter__")
    builtin = ("~", 0, "<built-in method builtins.len>")
    jiter = ("~", 0, "<built-in method jiter.jiter.from_json>")
    circle = ("/usr/lib/python3/copy.py", 1, "deepcopy")

    def entry(own: float, **callers: float) -> Any:
        who = {"core": core, "adapter": adapter, "helper": helper, "circle": circle}
        return (1, 1, own, own, {who[k]: (1, 1, v, v) for k, v in callers.items()})

    found = profiles.shares(
        {
            core: entry(1.0),
            adapter: entry(2.0, core=2.0),
            helper: entry(1.0, core=0.25, adapter=0.75),
            builtin: entry(4.0, helper=4.0),
            jiter: entry(1.0, adapter=1.0),
            circle: entry(1.0, circle=0.5, core=0.5),
        }
    )
    assert found == {
        "core": pytest.approx((1 + 0.25 + 1 + 1) / 10),
        "adapter": pytest.approx((2 + 0.75 + 3) / 10),
        "JSON, pydantic": pytest.approx(0.1),
    }
    layers = {
        ("/v/site-packages/openai/_base_client.py", 1, "post"): "SDK",
        ("/v/site-packages/httpx2/_client.py", 1, "send"): "httpx2",
        ("/v/site-packages/httpcore2/_async/http11.py", 1, "x"): "httpcore2",
        ("/v/site-packages/h11/_connection.py", 1, "x"): "h11",
        ("/v/site-packages/sniffio/_impl.py", 1, "x"): "anyio",
        ("/usr/lib/python3/asyncio/events.py", 80, "_run"): "event loop",
        ("~", 0, "<method 'poll' of 'select.epoll' objects>"): "event loop",
        ("/v/site-packages/distro/distro.py", 1, "x"): "rest",
        ("/x/lighter_claude/_stream.py", 1, "feed"): "adapter",
        ("/usr/lib/python3/contextlib.py", 1, "x"): None,
    }
    assert {each: profiles.layer_of(each) for each in layers} == layers


def test_the_tables_show_both_trees_and_the_floor(tmp_path: Path) -> None:
    """Floors are columns, not rows; the page keeps what stands around its table."""
    instructions: Any = importlib.import_module("benchmarks.instructions")
    now = {
        "a delta": instructions.Count(3000.0, "floor: x"),
        "floor: x": instructions.Count(1000.0, None),
    }
    before = {**now, "a delta": instructions.Count(6000.0, "floor: x")}
    assert instructions.table(now, before)[2:] == [
        "| a delta | 6,000 | 3,000 | 0.50 | 1,000 | 3.0 |"
    ]
    page = tmp_path / "page.md"
    page.write_text("a\nBEGIN\nold\nEND\nb\n")
    instructions.replace(page, "BEGIN", "END", ["new"])
    assert page.read_text() == "a\nBEGIN\n\nnew\n\nEND\nb\n"
    with pytest.raises(SystemExit, match="no checkout"):
        instructions.sources(tmp_path)


@pytest.mark.parametrize("runner", ["sdk", "lighter", "lighter_aiohttp", "httpx2"])
def test_runs_over_the_loopback_are_checked(runner: str) -> None:
    """The program that is counted does all of its work, or ends with what is missing."""
    with importlib.import_module("benchmarks.compare.measuring").service() as url:
        program = [sys.executable, "-m", "benchmarks.loopback", runner, "responses"]
        for scenario, status in (("tools-2", 0), ("stream-20", 0), ("none", 1)):
            done = subprocess.run(
                [*program, scenario, "2", url],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            assert done.returncode == status, done.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not here")
def test_a_count_of_more_work_is_larger(tmp_path: Path) -> None:
    """That of a whole program, with nothing but what it runs."""
    instructions: Any = importlib.import_module("benchmarks.instructions")
    few, many = (
        instructions.counted(
            ["-S", "-c", f"for k in range({n}): str(k)"], str(tmp_path)
        )
        for n in (100, 100_000)
    )
    assert few + 5_000_000 < many
    with pytest.raises(SystemExit, match="no such name"):
        instructions.counted(["-S", "-c", "raise SystemExit('no such name')"], "")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not here")
def test_callgrind_sees_the_marks(tmp_path: Path) -> None:
    """Parts begin where the C library's function is called, and work can be counted."""
    instructions: Any = importlib.import_module("benchmarks.instructions")
    script = (
        "import os\nfor n in (100, 1000):\n os.getsid(0)\n for k in range(n): str(k)"
    )
    _, parts = instructions.callgrind(["-S", "-c", script], str(tmp_path))
    assert len(parts) == 3
    assert 5 * parts[1] < parts[2]
