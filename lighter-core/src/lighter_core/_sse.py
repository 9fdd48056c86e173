"""An incremental splitter of event streams (`text/event-stream`).

It follows the parsing rules of the HTML standard, section "Server-sent events", and
keeps the `data` field only: services that Lighter speaks to repeat the event's name
inside the data.
"""

from __future__ import annotations

__all__ = ["EventStreamSplitter"]

_BOM = b"\xef\xbb\xbf"


class EventStreamSplitter:
    """Turns the bytes of an event stream into the data of each event.

    Bytes may be cut anywhere, also inside a character or a line end. Lines end at LF,
    CRLF or CR and nowhere else; data is handed on as bytes, so that decoding cannot
    depend on the cuts. The cost is linear in the number of bytes.
    """

    __slots__ = ("_data", "_first", "_pieces", "_skip_lf")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # an unfinished line
        self._data: list[bytes] = []  # data lines of the unfinished event
        self._skip_lf = False  # the last byte was a CR: a LF belongs to it
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes; return the data of the events that they completed."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk[-1:] == b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        if self._pieces:
            self._pieces.append(chunk)
            chunk = b"".join(self._pieces)
            self._pieces = []
        if self._first:
            self._first = False
            chunk = chunk.removeprefix(_BOM)
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """Return the data of an event whose closing blank line never came.

        Some services leave it out after the last event. Whether the data is whole is
        for the caller's JSON parser to say: no proper prefix of an object parses.
        """
        return self.feed(b"\n\n")

    def _take(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"data":
                data.append(b"")
        return events
