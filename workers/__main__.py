"""`python -m workers`: one worker in this process, as the supervisor starts it. Settings come from the environment."""

from __future__ import annotations

import argparse
import os
import sys

from scheduler import death, errors, logs, settings


def main() -> int:
    """Serve one pool until signalled; an exit code as everywhere."""
    parser = argparse.ArgumentParser(prog="python -m workers")
    parser.add_argument("--pool", default="default")
    parser.add_argument("--plan", default="", help="serve this plan only")
    parser.add_argument("--name", default=f"worker-{os.getpid()}")
    parser.add_argument("--parent", type=int, default=0, help="drain when this process ends")
    arguments = parser.parse_args()
    try:
        if arguments.parent:
            death.follow_parent(arguments.parent)
        loaded = settings.load()
        logs.set_up(loaded.log_level)
        from workers.executor import serve

        return serve(loaded, pool=arguments.pool, name=arguments.name, plan=arguments.plan)
    except errors.DagwardError as error:
        sys.stderr.write(f"error: {error.message}\n{error.hint}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
