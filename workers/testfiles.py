"""Which files of a repository hold tests, and which decide how tests are run. By name alone; pure.

Must not read a file.
"""

from __future__ import annotations

import re

_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing", "e2e"})
_NAMES = re.compile(
    r"(?:test_.+|.+_tests?|conftest)\.pyi?|.+[._-](?:test|spec|e2e)s?\.[cm]?[jt]sx?|.+_test\.(?:go|rs|c|cc|cpp|dart|exs)"
    r"|.*(?:Test|Tests|IT|Spec)\.(?:java|kt|kts|scala|groovy|cs|fs|vb|swift|php)|.+_(?:spec|test)\.rb|.+\.(?:bats|t)"
)
_CODE = re.compile(
    r".+\.(?:py|pyi|[cm]?[jt]sx?|go|rs|c|cc|cpp|h|hpp|java|kt|kts|scala|groovy|cs|fs|vb|swift|php|rb|ex|exs|dart|sh|"
    r"bash|bats|pl|t|lua|r|jl)"
)
_RUNNERS = re.compile(
    r"(?:.*/)?(?:pytest\.ini|\.?pytest\.toml|tox\.ini|setup\.cfg|pyproject\.toml|noxfile\.py|conftest\.py|package\.json|Makefile|"
    r"makefile|GNUmakefile|justfile|Justfile|Jenkinsfile|Rakefile|\.gitlab-ci\.yml|\.travis\.yml|azure-pipelines\.yml|"
    r"(?:jest|vitest|karma|cypress|playwright)\.config\.[cm]?[jt]s|[^/]*(?:test|check|lint|ci)[^/]*\.(?:sh|bash))"
    r"|\.github/workflows/[^/]+\.ya?ml|\.circleci/.+\.ya?ml|(?:.*/)?scripts/(?:[^/]*\.(?:sh|bash)|test|check|lint|ci)|"
    r"\.ci/.+|bin/(?:test|check|ci)"
)


def is_test_file(path: str) -> bool:
    """Whether a path (`/` between parts) names a file of tests, or a helper beside them."""
    *folders, name = path.split("/")
    return bool(_NAMES.fullmatch(name)) or (not _FOLDERS.isdisjoint(folders) and bool(_CODE.fullmatch(name)))


def is_runner(path: str) -> bool:
    """Whether a path names a file that decides how tests are started: settings, scripts, pipelines."""
    return bool(_RUNNERS.fullmatch(path))
