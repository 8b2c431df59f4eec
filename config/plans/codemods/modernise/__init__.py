"""A codemod for old idioms: %-formatting, `== None`, bare `except` and `os.path`.

Run it as `python -m tools.modernise FILE ...` from the top of a repository. It changes files in place, knows nothing
of dagward beyond the environment variables that it reads, and keeps the layout of every line that it does not change.
"""
