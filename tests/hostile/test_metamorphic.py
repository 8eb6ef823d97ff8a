"""The same graph gives the same answer, however its files are written. The long form is in ``make hostile``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import metamorphic
from tests.hostile.metamorphic import CHANGES, DRAW, MODELS, PROBLEMS, RULES, SAME, Changed, answers, cases

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
SHORT = [
    ("planted", "auto"),
    ("weighted, mixed attributes", "kernel"),
    ("weighted, mixed attributes", "strong"),
    ("directed, weighted", "authors"),
    ("graphs, three classes", "kernel"),
]


@pytest.mark.parametrize(("problem", "model"), SHORT, ids=[f"{model} on {problem}" for problem, model in SHORT])
def test_the_same_graph_gives_the_same_answer(tmp_path, problem, model):
    done = list(answers(tmp_path, enumerate(cases([(problem, model)])), 0))
    assert not [f"{each.name}: {each.failure}" for each in done if each.failure]
    assert {SAME, DRAW} <= Counter(each.how for each in done).keys()


@pytest.mark.parametrize("question", ["predict", "fit"])
def test_another_graph_is_noticed(tmp_path, monkeypatch, question):
    """An edge is missing."""
    shorter = lambda problem, generator: Changed(replace(problem, edges=problem.edges[1:]))  # noqa: E731
    monkeypatch.setitem(CHANGES, "rows of edges", shorter)
    case = metamorphic.Case("karate", "kernel", question, "rows of edges")
    (done,) = answers(tmp_path, [(0, case)], 0)
    assert "AssertionError: same bits is promised" in done.failure


def test_every_rule_is_asked_about():
    asked = cases(metamorphic.pairs())
    assert {case.change for case in asked} == CHANGES.keys()
    assert {metamorphic.rule_of(case.change) for case in asked} == set(RULES.values())
    assert {case.problem for case in asked} == PROBLEMS.keys()
    assert {case.model for case in asked} == MODELS.keys()


@pytest.mark.parametrize("name", PROBLEMS)
def test_changes_change_files_and_not_problems(name):
    problem, generator = PROBLEMS[name](), np.random.default_rng(0)
    edges = problem.edges.copy()
    changed = CHANGES["rows of edges"](problem, generator)
    assert not changed.problem.edges.equals(edges)
    columns = list(edges.columns)
    again = changed.problem.edges.sort_values(columns).reset_index(drop=True)
    assert again.equals(edges.sort_values(columns).reset_index(drop=True))
    assert problem.edges.equals(edges)


def test_the_page_has_the_rules():
    assert metamorphic.table() in PAGE.read_text(encoding="utf-8")
