"""The DAG: order, reach, longest paths and cycles, against networkx and by hand."""

from __future__ import annotations

import time
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.graph import find_cycle, find_cycles, from_blockers, from_spec
from tests.planfile_kit import loaded

DIAMOND = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": [], "e": []}


def test_order_puts_blockers_first_and_keeps_the_file_order_else() -> None:
    assert from_blockers(DIAMOND).order() == ["a", "b", "c", "d", "e"]
    assert from_blockers({"z": [], "a": [], "m": ["a"]}).order() == ["z", "a", "m"]


def test_reach() -> None:
    graph = from_blockers(DIAMOND)
    assert graph.ancestors("d") == ["a", "b", "c"]
    assert graph.ancestors("a") == []
    assert graph.descendants("a") == ["b", "c", "d"]
    assert graph.blockers("d") == ["b", "c"]
    assert graph.dependents("a") == ["b", "c"]
    assert graph.sinks() == ["d", "e"]
    assert graph.layers() == [["a", "e"], ["b", "c"], ["d"]]


def test_path_length_counts_tasks_to_the_end() -> None:
    graph = from_blockers(DIAMOND)
    assert {task: graph.path_length(task) for task in DIAMOND} == {"a": 3, "b": 2, "c": 2, "d": 1, "e": 1}


def test_graph_of_a_plan() -> None:
    text = """\
        name: p
        goal: g
        defaults: {agent: {use: command, run: x}}
        tasks: [{id: a, blocks: [c]}, {id: b, blocked_by: [a]}, {id: c, blockedBy: [b]}]
    """
    graph = from_spec(loaded(text).spec)
    assert graph.order() == ["a", "b", "c"]
    assert graph.blockers("c") == ["a", "b"]


def test_a_settled_edge_orders_as_any_other() -> None:
    text = """\
        name: p
        goal: g
        defaults: {agent: {use: command, run: x}}
        tasks: [{id: b, blocked_by: [{task: a, when: settled}]}, {id: a}, {id: c, for_each: b.x}]
    """
    graph = from_spec(loaded(text).spec)
    assert graph.order() == ["a", "b", "c"]
    assert graph.ancestors("c") == ["a", "b"]


def test_what_is_no_dag_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown blocker x"):
        from_blockers({"a": ["x"]})
    with pytest.raises(ValueError, match="cycle"):
        from_blockers({"a": ["b"], "b": ["a"]})


def test_cycles() -> None:
    assert find_cycle(DIAMOND) is None
    assert find_cycle({"a": ["a"]}) is None, "a self edge is another error"
    assert find_cycle({"x": [], "b": ["x", "a"], "a": ["c"], "c": ["b"]}) == ["b", "c", "a"]
    assert find_cycles({"a": ["b"], "b": ["a"], "c": ["d", "a"], "d": ["c", "nowhere"]}) == [["a", "b"], ["c", "d"]]


def test_empty_graph() -> None:
    graph = from_blockers({})
    assert graph.order() == graph.sinks() == graph.layers() == []


names = st.integers(0, 7).map(lambda number: f"t{number}")
anything = st.dictionaries(names, st.lists(names, max_size=4), max_size=8)


@given(anything)
@settings(max_examples=80, deadline=None)
def test_a_cycle_is_found_exactly_when_there_is_one(blockers: dict[str, list[str]]) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(blockers)
    graph.add_edges_from((each, task) for task, named in blockers.items() for each in named if each in blockers)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = find_cycles(blockers)
    assert len(found) == sum(len(knot) > 1 for knot in nx.strongly_connected_components(graph))
    place = list(blockers)
    for cycle in found:
        assert all(graph.has_edge(one, other) for one, other in pairwise([*cycle, cycle[0]]))
        assert len(set(cycle)) == len(cycle) > 1
        assert min(cycle, key=place.index) == cycle[0]


@given(st.lists(st.sets(st.integers(0, 30), max_size=4), max_size=30))
@settings(max_examples=60, deadline=None)
def test_against_networkx(rows: list[set[int]]) -> None:
    blockers = {f"t{at}": [f"t{each}" for each in row if each < at] for at, row in enumerate(rows)}
    blockers = dict(reversed(blockers.items()))
    reference: nx.DiGraph[str] = nx.DiGraph()
    reference.add_nodes_from(blockers)
    reference.add_edges_from((each, task) for task, named in blockers.items() for each in named)
    graph = from_blockers(blockers)
    place = list(blockers).index
    assert graph.order() == list(nx.lexicographical_topological_sort(reference, key=place))
    assert [set(layer) for layer in graph.layers()] == [set(layer) for layer in nx.topological_generations(reference)]
    rank = graph.order().index
    for task in blockers:
        assert graph.ancestors(task) == sorted(nx.ancestors(reference, task), key=rank)
        assert graph.descendants(task) == sorted(nx.descendants(reference, task), key=rank)
        below = reference.subgraph({task, *nx.descendants(reference, task)})
        assert graph.path_length(task) == nx.dag_longest_path_length(below) + 1


def test_a_long_chain_needs_no_recursion() -> None:
    chain = {f"t{at}": [f"t{at - 1}"] if at else [] for at in range(20_000)}
    started = time.monotonic()
    graph = from_blockers(chain)
    assert graph.path_length("t0") == 20_000
    assert graph.ancestors("t19999") == graph.order()[:-1]
    chain["t0"] = ["t19999"]
    assert find_cycle(chain) == list(chain)
    assert time.monotonic() - started < 10
