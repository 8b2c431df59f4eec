"""`python -m scheduler`: one daemon in this process, as the supervisor starts it. Settings come by environment."""

from __future__ import annotations

import argparse
import sys

from scheduler import errors, logs, settings
from scheduler.death import follow_parent


def main() -> int:
    """Serve until signalled; an exit code as everywhere."""
    parser = argparse.ArgumentParser(prog="python -m scheduler")
    parser.add_argument("--only", default="", help="serve this plan only")
    parser.add_argument("--parent", type=int, default=0, help="end when this process ends")
    arguments = parser.parse_args()
    try:
        if arguments.parent:
            follow_parent(arguments.parent)
        loaded = settings.load()
        logs.set_up(loaded.log_level)
        from scheduler.daemon import serve

        serve(loaded, arguments.only)
    except errors.DagwardError as error:
        sys.stderr.write(f"error: {error.message}\n{error.hint}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
