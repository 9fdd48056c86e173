"""Compare JSON parsers on the event lines of recorded streams; prints ratios.

Usage: `python benchmarks/json_decoding.py [FOLDER]`, where FOLDER holds recorded
exchanges as JSON files with a `response.body`. Without recordings it parses two events
written here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jiter
from pydantic_core import from_json

from lighter_core.adapters import EventStreamSplitter

RECORDINGS = Path(__file__).parents[2] / "shared" / "recordings" / "openai-responses"
DELTA = (
    b'{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1",'
    b'"output_index":0,"content_index":0,"delta":" word","logprobs":[]}'
)
DONE = (
    b'{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1",'
    b'"type":"message","role":"assistant","status":"completed","content":['
    b'{"type":"output_text","text":"' + b"word " * 400 + b'","annotations":[]}]}}'
)


def event_lines(folder: Path) -> list[bytes]:
    """Return the data of all events in the recorded streams."""
    lines: list[bytes] = []
    for path in sorted(folder.glob("*.json")):
        response = json.loads(path.read_text("utf-8"))["response"]
        if "event-stream" not in response["headers"].get("content-type", ""):
            continue
        splitter = EventStreamSplitter()
        lines += splitter.feed(response["body"].encode())
        lines += splitter.finish()
    return [line for line in lines if line.startswith(b"{")]


def seconds(parse: Callable[[bytes], object], lines: list[bytes], rounds: int) -> float:
    """Return the best time of several passes over the lines."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for line in lines:
            parse(line)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Print one line for each parser."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS
    lines = event_lines(folder) if folder.is_dir() else []
    kind = "recorded" if lines else "written"
    lines = lines or [DELTA] * 500 + [DONE] * 5
    parsers: dict[str, Callable[[bytes], object]] = {
        "json.loads": json.loads,
        "pydantic_core.from_json": from_json,
        "jiter.from_json": jiter.from_json,
    }
    size = sum(map(len, lines)) / len(lines)
    print(f"{len(lines)} {kind} event lines, {size:.0f} bytes on average")
    times = {name: seconds(parse, lines, 15) for name, parse in parsers.items()}
    for name, taken in times.items():
        ratio = times["json.loads"] / taken
        each = taken / len(lines) * 1e6
        print(f"{name:26} {each:6.2f} µs an event, {ratio:4.1f}x json.loads")


if __name__ == "__main__":
    main()
