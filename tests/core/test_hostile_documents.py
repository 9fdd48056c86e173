"""Mutated documents: a documented error or messages, quickly, and nothing else happens."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DOCUMENTS = 10_000
GOLDEN = Path(__file__).parent / "golden" / "history-v1.json"

CHILD = """
import resource, sys, time, json, urllib.parse
from lighter_core import HistoryError, check_history, messages_from_json, messages_to_json
from lighter_core.messages import MESSAGE_CLASSES

limit = 200 * 2**20
golden = messages_from_json(open(sys.argv[1], "rb").read())  # loads what comes late
assert messages_from_json(messages_to_json(golden)) == golden
repr(golden), check_history(golden), check_history(golden[::-1]), hash(tuple(golden))
urllib.parse.urlsplit("http://[::1]/")  # the standard library loads ipaddress for it
try:
    messages_from_json(b'{"version":2}')
except HistoryError:
    pass
messages_from_json(b'{"version":1,"messages":[{"role":"user","content":"\\\\ud800"}]}')
before = set(sys.modules)
resource.setrlimit(resource.RLIMIT_AS, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 * 8 + limit,) * 2)
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
events = []
ready = False
def audit(event, arguments):
    if ready and event in {"import", "open", "exec", "compile", "os.system",
                           "subprocess.Popen", "socket.connect", "pickle.find_class"}:
        events.append((event, str(arguments)[:80]))
sys.addaudithook(audit)
read = refused = 0
slowest = 0.0
for line in sys.stdin.buffer:
    document = bytes.fromhex(line.decode())
    ready = True
    start = time.process_time()
    try:
        messages = messages_from_json(document)
    except HistoryError as error:
        refused += 1
        assert str(error) and len(str(error)) < 1000, error
    else:
        read += 1
        assert all(isinstance(each, MESSAGE_CLASSES) for each in messages)
        again = messages_from_json(messages_to_json(messages))
        assert again == messages
        check_history(messages)
    slowest = max(slowest, time.process_time() - start)
    ready = False
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base
print(json.dumps({"read": read, "refused": refused, "slowest": slowest,
                  "grown": grown * 1024, "events": events[:5],
                  "modules": sorted(set(sys.modules) - before)}))
"""


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """Return a document that went wrong in one or several ways."""
    document = rng.choice(seeds)
    for _ in range(rng.randint(1, 3)):
        document = rng.choice(WAYS)(rng, document)
    return document[: 1 << 20]


def _cut(rng: random.Random, document: bytes) -> bytes:
    return document[: rng.randrange(len(document) + 1)]


def _flip(rng: random.Random, document: bytes) -> bytes:
    changed = bytearray(document)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _splice(rng: random.Random, document: bytes) -> bytes:
    at, size = rng.randrange(len(document) + 1), rng.randint(0, 40)
    piece = rng.choice(PIECES)
    return document[:at] + piece + document[at + rng.choice((0, size)) :]


def _repeat(rng: random.Random, document: bytes) -> bytes:
    if not document:
        return b"["
    at = rng.randrange(len(document))
    piece = document[at : at + rng.randint(1, 200)]
    return document[:at] + piece * rng.randint(2, 300) + document[at:]


def _value(rng: random.Random, document: bytes) -> bytes:
    """Replace a value of the parsed document, somewhere."""
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        return document
    places: list[tuple[dict | list, str | int]] = []

    def walk(node: object) -> None:
        if isinstance(node, dict):
            places.extend((node, key) for key in node)
            for each in node.values():
                walk(each)
        elif isinstance(node, list):
            places.extend((node, n) for n in range(len(node)))
            for each in node:
                walk(each)

    try:
        walk(data)
    except RecursionError:
        return document
    if places:
        holder, key = rng.choice(places)
        if rng.random() < 0.2 and isinstance(holder, dict):
            holder[rng.choice(NAMES)] = rng.choice(VALUES)
        elif rng.random() < 0.2:
            del holder[key]  # type: ignore[arg-type]
        else:
            holder[key] = rng.choice(VALUES)  # type: ignore[index,call-overload]
    return json.dumps(data).encode("utf-8", "surrogatepass")


WAYS: list[Callable[[random.Random, bytes], bytes]] = [
    _cut,
    _flip,
    _splice,
    _repeat,
    _value,
    _value,
    _value,
]
PIECES = [
    b"[" * 5000,
    b'{"a":' * 5000,
    b"9" * 5000,
    b"1e400",
    b"-1",
    b"NaN",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\x00",
    b'"version":1,',
    b'"__class__":"os.system",',
    b'"py/object":"os.system","py/reduce":[1],',
    b"cos\nsystem\n(S'true'\ntR.",
    b'{"lc":1,"type":"constructor","id":["os","system"]}',
    b'"' + b"a" * 100_000 + b'"',
]
VALUES: list[object] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x" * 70_000,
    "\ud800",
    [],
    {},
    [[]] * 50,
    {"role": "assistant", "content": ""},
    {"__reduce__": ["os.system", ["true"]]},
    "data:;base64,@@@",
    "file:///etc/passwd",
    "{0.__class__}",
    "[" * 3000,
    "[]",
    '[{"type":"reasoning"}]',
    "system",
    "tool",
]
NAMES = ["role", "type", "native", "items", "__class__", "v", "usage", "data", "url"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
def test_mutated_documents_do_no_harm() -> None:
    """Each below 1 s and 200 MB; no import, no file, no code that a document names."""
    rng = random.Random(20261130)
    seeds = [GOLDEN.read_bytes().strip(), b'{"version":1,"messages":[]}']
    lines = b"".join(
        mutated(rng, seeds).hex().encode() + b"\n" for _ in range(DOCUMENTS)
    )
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(GOLDEN)],
        input=lines,
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    report = json.loads(done.stdout)
    assert report["read"] + report["refused"] == DOCUMENTS
    assert report["read"] > DOCUMENTS / 50  # the mutations leave some alive
    assert report["refused"] > DOCUMENTS / 4
    assert report["events"] == []
    assert report["modules"] == []
    assert report["slowest"] < 1, report
    assert report["grown"] < 200 * 2**20, report
