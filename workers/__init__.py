"""Executes one attempt at a time; knows nothing of other tasks.

`run` renews and serves, `guard` owns process trees, `workspace` owns git and snapshots. Must not decide what runs next.
"""
