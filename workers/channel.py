"""Messages between worker and guard: one JSON object a line over a stream socket. Standard library only.

Must not know what the messages mean. Each message is framed by a newline on both sides: a horse that died in the
middle of a line spoils that line only, and the next horse on the same socket starts clean. Nothing here blocks.
"""

from __future__ import annotations

import json
import os

LIMIT = 1 << 20
BACKLOG = 4 * LIMIT

Message = dict[str, object]


class Channel:
    """One end of the socket `fd`. `closed` turns true at end of file, ECONNRESET, EPIPE or a full backlog."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.closed = False
        self.refused = 0  # lines that were no messages
        self._read = bytearray()
        self._unsent = bytearray()
        self._skipping = False

    @property
    def pending(self) -> bool:
        """True while a message waits for room in the socket."""
        return bool(self._unsent) and not self.closed

    def send(self, message: Message) -> None:
        """Hand one message to the socket, or keep it for the next `flush`. Raises ValueError beyond 1 MiB."""
        line = json.dumps(message, separators=(",", ":")).encode("ascii")
        if len(line) > LIMIT:
            raise ValueError(f"a message of {len(line)} bytes is larger than {LIMIT}")
        self._unsent += b"\n" + line + b"\n"
        self.flush()
        if len(self._unsent) > BACKLOG:
            self.closed = True

    def flush(self) -> None:
        """Write what waits, as far as the other end takes it."""
        while self._unsent and not self.closed:
            try:
                done = os.write(self.fd, self._unsent)
            except BlockingIOError:
                return
            except OSError:  # EPIPE, ECONNRESET: the other end is gone
                self.closed = True
                return
            del self._unsent[:done]

    def receive(self) -> list[Message]:
        """All whole messages that have arrived. What came before the end is delivered before `closed` counts."""
        for _ in range(64):
            try:
                piece = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            except OSError:  # the other end died with unread answers: ECONNRESET instead of end of file
                piece = b""
            if not piece:
                self.closed = True
                break
            self._read += piece
        return self._whole()

    def forget(self) -> None:
        """Drop what has arrived but was not read: it came from a horse that is dead."""
        self.receive()
        self._read.clear()
        self._skipping = False

    def _whole(self) -> list[Message]:
        *lines, rest = bytes(self._read).split(b"\n")
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        if len(rest) > LIMIT:
            self._skipping, rest = True, b""
            self.refused += 1
        self._read = bytearray(rest)
        return [message for message in map(self._parse, lines) if message is not None]

    def _parse(self, line: bytes) -> Message | None:
        if not line:
            return None
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("op"), str):
            return value
        self.refused += 1
        return None


def note(text: str) -> None:
    """One line of this process on stderr; silent when nobody reads it any more."""
    try:
        os.write(2, f"dagward guard {os.getpid()}: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return
