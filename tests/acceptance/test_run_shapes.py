"""for_each, if, settled, continue, fallback, fail_fast through real runs. DESIGN section 4."""

from __future__ import annotations

import json

from tests.run_kit import Place


def states(place: Place, text: str, *arguments: str) -> tuple[int, dict[str, dict[str, object]], str]:
    done = place.command("run", str(place.plan(text)), "--json", *arguments)
    assert done.stdout, done.stderr
    outcome = json.loads(done.stdout)
    place.nothing_left()
    return done.returncode, {t["task"]: t for t in outcome["tasks"]}, done.stderr


SURVEY = """
name: each
goal: One task for each item.
defaults: {retries: {max: 0}}
tasks:
  - id: survey
    agent: {use: command, run: 'printf "%s" "{\\"modules\\": ITEMS}" > $DAGWARD_OUTPUTS'}
  - id: migrate
    for_each: survey.modules
    prompt: Migrate {{ item }}.
    agent:
      use: command
      run: |
        grep -q "Migrate $DAGWARD_ITEM" "$DAGWARD_PROMPT" && echo "$DAGWARD_ITEM" > name
        printf '{"name": "%s"}' "$DAGWARD_ITEM" > "$DAGWARD_OUTPUTS"
    verify: [{run: 'test "$(cat name)" = "$DAGWARD_ITEM"'}]
  - id: join
    blocked_by: [migrate]
    prompt: "{{ outputs.migrate }}"
    agent:
      use: command
      run: cp "$DAGWARD_INPUTS/migrate/outputs.json" all.json; cat "$DAGWARD_INPUTS"/migrate/*/files/name > names 2>/dev/null || true; cp "$DAGWARD_PROMPT" prompt
    verify: [{run: "CHECK"}]
"""


def test_instances_run_and_their_results_reach_dependents_in_item_order(place: Place) -> None:
    text = SURVEY.replace("ITEMS", '[\\"a\\", \\"b\\", \\"c\\"]').replace(
        "CHECK",
        'test \\"$(tr -d \' \\\\n\' < all.json)\\" = \'[{\\"name\\":\\"a\\"},{\\"name\\":\\"b\\"},{\\"name\\":\\"c\\"}]\' && test \\"$(tr -d \'\\\\n\' < names)\\" = abc',
    )
    code, tasks, out = states(place, text)
    assert code == 0, out
    assert [t for t in tasks if t.startswith("migrate")] == ["migrate", "migrate.0", "migrate.1", "migrate.2"]
    assert all(t["state"] == "completed" for t in tasks.values())


def test_an_empty_list_holds(place: Place) -> None:
    code, tasks, out = states(place, SURVEY.replace("ITEMS", "[]").replace("CHECK", "true"))
    assert code == 0, out
    assert set(tasks) == {"survey", "migrate", "join"}


def test_items_that_are_no_list_fail_the_task_as_configuration(place: Place) -> None:
    code, tasks, _ = states(place, SURVEY.replace("ITEMS", "3").replace("CHECK", "true"))
    assert code == 1
    assert tasks["migrate"]["failure"] == {
        "kind": "configuration",
        "reason": "for_each: the output modules of survey is int, not a list",
        "check": None,
    }
    assert tasks["join"]["cause"] == "migrate failed"


SHAPES = """
name: shapes
goal: All shapes at once.
defaults: {retries: {max: 0}}
tasks:
  - {id: look, agent: {use: command, run: 'echo "{\\"changed\\": false}" > $DAGWARD_OUTPUTS'}}
  - {id: note, blocked_by: [look], if: outputs.look.changed, agent: {use: command, run: "true"}}
  - {id: after-note, blocked_by: [note], agent: {use: command, run: "true"}}
  - {id: broken, on_failure: continue, agent: {use: command, run: "exit 1"}}
  - {id: below, blocked_by: [broken], agent: {use: command, run: "true"}}
  - {id: cleanup, blocked_by: [{task: broken, when: settled}], agent: {use: command, run: "echo x > f"}}
  - {id: risky, on_failure: {fallback: safe}, agent: {use: command, run: "exit 1"}}
  - {id: safe, agent: {use: command, run: 'echo "{\\"v\\": 7}" > $DAGWARD_OUTPUTS'}}
  - {id: uses, blocked_by: [risky], agent: {use: command, run: "grep -q 7 $DAGWARD_INPUTS/risky/outputs.json"}}
  - {id: fine, on_failure: {fallback: unused}, agent: {use: command, run: "true"}}
  - {id: unused, agent: {use: command, run: "exit 1"}}
"""


def test_conditions_settled_edges_and_fallbacks(place: Place) -> None:
    code, tasks, out = states(place, SHAPES)
    assert code == 0, out
    assert {name: (t["state"], t["cause"]) for name, t in tasks.items()} == {
        "look": ("completed", ""),
        "note": ("skipped", "its condition is false"),
        "after-note": ("skipped", "its condition is false"),
        "broken": ("failed", ""),
        "below": ("skipped", "broken failed"),
        "cleanup": ("completed", ""),
        "risky": ("failed", ""),
        "safe": ("completed", ""),
        "uses": ("completed", ""),
        "fine": ("completed", ""),
        "unused": ("skipped", "fine did not fail"),
    }


def test_a_condition_that_cannot_be_evaluated_is_a_configuration_failure(place: Place) -> None:
    text = SHAPES.replace("if: outputs.look.changed", "if: outputs.look.nothing > 3")
    code, tasks, _ = states(place, text)
    assert code == 1
    assert tasks["note"]["state"] == "failed"
    assert tasks["note"]["failure"]["kind"] == "configuration"  # type: ignore[index]


def test_fail_fast_cancels_the_rest(place: Place) -> None:
    text = """
name: fast
goal: Stop at the first failure.
fail_fast: true
concurrency: 2
defaults: {retries: {max: 0}}
tasks:
  - {id: slow, agent: {use: command, run: "touch ../../../../slow; sleep 66"}}
  - {id: bad, agent: {use: command, run: "while [ ! -e ../../../../slow ]; do sleep 0.05; done; exit 1"}}
  - {id: later, blocked_by: [slow], agent: {use: command, run: "true"}}
"""
    code, tasks, out = states(place, text)
    assert code == 1, out
    assert {n: t["state"] for n, t in tasks.items()} == {"slow": "cancelled", "bad": "failed", "later": "cancelled"}


def test_a_failed_instance_is_resumed_alone(place: Place) -> None:
    text = (
        SURVEY.replace("ITEMS", '[\\"a\\", \\"b\\"]')
        .replace("CHECK", "true")
        .replace(
            "grep -q",
            "[ $DAGWARD_ITEM = a ] || [ -e ../../../../fixed ] || exit 1; echo $DAGWARD_ITEM >> ../../../../ran; grep -q",
        )
    )
    plan = place.plan(text)
    assert place.command("run", str(plan)).returncode == 1
    (place.folder / "fixed").touch()
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    assert sorted((place.folder / "ran").read_text().split()) == ["a", "b"]
    why = place.command("why", "each", "migrate.1")
    assert why.returncode == 0, why.stderr
    assert "completed" in why.stdout
    logs = place.command("logs", "each", "migrate.1")
    assert logs.returncode == 0, logs.stderr


def test_a_repository_plan_integrates_what_is_sound(place: Place) -> None:
    import subprocess

    repo = place.folder / "repo"
    repo.mkdir()
    (repo / "base").write_text("x\n")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *arguments], cwd=repo, check=True)
    text = """
name: sound
goal: One commit for each sound task.
repo: repo
defaults: {retries: {max: 0}}
tasks:
  - {id: list, agent: {use: command, run: 'echo "{\\"n\\": [\\"p\\", \\"q\\"]}" > $DAGWARD_OUTPUTS'}}
  - {id: each, for_each: list.n, scope: {write: ["{{ item }}/**"]}, agent: {use: command, run: "mkdir -p $DAGWARD_ITEM && echo $DAGWARD_ITEM > $DAGWARD_ITEM/file"}}
  - {id: soft, on_failure: continue, agent: {use: command, run: "echo no > no; exit 1"}}
  - {id: all, blocked_by: [each], agent: {use: command, run: "cat p/file q/file > both"}, verify: [{run: "test -s both"}]}
acceptance: [{run: "test -f p/file && test -f q/file && test ! -e no"}]
"""
    code, tasks, out = states(place, text)
    assert code == 0, out
    plan = next(iter(place.json("ps", "--all")["plans"]))["plan"]  # type: ignore[index, call-overload]
    log = subprocess.run(
        ["git", "log", "--format=%s", f"main..dagward/{plan}"], cwd=repo, capture_output=True, text=True, check=True
    ).stdout
    assert log.split() == ["all", "each.1", "each.0"]
    assert tasks["_integrate"]["state"] == "completed"
