"""Check `weakening`: no test or assertion of the base is deleted, skipped or loosened by the result.

Compares the changed files of tests with their versions in the base. Must not know how; that is `workers.weakness`.
"""

from __future__ import annotations

from scheduler.model import Check, FailureClass, WeakeningCheck
from workers.plugins import Baseline, CheckTree, Finding, Runner
from workers.scope import is_writable
from workers.testfiles import is_runner, is_test_file
from workers.verifiers.commands import last_bytes
from workers.verifiers.kinds import expect
from workers.weakness import Texts, Weakness, compare
from workers.workspace.beneath import Unsafe, read_beneath

_CAP = 4 * 1024 * 1024
_SHOWN = 100


class WeakeningVerifier:
    """Reads both versions of each changed file of tests and says where they say less."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:  # noqa: ARG002
        """Accepts when nothing was weakened; each finding names file, line and what."""
        paths = expect(check, WeakeningCheck).weakening.paths
        if tree.baseline is None:
            reason = "there is no base to compare with: weakening needs a plan with a repository"
            return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
        chosen = [path for path in tree.changed if _is_chosen(path, paths)]
        texts: dict[str, Texts] = {}
        found: list[Weakness] = []
        for path in chosen:
            try:
                texts[path] = _texts(path, tree, tree.baseline)
            except Unsafe as error:
                found.append(Weakness(path, 0, f"cannot be compared: {error.message}"))
        found += compare(texts, everything=paths is not None)
        if not found:
            files = f"{len(chosen)} changed file{'s' if len(chosen) != 1 else ''} of tests"
            return Finding(accepted=True, reason=f"nothing weakened in {files}")
        return _refused(found, tree)

    def title(self, check: Check) -> str:
        """One line for people."""
        paths = expect(check, WeakeningCheck).weakening.paths
        return f"no test weakened in {', '.join(paths)}" if paths else "no test weakened"


def _is_chosen(path: str, paths: tuple[str, ...] | None) -> bool:
    if paths is not None:
        return is_writable(path, paths)
    return is_test_file(path) or is_runner(path)


def _texts(path: str, tree: CheckTree, baseline: Baseline) -> Texts:
    old = baseline.read(path)
    try:
        new: bytes | None = read_beneath(tree.path, path, _CAP)
    except FileNotFoundError:
        new = None
    return Texts(_decoded(old), _decoded(new))


def _decoded(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8-sig", "replace")


def _refused(found: list[Weakness], tree: CheckTree) -> Finding:
    lines = [each.render() for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    count = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Finding(
        accepted=False, reason=tree.redact(lines[0] + count), output=last_bytes(tree.redact("\n".join(lines) + "\n"))
    )
