"""Process duties of Linux that Python has no name for: end with the parent, adopt orphans.

Elsewhere both do nothing, and `doctor` says so. Must not know what the processes are for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def follow_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Get `number` when the parent ends. A parent that ended before is noticed too: the signal comes at once."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parents end (subreaper), so that they can be found and killed."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
