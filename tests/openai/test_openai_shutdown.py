"""A stream that is still held when its event loop ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

CODE = """
import asyncio, socket, sys, threading, time
from lighter_core import Agent, Model, ModelRequest, UserMessage

listener = socket.create_server(("127.0.0.1", 0))
ended = threading.Event()
EVENT = (
    b'data: {"type":"response.output_text.delta","item_id":"m",'
    b'"output_index":0,"content_index":0,"delta":"x"}\\n\\n'
)

def serve():
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(
        b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n"
        b"transfer-encoding: chunked\\r\\n\\r\\n"
    )
    try:
        while True:
            connection.sendall(b"%x\\r\\n%s\\r\\n" % (len(EVENT), EVENT))
            time.sleep(0.01)
    except OSError:
        ended.set()
    finally:
        connection.close()

threading.Thread(target=serve, daemon=True).start()
held = []

async def main():
    port = listener.getsockname()[1]
    model = Model.from_name(
        "openai", api_key="none", model_id="m", base_url=f"http://127.0.0.1:{port}/v1",
        transport=sys.argv[2],
    )
    request = ModelRequest([UserMessage("x")])
    streams = {
        "agent": lambda: Agent(model).stream("x"),
        "model": lambda: model.stream(request),
        "provider": lambda: model.provider.stream(request),
    }
    stream = streams[sys.argv[1]]()
    held.append(stream)
    async for _ in stream:
        break

asyncio.run(main())
print("connection ended:", ended.wait(10))
listener.close()
"""


@pytest.mark.parametrize(
    ("level", "transport"),
    [
        ("agent", "httpx2"),
        ("model", "httpx2"),
        ("provider", "httpx2"),
        ("provider", "aiohttp"),
    ],
)
def test_the_end_of_the_loop_ends_the_request_without_a_word(
    level: str, transport: str
) -> None:
    """KF-052: no warning, no "already running", and the service sees the end."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(CODE), level, transport],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.strip() == "connection ended: True"
