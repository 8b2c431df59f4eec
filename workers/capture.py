"""A command's output on its way from a pipe to a bounded log file. Standard library only.

Must not know what the bytes mean: they pass through as they are. The first half of the cap is written at once, so
that `logs -f` has something to read; the last half is kept in memory and follows at the end.
"""

from __future__ import annotations

import errno
import os
import stat

PIECE = 65536
MASK = b"***"
ROUND = 32  # pieces read in one turn, so that messages are heard under a flood of output

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}


def open_log(path: str) -> int | None:
    """Open a log for appending, mode 0600, never through a symlink. None when the disk takes nothing any more.

    Raises OSError when the log cannot be there at all (no folder, no right, not a file).
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in _FULL:
            return None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return fd


class Capture:
    """Reads the pipe `source` into the log `sink`. Owns both descriptors.

    Memory: half the cap and one piece, whatever the command writes. `total` and `dropped` count bytes. `secrets`
    (the longest first) are masked on the way; the last bytes are held back as long as they may begin one.
    """

    def __init__(self, source: int, sink: int | None, cap: int, secrets: list[bytes] | None = None) -> None:
        os.set_blocking(source, False)
        self.source: int | None = source
        self.total = 0
        self._sink = sink
        self._lost = 0  # what the disk did not take
        self._room = cap - cap // 2
        self._size = cap // 2
        self._tail = bytearray()
        self._at = 0  # where the oldest byte of a full ring is
        self._fed = 0  # bytes that went into the ring
        self._last = b"\n"
        self._secrets = [secret for secret in secrets or () if secret]
        self._held = b""

    @property
    def dropped(self) -> int:
        """Bytes that the cap or the disk left out."""
        return self._fed - len(self._tail) + self._lost

    def read(self, rounds: int = ROUND) -> bool:
        """Take what is there, without waiting. True when something was. Closes the source at its end."""
        before = self.total
        for _ in range(rounds):
            if self.source is None:
                break
            try:
                piece = os.read(self.source, PIECE)
            except BlockingIOError:
                break
            if not piece:
                self._close_source()
                break
            self._take(piece)
        return self.total > before

    def finish(self) -> None:
        """Take the rest of a pipe whose writers are gone, append the kept end, close."""
        self.read(rounds=4 * ROUND)  # bounded: a writer outside the tree could hold the pipe
        self._close_source()
        held, self._held = self._held, b""
        self._pass(held)
        left_out = self._fed - len(self._tail)
        if left_out:
            self._write(
                (b"" if self._last == b"\n" else b"\n") + b"[dagward: %d bytes left out]\n" % left_out, ours=True
            )
        view = memoryview(self._tail)
        self._write(view[self._at :])
        self._write(view[: self._at])
        if self._sink is not None:
            os.close(self._sink)
            self._sink = None

    def _take(self, piece: bytes) -> None:
        self.total += len(piece)
        self._pass(self._masked(piece) if self._secrets else piece)

    def _masked(self, piece: bytes) -> bytes:
        piece = self._held + piece
        for secret in self._secrets:
            piece = piece.replace(secret, MASK)
        keep = len(self._secrets[0]) - 1
        self._held = piece[len(piece) - keep :] if 0 < keep < len(piece) else piece if keep else b""
        return piece[: len(piece) - len(self._held)]

    def _pass(self, piece: bytes) -> None:
        head = piece[: self._room]
        if head:
            self._room -= len(head)
            self._write(head)
            self._last = head[-1:]
        rest = piece[len(head) :]
        if rest:
            self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        self._fed += len(piece)
        piece = piece[-self._size :] if self._size else b""
        grow = piece[: self._size - len(self._tail)]
        self._tail += grow
        piece = piece[len(grow) :]
        while piece:
            part = piece[: self._size - self._at]
            self._tail[self._at : self._at + len(part)] = part
            self._at = (self._at + len(part)) % self._size
            piece = piece[len(part) :]

    def _write(self, data: bytes | memoryview, ours: bool = False) -> None:
        view = memoryview(data)
        while view:
            try:
                done = os.write(self._sink, view) if self._sink is not None else 0
            except OSError:  # disk full: the command goes on, its output does not
                done = 0
            if done == 0:
                self._lost += 0 if ours else len(view)
                return
            view = view[done:]

    def _close_source(self) -> None:
        if self.source is not None:
            os.close(self.source)
            self.source = None
