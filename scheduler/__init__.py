"""Decides and remembers; never runs an agent, a check or a planner.

`model` holds the values, `lifecycle` the rules, `store` and `scripts` the truth, `daemon` the tick, `cli` the commands.
"""

__version__ = "0.1.0"

DISTRIBUTION = "dagward"
