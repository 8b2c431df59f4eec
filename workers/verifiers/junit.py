"""Check `junit`: a test command whose JUnit report is read. Exit code 0 alone is not believed.

A test run that was cut short, skipped or emptied exits 0 too; so the tests that ran are counted, and compared with
those that the same command runs on the result's base. Must not know git; the tree's Baseline does.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.model import Check, FailureClass, Json, JunitCheck
from workers.plugins import Baseline, CheckTree, Finding, Runner
from workers.verifiers.commands import execute, first_line, last_bytes, shell
from workers.verifiers.kinds import expect
from workers.verifiers.report import CAP, BadReport, Case, parse
from workers.workspace.beneath import Unsafe, read_beneath

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Base:
    """Which tests the command runs on the base: their ids, or why nobody knows."""

    ran: tuple[str, ...] = ()
    unknown: str = ""


class JunitVerifier:
    """Runs the command, reads its report, and counts."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:
        """Accepts when the command exits 0, nothing failed, enough ran, and not fewer than at the base."""
        rule = expect(check, JunitCheck)
        if os.path.lexists(tree.path / rule.junit):
            return _was_there(rule, tree)
        done = execute(shell(rule.run, rule.timeout, rule.env), tree, runner)
        if done.failure is not FailureClass.REJECTED or (not done.accepted and done.exit_code is None):
            return done
        try:
            cases = _read(tree, rule)
        except BadReport as error:
            return _no_report(rule, tree, runner, done, str(error))
        broken = [case for case in cases if case.outcome in ("failed", "error")]
        if broken or not done.accepted:
            return _refuse(done, tree, _failed(broken, done), _render(broken))
        return _count(rule, tree, runner, done, cases)

    def title(self, check: Check) -> str:
        """One line for people."""
        rule = expect(check, JunitCheck)
        return f"{first_line(rule.run)} (report {rule.junit})"


def _was_there(rule: JunitCheck, tree: CheckTree) -> Finding:
    """A report that was not written by this run proves nothing, whoever left it there."""
    if rule.junit in tree.changed:
        return Finding(
            accepted=False, reason=f"the result brings its own {rule.junit}; a report is written by the check"
        )
    reason = f"{rule.junit} is there before the tests run; name a path that the repository does not hold"
    return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)


def _no_report(rule: JunitCheck, tree: CheckTree, runner: Runner, done: Finding, why: str) -> Finding:
    """The result's fault, unless the command writes no report on the base either."""
    reason = f"{rule.junit}: {why}"
    if not done.accepted:
        return replace(done, reason=f"{done.reason}; {reason}")
    base = _base(rule, tree, runner)
    if isinstance(base, Finding):
        return base
    if base is not None and base.unknown:
        reason = f"{reason}, on the base neither"
        return replace(done, accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
    return replace(done, accepted=False, reason=reason)


def _count(rule: JunitCheck, tree: CheckTree, runner: Runner, done: Finding, cases: Sequence[Case]) -> Finding:
    ran = [case.id for case in cases if case.outcome != "skipped"]
    skipped = len(cases) - len(ran)
    told = f"{_tests(len(ran))} passed" + (f", {skipped} skipped" if skipped else "")
    if len(ran) < rule.min:
        reason = f"{told}; at least {rule.min} must run" if ran else f"no test ran{_skips(skipped)}"
        return _refuse(done, tree, reason, "")
    base = _base(rule, tree, runner)
    if isinstance(base, Finding):
        return base
    if base is None:
        return replace(done, reason=told)
    if base.unknown:
        return replace(done, reason=f"{told}; not compared with the base: {base.unknown}")
    if len(ran) < len(base.ran):
        gone = sorted((Counter(base.ran) - Counter(ran)).elements())
        return _refuse(done, tree, f"{told}, {len(base.ran)} at base", _listed("not run any more:", gone))
    return replace(done, reason=f"{told}, {len(base.ran)} at base")


def _base(rule: JunitCheck, tree: CheckTree, runner: Runner) -> Base | Finding | None:
    """What ran on the base, from memory or by running it; a Finding when that could not be done."""
    if tree.baseline is None:
        return None
    # By task: the same text runs other tests where it reads $DAGWARD_TASK, $DAGWARD_ITEM or the task's own `env`.
    name = f"junit {tree.baseline.commit} {tree.task} {rule.model_dump_json(exclude={'prove', 'min'})}"
    known = tree.baseline.recall(name)
    if isinstance(known, dict):
        return _recalled(known)
    found = _run_base(rule, tree.baseline, runner)
    if isinstance(found, Base):
        ran: list[Json] = [*found.ran]
        tree.baseline.keep(name, {"ran": ran, "unknown": found.unknown})
    return found


def _recalled(known: dict[str, Json]) -> Base:
    ran = known.get("ran")
    return Base(tuple(str(each) for each in ran) if isinstance(ran, list) else (), str(known.get("unknown", "")))


def _run_base(rule: JunitCheck, baseline: Baseline, runner: Runner) -> Base | Finding:
    tree = baseline.tree()
    if os.path.lexists(tree.path / rule.junit):
        return Base(unknown=f"it holds a {rule.junit}")
    done = execute(shell(rule.run, rule.timeout, rule.env), tree, runner)
    if done.failure is FailureClass.INFRASTRUCTURE:
        return done
    try:
        cases = _read(tree, rule)
    except BadReport as error:
        return Base(unknown=f"its {rule.junit}: {error}")
    return Base(tuple(case.id for case in cases if case.outcome != "skipped"))


def _read(tree: CheckTree, rule: JunitCheck) -> list[Case]:
    try:
        return parse(read_beneath(tree.path, rule.junit, CAP))
    except FileNotFoundError:
        raise BadReport("the command wrote no report") from None
    except Unsafe as error:
        raise BadReport(error.message) from None
    except OSError as error:
        raise BadReport(str(error.strerror)) from None


def _refuse(done: Finding, tree: CheckTree, reason: str, story: str) -> Finding:
    """The story goes last: it is the end of an output that is kept."""
    output = last_bytes(f"{done.output.rstrip()}\n\n{tree.redact(story)}\n".lstrip()) if story else done.output
    return replace(done, accepted=False, reason=tree.redact(reason), output=output)


def _failed(broken: Sequence[Case], done: Finding) -> str:
    if not broken:
        return f"{done.reason}, though no test of the report failed"
    names = ", ".join(case.id for case in broken[:3]) + (f" and {len(broken) - 3} more" if len(broken) > 3 else "")
    return f"{_tests(len(broken))} failed: {names}"


def _render(broken: Sequence[Case]) -> str:
    lines = [
        f"{'FAILED' if case.outcome == 'failed' else 'ERROR'} {case.id}: {' | '.join(case.message.split(chr(10))[:3])}"
        for case in broken[:_SHOWN]
    ]
    return "\n".join([*lines, *([f"and {len(broken) - _SHOWN} more"] if len(broken) > _SHOWN else [])])


def _listed(head: str, names: Sequence[str]) -> str:
    shown = [f"  {name}" for name in names[:_SHOWN]]
    return "\n".join([head, *shown, *([f"  and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])])


def _skips(count: int) -> str:
    return f": all {count} were skipped" if count else ""


def _tests(count: int) -> str:
    return f"{count} test{'s' if count != 1 else ''}"
